package app

import (
	"fmt"

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
	missing, hint := fmt.Sprintf("unknown scheme %q", name), "configure it under webhook.schemes; `waybill signature schemes` lists all schemes"
	if name != c.Webhook.Scheme { // but a flag's
		return webhook.Scheme{}, &config.KeyError{Message: missing, Hint: hint}
	}
	return webhook.Scheme{}, c.Refuse("webhook.scheme", missing, hint)
}

// WebhookSecrets returns the secrets of deliveries, at least one. The error is a [*config.KeyError].
func (s *Session) WebhookSecrets() ([]webhook.Secret, error) {
	secrets, err := s.AnyWebhookSecrets()
	if err == nil && len(secrets) == 0 {
		err = s.Config.Refuse("webhook.secrets", "no webhook secret is set", "set WAYBILL_WEBHOOK_SECRET, or set webhook.secrets to env:NAME or file:PATH")
	}
	return secrets, err
}

// AnyWebhookSecrets is [Session.WebhookSecrets] where none is no error.
func (s *Session) AnyWebhookSecrets() ([]webhook.Secret, error) {
	named, err := s.Config.WebhookSecrets()
	if err != nil {
		return nil, err
	}
	secrets := make([]webhook.Secret, len(named))
	for i, n := range named {
		secrets[i] = webhook.Secret{Name: n.Name, Value: []byte(n.Secret.Reveal())}
		s.IO.Hide(n.Secret.Reveal())
	}
	return secrets, nil
}

// APIKeySecret returns the API key as a secret that deliveries may be signed
// with, if there is one. Its name is what webhook.secrets can hold, or
// `api_key` for one that is written in the user file.
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
