package view

import (
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// HeaderOptions say how headers show: with Reveal in clear.
type HeaderOptions struct{ Reveal bool }

// MaskedHeaders returns headers with known secrets and credentials hidden, unless revealed: what schemes of tokens
// read (the one in force, and others), and what is named like a credential.
func MaskedHeaders(s *app.Session, header []webhook.Field, o HeaderOptions, others ...webhook.Scheme) ([]Header, error) {
	if o.Reveal {
		return headerLines(header), nil
	}
	secrets, err := KnownSecrets(s)
	if err != nil {
		return nil, err
	}
	if name := s.Config.Webhook.Scheme; name != "" {
		if scheme, err := s.Scheme(name); err == nil {
			others = append(others, scheme)
		}
	}
	tokens := map[string]bool{}
	for _, scheme := range others {
		secrets = scheme.InClear(secrets)
		if scheme.Kind == webhook.KindToken {
			tokens[strings.ToLower(strings.TrimPrefix(scheme.Signature.From, "header:"))] = true
		}
	}
	shown := headerLines(header)
	for i, h := range shown {
		if shown[i].Value = MaskText(h.Value, secrets); redact.IsCredential(h.Name) || tokens[strings.ToLower(h.Name)] {
			shown[i].Value = webhook.Mask
		}
	}
	return shown, nil
}

// MaskText hides secrets in a text.
func MaskText(text string, secrets []webhook.Secret) string {
	// The longest first: what is left of a key that holds another secret would show.
	secrets = slices.SortedFunc(slices.Values(secrets), func(a, b webhook.Secret) int { return len(b.Value) - len(a.Value) })
	for _, s := range secrets {
		if len(s.Value) > 0 {
			text = strings.ReplaceAll(text, string(s.Value), webhook.Mask)
		}
	}
	return text
}

// KnownSecrets returns the webhook secrets and the API key, if there are any.
func KnownSecrets(s *app.Session) ([]webhook.Secret, error) {
	all, err := s.AnyWebhookSecrets()
	if err != nil {
		return nil, err
	}
	if key, ok := s.APIKeySecret(); ok {
		all = append(all, key)
	}
	return all, nil
}

func headerLines(fields []webhook.Field) []Header {
	lines := make([]Header, len(fields))
	for i, f := range fields {
		lines[i] = Header(f)
	}
	return lines
}

// Header is one header line in our output.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// PrintHeaders prints headers as in a request, or as CSV.
func PrintHeaders(out *command.Output, hs []Header) error {
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
