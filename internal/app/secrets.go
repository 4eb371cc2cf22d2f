package app

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
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
	if name != c.Webhook.Scheme { // except a flag's
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

// AnyWebhookSecrets is [Session.WebhookSecrets], but having none is not an error.
func (s *Session) AnyWebhookSecrets() ([]webhook.Secret, error) {
	secrets, err := s.Config.WebhookSecrets()
	for _, secret := range secrets {
		s.IO.Hide(string(secret.Value))
	}
	return secrets, err
}

// APIKeySecret returns the API key, if there is one, as a secret that may sign deliveries. Its name is in the form of
// webhook.secrets, or `api_key` if it is written in the user file.
//
// Assumed: the interface does not show which secret signs; some services use the API key.
func (s *Session) APIKeySecret() (webhook.Secret, bool) {
	if s.Config.APIKeyFromStdin() {
		return webhook.Secret{}, false // standard input may contain the delivery
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

// Redactor returns a redactor of this session's secrets: the API key, the webhook secrets and the store's password.
// Secrets that can't be read are left out.
func (s *Session) Redactor() *redact.Redactor {
	if s.app == nil {
		return nil // no settings were loaded
	}
	key, _ := s.Key()
	password, _ := s.Config.StorePassword()
	secrets, _ := s.AnyWebhookSecrets()
	texts := []string{s.app.Getenv("PGPASSWORD"), key, password.Reveal()}
	for _, one := range secrets {
		texts = append(texts, string(one.Value))
	}
	return redact.New(texts...)
}

// SecretMatcher returns a function that reports whether a header's value contains a webhook secret, including
// replaced ones. It is safe for concurrent use. Errors are about reading the secrets.
func (s *Session) SecretMatcher() (func(webhook.Field) bool, error) {
	m := &secretMatcher{read: s.secretsInClear}
	if _, err := m.current(time.Now()); err != nil {
		return nil, err
	}
	return func(f webhook.Field) bool { return m.matches(f.Value, time.Now()) }, nil
}

// secretsInClear returns the secrets in every form that a delivery may contain. Having none is not an error.
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

// secretMatcher holds all secrets read so far. It rereads them each second.
type secretMatcher struct {
	read func() ([]webhook.Secret, error)

	mu       sync.Mutex
	texts    []string
	reloadAt time.Time // time of the next read
}

// current returns all secrets read so far. Callers may ignore an error: the verifier reports errors of secrets.
func (m *secretMatcher) current(now time.Time) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Before(m.reloadAt) {
		return m.texts, nil
	}
	m.reloadAt = now.Add(secretsReload)
	secrets, err := m.read()
	for _, secret := range secrets {
		if text := string(secret.Value); text != "" && !slices.Contains(m.texts, text) {
			m.texts = append(m.texts, text)
		}
	}
	return m.texts, err
}

func (m *secretMatcher) matches(value string, now time.Time) bool {
	texts, _ := m.current(now)
	return hasSecret(value, texts)
}

// hasSecret reports whether value holds one of texts. A short text must be all of it: any text may hold a few letters.
func hasSecret(value string, texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return value == text || len(text) >= redact.MinLength && strings.Contains(value, text)
	})
}

// SecretMasker returns a function that masks strings in JSON that contain a webhook secret, as far as the secrets can
// be read: some senders put a token into the body. It is safe for concurrent use and does not change its argument.
func (s *Session) SecretMasker() func(json.RawMessage) json.RawMessage {
	m := &secretMatcher{read: s.secretsInClear}
	_, _ = m.current(time.Now()) // users of the secrets report their errors
	return func(raw json.RawMessage) json.RawMessage { return m.mask(raw, time.Now()) }
}

func (m *secretMatcher) mask(raw json.RawMessage, now time.Time) json.RawMessage {
	texts, _ := m.current(now)
	isIn := func(text string) bool { return bytes.Contains(raw, []byte(text)) }
	if bytes.IndexByte(raw, '\\') < 0 && !slices.ContainsFunc(texts, isIn) {
		return raw
	}
	return redact.Strings(raw, func(text string, _ bool) string {
		if hasSecret(text, texts) {
			return redact.Mask
		}
		return text
	})
}

// secretsReload is how often the files of secrets are checked for changes.
const secretsReload = time.Second

// SchemeVerifier verifies with one scheme and the configured secrets.
type SchemeVerifier struct {
	*webhook.Verifier

	Name    string
	Scheme  webhook.Scheme
	Secrets []webhook.Secret
}

// VerifierBy returns a verifier for the configured scheme or preset of that name. The error is a [*config.KeyError].
func (s *Session) VerifierBy(name string) (SchemeVerifier, error) {
	scheme, err := s.Scheme(name)
	if err != nil {
		return SchemeVerifier{}, err
	}
	secrets, err := s.WebhookSecrets()
	if err != nil {
		return SchemeVerifier{}, err
	}
	v, err := webhook.NewVerifier(scheme, secrets)
	if err != nil {
		err = s.Config.Refuse("webhook.scheme", fmt.Sprintf("scheme %q: %v", name, err), "")
	}
	return SchemeVerifier{v, name, scheme, secrets}, err
}

// Verifier verifies with the current content of the secret files, so that a secret can be changed while deliveries
// arrive. It is safe for concurrent use.
type Verifier struct {
	build    func() (*webhook.Verifier, error) // reads the secrets
	onReload func(error)                       // called on each change; with an error, the old secrets stay
	files    []string

	mu       sync.Mutex
	verifier *webhook.Verifier
	infos    []os.FileInfo
	reloadAt time.Time // time of the next check of the files
}

// shortestSecret is the length in bytes below which a webhook secret causes a warning.
const shortestSecret = 4

// Verifier returns a verifier according to the settings, or nil if they name no scheme or turn verification off. The
// error is a [*config.KeyError] if the scheme is missing or unusable, or says why the secrets can't be read.
func (s *Session) Verifier() (*Verifier, error) {
	w := s.Config.Webhook
	if w.Scheme == "" || w.Verify == "off" {
		return nil, nil //nolint:nilnil // no scheme is an answer, not a failure
	}
	read := func() (*webhook.Verifier, error) {
		v, err := s.VerifierBy(w.Scheme)
		for _, secret := range v.Secrets {
			if len(secret.Value) < shortestSecret {
				s.IO.Warning("the webhook secret %s has fewer than %d characters, so anybody can guess it",
					secret.Name, shortestSecret)
			}
		}
		return v.Verifier, err
	}
	return newVerifier(w.Secrets, read, func(err error) {
		if err != nil {
			s.IO.Warning("a secret has changed and can't be used; the previous secrets stay in use: %v", err)
			return
		}
		s.IO.Note("Secrets reloaded")
	})
}

// VerifyPrint describes how deliveries are verified, for comparing the listeners of the store with that identity:
// "none", or the mode, the scheme, and a fingerprint of its definition and the secrets. The fingerprint has 16 bits:
// too few to find a secret with.
func (s *Session) VerifyPrint(identity string) (string, error) {
	w := s.Config.Webhook
	if w.Scheme == "" || w.Verify == "off" {
		return "none", nil
	}
	v, err := s.VerifierBy(w.Scheme)
	if err != nil {
		return "", err
	}
	values := make([]string, len(v.Secrets))
	for i, secret := range v.Secrets {
		values[i] = string(secret.Value)
	}
	slices.Sort(values)
	mac := hmac.New(sha256.New, []byte(identity))
	fmt.Fprintf(mac, "%+v %q", v.Scheme.WithDefaults(), values)
	return fmt.Sprintf("%s %s %x", w.Verify, w.Scheme, mac.Sum(nil)[:2]), nil
}

// newVerifier reads the secrets. places are the values of webhook.secrets.
func newVerifier(places []string, read func() (*webhook.Verifier, error), onReload func(error)) (*Verifier, error) {
	v := &Verifier{build: read, onReload: onReload}
	for _, place := range places {
		if path, ok := strings.CutPrefix(place, "file:"); ok {
			v.files = append(v.files, path)
		}
	}
	v.infos, v.reloadAt = v.stat(), time.Now().Add(secretsReload)
	var err error
	v.verifier, err = read()
	return v, err
}

// Verify is [webhook.Verifier.Verify].
func (v *Verifier) Verify(r webhook.Request, now time.Time) webhook.Verdict {
	return v.current(time.Now()).Verify(r, now)
}

func (v *Verifier) current(at time.Time) *webhook.Verifier {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.files) == 0 || at.Before(v.reloadAt) {
		return v.verifier
	}
	v.reloadAt = at.Add(secretsReload)
	seen := v.stat()
	same := func(was, now os.FileInfo) bool {
		if was == nil || now == nil {
			return was == now
		}
		return os.SameFile(was, now) && was.ModTime().Equal(now.ModTime()) && was.Size() == now.Size()
	}
	if slices.EqualFunc(v.infos, seen, same) {
		return v.verifier
	}
	v.infos = seen
	made, err := v.build()
	if err == nil {
		v.verifier = made
	}
	v.onReload(err)
	return v.verifier
}

// stat returns nil for a file that is missing, or is a pipe, which can be read only once.
func (v *Verifier) stat() []os.FileInfo {
	seen := make([]os.FileInfo, len(v.files))
	for i, path := range v.files {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			seen[i] = info
		}
	}
	return seen
}
