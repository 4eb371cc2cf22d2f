package app

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// SecretMasker returns a function that masks the texts in JSON that hold one of
// the webhook secrets, as far as those can be read: some senders put a token
// into the body. It is safe for concurrent use and does not change its argument.
func (s *Session) SecretMasker() func(json.RawMessage) json.RawMessage {
	m := &secretMatcher{read: s.secretsInClear}
	_ = m.reload(time.Now()) // what needs the secrets says what is wrong with them
	return func(raw json.RawMessage) json.RawMessage { return m.mask(raw, time.Now()) }
}

// mask masks texts in valid JSON.
func (m *secretMatcher) mask(raw json.RawMessage, now time.Time) json.RawMessage {
	if !m.mayContain(raw, now) {
		return raw
	}
	var b []byte
	for rest := []byte(raw); ; {
		begin := bytes.IndexByte(rest, '"')
		if begin < 0 {
			return append(b, rest...)
		}
		end := begin + 1
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(rest))
		var text string
		literal := rest[begin:end]
		b = append(b, rest[:begin]...)
		if json.Unmarshal(literal, &text) == nil && m.matches(text, now) {
			literal = []byte(`"` + webhook.Mask + `"`)
		}
		b, rest = append(b, literal...), rest[end:]
	}
}

// mayContain reports whether JSON may hold a secret: it does in clear, or something
// is escaped.
func (m *secretMatcher) mayContain(raw []byte, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refresh(now)
	return bytes.IndexByte(raw, '\\') >= 0 || slices.ContainsFunc(m.inJSON, func(text []byte) bool { return bytes.Contains(raw, text) })
}
