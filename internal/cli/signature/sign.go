package signature

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// signedJSON is what a sender adds to a delivery.
type signedJSON struct {
	Scheme  string        `json:"scheme"`
	Headers []view.Header `json:"headers"`
	Query   string        `json:"query"`
}

type signOptions struct {
	givenDelivery

	Scheme string
	Reveal bool
}

func newSign(f *command.Factory) *cobra.Command {
	var o signOptions
	cmd := &cobra.Command{
		Use:   "sign --body FILE",
		Short: "Print the signature headers of a body",
		Long: `sign signs a body with the first webhook secret, as a sender with this scheme does,
and prints the headers. A token in clear is shown as *** without --reveal.`,
		Example: command.Example("waybill signature sign --scheme hmac-body-hex --body body.json", "waybill signature sign --scheme mine --body - --at 2026-01-31T08:00:00Z"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runSign(ctx, c, o)
		}),
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&o.Scheme, "scheme", "", "sign by scheme `NAME`: a preset, or one of webhook.schemes")
	cmd.Flags().BoolVar(&o.Reveal, "reveal", false, "show credentials in clear")
	command.SettingFlags(cmd, "secret-from")
	return cmd
}

func runSign(ctx context.Context, c *command.Call, o signOptions) error {
	if o.Body == "" {
		return command.Usagef("pass --body FILE, or - for standard input", "no body to sign")
	}
	name, scheme, err := SchemeInForce(c.Session, o.Scheme)
	if err != nil {
		return err
	}
	secrets, err := c.WebhookSecrets()
	if err != nil {
		return err
	}
	d, err := o.sample(ctx, c.Session)
	if err != nil {
		return err
	}
	out, err := webhook.Sign(scheme, secrets[0], d.Request, d.At)
	switch {
	case errors.Is(err, webhook.ErrUnsignable), errors.Is(err, webhook.ErrUnsignedPart):
		return &command.UsageError{Err: err, Hint: "`waybill signature schemes show " + shell.Word(name) + "` shows what is signed; add the missing part to the body or with --header"}
	case err != nil:
		return SchemeUsage(name, err)
	}
	secrets = scheme.InClear(secrets)
	j := signedJSON{Scheme: name, Headers: view.MaskHeaders(out.Header, secrets, o.Reveal), Query: view.MaskQuery(out.RawQuery, secrets, o.Reveal)}
	if c.Out.Machine() {
		return c.Out.Object(j)
	}
	if err := view.PrintHeaders(c.Out, j.Headers); err != nil || c.Out.IsCSV() {
		return err
	}
	if out.RawQuery != o.Query {
		return c.Out.Line("?%s", j.Query)
	}
	return nil
}
