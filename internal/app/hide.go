package app

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// Hide returns a function that masks the texts in JSON which hold one of the
// webhook secrets, as far as those can be read: some senders put a token into
// the body. It is safe for concurrent use and leaves what it gets as it is.
func (s *Session) Hide() func(json.RawMessage) json.RawMessage {
	h := &held{read: s.secretsInClear}
	_ = h.look(time.Now()) // what needs the secrets says what is wrong with them
	return func(raw json.RawMessage) json.RawMessage { return h.hide(raw, time.Now()) }
}

// hide masks texts in valid JSON.
func (h *held) hide(raw json.RawMessage, now time.Time) json.RawMessage {
	if !h.mayBeIn(raw, now) {
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
		if json.Unmarshal(literal, &text) == nil && h.in(text, now) {
			literal = []byte(`"` + webhook.Masked + `"`)
		}
		b, rest = append(b, literal...), rest[end:]
	}
}

// mayBeIn reports whether JSON may hold a secret: it does in clear, or something
// is escaped.
func (h *held) mayBeIn(raw []byte, now time.Time) bool {
	if h.in(string(raw), now) || bytes.IndexByte(raw, '\\') >= 0 {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, text := range h.texts { // those that are too short to be looked for inside of values
		if bytes.Contains(raw, []byte(`"`+text+`"`)) {
			return true
		}
	}
	return false
}
