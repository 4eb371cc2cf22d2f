package app

import (
	"fmt"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/listen"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Receiver returns a receiver of deliveries that verifies as the settings
// say. Errors are [*config.KeyError] for a scheme that is not there or can't
// be used, and those of reading the secrets.
func (s *Session) Receiver(opened *Store) (*listen.Receiver, error) {
	w := s.Config.Webhook
	verify, err := s.Verifier()
	if err != nil {
		return nil, err
	}
	if verify == nil && w.Verify == "enforce" {
		return nil, s.Config.Refuse("webhook.verify", "enforce needs a scheme to verify with", "set webhook.scheme, or webhook.verify: observe")
	}
	o := listen.Options{
		Store:      opened.Inbox,
		MaxBody:    int64(s.Config.Listen.MaxBody),
		Unverified: &listen.UnverifiedLimit{MaxBytes: int64(s.Config.Listen.MaxUnverified), CountBytes: opened.Keeper.UnverifiedBytes},
		Log:        s.logger(),
	}
	if verify != nil {
		o.Verify, o.Scheme, o.Enforce = verify.Verify, w.Scheme, w.Verify == "enforce"
	}
	return listen.New(o)
}

// Verifier returns what judges deliveries as the settings say, nil if they
// name no scheme, or turn verifying off. Errors are as for [Session.Receiver].
func (s *Session) Verifier() (*Verifier, error) {
	w := s.Config.Webhook
	if w.Scheme == "" || w.Verify == "off" {
		return nil, nil //nolint:nilnil // no scheme is an answer, not a failure
	}
	scheme, err := s.Scheme(w.Scheme)
	if err != nil {
		return nil, err
	}
	read := func() (*webhook.Verifier, error) {
		secrets, err := s.WebhookSecrets()
		if err != nil {
			return nil, err
		}
		v, err := webhook.NewVerifier(scheme, secrets)
		if err != nil {
			return nil, s.Config.Refuse("webhook.scheme", fmt.Sprintf("scheme %q: %v", w.Scheme, err), "")
		}
		return v, nil
	}
	return newVerifier(w.Secrets, read, func(err error) {
		if err != nil {
			s.IO.Warning("a secret changed and cannot be used, so those of before stay in force: %v", err)
			return
		}
		s.IO.Note("the secrets have changed and were read again")
	})
}

// Scheme returns a configured scheme, or a preset, by name.
func (s *Session) Scheme(name string) (webhook.Scheme, error) {
	if c, ok := s.Config.Webhook.Schemes[name]; ok {
		return c, nil
	}
	if p, ok := webhook.PresetByName(name); ok {
		return p.Scheme, nil
	}
	missing, hint := fmt.Sprintf("there is no scheme %q", name), "describe it under webhook.schemes; `waybill signature schemes list` shows what there is"
	if name != s.Config.Webhook.Scheme { // but a flag's
		return webhook.Scheme{}, &config.KeyError{Message: missing, Hint: hint}
	}
	return webhook.Scheme{}, s.Config.Refuse("webhook.scheme", missing, hint)
}

// WebhookSecrets returns the secrets that deliveries may be signed with, at
// least one. The error is a [*config.KeyError].
func (s *Session) WebhookSecrets() ([]webhook.Secret, error) {
	secrets, err := s.AnyWebhookSecrets()
	if err == nil && len(secrets) == 0 {
		err = s.Config.Refuse("webhook.secrets", "there is no secret to verify with", "set WAYBILL_WEBHOOK_SECRET, or webhook.secrets to env: or file: references")
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
	} else if key.origin.Level == config.FromEnv {
		name = "env:" + key.origin.Name
	}
	return webhook.Secret{Name: name, Value: []byte(key.secret.Reveal())}, true
}

// EditUser changes the user file, in the profile that is in force, and returns
// its path. What the environment sets stays in force over it.
func (s *Session) EditUser(changes ...config.Change) (string, error) {
	return config.EditUser(s.sources, s.Config.Profile, changes...)
}
