package signature

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Verdict is the result of verifying one delivery, in our output.
type Verdict struct {
	Delivery          string         `json:"delivery"` // as IDs are written; empty if it is not of the store
	ReceivedAt        *time.Time     `json:"receivedAt"`
	Verified          bool           `json:"verified"`
	Reason            webhook.Reason `json:"reason"`
	Scheme            string         `json:"scheme"`
	Secret            string         `json:"secret"` // name of the secret that matched
	BodyAuthenticated bool           `json:"bodyAuthenticated"`
	Timestamp         *time.Time     `json:"timestamp"`
	SkewSeconds       *float64       `json:"skewSeconds"` // above 0: the sender's clock is ahead
	Synthetic         bool           `json:"synthetic"`   // made up by `events send`
}

// NewVerdict returns the verdict on a delivery, by a scheme of that name.
func NewVerdict(name, scheme string, d webhook.Sample, v webhook.Verdict) Verdict {
	j := Verdict{
		Delivery: name, ReceivedAt: view.TimeOrNull(d.At), Synthetic: inbox.Delivery{Header: d.Header}.IsSynthetic(), Verified: v.OK, Reason: v.Reason, Scheme: scheme, Secret: v.SecretName,
		BodyAuthenticated: v.BodyAuthenticated, Timestamp: view.TimeOrNull(v.Timestamp),
	}
	if j.Timestamp != nil {
		skew := v.Skew.Seconds()
		j.SkewSeconds = &skew
	}
	return j
}

func (j Verdict) words() string {
	e := inbox.Event{Verified: inbox.No, Reason: j.Reason, BodyAuthenticated: j.BodyAuthenticated, Synthetic: j.Synthetic}
	if j.Verified {
		e.Verified = inbox.Yes
	}
	return view.Trust(e)
}

type verifyOptions struct {
	givenDelivery

	IDs          []string
	From, Scheme string
}

func newVerify(f *command.Factory) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify [ID...|--body FILE|--from FILE]",
		Short: "Verify deliveries against a scheme",
		Long: `verify checks deliveries against the configured scheme or --scheme: the stored
ones with these IDs (without IDs all), those of --from, or the body of --body with its
headers. Stored deliveries and those of --from are verified as of the time they were
received. The exit status is 0 if all verify, 9 if one does not, 2 if there are none.

` + DeliveryHelp,
		Example: command.Example("waybill signature verify", "waybill signature verify 12 refused:3",
			"waybill signature verify --body body.json -H 'X-Signature: 9f86d0…'", "waybill signature verify --from captures.jsonl --scheme hmac-body-hex"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			o.IDs = args
			return runVerify(ctx, c, o)
		}),
	}
	o.flags(cmd)
	fromFlag(cmd, &o.From)
	SchemeFlag(cmd, &o.Scheme)
	command.SettingFlags(cmd, "secret-from")
	command.ColumnsFlag(cmd, verdictColumns())
	return cmd
}

func runVerify(ctx context.Context, c *command.Call, o verifyOptions) error {
	if err := onlyOneOf(o.IDs, o.Body, o.From); err != nil {
		return err
	}
	name, scheme, err := SchemeInForce(c.Session, o.Scheme)
	if err != nil {
		return err
	}
	v, _, err := NewVerifier(c.Session, name, scheme)
	if err != nil {
		return err
	}
	var all []Verdict
	judge := func(delivery string, d webhook.Sample) {
		at := d.At
		if at.IsZero() {
			at = time.Now()
		}
		all = append(all, NewVerdict(delivery, name, d, v.Verify(d.Request, at)))
	}
	if err := eachGiven(ctx, c.Session, o, judge); err != nil {
		return err
	}
	if len(all) == 0 {
		return command.Usagef("receive deliveries with `waybill listen`, or pass --body and --header, or --from", "no deliveries to verify")
	}
	if err := printVerdicts(c, all, o.Body != "" || len(o.IDs) == 1); err != nil {
		return err
	}
	failed := slices.DeleteFunc(slices.Clone(all), func(j Verdict) bool { return j.Verified })
	if len(failed) == 0 {
		return nil
	}
	hint, next := "find out why with `waybill signature explain`", ""
	if o.From != "" {
		hint = "import them with `waybill events import`; then find out why with `waybill signature explain ID`"
	} else if id := failed[0].Delivery; id != "" {
		next = c.CommandLineWith([]string{"scheme", "secret-from"}, "signature", "explain", id)
	}
	return unverified(hint, next, "%d of %s did not verify", len(failed), command.Plural(len(all), "delivery"))
}

func eachGiven(ctx context.Context, s *app.Session, o verifyOptions, judge func(string, webhook.Sample)) error {
	switch {
	case o.Body != "":
		d, err := o.sample(ctx, s)
		if err == nil {
			judge("", d)
		}
		return err
	case o.From != "":
		samples, err := captures(ctx, s, o.From)
		for i, d := range samples {
			judge(fmt.Sprintf("%s:%d", o.From, i+1), d)
		}
		return err
	}
	in, err := s.Received(ctx)
	if err != nil {
		return err
	}
	return command.Each(replay.Whole(ctx, in, o.IDs...), func(d replay.Delivery) error {
		judge(d.ID(), d.Sample())
		return nil
	})
}

func printVerdicts(c *command.Call, all []Verdict, single bool) error {
	if c.Out.Machine() && single {
		return c.Out.Object(all[0])
	}
	w := command.Listing[Verdict]{
		Out: c.Out, Empty: "No deliveries",
		JSON:    func(j Verdict) any { return j },
		Columns: verdictColumns(),
	}
	return w.PrintAll(c.IO, all)
}

func verdictColumns() []command.Column[Verdict] {
	return []command.Column[Verdict]{
		{Column: render.Column{Name: "DELIVERY", ID: true}, Cell: func(j Verdict) string { return j.Delivery }},
		{Column: render.Column{Name: "RECEIVED", Rank: 1}, Time: func(j Verdict) time.Time {
			if j.ReceivedAt == nil {
				return time.Time{}
			}
			return *j.ReceivedAt
		}},
		{Column: render.Column{Name: "VERIFIED", Flex: true}, Cell: Verdict.words, Style: func(j Verdict) term.Style {
			if j.Verified {
				return term.Good
			}
			return term.Bad
		}},
		{Column: render.Column{Name: "SECRET", Rank: 2}, Cell: func(j Verdict) string { return j.Secret }},
	}
}
