package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/term"
)

type waitOptions struct {
	refOptions
	For, FailOn          string
	Any, AllowMissing    bool
	Open                 bool
	Refresh, Watch, Rows bool
}

// NewWait returns the command wait.
func NewWait(f *command.Factory) *cobra.Command {
	var o waitOptions
	cmd := &cobra.Command{
		Use:   "wait REF...|--from FILE|--run ID|--open",
		Short: "Wait until trackings are processed or have a status",
		Long: `Wait until each tracking meets a condition. wait queries the service repeatedly,
with growing pauses: of many that are Processing a few often, and the others once one
of them is ready. A verified event that waybill listen receives counts within a second.
When the time is up, wait exits with 8. A tracking that the service reports an error
of has failed: wait finishes the others, and exits with 6.

  --for processed            the service reports a status (default)
  --for status=X             it has that status: a number or a name
  --for event=X              a verified event of that kind has come, now or earlier;
                             the portal may send events of selected statuses only
  --for change               its status or timeline has changed

--open waits until all that is open is delivered or has failed: an error, a return or
the like. "waybill list --status open" shows what that is; other filters narrow it.

After several REFs wait prints a summary and the rows that are not done: the first
20 on a terminal, all of them in a pipe. All rows come with --rows, and with -o csv,
json or jsonl.

--watch shows the rows in a full-screen table until the end. In a pipe, with --out,
with -o json or jsonl and where TERM is dumb it prints JSON Lines: a "change" with
the status before and after for each tracking that changes, and a "summary" at the
end (its members: waybill help output).

Every response is saved. To continue after an interruption, re-run the same
command: trackings that were never checked come first, and those that already meet
the condition are not queried again, unless with --refresh.`,
		Example: command.Example("waybill wait ORD-1001", "waybill wait --open --timeout 8h",
			"waybill wait --run 3 --timeout 10m", "waybill wait ORD-1 ORD-2 --for status=delivered --any",
			"waybill wait --from orders.csv --for status=delivered --fail-on status=returned --timeout 30d",
			"waybill wait --run 3 --for status=delivered --watch",
			"waybill wait ORD-1001 --for event=router.delivered --timeout 2d"),
		RunE: f.WithArgs(&o.Refs, func(ctx context.Context, c *command.Call) error { return runWait(ctx, c, o) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.For, "for", "processed", "`CONDITION` to wait for: processed, status=X, event=X or change")
	flags.BoolVar(&o.Open, "open", false, "wait for all that is not delivered, rejected or failed; "+
		"unless --for says more, until it is delivered")
	flags.BoolVar(&o.Any, "any", false, "wait until one REF meets it, in place of all")
	flags.StringVar(&o.FailOn, "fail-on", "", "end at once, with status 6, when a tracking meets this `CONDITION`")
	flags.BoolVar(&o.AllowMissing, "allow-missing", false, "do not fail on REFs that the service does not have")
	refreshFlag(flags, &o.Refresh)
	flags.BoolVar(&o.Watch, "watch", false, "show a table that is redrawn; without a terminal, changes as JSON Lines")
	flags.BoolVar(&o.Rows, "rows", false, "show all rows at the end, not only those that are not done")
	o.flags(cmd)
	command.ColumnsFlag(cmd, view.StatusFormatter{}.AnswerColumns(view.Reader{}))
	return cmd
}

func runWait(ctx context.Context, c *command.Call, o waitOptions) error {
	if o.Open {
		o.Statuses = append(o.Statuses, view.OpenWord)
		if !c.Cmd.Flags().Changed("for") {
			o.For = "status=delivered"
		}
	}
	if err := o.check(c.Cmd); err != nil {
		return err
	}
	if o.Watch && o.Rows {
		return command.Usagef("leave one of them out", "--watch shows rows itself, --rows shows them at the end")
	}
	own := view.NewStatusFormatter(c.Config.OwnStatuses)
	cond, err := parseCondition(own, "--for", o.For)
	if err != nil {
		return err
	}
	cond.orProblem = o.Open
	w := &waiter{call: c, names: view.NewStatusFormatter(c.Config.Statuses), asked: o, cond: cond, next: c.Again(nil)}
	if o.FailOn != "" {
		failOn, err := parseCondition(own, "--fail-on", o.FailOn)
		if err != nil {
			return err
		}
		failOn.one, w.failOn = true, &failOn
	}
	c.StoreUntil = time.Now().Add(cmp.Or(c.Config.Timeout, command.WaitTimeout))
	all, err := o.targets(ctx, c)
	if err != nil {
		return err
	}
	defer all.close()
	if o.Open && all.total > 0 {
		c.IO.Note("%s open (not delivered, rejected or failed)", command.Plural(all.total, "tracking"))
	}
	var p *printer // nil if changes are printed as JSON Lines
	show := func(query.TargetResult) error { return nil }
	if !o.Watch || !c.Out.Machine() {
		if p, err = newPrinter(c, w.printer()); err != nil {
			return err
		}
		show, w.whole = p.add, true
	}
	failed := w.wait(ctx, all, show)
	if w.run == nil {
		return failed
	}
	if w.run.tally.all == 0 && failed == nil {
		failed = noteNothing(ctx, c, &o.filterOptions)
	}
	if p == nil {
		t := w.run.tally
		return errors.Join(c.Out.Object(summaryJSON{"summary", w.board.summary.JSON(), t.met, t.left, t.failed}), failed)
	}
	return errors.Join(p.end(failed), failed)
}

const shownNotDone = 20

// printer returns a printer that shows all REFs to files and programs, and only unfinished REFs to people.
func (w *waiter) printer() printer {
	p := printer{single: w.asked.single()}
	if p.single || w.asked.Rows || w.call.Out.IsCSV() || w.call.Out.Machine() {
		return p
	}
	if p.keep = w.showsAtEnd; w.call.Out.ForPeople() {
		p.limit = shownNotDone
	}
	return p
}

func (w *waiter) showsAtEnd(e query.TargetResult) bool {
	if w.asked.Any && w.run.tally.met > 0 {
		return e.Matched
	}
	return w.isBad(e.Target) || !w.run.tally.isDone(e)
}

// summaryJSON is the last JSON line of --watch.
type summaryJSON struct {
	Type string `json:"type"` // summary
	view.SummaryJSON
	Met    int64 `json:"met"` // orders, as left and failed
	Left   int64 `json:"left"`
	Failed int64 `json:"failed"`
}

type waiter struct {
	call   *command.Call
	names  view.StatusFormatter
	asked  waitOptions // zero for a create that waits
	cond   Condition
	failOn *Condition // ends the wait with a failure; nil for none
	whole  bool       // shows results, not only counts
	next   string     // command that continues

	run   *queryRun
	board *board
	mu    sync.Mutex
	bad   map[*query.Target]bool // targets whose last result meets failOn
}

func (w *waiter) isBad(t *query.Target) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bad[t]
}

// WaitForRun waits until the total accepted rows of a run are processed. It returns the command's error.
func WaitForRun(ctx context.Context, c *command.Call, db *app.Store, run ledger.Run, total int64) error {
	all := many(context.WithoutCancel(ctx), db, ledger.Filter{Run: run.ID, States: []ledger.State{ledger.Accepted}}, total)
	w := &waiter{call: c, names: view.NewStatusFormatter(c.Config.Statuses), cond: Condition{text: "processed"}}
	w.next = c.CommandLine("wait", "--run", command.RunName(run.ID))
	return w.wait(ctx, all, func(query.TargetResult) error { return nil })
}

// Causes that end a wait before all targets are done.
var (
	errEnough = errors.New("one is enough")
	errFailOn = errors.New("a tracking meets --fail-on")
)

// wait waits for all targets and passes each result to show. It returns the error of the command.
func (w *waiter) wait(ctx context.Context, all targets, show func(query.TargetResult) error) error {
	failed := "" // REF that meets failOn
	a, err := newQueryRun(ctx, w.call, all, show)
	if err != nil {
		return err
	}
	w.run, a.tally.allowMissing, a.deciding = a, w.asked.AllowMissing, true
	limit := cmp.Or(w.call.Config.Timeout, command.WaitTimeout)
	if end, ok := ctx.Deadline(); ok { // a create that waits has a deadline
		limit = time.Until(end)
	}
	timed, cancel := context.WithTimeoutCause(ctx, limit, command.ErrTimeUp)
	defer cancel()
	defer w.begin(all.total, time.Now().Add(limit))()
	defer context.AfterFunc(ctx, a.stop)() // on a signal, even while requests finish
	hard, end := context.WithCancelCause(a.call.Hard(ctx))
	defer end(nil)
	defer context.AfterFunc(timed, func() {
		if errors.Is(context.Cause(timed), command.ErrTimeUp) {
			end(command.ErrTimeUp)
		}
	})()
	wake, stop := wakeOnEvents(timed, w.call)
	defer stop()
	w.bad = map[*query.Target]bool{}
	a.Hard, a.Wake, a.Meets, a.AskAll, a.Whole = hard, wake, w.meets, w.asked.Refresh, w.whole
	a.Alike = !w.asked.Any && w.failOn == nil && w.cond.text == "processed"
	a.Ended = func(e query.TargetResult) error {
		if e.Unfinished && w.asked.Refresh && w.cond.Met(e.Result) {
			a.tally.again++
		}
		printErr := w.board.finish(e)
		w.nameUnit()
		if err := errors.Join(printErr, a.ended(e)); err != nil {
			return err
		}
		switch {
		case w.isBad(e.Target):
			failed = cmp.Or(failed, e.Result.Ref)
			return errFailOn
		case e.Matched && w.asked.Any:
			return errEnough
		}
		return nil
	}
	cause := a.run(timed)
	switch {
	case errors.Is(cause, errEnough), cause == nil && w.asked.Any && a.tally.met == 0 && a.tally.failed == 0:
		return nil
	case errors.Is(cause, errFailOn):
		return w.failOnError(failed)
	}
	return a.exitError(cause, w.stopError, w.next)
}

func (w *waiter) failOnError(ref string) error {
	show := []string{"show", ref}
	if by := w.call.Cmd.Flags().Lookup("by"); by.Changed {
		show = append(show, "--by", by.Value.String())
	}
	err := fmt.Errorf("%s meets --fail-on %s", command.Quoted(ref), w.failOn.text)
	return &command.ExitError{Code: command.Partial, Err: err, Next: w.call.CommandLine(show...)}
}

func (w *waiter) begin(total int64, deadline time.Time) (stop func()) {
	watched := w.asked.Watch && !w.call.Out.Machine()
	b := &board{names: w.names, summary: view.NewSummary(w.names), open: map[int64][]view.Line{}, holding: watched}
	done := w.cond.done(w.names)
	extra := func() ([]string, map[string]any) { return b.progress(done) }
	if watched { // the page shows the summary
		extra = nil
	}
	progress := command.NewWaitProgress(w.call.IO, "Waiting", done, total, deadline, extra)
	w.board, w.run.progress = b, progress
	switch {
	case watched:
		page := w.call.IO.Page(func(out *term.Writer, height int) {
			_ = b.draw(w.call.Out, out, progress.Line(out.Width()), height) // writes to a buffer do not fail
		})
		w.run.stop = page.Stop
		return page.Stop
	case w.asked.Watch:
		b.changed = func(c changeJSON) error { return w.call.Out.Object(c) }
	}
	return progress.Stop
}

// nameUnit makes progress count orders once an order has several parcels.
func (w *waiter) nameUnit() {
	if !w.run.targets.trackings && w.board.hasParcels() {
		w.run.progress.SetUnit("orders " + w.cond.done(w.names))
	}
}

func (w *waiter) meets(ctx context.Context, all []query.TargetResult) error {
	check, err := newConditionCheck(ctx, w.call, w.cond)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Matched, err = check.meets(ctx, all[i].Target, all[i].Result); err != nil {
			return err
		}
		if !all[i].Matched && all[i].Result.Err == nil {
			all[i].Result.Err = w.cond.failed(w.names, all[i].Result)
		}
		err = w.board.update(all[i])
		w.nameUnit()
		if err != nil {
			return err
		}
	}
	if w.failOn == nil {
		return nil
	}
	if check, err = newConditionCheck(ctx, w.call, *w.failOn); err != nil {
		return err
	}
	for i := range all {
		e := &all[i]
		bad, err := check.meets(ctx, e.Target, e.Result)
		if err != nil {
			return err
		}
		w.mu.Lock()
		if bad {
			e.Matched, w.bad[e.Target] = true, true
		} else if len(e.Result.Trackings) > 0 { // replaces an earlier result
			delete(w.bad, e.Target)
		}
		w.mu.Unlock()
	}
	return nil
}

func (w *waiter) stopError(cause error) error {
	t := w.run.tally
	all := command.Number(t.all)
	if t.all != t.trackings {
		all = fmt.Sprintf("%s (%s)", command.Plural(t.all, "order"), command.Plural(t.trackings, "tracking"))
	}
	var parts []string
	count := func(n int64, what string) {
		switch {
		case t.all == 1 && n == 1:
			parts = append(parts, command.Quoted(t.leftRef)+" "+what)
		case n > 0:
			parts = append(parts, command.Number(n)+" of "+all+" "+what)
		}
	}
	count(t.left-t.again, w.cond.notYet(w.names))
	count(t.again, "not checked again")
	if t.notAsked > 0 && t.all > 1 {
		parts = append(parts, command.Number(t.notAsked)+" of them not checked yet")
	}
	if t.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed, the first: %v", t.failed, t.first))
	}
	if t.lastErr != nil {
		parts = append(parts, t.lastErr.Error())
	}
	if len(parts) == 0 {
		return cause // nothing was queried yet
	}
	return fmt.Errorf("%w: %s", cause, strings.Join(parts, "; "))
}
