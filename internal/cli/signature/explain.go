package signature

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Explanation is why a delivery did not verify, in our output.
type Explanation struct {
	Verdict

	Cause   webhook.Cause  `json:"cause"`
	Text    string         `json:"text"`
	Hint    string         `json:"hint"`
	Fits    map[string]any `json:"fits,omitempty"` // the scheme that it verifies in
	Headers []view.Header  `json:"headers"`
}

type explainOptions struct {
	givenDelivery

	IDs    []string
	Scheme string
	Reveal bool
}

func newExplain(f *command.Factory) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain [ID|--body FILE]",
		Short: "Explain why a delivery did not verify",
		Long: `explain checks the usual causes: another secret or form of it, a body changed in
transit, a renamed header, a wrong clock, another scheme. Without an ID it explains
the last delivery that did not verify. The exit status is 9 if the delivery does
not verify.

` + DeliveryHelp,
		Example: command.Example("waybill signature explain", "waybill signature explain refused:3", "waybill signature explain --body body.json -H 'X-Signature: 9f86d0…'"),
		Args:    command.Between(0, 1, "the ID of a delivery"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			o.IDs = args
			return runExplain(ctx, c, o)
		}),
	}
	o.flags(cmd)
	SchemeFlag(cmd, &o.Scheme)
	RevealFlag(cmd, &o.Reveal)
	command.SettingFlags(cmd, "secret-from")
	return cmd
}

func runExplain(ctx context.Context, c *command.Call, o explainOptions) error {
	if err := onlyOneOf(o.IDs, o.Body); err != nil {
		return err
	}
	name, _, err := SchemeInForce(c.Session, o.Scheme)
	if err != nil {
		return err
	}
	id, d, err := o.delivery(ctx, c.Session)
	if err != nil {
		return err
	}
	j, found, err := Explain(ctx, c.Session, id, name, d, o.Reveal)
	if err != nil {
		return err
	}
	if err := printExplanation(c, j, found.Scheme); err != nil || found.Verdict.OK {
		return err
	}
	return unverified(found.Hint, "", "the delivery does not verify: %s", found.Verdict.Reason)
}

// Explain says why a delivery does not verify in the scheme of that name, judged at the
// time of its receipt. id is what the output calls it. Credentials in its headers are
// masked unless revealed.
func Explain(ctx context.Context, s *app.Session, id, name string, d webhook.Sample, reveal bool) (Explanation, webhook.Diagnosis, error) {
	var none webhook.Diagnosis
	scheme, err := s.Scheme(name)
	if err != nil {
		return Explanation{}, none, err
	}
	_, secrets, err := NewVerifier(s, name, scheme)
	if err != nil {
		return Explanation{}, none, err
	}
	var others []webhook.Secret
	if key, ok := s.APIKeySecret(); ok {
		key.Name = "the API key"
		others = []webhook.Secret{key}
	}
	found, err := webhook.Diagnose(ctx, scheme, secrets, others, d)
	if err != nil {
		return Explanation{}, none, SchemeUsage(name, err)
	}
	headers, err := view.MaskedHeaders(s, d.Header, reveal, scheme)
	if err != nil {
		return Explanation{}, none, err
	}
	j := Explanation{
		Verdict: NewVerdict(id, name, d, found.Verdict),
		Cause:   found.Cause, Text: found.Text, Hint: found.Hint, Headers: headers,
	}
	if found.Scheme != nil {
		j.Fits = config.SchemeSettings(*found.Scheme)
	}
	return j, found, nil
}

func (o *explainOptions) delivery(ctx context.Context, s *app.Session) (string, webhook.Sample, error) {
	if o.Body != "" {
		d, err := o.sample(ctx, s)
		return "", d, err
	}
	if len(o.IDs) == 0 {
		d, err := newestUnverified(ctx, s)
		return d.ID(), d.Sample(), err
	}
	in, err := s.Received(ctx)
	if err != nil {
		return "", webhook.Sample{}, err
	}
	d, err := replay.FindWhole(ctx, in, o.IDs[0])
	return d.ID(), d.Sample(), err
}

func printExplanation(c *command.Call, j Explanation, fits *webhook.Scheme) error {
	if c.Out.Machine() {
		return c.Out.Object(j)
	}
	fields := []render.Field{
		{Name: "Delivery", Value: j.Delivery},
		{Name: "Verified", Value: j.words()},
		{Name: "Scheme", Value: j.Scheme},
		{Name: "Secret", Value: j.Secret},
		{Name: "Why", Value: j.Text},
	}
	if j.ReceivedAt != nil {
		fields = append(fields, render.Field{Name: "Received", Value: render.LocalTime(*j.ReceivedAt)})
	}
	if j.Timestamp != nil {
		fields = append(fields, render.Field{Name: "Signed", Value: render.LocalTime(*j.Timestamp)})
	}
	for _, h := range j.Headers {
		fields = append(fields, render.Field{Name: h.Name, Value: h.Value})
	}
	if err := c.Out.Fields(fields); err != nil || fits == nil {
		return err
	}
	return printScheme(c, "It verifies in this scheme:", *fits)
}

// printScheme prints a scheme as it is written into the configuration. CSV has no place for it.
func printScheme(c *command.Call, title string, s webhook.Scheme) error {
	if c.Out.IsCSV() {
		return nil
	}
	if err := c.Out.Line("\n%s\n", title); err != nil {
		return err
	}
	for line := range strings.Lines(config.SchemeYAML(s)) {
		if err := c.Out.Line("  %s", strings.TrimRight(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}
