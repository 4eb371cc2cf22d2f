// Package track has the commands that show, wait for, list and count trackings.
package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

type showOptions struct {
	refOptions
	Timeline, Refresh bool
}

// NewShow returns the command show.
func NewShow(f *command.Factory) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show REF...|--from FILE|--run ID",
		Short: "Show status and timeline of trackings",
		Long: `Ask the service about each REF and show its status and timeline. A REF is your
own identifier of the shipment, or a tracking number that you created.

One REF prints a header and its timeline. Several REFs, --from FILE and filters
such as --run print one row each, and a summary on standard error; --timeline
prints the timeline of each.

Rejected rows are shown with the service's reason and not queried. If --from or a
filter is interrupted, re-run the same command to continue.

If a verified event is newer than the service's answer, by the latest checkpoint
or the time of the last update, the event is shown and a note says so; in JSON,
olderAnswer has what the service answered.

Timelines mark errors: a local time that no time zone explains, a checkpoint that
is repeated, an impossible time. JSON has them in anomalies.`,
		Example: command.Example("waybill show ORD-1001", "waybill show 1Z999AA10123456784 --by tracking-number",
			"waybill show ORD-1 ORD-2 -o json", "waybill show --from open-orders.csv -o csv --out status.csv",
			"waybill show --updated ..48h"),
		RunE: f.WithArgs(&o.Refs, func(ctx context.Context, c *command.Call) error { return runShow(ctx, c, o) }),
	}
	o.flags(cmd)
	refreshFlag(cmd.Flags(), &o.Refresh)
	const usage = "print the timeline of each REF; with -o csv a row for each checkpoint"
	cmd.Flags().BoolVar(&o.Timeline, "timeline", false, usage)
	command.ColumnsFlag(cmd, view.StatusFormatter{}.AnswerColumns(view.Reader{}))
	command.ColumnsWith(cmd, "timeline", stopColumns(1))
	return cmd
}

func runShow(ctx context.Context, c *command.Call, o showOptions) error {
	if err := o.check(c.Cmd); err != nil {
		return err
	}
	all, err := o.targets(ctx, c)
	if err != nil {
		return err
	}
	defer all.close()
	p, err := newPrinter(c, printer{single: o.single(), timeline: o.Timeline})
	if err != nil {
		return err
	}
	a, err := newQueryRun(ctx, c, all, p.add)
	if err != nil {
		return err
	}
	a.restart, a.Whole = o.Refresh, true
	name := "" // names the selection of a file or filters
	if len(o.Refs) == 0 {
		name = fmt.Sprintf("from=%q by=%s %s", o.From, o.By, o.filterOptions.String())
	}
	stop, err := a.sweep(ctx, name)
	if err != nil {
		return err
	}
	next := c.Again([]string{"refresh"}) // --refresh would start over
	var failed error
	switch {
	case p.single && p.only != nil && p.only.Unfinished && stop != nil && !command.As[*command.SignalError](stop):
		code, hint := command.CodeAndHint(stop)
		err := fmt.Errorf("%s: %w", command.Quoted(p.only.Result.Ref), stop)
		failed = &command.ExitError{Code: code, Err: err, Hint: hint, Next: next}
	case a.tally.all == 0 && stop == nil:
		failed = noteNothing(ctx, c, &o.filterOptions)
	default:
		failed = a.exitError(stop, a.notChecked, next)
	}
	return errors.Join(p.end(failed), failed)
}

// Stored is what the store knows about an order or a number, as `show` would print it if the service repeated its last
// response.
type Stored struct {
	query.Result
	Target *query.Target // has the rows of the trackings
	More   int           // trackings left out
	Events []inbox.Event // about the numbers, latest first, secrets masked
	Cut    bool          // there are more events
}

const (
	maxTrackings = 50
	maxEvents    = 100
)

// ReadStored reads what the store has about a referId, a number, or one number of a referId if both are given. It does
// not query the service. The error matches [tracking.ErrAbsent] if nothing is known.
func ReadStored(ctx context.Context, c *command.Call, referID, number string) (*Stored, error) {
	db, err := c.ExistingStore(ctx)
	if err != nil || db == nil {
		return nil, cmp.Or(err, tracking.ErrAbsent)
	}
	if _, err := catchUp(ctx, db, nil); err != nil {
		return nil, err
	}
	t := &query.Target{Query: tracking.Query{ReferID: referID}, Exact: true}
	switch {
	case referID == "":
		t.Query = tracking.Query{Number: number}
	case number != "":
		t.Chosen = []string{number}
	}
	t.Ref = t.Query.Ref()
	s := &Stored{Target: t}
	if s.Result, err = c.StoredAnswers().Stored(ctx, t); err != nil {
		return nil, err
	}
	if errors.Is(s.Err, ledger.ErrErased) {
		return nil, s.Err
	}
	if len(s.Trackings) > maxTrackings {
		s.More, s.Trackings = len(s.Trackings)-maxTrackings, s.Trackings[:maxTrackings]
	}
	if err := s.addEvents(ctx, c, db.Inbox, number); err != nil {
		return nil, err
	}
	switch {
	case len(s.Trackings) > 0:
	case len(s.Events) > 0: // only unverified events
		s.Trackings = []query.Tracking{{Tracking: tracking.Tracking{Number: number}, Phase: query.Undecided}}
	default:
		return nil, tracking.ErrAbsent
	}
	return s, nil
}

func (s *Stored) addEvents(ctx context.Context, c *command.Call, events inbox.Store, number string) error {
	var keys inbox.TrackingKeys
	for _, t := range s.Trackings {
		if t.Number != "" {
			keys.Numbers = append(keys.Numbers, t.Number)
		}
	}
	if number != "" && !slices.Contains(keys.Numbers, number) {
		keys.Numbers = append(keys.Numbers, number)
	}
	if len(keys.Numbers) == 0 {
		return nil
	}
	hide := c.SecretMasker()
	for e, err := range events.Events(ctx, inbox.Query{Trackings: &keys, Newest: true, Limit: maxEvents + 1}) {
		if err != nil {
			return err
		}
		if s.Cut = len(s.Events) == maxEvents; s.Cut {
			break
		}
		s.Events = append(s.Events, view.MaskEvent(e, hide))
	}
	return nil
}
