package app

import (
	"strings"

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
	return forward.NewClient(forward.ClientOptions{Timeout: s.Config.RequestTimeout, Roots: roots, Anyhow: anyhow}), nil
}

// Holds returns a function that reports whether a header's value holds one of
// the webhook secrets. Errors are those of reading them.
func (s *Session) Holds() (func(webhook.Field) bool, error) {
	secrets, err := s.Config.WebhookSecrets()
	if err != nil {
		return nil, err
	}
	return func(f webhook.Field) bool {
		for _, one := range secrets {
			if text := one.Secret.Reveal(); text != "" && strings.Contains(f.Value, text) {
				return true
			}
		}
		return false
	}, nil
}
