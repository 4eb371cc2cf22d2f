package events

import (
	"errors"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Signer signs deliveries; nil leaves them as they are.
type Signer struct {
	name   string
	scheme webhook.Scheme
	secret webhook.Secret
}

// NewSigner returns a signer by a named scheme, else by the configured one. A
// scheme that can't sign is an error.
func NewSigner(s *app.Session, named string) (*Signer, error) {
	name, scheme, err := signature.SchemeInForce(s, named)
	if err != nil {
		return nil, err
	}
	secrets, err := s.WebhookSecrets()
	if err != nil {
		return nil, err
	}
	g := &Signer{name, scheme, secrets[0]}
	_, err = webhook.Sign(scheme, g.secret, webhook.Request{Method: "POST", Path: "/", Body: []byte("{}")}, time.Now())
	if err != nil && !errors.Is(err, webhook.ErrUnsignedPart) {
		return nil, g.usageError(err)
	}
	return g, nil
}

// Sign returns a request signed with the current time.
func (g *Signer) Sign(m webhook.Request) (webhook.Request, error) {
	if g == nil {
		return m, nil
	}
	out, err := webhook.Sign(g.scheme, g.secret, m, time.Now())
	if err != nil {
		return m, g.usageError(err)
	}
	return out.Apply(m), nil
}

// usageError makes an error of a scheme that can't sign any delivery a usage error.
func (g *Signer) usageError(err error) error {
	if errors.Is(err, webhook.ErrUnsignable) {
		return command.Usagef("pass another --scheme; `waybill signature schemes` lists them", "scheme %q: %w", g.name, err)
	}
	return signature.SchemeUsage(g.name, err)
}
