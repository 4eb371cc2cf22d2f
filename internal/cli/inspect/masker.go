package inspect

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/webhook"
)

type masker struct {
	secrets []webhook.Secret // in every form that a delivery may show
	json    func(json.RawMessage) json.RawMessage

	signature string // parameter of a query that has the signature; empty for none
}

func (p *Page) newMasker() (masker, error) {
	secrets, err := view.KnownSecrets(p.Call.Session)
	if err != nil {
		return masker{}, err
	}
	m := masker{secrets: secrets, json: p.Call.SecretMasker()}
	if scheme, err := p.Call.Scheme(p.Call.Config.Webhook.Scheme); err == nil {
		m.secrets = scheme.InClear(secrets)
		if name, ok := strings.CutPrefix(scheme.WithDefaults().Signature.From, "query:"); ok && scheme.Kind != webhook.KindToken {
			m.signature = name
		}
	}
	return m, nil
}

func (m masker) text(s string) string {
	return view.MaskHeaders([]webhook.Field{{Value: s}}, m.secrets)[0].Value
}

// query hides the parameters of a query that hold secrets, or are named like a credential,
// but for the signature of the scheme in force.
func (m masker) query(query string) string {
	pairs := strings.Split(view.MaskQuery(query, m.secrets), "&")
	for i, pair := range pairs {
		if name, value, _ := strings.Cut(pair, "="); value != "" && name != m.signature && view.IsCredentialParameter(name) {
			pairs[i] = name + "=" + webhook.Mask
		}
	}
	return strings.Join(pairs, "&")
}

// content returns bytes of a body as they are shown, see [newContent].
func (m masker) content(b []byte, maxText, maxHex int) contentJSON {
	shown := []byte(m.json(b))
	if !json.Valid(b) {
		shown = []byte(m.text(string(b)))
	}
	j := newContent(shown, maxText, maxHex)
	j.Bytes, j.Masked = len(b), !bytes.Equal(shown, b)
	return j
}

type contentJSON struct {
	Text   *string `json:"text,omitempty"` // of what is UTF-8
	Hex    string  `json:"hex,omitempty"`  // of what is not
	Bytes  int     `json:"bytes"`          // of the whole, before anything was hidden
	Cut    bool    `json:"cut"`            // only the start is here
	Masked bool    `json:"masked"`         // secrets are hidden
}

// newContent returns bytes as they are shown, cut beyond those many of them.
func newContent(b []byte, maxText, maxHex int) contentJSON {
	j := contentJSON{Bytes: len(b)}
	if !utf8.Valid(b) {
		j.Cut = len(b) > maxHex
		j.Hex = hex.EncodeToString(b[:min(len(b), maxHex)])
		return j
	}
	j.Cut = len(b) > maxText
	end := min(len(b), maxText)
	for end < len(b) && end > 0 && !utf8.RuneStart(b[end]) {
		end--
	}
	text := string(b[:end])
	j.Text = &text
	return j
}
