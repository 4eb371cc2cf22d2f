package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
)

type waitOptions struct {
	refOptions
	For, FailOn            string
	Any, All, AllowMissing bool
	Refresh                bool
}

// NewWait returns the command that waits for trackings.
func NewWait(f *command.Factory) *cobra.Command {
	var o waitOptions
	cmd := &cobra.Command{
		Use:     "wait REF...|--from FILE|--run ID",
		GroupID: command.GroupOps,
		Short:   "Wait until trackings are processed or have a status",
		Long: `wait asks about each REF again and again, with growing pauses, until it meets a
condition. A verified event that waybill listen receives, in whichever process,
counts within a second. When the time is up wait shows what is known and ends
with status 8.

  --for processed            the service reports a status (default)
  --for status=X             it has that status: a number or a name
  --for event=X              a verified event of that kind has come, now or earlier
  --for change               something differs from what was known at first

Every answer is kept, and what meets the condition already is not asked about
again, unless with --refresh. So after an interruption run the same command
again: it continues where it stopped, with what was never checked first.`,
		Example: command.Example("waybill wait ORD-1001", "waybill wait --run 3 --timeout 10m", "waybill wait ORD-1 ORD-2 --for status=delivered --any",
			"waybill wait --from orders.csv --for status=delivered --fail-on status=returned --timeout 30d",
			"waybill wait ORD-1001 --for event=router.delivered --timeout 2d"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			o.Refs = args
			return runWait(ctx, c, o)
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.For, "for", "processed", "`CONDITION` to wait for: processed, status=X, event=X or change")
	flags.BoolVar(&o.All, "all", false, "wait until every REF meets it (default)")
	flags.BoolVar(&o.Any, "any", false, "wait until one REF meets it")
	flags.StringVar(&o.FailOn, "fail-on", "", "end at once, with status 6, when a tracking meets this `CONDITION`")
	flags.BoolVar(&o.AllowMissing, "allow-missing", false, "REFs that the service does not have are no failure")
	flags.BoolVar(&o.Refresh, "refresh", false, "ask about every REF at least once, also if it is known to meet the condition")
	o.flags(cmd)
	command.ColumnsFlag(cmd, view.StatusNames{}.Columns(false, time.Time{}))
	return cmd
}

func runWait(ctx context.Context, c *command.Call, o waitOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.Any && o.All {
		return command.Usagef("use one of them", "--any and --all exclude each other")
	}
	w := &waiter{call: c, allowMissing: o.AllowMissing, any: o.Any, refresh: o.Refresh, next: resume(c, o.Refs)}
	var err error
	if w.cond, err = parseCondition("--for", o.For); err != nil {
		return err
	}
	if o.FailOn != "" {
		failOn, err := parseCondition("--fail-on", o.FailOn)
		if err != nil {
			return err
		}
		w.failOn = &failOn
	}
	all, err := o.targets(ctx, c)
	if err != nil {
		return err
	}
	defer all.close()
	p, err := newPrinter(ctx, c, printer{single: o.single()})
	if err != nil {
		return err
	}
	w.whole = true
	failed := w.wait(ctx, all, p.add)
	if w.asking == nil {
		return failed
	}
	if w.asking.tally.all == 0 && failed == nil {
		failed = noteNothing(ctx, c, &o.filterOptions)
	}
	return errors.Join(p.end(failed), failed)
}

// waiter asks about many trackings until each meets a condition, or an event
// says that it does.
type waiter struct {
	call         *command.Call
	cond         Condition
	failOn       *Condition // ends the waiting with a failure; nil for none
	any          bool       // one that meets the condition ends it
	allowMissing bool       // absent trackings are no failure
	refresh      bool
	whole        bool   // shows what is known
	next         string // command that continues

	asking *asking
	bad    map[*query.Target]bool // meets failOn; of the last results
}

// WaitForRun waits until the accepted rows of a run are processed. The error says
// why they are not, and is that of a command that waits.
func WaitForRun(ctx context.Context, c *command.Call, db *app.Store, run ledger.Run) error {
	f := ledger.Filter{Run: run.ID, Order: ledger.ByAsked}
	accepted := func(st ledger.TrackingStatus) bool { return st.State == ledger.Accepted }
	rows := command.Filter(db.Trackings.Statuses(context.WithoutCancel(ctx), run.Plan.Account, f), accepted, 0)
	w := &waiter{call: c, next: c.CommandLine("wait", "--run", runName(run.ID))}
	return w.wait(ctx, targets{all: once(fromStore(rows))}, func(query.Ending) error { return nil })
}

// What ends a wait before all targets are done.
var (
	errEnough = errors.New("one is enough")
	errFailOn = errors.New("a tracking meets --fail-on")
)

// wait waits for all targets; show gets each of them. The error is that which the
// command ends with.
func (w *waiter) wait(ctx context.Context, all targets, show func(query.Ending) error) error {
	failed := "" // which REF meets failOn
	a, err := newAsking(ctx, w.call, "Waiting", all.total, show)
	if err != nil {
		return err
	}
	w.asking, a.allowMissing = a, w.allowMissing
	timed, cancel := context.WithTimeoutCause(ctx, cmp.Or(w.call.Config.Timeout, command.WaitTimeout), command.ErrTimeUp)
	defer cancel()
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
	s := a.scheduler(ctx)
	s.Hard, s.Wake, s.Meets, s.AskAll, s.Whole = hard, wake, w.meets, w.refresh, w.whole
	s.Ended = func(e query.Ending) error {
		if e.Left && w.refresh && w.cond.Met(e.Result) {
			a.tally.again++
		}
		if err := a.ended(e); err != nil {
			return err
		}
		switch {
		case w.bad[e.Target]:
			failed = cmp.Or(failed, e.Result.Ref)
			return errFailOn
		case e.Met && w.any:
			return errEnough
		}
		return nil
	}
	cause := a.run(timed, s, all)
	switch {
	case errors.Is(cause, errEnough):
		return nil
	case errors.Is(cause, errFailOn):
		show := []string{"show", failed}
		if by := w.call.Cmd.Flags().Lookup("by"); by.Changed {
			show = append(show, "--by", by.Value.String())
		}
		return &command.ExitError{Code: command.Partial, Err: fmt.Errorf("%s meets --fail-on %s", command.Quoted(failed), w.failOn), Next: w.call.CommandLine(show...)}
	case cause == nil && w.any && a.tally.met == 0 && a.tally.failed == 0:
		return nil
	}
	return a.exitError(cause, w.stopText, w.next)
}

// meets says which results meet the condition, or that of --fail-on.
func (w *waiter) meets(ctx context.Context, all []query.Ending) error {
	check, err := newConditionCheck(ctx, w.call, w.cond)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Met, err = check.meets(ctx, all[i].Target, all[i].Result, false); err != nil {
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
		bad, err := check.meets(ctx, e.Target, e.Result, true)
		if err != nil {
			return err
		}
		if bad {
			e.Met, w.bad[e.Target] = true, true
		}
	}
	return nil
}

// stopText says what is left when the waiting stops.
func (w *waiter) stopText(cause error) string {
	t := w.asking.tally
	what := "still without " + w.cond.String()
	if w.cond == (Condition{}) {
		what = "not yet processed"
	}
	var parts []string
	switch left := t.left - t.again; {
	case t.all == 1 && left == 1:
		parts = append(parts, command.Quoted(t.leftRef)+" "+what)
	case left > 0:
		parts = append(parts, fmt.Sprintf("%d of %s %s", left, command.Plural(t.all, "REF"), what))
	}
	switch {
	case t.all == 1 && t.again == 1:
		parts = append(parts, command.Quoted(t.leftRef)+" not checked again")
	case t.again > 0:
		parts = append(parts, fmt.Sprintf("%d of %s not checked again", t.again, command.Plural(t.all, "REF")))
	}
	if t.notAsked > 0 && t.all > 1 {
		parts = append(parts, fmt.Sprintf("%d of them not checked yet", t.notAsked))
	}
	if t.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed, the first: %v", t.failed, t.first))
	}
	if t.lastErr != nil {
		parts = append(parts, t.lastErr.Error())
	}
	return fmt.Sprintf("%v: %s", cause, strings.Join(parts, "; "))
}
