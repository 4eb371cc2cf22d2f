package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Scheme returns a configured scheme, or a preset, by name.
func (s *Session) Scheme(name string) (webhook.Scheme, error) { return Scheme(s.Config, name) }

// Scheme returns a scheme of the settings, or a preset, by name.
func Scheme(c config.Config, name string) (webhook.Scheme, error) {
	if own, ok := c.Webhook.Schemes[name]; ok {
		return own, nil
	}
	if p, ok := webhook.PresetByName(name); ok {
		return p.Scheme, nil
	}
	missing := fmt.Sprintf("unknown scheme %q", name)
	const hint = "configure it under webhook.schemes; `waybill signature schemes` lists all schemes"
	if name != c.Webhook.Scheme { // but a flag's
		return webhook.Scheme{}, &config.KeyError{Message: missing, Hint: hint}
	}
	return webhook.Scheme{}, c.Refuse("webhook.scheme", missing, hint)
}

// WebhookSecrets returns the secrets of deliveries, at least one. The error is a [*config.KeyError].
func (s *Session) WebhookSecrets() ([]webhook.Secret, error) {
	secrets, err := s.AnyWebhookSecrets()
	if err == nil && len(secrets) == 0 {
		err = s.Config.Refuse("webhook.secrets", "no webhook secret is set",
			"set WAYBILL_WEBHOOK_SECRET, or set webhook.secrets to env:NAME or file:PATH")
	}
	return secrets, err
}

// AnyWebhookSecrets is [Session.WebhookSecrets] where none is no error.
func (s *Session) AnyWebhookSecrets() ([]webhook.Secret, error) {
	secrets, err := s.Config.WebhookSecrets()
	for _, secret := range secrets {
		s.IO.Hide(string(secret.Value))
	}
	return secrets, err
}

// APIKeySecret returns the API key as a secret that deliveries may be signed with, if there is one. Its name is what
// webhook.secrets can hold, or `api_key` for one that is written in the user file.
//
// Assumed: which secret signs is not shown; some services use the API key.
func (s *Session) APIKeySecret() (webhook.Secret, bool) {
	if s.Config.APIKeyFromStdin() {
		return webhook.Secret{}, false // standard input may hold the delivery
	}
	key, err := s.apiKey()
	if err != nil {
		return webhook.Secret{}, false
	}
	name := "api_key"
	if file := s.Config.APIKeyFile(); file != "" {
		name = "file:" + file
	} else if key.Origin.Level == config.FromEnv {
		name = "env:" + key.Origin.Name
	}
	return webhook.Secret{Name: name, Value: []byte(key.Secret.Reveal())}, true
}

// Redactor returns what removes the secrets of this session from what others may see: the
// API key, those of webhooks and the password of the store. What can't be read is left out.
func (s *Session) Redactor() *redact.Redactor {
	if s.app == nil {
		return nil // no settings were loaded
	}
	texts := []string{s.app.Getenv("PGPASSWORD")}
	if key, err := s.Key(); err == nil {
		texts = append(texts, key)
	}
	if password, err := s.Config.StorePassword(); err == nil {
		texts = append(texts, password.Reveal())
	}
	if secrets, err := s.AnyWebhookSecrets(); err == nil {
		for _, one := range secrets {
			texts = append(texts, string(one.Value))
		}
	}
	return redact.New(texts...)
}

// minSecretLength is in bytes. A shorter secret must be the whole value: anything may hold a few letters.
const minSecretLength = 8

// SecretMatcher returns a function that reports whether a header's value holds one of the webhook secrets, replaced
// secrets included. It is safe for concurrent use. Errors are about reading the secrets.
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
	inJSON   [][]byte  // what JSON with a secret holds: a short one with its quotes
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
// the webhook secrets, as far as the secrets can be read: some senders put a token
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
	isIn := func(text []byte) bool { return bytes.Contains(raw, text) }
	return bytes.IndexByte(raw, '\\') >= 0 || slices.ContainsFunc(m.inJSON, isIn)
}
