package app

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/redact"
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
	return redact.Strings(raw, func(text string, _ bool) string {
		if m.matches(text, now) {
			return redact.Mask
		}
		return text
	})
}

// mayContain reports whether JSON may hold a secret: it does in clear, or something
// is escaped.
func (m *secretMatcher) mayContain(raw []byte, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refresh(now)
	return bytes.IndexByte(raw, '\\') >= 0 || slices.ContainsFunc(m.inJSON, func(text []byte) bool { return bytes.Contains(raw, text) })
}
