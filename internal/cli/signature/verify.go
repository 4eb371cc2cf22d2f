package signature

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/config/edit"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Verdict is the result of verifying one delivery, in JSON output.
type Verdict struct {
	view.DeliveryName
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

// NewVerdict returns the verdict on a delivery by the named scheme.
func NewVerdict(name, scheme string, d webhook.Sample, v webhook.Verdict) Verdict {
	j := Verdict{
		DeliveryName: view.NewDeliveryName(name), ReceivedAt: view.TimeOrNull(d.At), Verified: v.OK, Reason: v.Reason,
		Scheme: scheme, Secret: v.SecretName, BodyAuthenticated: v.BodyAuthenticated, Timestamp: view.TimeOrNull(v.Timestamp),
		Synthetic: inbox.Delivery{Header: d.Header}.IsSynthetic(),
	}
	if j.Timestamp != nil {
		j.SkewSeconds = new(v.Skew.Seconds())
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

func newVerify(f *command.Factory) *cobra.Command {
	var o selection
	cmd := &cobra.Command{
		Use:   "verify [ID...|--body FILE|--from FILE]",
		Short: "Verify deliveries against a scheme",
		Long: `verify checks deliveries against the configured scheme or --scheme: the stored
ones with these IDs (without IDs all), those of --from, or the body of --body with its
headers. Stored deliveries and those of --from are verified as of the time they were
received. The exit status is 0 if all verify, 9 if one does not, 2 if there are none.

` + DeliveryHelp,
		Example: command.Example("waybill signature verify", "waybill signature verify 12 refused:3",
			"waybill signature verify --body body.json -H 'X-Signature: 9f86d0…'",
			"waybill signature verify --from captures.jsonl --scheme hmac-body-hex"),
		RunE: f.WithArgs(&o.IDs, func(ctx context.Context, c *command.Call) error { return runVerify(ctx, c, o) }),
	}
	o.flags(cmd)
	fromFlag(cmd, &o.From)
	command.ColumnsFlag(cmd, verdictColumns())
	return cmd
}

func runVerify(ctx context.Context, c *command.Call, o selection) error {
	if err := onlyOneOf(o.IDs, o.Body, o.From); err != nil {
		return err
	}
	v, err := NewVerifier(c.Session, o.Scheme)
	if err != nil {
		return err
	}
	var all []Verdict
	verify := func(delivery string, d webhook.Sample) {
		at := d.At
		if at.IsZero() {
			at = time.Now()
		}
		all = append(all, NewVerdict(delivery, v.Name, d, v.Verify(d.Request, at)))
	}
	if err := o.each(ctx, c.Session, verify); err != nil {
		return err
	}
	if len(all) == 0 {
		return command.Usagef("receive deliveries with `waybill listen`, or pass --body and --header, or --from",
			"no deliveries to verify")
	}
	if single := o.Body != "" || len(o.IDs) == 1; single && c.Out.Machine() {
		err = c.Out.Object(all[0])
	} else {
		err = command.Listing[Verdict]{Out: c.Out, Empty: "No deliveries", Columns: verdictColumns()}.PrintAll(all)
	}
	if err != nil {
		return err
	}
	failed := slices.DeleteFunc(slices.Clone(all), func(j Verdict) bool { return j.Verified })
	if len(failed) == 0 {
		return nil
	}
	hint, next := "find out why with `waybill signature explain`", ""
	if o.From != "" {
		hint = "import them with `waybill events import`; then find out why with `waybill signature explain ID`"
	} else if id := failed[0].ID; id != "" {
		next = c.CommandLineWith([]string{"scheme", "secret-from"}, "signature", "explain", id)
	}
	return unverified(hint, next, "%d of %s did not verify", len(failed), command.Plural(len(all), "delivery"))
}

func (o *selection) each(ctx context.Context, s *app.Session, verify func(string, webhook.Sample)) error {
	switch {
	case o.Body != "":
		d, err := o.sample(ctx, s)
		if err == nil {
			verify("", d)
		}
		return err
	case o.From != "":
		return eachCapture(ctx, s, o.From, verify)
	}
	db, err := s.ExistingStore(ctx)
	if err != nil {
		return err
	}
	return command.Each(replay.Whole(ctx, db.Received(), o.IDs...), func(d replay.Delivery) error {
		verify(d.ID(), d.Sample())
		return nil
	})
}

func verdictColumns() []command.Column[Verdict] {
	return []command.Column[Verdict]{
		{Name: "DELIVERY", CSV: "id", ID: true, Cell: func(j Verdict) string { return j.ID }},
		{Name: "RECEIVED", CSV: "receivedAt", Rank: 1, Time: func(j Verdict) time.Time {
			if j.ReceivedAt == nil {
				return time.Time{}
			}
			return *j.ReceivedAt
		}},
		{
			Name: "VERIFIED", Flex: true, Cell: Verdict.words,
			CSVCell: func(j Verdict) string { return strconv.FormatBool(j.Verified) },
			Style: func(j Verdict) term.Style {
				if j.Verified {
					return term.Good
				}
				return term.Bad
			},
		},
		{Name: "SECRET", Rank: 2, Cell: func(j Verdict) string { return j.Secret }},
		view.CSVOnly("REASON", "reason", func(j Verdict) string { return string(j.Reason) }),
	}
}

// Explanation says why a delivery did not verify, in JSON output.
type Explanation struct {
	Verdict

	Cause   webhook.Cause   `json:"cause"`
	Text    string          `json:"text"`
	Hint    string          `json:"hint"`
	Fits    map[string]any  `json:"fits,omitempty"` // the scheme that it verifies in
	Headers []webhook.Field `json:"headers"`

	FitsIn *webhook.Scheme `json:"-"` // the scheme of Fits; nil for none
}

func newExplain(f *command.Factory) *cobra.Command {
	var o selection
	var shown view.HeaderOptions
	cmd := &cobra.Command{
		Use:   "explain [ID|--body FILE]",
		Short: "Explain why a delivery did not verify",
		Long: `explain checks the usual causes: another secret or form of it, a body changed in
transit, a renamed header, a wrong clock, another scheme. Without an ID it explains
the last delivery that did not verify. The exit status is 9 if the delivery does
not verify.

` + DeliveryHelp,
		Example: command.Example("waybill signature explain", "waybill signature explain refused:3",
			"waybill signature explain --body body.json -H 'X-Signature: 9f86d0…'"),
		Args: command.Between(0, 1, "the ID of a delivery"),
		RunE: f.WithArgs(&o.IDs, func(ctx context.Context, c *command.Call) error { return runExplain(ctx, c, o, shown) }),
	}
	o.flags(cmd)
	RevealFlag(cmd, &shown.Reveal)
	return cmd
}

func runExplain(ctx context.Context, c *command.Call, o selection, shown view.HeaderOptions) error {
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
	j, err := Explain(ctx, c.Session, id, name, d, shown)
	if err != nil {
		return err
	}
	if err := printExplanation(c, j); err != nil || j.Verified {
		return err
	}
	return unverified(j.Hint, "", "the delivery does not verify: %s", j.Reason)
}

// Explain says why a delivery does not verify in the named scheme, as of its receipt. id is its name in the output.
// Credentials in its headers are masked unless o.Reveal is set.
func Explain(
	ctx context.Context, s *app.Session, id, name string, d webhook.Sample, o view.HeaderOptions,
) (j Explanation, err error) {
	v, err := NewVerifier(s, name)
	if err != nil {
		return j, err
	}
	var others []webhook.Secret
	if key, ok := s.APIKeySecret(); ok {
		key.Name = "the API key"
		others = []webhook.Secret{key}
	}
	found, err := webhook.Diagnose(ctx, v.Scheme, v.Secrets, others, d)
	if err != nil {
		return j, SchemeUsage(name, err)
	}
	headers, err := view.ShownHeaders(s, d.Header, o, v.Scheme)
	if err != nil {
		return j, err
	}
	j = Explanation{
		Verdict: NewVerdict(id, name, d, found.Verdict),
		Cause:   found.Cause, Text: found.Text, Hint: found.Hint, Headers: headers, FitsIn: found.Scheme,
	}
	if j.FitsIn != nil {
		j.Fits = config.SchemeSettings(*j.FitsIn)
	}
	return j, nil
}

func (o *selection) delivery(ctx context.Context, s *app.Session) (string, webhook.Sample, error) {
	if o.Body != "" {
		d, err := o.sample(ctx, s)
		return "", d, err
	}
	if len(o.IDs) == 0 {
		d, err := newestUnverified(ctx, s)
		return d.ID(), d.Sample(), err
	}
	db, err := s.ExistingStore(ctx)
	if err != nil {
		return "", webhook.Sample{}, err
	}
	d, err := replay.FindWhole(ctx, db.Received(), o.IDs[0])
	return d.ID(), d.Sample(), err
}

func printExplanation(c *command.Call, j Explanation) error {
	if c.Out.Machine() {
		return c.Out.Object(j)
	}
	name := j.Scheme
	if scheme, err := c.Scheme(name); err == nil && !c.Out.IsCSV() {
		name += ": " + Describe(scheme)
	}
	fields := []render.Field{
		{Name: "Delivery", Value: j.ID},
		{Name: "Verified", Value: j.words()},
		{Name: "Scheme", Value: name},
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
	if err := c.Out.Fields(fields); err != nil || j.FitsIn == nil {
		return err
	}
	return printScheme(c, "It verifies in this scheme:", *j.FitsIn)
}

func printScheme(c *command.Call, title string, s webhook.Scheme) error {
	if c.Out.IsCSV() {
		return nil
	}
	err := c.Out.Line("\n%s\n", title)
	for line := range strings.Lines(edit.SchemeYAML(s)) {
		err = cmp.Or(err, c.Out.Line("  %s", strings.TrimRight(line, "\n")))
	}
	return err
}
