package app

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// minSecretLength is from how many bytes on a secret is searched for inside a
// value. A shorter one must be the whole value: anything may hold a few letters.
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

// secretsInClear returns the secrets in every form that a delivery may show;
// none is no error.
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

// secretMatcher holds every secret that was read. They are read again each
// second.
type secretMatcher struct {
	read func() ([]webhook.Secret, error)

	mu       sync.Mutex
	texts    []string
	inJSON   [][]byte  // what JSON with one of them holds: a short one with its quotes
	reloadAt time.Time // when they are read again
}

func (m *secretMatcher) reload(now time.Time) error {
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

// refresh reads the secrets again if it is time to.
func (m *secretMatcher) refresh(now time.Time) {
	if !now.Before(m.reloadAt) {
		_ = m.reload(now) // the verifier says what is wrong with them
	}
}

func (m *secretMatcher) matches(value string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refresh(now)
	return slices.ContainsFunc(m.texts, func(text string) bool {
		return value == text || len(text) >= minSecretLength && strings.Contains(value, text)
	})
}
