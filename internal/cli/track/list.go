package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/tracking"
)

type listOptions struct {
	input.Flags
	filterOptions
	Sort    string
	Limit   int
	Refresh bool
	FailAny bool
}

const listHelp = `list prints every tracking in the store with its last known status, and when and
from which source it was updated: the service's responses or verified events. With
--refresh it queries the service first, and exits as show does if queries fail.

On a terminal, list prints the first %d rows; --limit N prints more, --limit 0 all.
In a pipe it prints all rows. A line on standard error sums up all matching rows;
"waybill stats" has more sums.

--from FILE prints the rows of a file in its order, with what is known of each: by
referId and number, or by the one that the file has. A row of which the store has
none is "not created" (state "notCreated" in JSON). Filters narrow the rows of the
file, and --refresh queries the service about those that were created.

--sort takes created, received, checkpoint, reference, number, status or carrier,
and reverses it after a -: --sort -received lists the latest first. Rows without a
value are last.

Numbers that came with verified events and are not in the store are listed at the
end. Events that did not verify change nothing; a note counts them.

--status takes numbers and names as the table and the summary show them, and states
of rows: rejected leaves out superseded and dismissed rows, as in "waybill runs
rows"; not-checked is accepted, and nothing is known of it; error is an error that the
service reports of a tracking, any status that is called an exception, a failure, a
return or the like, and "not found"; open is what is not delivered, rejected or failed,
with what is not found. --problem takes rejected, unknown, error and what is stuck.

--created, --delivered and --updated take a RANGE: 7d or "7 days" (since 7 days ago),
today, yesterday, monday (the last Monday, today included), 2026-11-20 (that day),
2026-11-01..2026-11-07 (from that day to that day), monday.. (since then), ..30d (more
than 30 days ago), or RFC 3339 times. Days are those of this computer's time zone.
--created is about our run, --delivered and --updated are about the service's times.

Columns of an input that are not sent, such as customer, are kept with its rows:
--columns shows them by name, a workbook and --excel have all of them, and
--where customer='Ann*' filters by them.

An accepted tracking without a response or event is "not checked yet" (phase
"notAsked" in JSON).`

// NewList returns the command list.
func NewList(f *command.Factory) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List your trackings and their status",
		Long:  fmt.Sprintf(listHelp, terminalRows),
		Example: command.Example("waybill list", "waybill list --status delivered", "waybill list --problem --fail-if-any",
			"waybill list --refer-id 'ORD-10*' --sort -received", "waybill list --stuck=3d --carrier dhl",
			"waybill list --created 2026-11-01..2026-11-07 --status not-checked",
			"waybill list --delivered yesterday -o json", "waybill list --from orders.csv --status 'not created'"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error { return runList(ctx, c, o) }),
	}
	flags := cmd.Flags()
	command.Choice(flags, &o.Sort, "sort", "", "sort by `COLUMN`, or reversed by -COLUMN", orders()...)
	command.LimitFlag(flags, &o.Limit, 0)
	o.filterOptions.register(flags)
	refreshFlag(flags, &o.Refresh)
	flags.BoolVar(&o.FailAny, "fail-if-any", false, "exit with 6 if a row is listed")
	o.AddFrom(cmd)
	command.SettingFlags(cmd, "concurrency", "rate")
	command.ColumnsFlag(cmd, view.StatusFormatter{}.Columns(view.Reader{}))
	command.FurtherColumns(cmd)
	return cmd
}

const terminalRows = 50

func orders() []string {
	words := []string{
		created, string(ledger.ByReceived), string(ledger.ByCheckpoint), string(ledger.ByReference),
		string(ledger.ByNumber), string(ledger.ByStatus), string(ledger.ByCarrier),
	}
	return append(words, command.Texts(len(words), func(i int) string { return "-" + words[i] })...)
}

const created = "created"

func runList(ctx context.Context, c *command.Call, o listOptions) error {
	if err := cmp.Or(command.CheckLimit(o.Limit), command.CheckNotEmpty(c.Cmd, "from")); err != nil {
		return err
	}
	if o.From != "" && c.Cmd.Flags().Changed("sort") {
		return command.Usagef("omit --sort: the rows are in the order of the file", "--from and --sort exclude each other")
	}
	_, filter, err := o.filter(ctx, c)
	if err != nil {
		return err
	}
	column, descending := strings.CutPrefix(o.Sort, "-")
	filter.Limit, filter.Order, filter.Descending = o.Limit, ledger.Order(column), descending
	if column == created {
		filter.Order = ledger.ByCreation
	}
	l := listing{call: c, filter: filter, words: o.words(), refreshed: o.Refresh}
	if o.From != "" {
		if l.file, err = o.OpenRefs(ctx, c); err != nil {
			return err
		}
		defer l.file.Close()
	}
	var stopped error
	if o.Refresh {
		stopped = l.refresh(ctx, fmt.Sprintf("from=%q %s limit=%d", o.From, o.filterOptions.String(), o.Limit))
		ctx = context.WithoutCancel(ctx)
	}
	if c.Out.ForPeople() && !c.Cmd.Flags().Changed("limit") {
		l.filter.Limit = terminalRows
	}
	err = l.print(ctx)
	if err == nil && o.FailAny && l.summary.Trackings() > 0 {
		err = &command.ExitError{Code: command.Partial, Err: errors.New("trackings are listed (--fail-if-any)")}
	}
	return errors.Join(err, stopped)
}

// PrintList prints the trackings of a run.
func PrintList(ctx context.Context, c *command.Call, run int64) error {
	l := listing{call: c, filter: ledger.Filter{Run: run}, words: []string{"--run", fmt.Sprint(run)}, refreshed: true}
	return l.print(ctx)
}

type listing struct {
	call      *command.Call
	filter    ledger.Filter
	words     []string    // flags of the filter, as typed
	refreshed bool        // the service was just queried
	file      *input.Refs // rows to list; nil for the whole store

	db         *app.Store // nil if there is none
	names      view.StatusFormatter
	summary    *view.Summary // of the printed rows
	unverified unverified
	more       bool // there are rows beyond the limit
}

func (l *listing) open(ctx context.Context) (err error) {
	if err := CatchUp(ctx, l.call); err != nil {
		return err
	}
	l.names = view.NewStatusFormatter(l.call.Config.Statuses)
	l.summary = view.NewSummary(l.names)
	l.db, err = l.call.StoreToList(ctx, "tracking")
	if l.db != nil && l.db.DB.Writable() == nil {
		command.ReadyRuns(ctx, l.call.Session, l.db) // rows of ended processes are not being sent
	}
	return err
}

func (l *listing) print(ctx context.Context) error {
	if err := l.open(ctx); err != nil {
		return err
	}
	c := l.call
	columns := l.names.Columns(view.Reader{IsPerson: c.Out.ForPeople(), Now: time.Now()})
	if l.db != nil && (c.Out.HasColumns() || c.Out.Excel()) {
		own, err := l.db.Statistics.OwnColumns(ctx)
		if err != nil {
			return err
		}
		columns = append(columns, view.OwnColumns(own)...)
	}
	w := command.Listing[*view.Line]{
		Out: c.Out, Columns: columns,
		JSON: func(line *view.Line) any { return l.names.Tracking(line) },
	}
	if l.db == nil && l.file == nil {
		w.Empty = nothingListed(c.Account(ctx))
		return w.PrintAll(nil)
	}
	err := w.Print(l.lines(l.rows(ctx)))
	if err == nil && l.db != nil {
		err = l.unverified.load(ctx, l.db)
	}
	switch {
	case err != nil:
		return err
	case l.db == nil && l.summary.Trackings() == 0:
		return nil
	case l.summary.Trackings() == 0:
		return l.explainEmpty(ctx)
	case l.more && c.Out.ForPeople():
		if err := l.sumUpAll(ctx); err != nil {
			return err
		}
	case !l.more || l.file != nil:
		l.summary.Print(c)
	}
	l.unverified.note(c.IO, l.names)
	if !l.refreshed && l.file == nil && slices.Contains(l.filter.States, ledger.NotChecked) {
		c.IO.Next(c.CommandLine(slices.Concat([]string{"list"}, l.words, []string{"--refresh"})...))
	}
	return nil
}

// rows yields the matching rows of the file, or else of the store, up to one beyond the limit.
func (l *listing) rows(ctx context.Context) iter.Seq2[ledger.TrackingStatus, error] {
	if l.file != nil {
		return l.inFile(ctx)
	}
	f := l.filter
	if f.Limit > 0 {
		f.Limit++
	}
	return l.db.Trackings.Statuses(ctx, f)
}

// lines yields rows up to the limit and counts them. For a file it counts all rows.
func (l *listing) lines(rows iter.Seq2[ledger.TrackingStatus, error]) iter.Seq2[*view.Line, error] {
	return func(yield func(*view.Line, error) bool) {
		var row ledger.TrackingStatus
		var line view.Line // of the row
		for st, err := range rows {
			if err != nil {
				yield(nil, err)
				return
			}
			l.more = l.filter.Limit > 0 && l.summary.Trackings() >= int64(l.filter.Limit)
			if l.more && l.file == nil {
				return
			}
			l.summary.AddCount(ledger.GroupOf(st).StatusCount)
			if l.more {
				continue
			}
			if st.Unverified != 0 {
				l.unverified.add(inbox.Event{Seq: st.Unverified})
			}
			row = st
			line = view.KnownLine(&row)
			if !yield(&line, nil) {
				return
			}
		}
	}
}

func (l *listing) sumUpAll(ctx context.Context) error {
	all, err := l.summary, error(nil)
	if l.file == nil {
		all, err = view.SummaryOf(ctx, l.call, l.db, l.filter)
	}
	if err != nil {
		return err
	}
	csv := "-o csv --out FILE"
	if l.call.Cmd.Flags().Changed("limit") {
		csv = "--limit 0 " + csv
	}
	more := command.Number(all.Trackings() - int64(l.filter.Limit))
	l.call.IO.Note("… and %s more: --limit 0 shows all, %s writes all", more, csv)
	all.Print(l.call)
	return nil
}

const maxStatusesNamed = 8

func noteNothing(ctx context.Context, c *command.Call, o *filterOptions) (err error) {
	l := listing{call: c, words: o.words()}
	if l.db, err = c.ExistingStore(ctx); err != nil {
		return err
	}
	return l.explainEmpty(ctx)
}

func (l *listing) explainEmpty(ctx context.Context) (err error) {
	all := view.NewSummary(l.names)
	if l.db != nil && len(l.words) > 0 {
		if all, err = view.SummaryOf(ctx, l.call, l.db, ledger.Filter{}); err != nil {
			return err
		}
	}
	if all.Trackings() == 0 {
		l.call.IO.Note("%s", nothingListed(l.call.Account(ctx)))
		return nil
	}
	what, names := "statuses", []string{}
	if !slices.Contains(l.words, "--status") && slices.Contains(l.words, "--carrier") {
		what = "carriers"
		if names, err = l.db.Statistics.SeenCarriers(ctx); err != nil {
			return err
		}
	} else {
		for _, s := range all.JSON().ByStatus {
			names = append(names, s.Name)
		}
	}
	if len(names) > maxStatusesNamed {
		names = append(names[:maxStatusesNamed], "…")
	}
	l.call.IO.Note("No tracking matches %s (%s known; %s: %s)", shell.Line(l.words...), command.Number(all.Trackings()),
		what, cmp.Or(strings.Join(names, ", "), "none yet"))
	l.call.IO.Next(l.call.CommandLine("stats"))
	return nil
}

func nothingListed(account string) string {
	if account == "" {
		return "Not set up yet: run `waybill init`"
	}
	return "No tracking is known yet; create some with `waybill create FILE`"
}

func refreshFlag(f *pflag.FlagSet, on *bool) {
	f.BoolVar(on, "refresh", false, "query each listed tracking first, whatever is known of it")
}

// refresh queries the service about the trackings to list, from where the last refresh was interrupted. The error says
// why some were not queried.
func (l *listing) refresh(ctx context.Context, name string) (err error) {
	c := l.call
	if l.db, err = c.ExistingStore(ctx); err != nil || l.db == nil {
		return err
	}
	whole := context.WithoutCancel(ctx)
	var all targets
	if l.file != nil {
		all = l.createdTargets(whole)
	} else if all, err = selected(whole, c, l.db, l.filter); err != nil {
		return err
	}
	a, err := newQueryRun(ctx, c, all, func(query.TargetResult) error { return nil })
	if err != nil {
		return err
	}
	a.Ended = func(e query.TargetResult) error {
		if e.Target.Began.IsZero() && !e.Unfinished { // no query was needed: the list shows the state
			e.Result.Err = nil
		}
		return a.ended(e)
	}
	stop, err := a.sweep(ctx, "list "+name)
	if err != nil {
		return err
	}
	return a.exitError(stop, a.notChecked, c.Repeat())
}

const rowsAtOnce = 250

// inFile yields the trackings of the file's rows that match the filter, in order. It holds a few rows at a time.
func (l *listing) inFile(ctx context.Context) iter.Seq2[ledger.TrackingStatus, error] {
	return func(yield func(ledger.TrackingStatus, error) bool) {
		chunk := make([]intake.Record, 0, rowsAtOnce)
		flush := func() bool {
			found, err := l.find(ctx, chunk)
			chunk = chunk[:0]
			for _, st := range found {
				if !yield(st, nil) {
					return false
				}
			}
			if err != nil {
				yield(ledger.TrackingStatus{}, err)
			}
			return err == nil
		}
		for rec, err := range l.file.All(ctx) {
			if err != nil {
				yield(ledger.TrackingStatus{}, err)
				return
			}
			if chunk = append(chunk, rec); len(chunk) == rowsAtOnce && !flush() {
				return
			}
		}
		flush()
	}
}

// find returns the matching trackings of rows of a file. A row with one identifier has all its parcels; a row that the
// store does not have is [view.NotCreated].
func (l *listing) find(ctx context.Context, records []intake.Record) (left []ledger.TrackingStatus, err error) {
	targets := make([]*query.Target, len(records))
	for i, rec := range records {
		targets[i] = new(refOptions).target(rec)
		targets[i].Exact = rec.Ref == "" // the file says which identifier it is
	}
	if l.db != nil {
		if _, err := l.call.StoredAnswers().FindRows(ctx, targets); err != nil {
			return nil, err
		}
	}
	for i, rec := range records {
		found := targets[i].Rows()
		if rec.Item.ReferID != "" && rec.Item.Number != "" {
			found = pairOf(found, rec.Item.Number)
		}
		if len(found) == 0 {
			item := tracking.Item{ReferID: cmp.Or(rec.Item.ReferID, rec.Ref), Number: rec.Item.Number}
			found = []ledger.TrackingStatus{{Item: item, State: view.NotCreated}}
		}
		left = append(left, found...)
	}
	return l.narrow(ctx, left)
}

// pairOf returns the tracking with a number, preferring equal spelling.
func pairOf(all []ledger.TrackingStatus, number string) []ledger.TrackingStatus {
	i := slices.IndexFunc(all, func(st ledger.TrackingStatus) bool { return st.Item.Number == number })
	if i < 0 {
		i = slices.IndexFunc(all, func(st ledger.TrackingStatus) bool { return tracking.SameNumber(st.Item.Number, number) })
	}
	if i < 0 {
		return nil
	}
	return all[i : i+1]
}

func (l *listing) narrow(ctx context.Context, all []ledger.TrackingStatus) ([]ledger.TrackingStatus, error) {
	all = slices.DeleteFunc(all, func(st ledger.TrackingStatus) bool { return !l.filter.Matches(st) })
	if l.db == nil || l.filter.Run == 0 && l.filter.Created.IsZero() || len(all) == 0 {
		return all, nil
	}
	f := ledger.Filter{Run: l.filter.Run, Created: l.filter.Created}
	for _, st := range all {
		if st.Item.ReferID != "" {
			f.ReferIDs = append(f.ReferIDs, st.Item.ReferID)
		}
	}
	inRun := map[tracking.Key]bool{}
	for st, err := range l.db.Trackings.Statuses(ctx, f) {
		if err != nil {
			return nil, err
		}
		inRun[st.Item.Key()] = true
	}
	return slices.DeleteFunc(all, func(st ledger.TrackingStatus) bool { return !inRun[st.Item.Key()] }), nil
}

func (l *listing) createdTargets(ctx context.Context) targets {
	isCreated := func(st ledger.TrackingStatus) bool { return st.State != view.NotCreated }
	created := command.Filter(l.inFile(ctx), isCreated, l.filter.Limit)
	all := once(created, func(st ledger.TrackingStatus) *query.Target {
		t := storedTarget(st)
		t.Chosen = nil // the file may not have all its parcels
		return t
	})
	return targets{all: all, close: func() {}}
}
