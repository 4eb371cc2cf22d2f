package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// secretsReload is how often the files of secrets are checked for changes.
const secretsReload = time.Second

// Verifier verifies with the secrets as their files hold them, so that a
// secret can be changed while deliveries arrive. It is safe for concurrent use.
type Verifier struct {
	build    func() (*webhook.Verifier, error) // reads the secrets
	onReload func(error)                       // called for each change; with an error, the old secrets stay
	files    []string

	mu       sync.Mutex
	verifier *webhook.Verifier
	infos    []os.FileInfo
	reloadAt time.Time // when the files are checked again
}

// shortestSecret is the length in bytes from which a webhook secret draws no warning.
const shortestSecret = 4

// Verifier returns what verifies deliveries as the settings say, nil if they name no scheme, or turn verifying off.
// The error is a [*config.KeyError] if the scheme is missing or unusable, or says why the secrets can't be read.
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
		for _, secret := range secrets {
			if len(secret.Value) < shortestSecret {
				s.IO.Warning("the webhook secret %s has fewer than %d characters, so anybody can guess it",
					secret.Name, shortestSecret)
			}
		}
		v, err := webhook.NewVerifier(scheme, secrets)
		if err != nil {
			return nil, s.Config.Refuse("webhook.scheme", fmt.Sprintf("scheme %q: %v", w.Scheme, err), "")
		}
		return v, nil
	}
	return newVerifier(w.Secrets, read, func(err error) {
		if err != nil {
			s.IO.Warning("a secret has changed and can't be used; the previous secrets stay in use: %v", err)
			return
		}
		s.IO.Note("Secrets reloaded")
	})
}

// VerifyPrint says how deliveries are verified, to be compared among the listeners of a
// store with that identity: "none", or the mode, the scheme, and a print of its
// definition and the secrets. The print has 16 bits: too few to find a secret by.
func (s *Session) VerifyPrint(identity string) (string, error) {
	w := s.Config.Webhook
	if w.Scheme == "" || w.Verify == "off" {
		return "none", nil
	}
	scheme, err := s.Scheme(w.Scheme)
	if err != nil {
		return "", err
	}
	secrets, err := s.WebhookSecrets()
	if err != nil {
		return "", err
	}
	values := make([]string, len(secrets))
	for i, secret := range secrets {
		values[i] = string(secret.Value)
	}
	slices.Sort(values)
	mac := hmac.New(sha256.New, []byte(identity))
	fmt.Fprintf(mac, "%+v %q", scheme.WithDefaults(), values)
	return fmt.Sprintf("%s %s %x", w.Verify, w.Scheme, mac.Sum(nil)[:2]), nil
}

// newVerifier reads the secrets. places are those of webhook.secrets.
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

// stat returns nil for a file that is not there or that is a pipe, which can be read but once.
func (v *Verifier) stat() []os.FileInfo {
	seen := make([]os.FileInfo, len(v.files))
	for i, path := range v.files {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			seen[i] = info
		}
	}
	return seen
}
