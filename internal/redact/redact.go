// Package redact removes known secrets from bytes that others may see, in the forms in which programs write them.
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

// Mask replaces a secret.
const Mask = "***"

// MinLength is the least length of a secret in bytes: a shorter one may be part of any text.
const MinLength = 8

// Redactor removes its secrets. It is safe for concurrent use. A nil Redactor has none.
type Redactor struct {
	forms [][]byte
	first [256]bool // first bytes of the forms
}

// New returns a redactor of the secrets. It ignores those shorter than [MinLength].
func New(secrets ...string) *Redactor {
	r := &Redactor{}
	for _, s := range secrets {
		if len(s) < MinLength {
			continue
		}
		for _, form := range forms(s) {
			if !slices.ContainsFunc(r.forms, func(f []byte) bool { return string(f) == form }) {
				r.forms = append(r.forms, []byte(form))
				r.first[form[0]] = true
			}
		}
	}
	// A longer form may contain a shorter one.
	slices.SortStableFunc(r.forms, func(a, b []byte) int { return len(b) - len(a) })
	return r
}

func forms(s string) []string {
	all := []string{
		s, url.QueryEscape(s), url.PathEscape(s), strings.ToLower(url.QueryEscape(s)),
		hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s))),
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		// Three bytes become four characters, which depend on where in a text the secret begins. The first and the last may
		// depend on the adjacent bytes.
		for before := range 3 {
			text := encoding.EncodeToString(append(make([]byte, before), s...))
			begin := (8*before + 5) / 6
			end := 8 * (before + len(s)) / 6
			all = append(all, text[begin:end])
		}
	}
	return all
}

// Bytes replaces every secret in b with [Mask]. It returns b itself if there is none, and never modifies it.
func (r *Redactor) Bytes(b []byte) []byte {
	if r == nil {
		return b
	}
	for _, form := range r.forms {
		if bytes.Contains(b, form) {
			b = bytes.ReplaceAll(b, form, []byte(Mask))
		}
	}
	return r.maskEscaped(b)
}

// maskEscaped masks forms with JSON escapes in any text, because a writer may escape any character.
func (r *Redactor) maskEscaped(b []byte) []byte {
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	var out []byte
	done := 0 // b up to here is in out
	for i := 0; i < len(b); {
		n := 0
		if b[i] == '\\' || r.first[b[i]] {
			for _, form := range r.forms {
				n = max(n, escapedLength(b[i:], form))
			}
		}
		if n > 0 {
			out = append(append(out, b[done:i]...), Mask...)
			i += n
			done = i
			continue
		}
		_, size := jsonscan.Unescape(b[i:])
		i += size
	}
	if done == 0 {
		return b
	}
	return append(out, b[done:]...)
}

// escapedLength returns the length of form at the beginning of b, escaped or not; 0 if it is not there.
func escapedLength(b, form []byte) int {
	n := 0
	for len(form) > 0 {
		if n == len(b) {
			return 0
		}
		c, size := jsonscan.Unescape(b[n:])
		if !bytes.HasPrefix(form, c) {
			return 0
		}
		form, n = form[len(c):], n+size
	}
	return n
}

// JSON is [Redactor.Bytes] for valid JSON, which stays valid: it changes strings, but not numbers or member names.
func (r *Redactor) JSON(b []byte) []byte {
	if r == nil || len(r.forms) == 0 {
		return b
	}
	return Strings(b, func(text string, name bool) string {
		if name {
			return text
		}
		return r.String(text)
	})
}

// Strings returns JSON with every string, including member names, replaced by the result of replace. Strings that
// replace does not change stay as written.
func Strings(b []byte, replace func(text string, name bool) string) []byte {
	var out []byte
	for rest := b; ; {
		begin := bytes.IndexByte(rest, '"')
		if begin < 0 {
			return append(out, rest...)
		}
		end := jsonscan.SkipString(rest, begin)
		literal := rest[begin:end]
		if len(literal) < 2 || literal[len(literal)-1] != '"' { // torn
			return append(out, rest...)
		}
		next := jsonscan.SkipSpace(rest, end)
		if text, ok := jsonscan.Text(literal); ok {
			if other := replace(text, next < len(rest) && rest[next] == ':'); other != text {
				literal, _ = json.Marshal(other) //nolint:errchkjson // a string never fails
			}
		}
		out, rest = append(append(out, rest[:begin]...), literal...), rest[end:]
	}
}

// String is [Redactor.Bytes] for text.
func (r *Redactor) String(s string) string { return string(r.Bytes([]byte(s))) }

// Error returns err with its text redacted. errors.Is and errors.As still find its causes.
func (r *Redactor) Error(err error) error {
	if r == nil || err == nil {
		return err
	}
	if text := err.Error(); r.String(text) != text {
		return &redacted{r.String(text), err}
	}
	return err
}

type redacted struct {
	text string
	err  error
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.err }

// IsCredential reports whether a header's name suggests a credential. It ignores hyphens and underscores.
func IsCredential(name string) bool {
	short := shortName(name)
	words := []string{"authorization", "cookie", "token", "secret", "password", "passwd", "apikey", "authkey"}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(short, word) }) ||
		hasLastWord(name, "auth", "pwd", "jwt", "bearer")
}

// Header returns the value of a header, or [Mask] if its name suggests a credential.
func Header(name, value string) string {
	if IsCredential(name) {
		return Mask
	}
	return value
}

// IsCredentialParameter reports whether a query parameter's name suggests a credential or a signature.
func IsCredentialParameter(name string) bool {
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	return IsCredential(name) || hasLastWord(name, "sig", "signature", "credential") ||
		slices.Contains([]string{"code", "key", "session", "sessionid", "sid"}, shortName(name))
}

func shortName(name string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
}

// hasLastWord reports whether a name is one of words, or ends with - or _ and one of words.
func hasLastWord(name string, words ...string) bool {
	return slices.Contains(words, strings.ToLower(name[strings.LastIndexAny(name, "-_")+1:]))
}
