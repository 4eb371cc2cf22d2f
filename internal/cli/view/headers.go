package view

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Masker says what is masked of a delivery: the webhook secrets and the API key wherever they stand, and what is
// named like a credential.
type Masker struct {
	JSON func(json.RawMessage) json.RawMessage // of texts in JSON, see [app.Session.SecretMasker]

	secrets   []string        // in every form that a delivery may show, the longest first
	tokens    map[string]bool // headers, in lower case, that schemes of tokens read
	signature string          // parameter of a query that has the signature in force; empty for none
}

// NewMasker returns the masker for the scheme in force, and others. Errors are about reading the secrets.
func NewMasker(s *app.Session, others ...webhook.Scheme) (Masker, error) {
	m := Masker{JSON: s.SecretMasker(), tokens: map[string]bool{}}
	secrets, err := s.AnyWebhookSecrets()
	if err != nil {
		return m, err
	}
	if key, ok := s.APIKeySecret(); ok {
		secrets = append(secrets, key)
	}
	if scheme, err := s.Scheme(s.Config.Webhook.Scheme); err == nil {
		others = append(others, scheme)
		name, ok := strings.CutPrefix(scheme.WithDefaults().Signature.From, "query:")
		if ok && scheme.Kind != webhook.KindToken {
			m.signature = name
		}
	}
	for _, scheme := range others {
		secrets = scheme.InClear(secrets)
		if scheme.Kind == webhook.KindToken {
			m.tokens[strings.ToLower(strings.TrimPrefix(scheme.Signature.From, "header:"))] = true
		}
	}
	for _, one := range secrets {
		if len(one.Value) > 0 {
			m.secrets = append(m.secrets, string(one.Value))
		}
	}
	// What is left of a key that holds another secret would show.
	slices.SortFunc(m.secrets, func(a, b string) int { return len(b) - len(a) })
	return m, nil
}

// Text masks a text.
func (m Masker) Text(text string) string {
	for _, secret := range m.secrets {
		text = strings.ReplaceAll(text, secret, redact.Mask)
	}
	return text
}

// Query masks parameters that hold secrets or are named like one, but not the signature in force.
func (m Masker) Query(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, escaped, _ := strings.Cut(pair, "=")
		value, err := url.PathUnescape(escaped)
		holds := slices.ContainsFunc(m.secrets, func(s string) bool { return err != nil || strings.Contains(value, s) })
		if holds || escaped != "" && name != m.signature && redact.IsCredentialParameter(name) {
			pairs[i] = name + "=" + redact.Mask
		}
	}
	return strings.Join(pairs, "&")
}

// Headers masks headers.
func (m Masker) Headers(header []webhook.Field) []webhook.Field {
	shown := append([]webhook.Field{}, header...)
	for i, h := range shown {
		if shown[i].Value = redact.Header(h.Name, m.Text(h.Value)); m.tokens[strings.ToLower(h.Name)] {
			shown[i].Value = redact.Mask
		}
	}
	return shown
}

// HeaderOptions say how headers show: with Reveal in clear.
type HeaderOptions struct{ Reveal bool }

// ShownHeaders returns headers masked, unless revealed, by [NewMasker].
func ShownHeaders(s *app.Session, h []webhook.Field, o HeaderOptions, more ...webhook.Scheme) ([]webhook.Field, error) {
	if o.Reveal {
		return append([]webhook.Field{}, h...), nil
	}
	m, err := NewMasker(s, more...)
	return m.Headers(h), err
}

// PrintHeaders prints headers as in a request, or as CSV.
func PrintHeaders(out *command.Output, hs []webhook.Field) error {
	if out.IsCSV() {
		fs := make([]render.Field, len(hs))
		for i, h := range hs {
			fs[i] = render.Field{Name: h.Name, Value: h.Value}
		}
		return out.Fields(fs)
	}
	for _, h := range hs {
		if err := out.Line("%s: %s", h.Name, h.Value); err != nil {
			return err
		}
	}
	return nil
}
