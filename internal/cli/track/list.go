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
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/shell"
)

type listOptions struct {
	filterOptions
	Sort    sortKey
	Limit   int
	Summary bool
	Refresh bool
}

// NewList returns the command that lists what is known of trackings.
func NewList(f *command.Factory) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:     "list",
		GroupID: command.GroupOps,
		Short:   "List your trackings and their status",
		Long: fmt.Sprintf(`list prints every tracking in the store with its last known status, and when and
from which source it was updated: the service's responses or verified events. With
--refresh it queries the service first.

On a terminal, list prints the first %d rows; --limit N prints more, --limit 0 all.
In a pipe it prints all rows. A line on standard error sums up all matching rows;
--summary prints sums by status, carrier, age and first run instead of rows.

--sort takes created, updated, checkpoint, reference, number, status or carrier,
and reverses it after a -: --sort -updated lists the latest first. Rows without a
value are last.

Numbers that came with verified events and are not in the store are listed at the
end. Events that did not verify change nothing; a note counts them.

--status takes numbers and names as the table and the summary show them. --state
rejected leaves out superseded and dismissed rows, as in "waybill runs rows".

An accepted tracking without a response or event is "not checked yet" (phase
"notAsked" in JSON).`, terminalRows),
		Example: command.Example("waybill list", "waybill list --status delivered", "waybill list --state rejected", "waybill list --refer-id 'ORD-10*' --sort -updated",
			"waybill list --stuck=3d --carrier dhl", "waybill list --stale 48h -o json", "waybill list --summary"),
		Args: cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runList(ctx, c, o)
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	o.register(flags)
	flags.BoolVar(&o.Summary, "summary", false, "show sums in place of rows")
	flags.BoolVar(&o.Refresh, "refresh", false, "query the service first")
	command.SettingFlags(cmd, "concurrency", "rate")
	command.ColumnsFlag(cmd, view.StatusNames{}.Columns(false, time.Time{}))
	command.ColumnsWith(cmd, "summary", sumColumns())
	return cmd
}

// register adds the flags that say which rows a list has, and in which order.
func (o *listOptions) register(f *pflag.FlagSet) {
	o.filterOptions.register(f)
	f.Var(&o.Sort, "sort", "sort by `COLUMN`: "+command.Or(orders())+"; -COLUMN reverses")
	f.IntVar(&o.Limit, "limit", 0, fmt.Sprintf("at most `N` rows, 0 for all (default: %d on a terminal)", terminalRows))
}

// terminalRows is how many rows a list on a terminal has unless --limit says more.
const terminalRows = 50

// sortKey is the value of --sort.
type sortKey struct {
	by         ledger.Order
	descending bool
}

// orders are the columns that a list is sorted by, as --sort names them.
func orders() []string {
	return []string{created, string(ledger.ByUpdated), string(ledger.ByCheckpoint), string(ledger.ByReference), string(ledger.ByNumber), string(ledger.ByStatus), string(ledger.ByCarrier)}
}

// created is the order of lists that are not sorted.
const created = "created"

// Choices is for completion.
func (k *sortKey) Choices() []string {
	words := orders()
	for _, word := range orders() {
		words = append(words, "-"+word)
	}
	return words
}

// Type is for the command line.
func (k *sortKey) Type() string { return "string" }

// String returns the word that was given.
func (k *sortKey) String() string {
	word := string(k.by)
	if k.descending {
		word = "-" + cmp.Or(word, created)
	}
	return word
}

// Set is for the command line.
func (k *sortKey) Set(s string) error {
	word, descending := strings.CutPrefix(strings.ToLower(s), "-")
	words := orders()
	if !slices.Contains(words, word) {
		text := fmt.Sprintf("must be %s, not %s", command.Or(words), command.Quoted(s))
		if near := config.Nearest(word, words); near != "" {
			text += "; did you mean " + near + "?"
		}
		return errors.New(text)
	}
	*k = sortKey{ledger.Order(word), descending}
	if word == created {
		k.by = ledger.ByCreation
	}
	return nil
}

func runList(ctx context.Context, c *command.Call, o listOptions) error {
	if err := command.CheckLimit(o.Limit); err != nil {
		return err
	}
	for _, name := range []string{"sort", "limit"} {
		if o.Summary && c.Cmd.Flags().Changed(name) {
			return command.Usagef("leave --"+name+" out", "--summary counts all that match; --%s is about rows", name)
		}
	}
	_, filter, err := o.filter(ctx, c)
	if err != nil {
		return err
	}
	filter.Limit, filter.Order, filter.Descending = o.Limit, o.Sort.by, o.Sort.descending
	var stopped error
	if o.Refresh {
		stopped = refresh(ctx, c, filter, fmt.Sprint(o.filterOptions.String(), " limit=", o.Limit))
		ctx = context.WithoutCancel(ctx)
	}
	if c.Out.ForPeople() && !c.Cmd.Flags().Changed("limit") {
		filter.Limit = terminalRows
	}
	l := listing{call: c, filter: filter, words: o.words(), refreshed: o.Refresh}
	if o.Summary {
		return errors.Join(l.printSums(ctx, false), stopped)
	}
	return errors.Join(l.print(ctx), stopped)
}

// PrintList prints what is known of the trackings of a run.
func PrintList(ctx context.Context, c *command.Call, run int64) error {
	l := listing{call: c, filter: ledger.Filter{Run: run}, words: []string{"--run", fmt.Sprint(run)}, refreshed: true}
	return l.print(ctx)
}

// listing prints what is known of the trackings of a filter.
type listing struct {
	call      *command.Call
	filter    ledger.Filter
	words     []string // the flags of the filter as they were typed
	refreshed bool     // the service was just asked

	db      *app.Store // nil if there is none
	names   view.StatusNames
	summary *view.Summary // of the rows that were printed
	beside  unverified
	more    bool // there are more rows than were to be printed
}

// open opens the store, with what events said.
func (l *listing) open(ctx context.Context) (err error) {
	if err := CatchUp(ctx, l.call); err != nil {
		return err
	}
	l.names = view.NewStatusNames(l.call.Config.Statuses)
	l.summary = view.NewSummary(l.names)
	l.db, err = l.call.ExistingStore(ctx)
	return err
}

func (l *listing) print(ctx context.Context) error {
	if err := l.open(ctx); err != nil {
		return err
	}
	c := l.call
	w := command.Listing[*view.Line]{
		Out: c.Out, Columns: l.names.Columns(c.Out.ForPeople(), time.Now()),
		JSON: func(l *view.Line) any { return view.NewTrackingStatus(*l.Row) },
	}
	if l.db == nil {
		w.Empty = nothingListed(c.Account(ctx))
		return w.Print(c.IO, nil)
	}
	err := w.Print(c.IO, l.rows(ctx))
	if err == nil {
		err = l.beside.load(ctx, l.db)
	}
	switch {
	case err != nil:
		return err
	case l.summary.Trackings() == 0:
		return l.explainEmpty(ctx)
	case l.more && c.Out.ForPeople():
		if err := l.sumUpAll(ctx); err != nil {
			return err
		}
	case !l.more:
		l.summary.Print(c)
	}
	l.beside.note(c.IO, l.names)
	if !l.refreshed && (l.filter.Unreported || !l.filter.StaleSince.IsZero()) {
		c.IO.Next(c.CommandLine(slices.Concat([]string{"list"}, l.words, []string{"--refresh"})...))
	}
	return nil
}

// rows yields the rows that are to be printed, and counts them.
func (l *listing) rows(ctx context.Context) iter.Seq2[*view.Line, error] {
	return func(yield func(*view.Line, error) bool) {
		var row ledger.TrackingStatus
		var line view.Line // of the row
		f := l.filter
		if f.Limit > 0 {
			f.Limit++
		}
		for st, err := range l.db.Trackings.Statuses(ctx, l.call.Account(ctx), f) {
			if l.more = err == nil && f.Limit > 0 && l.summary.Trackings() == int64(l.filter.Limit); l.more {
				return
			}
			if st.Unverified != 0 {
				l.beside.add(inbox.Event{Seq: st.Unverified})
			}
			row = st
			line = view.KnownLine(&row)
			if !yield(&line, err) {
				return
			}
			if err == nil {
				l.summary.AddCount(ledger.GroupOf(st).StatusCount)
			}
		}
	}
}

// sumUpAll says how many more there are than were printed, and sums up all.
func (l *listing) sumUpAll(ctx context.Context) error {
	all, err := view.SummaryOf(ctx, l.call, l.db, l.call.Account(ctx), l.filter)
	if err != nil {
		return err
	}
	printed := l.summary.Trackings()
	csv := "-o csv --out FILE"
	if l.call.Cmd.Flags().Changed("limit") {
		csv = "--limit 0 " + csv
	}
	l.call.IO.Note("… and %s more: --limit 0 shows all, %s writes all", view.Number(all.Trackings()-printed), csv)
	all.Print(l.call)
	return nil
}

// maxStatusesNamed is how many statuses the note of an empty list names.
const maxStatusesNamed = 8

// noteNothing notes why there is nothing to ask about.
func noteNothing(ctx context.Context, c *command.Call, o *filterOptions) error {
	db, err := c.ExistingStore(ctx)
	switch {
	case err != nil:
		return err
	case db == nil:
		c.IO.Note("%s", nothingListed(c.Account(ctx)))
		return nil
	}
	l := listing{call: c, words: o.words(), db: db}
	return l.explainEmpty(ctx)
}

// explainEmpty says that nothing matches, and what there is.
func (l *listing) explainEmpty(ctx context.Context) error {
	why, next, err := l.whyEmpty(ctx)
	if err != nil {
		return err
	}
	l.call.IO.Note("%s", why)
	if next != "" {
		l.call.IO.Next(next)
	}
	return nil
}

// whyEmpty returns why nothing matches, with what there is, and the command that shows
// it, empty for none.
func (l *listing) whyEmpty(ctx context.Context) (why, next string, err error) {
	account := l.call.Account(ctx)
	counts, err := l.db.Statistics.CountByStatus(ctx, account)
	if err != nil {
		return "", "", err
	}
	var total int64
	names := []string{}
	for _, s := range counts {
		total += s.Trackings
		name := view.NewStatusNames(l.call.Config.Statuses).Name(s.Status, s.StatusLabel, s.StatusTrack)
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if total == 0 || len(l.words) == 0 {
		others, err := otherAccounts(ctx, l.call, l.db)
		if others != "" && account != "" {
			return fmt.Sprintf("No tracking of account %s is known yet, but this store has trackings of %s: use --account NAME", account, others), "", err
		}
		return nothingListed(account), "", err
	}
	what := "statuses"
	if !slices.Contains(l.words, "--status") && slices.Contains(l.words, "--carrier") {
		what = "carriers"
		if names, err = l.db.Statistics.SeenCarriers(ctx, account); err != nil {
			return "", "", err
		}
	}
	if slices.Contains(l.words, "--state") {
		what = "states"
		if names, err = l.states(ctx); err != nil {
			return "", "", err
		}
	}
	switch {
	case len(names) == 0:
		names = []string{"none yet"}
	case len(names) > maxStatusesNamed:
		names = append(names[:maxStatusesNamed], "…")
	}
	why = fmt.Sprintf("No tracking matches %s (%s known; %s: %s)", shell.Line(l.words...), view.Number(total), what, strings.Join(names, ", "))
	return why, l.call.CommandLine("list", "--summary"), nil
}

// states returns the states that rows of the account are in.
func (l *listing) states(ctx context.Context) (names []string, err error) {
	for _, state := range view.RowStates() {
		for _, err := range l.db.Trackings.Statuses(ctx, l.call.Account(ctx), ledger.Filter{States: []ledger.State{ledger.State(state)}, Limit: 1}) {
			if err != nil {
				return nil, err
			}
			names = append(names, state)
		}
	}
	return names, nil
}

// nothingListed names the account in the note of an empty list: one store may hold
// several.
func nothingListed(account string) string {
	if account == "" {
		return "No account is set, so no tracking is known: set WAYBILL_BASE_URL or --account"
	}
	return fmt.Sprintf("No tracking of account %s is known yet; create some with `waybill create FILE`", account)
}
