package app

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// minSecretLength is in bytes. A shorter secret must be the whole value: anything may hold a few letters.
const minSecretLength = 8

// SecretMatcher returns a function that reports whether a header's value holds
// one of the webhook secrets, those of before a change included. It is safe for
// concurrent use. Errors are those of reading the secrets.
func (s *Session) SecretMatcher() (func(webhook.Field) bool, error) {
	m := &secretMatcher{read: s.secretsInClear}
	if err := m.reload(time.Now()); err != nil {
		return nil, err
	}
	return func(f webhook.Field) bool { return m.matches(f.Value, time.Now()) }, nil
}

// secretsInClear returns the secrets in every form that a delivery may show; none is no error.
func (s *Session) secretsInClear() ([]webhook.Secret, error) {
	all, err := s.AnyWebhookSecrets()
	if err != nil {
		return nil, err
	}
	if name := s.Config.Webhook.Scheme; name != "" {
		scheme, err := s.Scheme(name)
		if err != nil {
			return nil, err
		}
		all = scheme.InClear(all)
	}
	return all, nil
}

// secretMatcher holds every secret that was read. They are read again each second.
type secretMatcher struct {
	read func() ([]webhook.Secret, error)

	mu       sync.Mutex
	texts    []string
	inJSON   [][]byte  // what JSON with one of them holds: a short one with its quotes
	reloadAt time.Time // when they are read again
}

// reload reads the secrets again once it is time to.
func (m *secretMatcher) reload(now time.Time) error {
	if now.Before(m.reloadAt) {
		return nil
	}
	m.reloadAt = now.Add(secretsReload)
	secrets, err := m.read()
	for _, one := range secrets {
		if text := string(one.Value); text != "" && !slices.Contains(m.texts, text) {
			m.texts = append(m.texts, text)
			if len(text) < minSecretLength {
				text = `"` + text + `"`
			}
			m.inJSON = append(m.inJSON, []byte(text))
		}
	}
	return err
}

func (m *secretMatcher) matches(value string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.reload(now) // the verifier says what is wrong with them
	return slices.ContainsFunc(m.texts, func(text string) bool {
		return value == text || len(text) >= minSecretLength && strings.Contains(value, text)
	})
}

// SecretMasker returns a function that masks the texts in JSON that hold one of
// the webhook secrets, as far as those can be read: some senders put a token
// into the body. It is safe for concurrent use and does not change its argument.
func (s *Session) SecretMasker() func(json.RawMessage) json.RawMessage {
	m := &secretMatcher{read: s.secretsInClear}
	_ = m.reload(time.Now()) // what needs the secrets says what is wrong with them
	return func(raw json.RawMessage) json.RawMessage { return m.mask(raw, time.Now()) }
}

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

// mayContain reports whether JSON holds a secret in clear, or an escape.
func (m *secretMatcher) mayContain(raw []byte, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.reload(now) // likewise
	return bytes.IndexByte(raw, '\\') >= 0 || slices.ContainsFunc(m.inJSON, func(text []byte) bool { return bytes.Contains(raw, text) })
}
