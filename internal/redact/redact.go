// Package redact removes known secrets from bytes that others may see, in the forms
// that programs write them in.
package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// Mask is written in place of a secret.
const Mask = "***"

// MinLength is how many bytes a secret needs: a shorter one may be a part of anything.
const MinLength = 8

// Redactor knows secrets. It is safe for concurrent use. Nil knows none.
type Redactor struct{ forms [][]byte }

// New returns a redactor of the secrets. Those shorter than [MinLength] are left out.
func New(secrets ...string) *Redactor {
	r := &Redactor{}
	for _, s := range secrets {
		if len(s) < MinLength {
			continue
		}
		for _, form := range forms(s) {
			if !slices.ContainsFunc(r.forms, func(f []byte) bool { return string(f) == form }) {
				r.forms = append(r.forms, []byte(form))
			}
		}
	}
	// A longer form may contain a shorter one.
	slices.SortStableFunc(r.forms, func(a, b []byte) int { return len(b) - len(a) })
	return r
}

// forms returns the secret as it is, in JSON, in URLs, in hex and in base64.
func forms(s string) []string {
	all := []string{
		s, inJSON(s, true), inJSON(s, false), url.QueryEscape(s), url.PathEscape(s), strings.ToLower(url.QueryEscape(s)),
		hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s))),
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		// Three bytes become four characters: what they are depends on where in a text
		// the secret begins. The first and the last may depend on its neighbours.
		for before := range 3 {
			text := encoding.EncodeToString(append(make([]byte, before), s...))
			begin := (8*before + 5) / 6
			end := 8 * (before + len(s)) / 6
			all = append(all, text[begin:end])
		}
	}
	return all
}

// inJSON returns the secret as a part of a string of JSON.
func inJSON(s string, escapeHTML bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(escapeHTML)
	if err := e.Encode(s); err != nil { // a string never fails
		return s
	}
	return b.String()[1 : b.Len()-2]
}

// Bytes returns b with the [Mask] in place of every secret. It does not change b, and
// returns b itself if there is none in it.
func (r *Redactor) Bytes(b []byte) []byte {
	if r == nil {
		return b
	}
	for _, form := range r.forms {
		if bytes.Contains(b, form) {
			b = bytes.ReplaceAll(b, form, []byte(Mask))
		}
	}
	return b
}

// JSON is [Redactor.Bytes] for valid JSON, which stays valid: secrets are removed from
// strings, and neither from numbers nor from names of members.
func (r *Redactor) JSON(b []byte) []byte {
	if r == nil || len(r.forms) == 0 {
		return b
	}
	var out []byte
	for rest := b; ; {
		begin := bytes.IndexByte(rest, '"')
		if begin < 0 {
			return append(out, rest...)
		}
		end := jsonscan.SkipString(rest, begin)
		literal := rest[begin:end]
		if next := jsonscan.SkipSpace(rest, end); next == len(rest) || rest[next] != ':' {
			text, _ := jsonscan.Text(literal)
			if hidden := r.String(text); hidden != text {
				literal = []byte(`"` + inJSON(hidden, true) + `"`)
			}
		}
		out, rest = append(append(out, rest[:begin]...), literal...), rest[end:]
	}
}

// String is [Redactor.Bytes] for text.
func (r *Redactor) String(s string) string {
	if r == nil {
		return s
	}
	for _, form := range r.forms {
		if strings.Contains(s, string(form)) {
			s = strings.ReplaceAll(s, string(form), Mask)
		}
	}
	return s
}

// Error returns err, with the text of which secrets are removed if it has any. Its
// causes stay: errors.Is and errors.As find them.
func (r *Redactor) Error(err error) error {
	if r == nil || err == nil {
		return err
	}
	if text := err.Error(); r.String(text) != text {
		return &redacted{r.String(text), err}
	}
	return err
}

// redacted is an error with another text.
type redacted struct {
	text string
	err  error
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.err }
