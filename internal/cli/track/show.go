package track

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// refOptions say which trackings a command is about.
type refOptions struct {
	Refs []string
	Run  string
	By   string
}

func (o *refOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.Run, "run", "", "all trackings of run `ID`")
	cmd.Flags().StringVar(&o.By, "by", "refer-id", "what a REF is: refer-id or tracking-number")
}

// check refuses a line that names no tracking, or names them in two ways.
func (o *refOptions) check() error {
	switch {
	case o.By != "refer-id" && o.By != "tracking-number":
		return command.Usagef("use --by refer-id or --by tracking-number", "--by %q is neither", o.By)
	case o.Run != "" && len(o.Refs) > 0:
		return command.Usagef("give REFs or --run", "REFs and --run exclude each other")
	case o.Run == "" && len(o.Refs) == 0:
		return command.Usagef("name one or more of your identifiers, or --run ID; `waybill list` shows them", "no REF given")
	case slices.Contains(o.Refs, ""):
		return command.Usagef("", "a REF is empty")
	}
	return nil
}

// single reports whether exactly one tracking was asked for by name.
func (o *refOptions) single() bool { return o.Run == "" && len(o.Refs) == 1 }

// query is the question for one REF.
func (o *refOptions) query(ref string) api.Query {
	if o.By == "tracking-number" {
		return api.Query{Number: ref}
	}
	return api.Query{ReferID: ref}
}

// queries returns the questions in order, each once.
func (o *refOptions) queries(ctx context.Context, s *app.Session) ([]api.Query, error) {
	var qs []api.Query
	if o.Run == "" {
		for _, ref := range o.Refs {
			if q := o.query(ref); !slices.Contains(qs, q) {
				qs = append(qs, q)
			}
		}
		return qs, nil
	}
	db, id, err := command.OpenRun(ctx, s, o.Run)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for row, err := range db.Runs.Rows(ctx, id) {
		if err != nil {
			return nil, err
		}
		ref := row.Item.ReferID
		if o.By == "tracking-number" {
			ref = row.Item.Number
		}
		if (row.State == ledger.Accepted || row.State == ledger.Unknown) && !seen[ref] {
			seen[ref] = true
			qs = append(qs, o.query(ref))
		}
	}
	return qs, nil
}

func NewShow(f *command.Factory) *cobra.Command {
	var o struct {
		refOptions
		Timeline bool
	}
	cmd := &cobra.Command{
		Use:     "show REF...",
		GroupID: command.GroupOps,
		Short:   "Show status and timeline of trackings",
		Long: `show asks the service about each REF, your own identifier of the shipment. One
REF gives its status and timeline; several give one row each.

If a verified event is newer than the service's answer, by the latest checkpoint
or the time of update in both, the event counts. A note says so, and olderAnswer
in JSON shows what the answer said.`,
		Example: command.Example("waybill show ORD-1001", "waybill show 1Z999AA10123456784 --by tracking-number", "waybill show ORD-1 ORD-2 -o json"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			o.Refs = args
			if err := o.check(); err != nil {
				return err
			}
			qs, err := o.queries(ctx, c.Session)
			if err != nil {
				return err
			}
			looked, err := lookAll(ctx, c.Session, qs)
			if err != nil {
				return err
			}
			return showLooked(ctx, c, looked, o.single(), o.Timeline)
		}),
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.Timeline, "timeline", false, "with several REFs: the timeline of each")
	return cmd
}

// Looked is what came of one question.
type Looked struct {
	Query api.Query
	View  app.View
	Err   error
}

// lookAll asks all questions, a few at a time, and returns what came of each
// in order. The first answer that every other question would meet too ends it
// and is the error, unless there is one question alone.
func lookAll(ctx context.Context, s *app.Session, qs []api.Query) ([]Looked, error) {
	if _, err := s.Client(); err != nil {
		return nil, err
	}
	if err := s.CatchUp(ctx); err != nil {
		return nil, err
	}
	budget := s.Config.Timeout
	if budget == 0 {
		budget = command.QueryTimeout
	}
	all := make([]Looked, len(qs))
	g, asking := errgroup.WithContext(ctx)
	g.SetLimit(s.Config.Concurrency)
	for i, q := range qs {
		g.Go(func() error {
			if asking.Err() != nil {
				return context.Cause(asking) // the first error is what ended it
			}
			v, err := s.LookPatiently(asking, s.Account(ctx), q, budget)
			all[i] = Looked{q, v, err}
			if app.Fatal(err) {
				return err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil && len(qs) > 1 {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return all, nil
}

// showLooked prints the result and returns the error that the exit status
// stands for.
func showLooked(ctx context.Context, c *command.Call, all []Looked, single, timeline bool) error {
	n := view.NewStatusNames(c.Config.Statuses)
	out := c.Out
	for _, l := range all {
		if err := c.Claims(ctx, l.View); err != nil {
			return err
		}
	}
	noteOlder(n, c.IO, all)
	if single {
		l := all[0]
		if l.Err != nil && len(l.View.Found) == 0 {
			return l.Err
		}
		if out.Machine() {
			return errors.Join(out.Object(n.Answer(l.View, l.Err)), l.Err)
		}
		if errors.Is(l.Err, tracking.ErrAbsent) {
			return named(l)
		}
		if out.IsCSV() { // one table, not two and a header
			return errors.Join(printViews(n, ctx, c.Session, out, all, timeline), named(l))
		}
		return errors.Join(printView(n, ctx, c.Session, out, l.View), named(l))
	}
	if err := printViews(n, ctx, c.Session, out, all, timeline); err != nil {
		return err
	}
	if !out.Machine() && !timeline {
		if err := tellClaims(ctx, c.Session, n, all); err != nil {
			return err
		}
	}
	return several(all)
}

// notedOlder is how many answers older than their event are noted.
const notedOlder = 3

// noteOlder says which answers of the service are older than what its events
// had told before.
func noteOlder(n view.StatusNames, io *term.IO, all []Looked) {
	count := 0
	for _, l := range all {
		for _, f := range l.View.Found {
			if f.Older == nil {
				continue
			}
			if count++; count <= notedOlder {
				io.Note("%s: the service's answer is older than its event: it says %s, the event %s", command.Quoted(f.Number), n.Status(f.Older.Status, f.Older.StatusLabel, f.Older.StatusTrack), n.Phase(f))
			}
		}
	}
	if count > notedOlder {
		io.Note("%s older than their events in all; -o json shows them as olderAnswer", command.Plural(int64(count), "answer"))
	}
}

// tellClaims tells beside a table which events did not verify.
func tellClaims(ctx context.Context, s *app.Session, n view.StatusNames, all []Looked) error {
	var beside claims
	for _, l := range all {
		for _, f := range l.View.Found {
			if f.Claim != nil {
				beside.add(f.Claim.Seq)
			}
		}
	}
	db, err := s.ExistingStore(ctx)
	if err != nil || db == nil {
		return err
	}
	return beside.tell(ctx, s.IO, n, db.Inbox)
}

// named adds to an error which REF it is about.
func named(l Looked) error {
	if l.Err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", command.Quoted(l.View.Ref), l.Err)
}

// several is the error of many questions: nil if all were answered, the common
// one if all failed alike, else partial.
func several(all []Looked) error {
	var failed []Looked
	for _, l := range all {
		if l.Err != nil {
			failed = append(failed, l)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	if len(failed) == len(all) && alike(failed) {
		return fmt.Errorf("%d REFs, the first: %w", len(all), named(failed[0]))
	}
	return &command.PartialError{Failed: len(failed), All: len(all), What: "REFs", First: named(failed[0])}
}

func alike(failed []Looked) bool {
	code, _ := command.Explain(failed[0].Err)
	for _, l := range failed {
		if c, _ := command.Explain(l.Err); c != code {
			return false
		}
	}
	return true
}

// printView shows one REF: a header and the timeline of each of its trackings.
func printView(n view.StatusNames, ctx context.Context, s *app.Session, out *command.Output, v app.View) error {
	for i, f := range v.Found {
		if i > 0 {
			if err := out.Line(""); err != nil {
				return err
			}
		}
		fields, err := Header(n, ctx, s, v, f)
		if err != nil {
			return err
		}
		if err := out.Fields(fields); err != nil {
			return err
		}
		if len(f.Checkpoints) == 0 {
			continue
		}
		if err := out.Line(""); err != nil {
			return err
		}
		if err := printTimeline(out, f.Checkpoints); err != nil {
			return err
		}
	}
	return nil
}

func Header(n view.StatusNames, ctx context.Context, s *app.Session, v app.View, f app.Found) ([]render.Field, error) {
	carrier, err := carrierOf(ctx, s, f)
	if err != nil {
		return nil, err
	}
	var fields []render.Field
	add := func(name, value string) {
		if value != "" {
			fields = append(fields, render.Field{Name: name, Value: value})
		}
	}
	add("Reference", f.ReferID)
	add("Number", f.Number)
	add("Carrier", carrier)
	add("Status", n.Phase(f))
	add("Latest event", f.LatestEvent)
	add("Created", f.Created)
	add("Updated", f.Updated)
	if f.TransitTime != "" {
		add("Transit time", view.Unquote(f.TransitTime)+" (unit not documented)")
	}
	if f.Error != "" {
		add("Error", f.Error)
	}
	if f.Source == ledger.FromEvent {
		add("Learnt", "from a verified event, received "+render.LocalTime(f.Learnt))
	}
	if !v.Asked.IsZero() {
		add("Asked", render.LocalTime(v.Asked))
	}
	if f.Claim != nil {
		add("Unverified", n.Claim(*f.Claim)+"; it changes nothing")
	}
	return fields, nil
}

// carrierOf is the carrier code as the answer had it, or as it was sent.
func carrierOf(ctx context.Context, s *app.Session, f app.Found) (string, error) {
	if f.CarrierCode != "" {
		return f.CarrierCode, nil
	}
	db, err := s.ExistingStore(ctx)
	if err != nil || db == nil {
		return "", err
	}
	rows, err := db.Trackings.Find(ctx, s.Account(ctx), f.ReferID, f.Number)
	for _, row := range rows {
		if tracking.SameNumber(row.Item.Number, f.Number) && row.Item.CarrierCode != "" {
			return row.Item.CarrierCode, err
		}
	}
	return "", err
}

func printTimeline(out *command.Output, cs []tracking.Checkpoint) error {
	t := out.Table(
		render.Column{Name: "LOCAL TIME"}, render.Column{Name: "UTC", From: 80}, render.Column{Name: "EVENT", Flex: true},
		render.Column{Name: "CITY"}, render.Column{Name: "STATE", From: 66}, render.Column{Name: "ZIP", From: 74})
	for _, c := range app.Timeline(cs) {
		if err := t.Row(c.Local, c.UTC, c.Event, c.City, c.State, c.ZIP); err != nil {
			return err
		}
	}
	return t.Flush()
}

// printViews shows several REFs, one row for each tracking.
func printViews(n view.StatusNames, ctx context.Context, s *app.Session, out *command.Output, all []Looked, timeline bool) error {
	if out.Machine() {
		list := out.List(ctx)
		for _, l := range all {
			if err := list.Add(n.Answer(l.View, l.Err)); err != nil {
				return errors.Join(err, list.Close())
			}
		}
		return list.Close()
	}
	if timeline && !out.IsCSV() {
		for _, l := range all {
			if err := printView(n, ctx, s, out, l.View); err != nil {
				return err
			}
			if err := out.Line(""); err != nil {
				return err
			}
		}
		return nil
	}
	return printRows(n, out, all)
}

// printRows prints one row for each tracking.
func printRows(n view.StatusNames, out *command.Output, all []Looked) error {
	t := out.Table(
		render.Column{Name: "REFERENCE", ID: true}, render.Column{Name: "NUMBER", ID: true}, render.Column{Name: "LATEST EVENT", Flex: true, From: 80},
		render.Column{Name: "STATUS", Flex: true}, render.Column{Name: "UPDATED", From: 110})
	for _, l := range all {
		if len(l.View.Found) == 0 {
			if err := t.Row(l.Query.ReferID, l.Query.Number, errorText(l.Err), "failed", ""); err != nil {
				return err
			}
		}
		for _, f := range l.View.Found {
			if err := t.Row(f.ReferID, f.Number, f.LatestEvent, n.Phase(f), f.Updated); err != nil {
				return err
			}
		}
	}
	return t.Flush()
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
