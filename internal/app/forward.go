package app

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// ForwardClient returns a client for targets of deliveries. anyhow lets it
// dial any address. The caller closes it.
func (s *Session) ForwardClient(anyhow bool) (*forward.Client, error) {
	roots, err := api.Certificates(s.Config.CAFile)
	if err != nil {
		return nil, err
	}
	return forward.NewClient(forward.ClientOptions{Timeout: s.Config.RequestTimeout, Roots: roots, AllowForbidden: anyhow}), nil
}

// leastHeld is how long a secret must be, in bytes, to be looked for within a
// value and not only as all of it: anything may hold a few letters.
const leastHeld = 8

// Holds returns a function that reports whether a header's value holds one of
// the webhook secrets, those that were in force before included. It is safe
// for concurrent use. Errors are those of reading the secrets.
func (s *Session) Holds() (func(webhook.Field) bool, error) {
	h := &held{read: s.secretsInClear}
	if err := h.look(time.Now()); err != nil {
		return nil, err
	}
	return func(f webhook.Field) bool { return h.in(f.Value, time.Now()) }, nil
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

// held is every secret that was seen. Files are read again as those of a
// [Verifier] are.
type held struct {
	read func() ([]webhook.Secret, error)

	mu    sync.Mutex
	texts []string
	after time.Time // when they are read again
}

func (h *held) look(now time.Time) error {
	h.after = now.Add(secretsPause)
	secrets, err := h.read()
	for _, one := range secrets {
		if text := string(one.Value); text != "" && !slices.Contains(h.texts, text) {
			h.texts = append(h.texts, text)
		}
	}
	return err
}

func (h *held) in(value string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !now.Before(h.after) {
		_ = h.look(now) // the verifier says what is wrong with them
	}
	return slices.ContainsFunc(h.texts, func(text string) bool {
		return value == text || len(text) >= leastHeld && strings.Contains(value, text)
	})
}
