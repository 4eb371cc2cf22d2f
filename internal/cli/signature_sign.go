package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// signedJSON is what a sender adds to a delivery.
type signedJSON struct {
	Scheme  string       `json:"scheme"`
	Headers []headerJSON `json:"headers"`
	Query   string       `json:"query"`
}

type signOptions struct {
	givenDelivery

	Scheme string
	Reveal bool
}

func (r *runner) signatureSign() *cobra.Command {
	var o signOptions
	cmd := &cobra.Command{
		Use:   "sign",
		Short: "Show the headers that a scheme would carry",
		Long: `sign signs a body with the first webhook secret, as a sender using the scheme would,
and prints the headers to send with it. A token in clear shows as *** without --reveal.`,
		Example: example("waybill signature sign --scheme hmac-body-hex --body body.json", "waybill signature sign --scheme mine --body - --at 2026-01-31T08:00:00Z"),
		Args:    cobra.NoArgs,
		RunE: r.run(func(ctx context.Context, s *app.Session, _ []string) error {
			return r.runSign(ctx, s, o)
		}),
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&o.Scheme, "scheme", "", "sign by this scheme, a preset or one of webhook.schemes")
	cmd.Flags().BoolVar(&o.Reveal, "reveal", false, "show credentials in clear")
	settingFlags(cmd, "secret-from")
	return cmd
}

func (r *runner) runSign(ctx context.Context, s *app.Session, o signOptions) error {
	if o.Body == "" {
		return usagef("give --body FILE, or - for standard input", "there is no body to sign")
	}
	name, scheme, err := schemeInForce(s, o.Scheme)
	if err != nil {
		return err
	}
	secrets, err := s.WebhookSecrets()
	if err != nil {
		return err
	}
	d, err := o.sample(ctx, s)
	if err != nil {
		return err
	}
	out, err := webhook.Sign(scheme, secrets[0], d.Request, d.At)
	switch {
	case errors.Is(err, webhook.ErrUnsignable), errors.Is(err, webhook.ErrUnsignedPart):
		return &usageError{err: err, hint: "`waybill signature schemes show " + shellWord(name) + "` shows what is signed; add it to the body or with --header"}
	case err != nil:
		return asSchemeUsage(name, err)
	}
	secrets = scheme.InClear(secrets)
	j := signedJSON{Scheme: name, Headers: mask(out.Header, secrets, o.Reveal), Query: maskQuery(out.RawQuery, secrets, o.Reveal)}
	if r.out.machine() {
		return r.out.object(j)
	}
	if err := r.out.headers(j.Headers); err != nil || r.out.csv() {
		return err
	}
	if out.RawQuery != o.Query {
		return r.out.line("?%s", j.Query)
	}
	return nil
}
