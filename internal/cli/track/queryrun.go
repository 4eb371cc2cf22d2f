package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// queryRun queries targets: once, unless its scheduler is changed.
type queryRun struct {
	*query.Scheduler

	call     *command.Call
	targets  targets
	progress *command.Progress
	tally    tally
	pass     *inOrder
	deciding bool   // failed targets are not done
	restart  bool   // do not continue an interrupted run
	stop     func() // stops other displays of progress
}

func newQueryRun(
	ctx context.Context, c *command.Call, all targets, show func(query.TargetResult) error,
) (*queryRun, error) {
	asker, err := c.Asker()
	if err != nil {
		return nil, err
	}
	if err := CatchUp(ctx, c); err != nil {
		return nil, err
	}
	a := &queryRun{
		call: c, targets: all, tally: tally{refs: all.refs}, stop: func() {},
		pass: &inOrder{pass: show, waiting: map[int64]query.TargetResult{}},
	}
	a.Scheduler = &query.Scheduler{
		Asker: asker, Workers: c.Config.Concurrency, Hard: c.Hard(ctx), Ended: a.ended, Choose: all.choose,
		Failing: func(err error) { a.progress.Failing(err) },
	}
	return a, nil
}

func (a *queryRun) ended(e query.TargetResult) error {
	a.tally.add(e)
	n := int64(1)
	if a.targets.trackings {
		n = int64(max(len(e.Result.Trackings), 1))
	}
	switch {
	case e.Unfinished:
	case a.deciding && !a.tally.isDone(e):
		a.progress.AddFailed(n)
	case e.Target.Began.IsZero():
		a.progress.AddKnown(n)
	default:
		a.progress.Add(n)
	}
	return a.pass.add(e)
}

func (a *queryRun) run(ctx context.Context) error {
	err := a.Run(ctx, a.targets.all)
	a.progress.Stop()
	a.stop()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = context.Cause(ctx)
	}
	return cmp.Or(err, a.pass.flush())
}

// maxSweep is the age up to which an interrupted command is continued.
const maxSweep = 24 * time.Hour

// sweep queries from where the command of that name was interrupted, if it has a name. stop is why it ended early.
func (a *queryRun) sweep(ctx context.Context, name string) (stop, err error) {
	a.progress = command.NewProgress(a.call.IO, "Checking", "trackings", a.targets.total)
	a.Patience = cmp.Or(a.call.Config.Timeout, command.QueryTimeout)
	db, err := a.call.StoreIfAny(ctx)
	if err != nil {
		return nil, err
	}
	if name == "" || db == nil {
		return a.run(ctx), nil
	}
	now := time.Now()
	oldest := now.Add(-maxSweep)
	if a.restart {
		oldest = now
	}
	began, err := db.Sweeps.BeginSweep(ctx, name, oldest)
	switch {
	case errors.Is(err, inbox.ErrReadOnly):
		return a.run(ctx), nil
	case err != nil:
		return nil, err
	case began.Before(now.Truncate(time.Millisecond)):
		a.Since = began
		all := " (--refresh checks all)"
		if a.call.Cmd.Name() == "list" { // --refresh queries anyway
			all = ""
		}
		a.call.IO.Note("Resuming: skipping trackings checked since %s%s", render.LocalTime(began), all)
	}
	if stop = a.run(ctx); stop == nil {
		stop = db.Sweeps.EndSweep(context.WithoutCancel(ctx), name)
	}
	return stop, nil
}

// exitError returns the error of the command. stop is why not all REFs are done; nil if they are.
func (a *queryRun) exitError(stop error, describe func(stop error) error, next string) error {
	failed := a.tally.failure()
	switch {
	case stop == nil && failed == nil:
		return nil
	case errors.Is(stop, term.ErrClosed):
		return term.ErrClosed // nobody reads how far it came
	}
	if trouble, ok := errors.AsType[*store.Error](stop); ok {
		stop = trouble // later errors of the store have the same cause
	}
	e := &command.ExitError{Err: failed}
	cause := stop
	if stop != nil {
		e.Err, e.Next = describe(stop), next
		if errors.Is(stop, command.ErrTimeUp) {
			cause = cmp.Or(a.tally.unanswered(), stop)
		}
	}
	e.Code = command.Worst(append(a.tally.codes, command.CodeOf(failed), command.CodeOf(stop), command.CodeOf(cause))...)
	if _, e.Hint = command.CodeAndHint(cause); e.Hint == "" {
		a.advise(e)
	}
	return e
}

func (a *queryRun) notChecked(stop error) error {
	all := command.Plural(a.tally.all, strings.TrimSuffix(a.tally.nouns(), "s"))
	return fmt.Errorf("%w; %d of %s not checked", stop, a.tally.left, all)
}

func (a *queryRun) advise(e *command.ExitError) {
	t, next, number := &a.tally, "", ""
	if t.number != "" {
		number = command.Quoted(t.number) + " looks like a tracking number: add --by tracking-number"
	}
	switch {
	case t.absentRun != 0:
		next = a.call.CommandLine("runs", "retry", command.RunName(t.absentRun), "--absent")
		e.Hint = "the service has no tracking for accepted rows: `" + next +
			"` checks those of the run, and sends them again once their absence is proven"
	case t.rejectedRun != 0:
		next = a.call.RejectedCSV(t.rejectedRun)
		e.Hint = "write the rejected rows to a file with the next command, fix them, then create that file; " +
			"or dismiss them with `" + a.call.CommandLine("runs", "dismiss", command.RunName(t.rejectedRun)) + "`"
	case t.unsentRun != 0:
		next = a.call.CommandLine("runs", "resume", command.RunName(t.unsentRun))
		e.Hint = "send the rows of the run first"
	case t.number != "" && a.call.Cmd.Flags().Changed("from"):
		e.Hint, number = number+", or --map rawTrackingNumber=HEADER if the file has columns", ""
	case t.number != "":
		next = a.call.CommandLine(a.call.Cmd.Name(), t.number, "--by", "tracking-number")
		e.Hint, number = number, ""
	default:
		_, e.Hint = command.CodeAndHint(t.first)
	}
	if number != "" {
		e.Hint += "; " + number
	}
	e.Next = cmp.Or(e.Next, next)
}

// maxWaiting is the number of results that may wait for an earlier one. Beyond it they are passed on out of order.
const maxWaiting = 256

type inOrder struct {
	pass    func(query.TargetResult) error
	next    int64 // position of the next result
	waiting map[int64]query.TargetResult
}

func (o *inOrder) add(e query.TargetResult) error {
	if e.Target.Pos < o.next {
		return o.pass(e)
	}
	o.waiting[e.Target.Pos] = e
	if e.Target.Pos > o.next && len(o.waiting) > maxWaiting {
		return o.flush()
	}
	for next, ok := o.waiting[o.next]; ok; next, ok = o.waiting[o.next] {
		if err := o.take(next); err != nil {
			return err
		}
	}
	return nil
}

func (o *inOrder) take(e query.TargetResult) error {
	delete(o.waiting, e.Target.Pos)
	o.next = e.Target.Pos + 1
	return o.pass(e)
}

func (o *inOrder) flush() error {
	for _, pos := range slices.Sorted(maps.Keys(o.waiting)) {
		if err := o.take(o.waiting[pos]); err != nil {
			return err
		}
	}
	return nil
}

type tally struct {
	all          int64
	trackings    int64 // of all REFs: an order may have several
	refs         bool  // the user typed the REFs
	allowMissing bool  // absent trackings do not fail

	met      int64 // found, or meeting the condition
	left     int64 // unfinished at the end
	notAsked int64 // of left: never queried

	failed   int64
	first    error // of the first failed REF, which it names
	firstPos int64
	codes    []command.Code
	trouble  error  // of the last query of a REF that is left: no response, or no credible one
	lastErr  error  // of the last query of a REF that is left
	paused   int64  // of left: the last response asked for a pause
	again    int64  // of left: met the condition before and were to be queried again
	leftRef  string // a REF that is left

	// For the next command: the runs of the first rows not found, rejected and not sent, 0 for none, and an unknown REF
	// that looks like a tracking number.
	absentRun, rejectedRun, unsentRun int64
	number                            string
}

func (t *tally) add(e query.TargetResult) {
	t.all++
	t.trackings += int64(max(len(e.Result.Trackings), 1))
	err := e.Result.Err
	if errors.Is(err, tracking.ErrAbsent) && t.absentRun == 0 || e.Unfinished && absent(e.Result) && t.absentRun == 0 {
		t.absentRun = e.Target.RunOf(ledger.Accepted)
	}
	switch {
	case e.Unfinished && absent(e.Result) && err == nil && !t.allowMissing:
		e.Result.Err = tracking.ErrAbsent
		t.fail(e)
	case e.Unfinished:
		t.left++
		t.leftRef = e.Result.Ref
		if errors.Is(err, query.ErrNotAsked) {
			t.notAsked++
		}
		switch {
		case tracking.FailureOf(err).Troubled:
			t.trouble, t.lastErr = err, err
		case tracking.FailureOf(err).Temporary:
			t.paused++
			t.lastErr = err
		}
	case t.allowMissing && errors.Is(err, tracking.ErrAbsent): // no failure
	case err == nil:
		t.met++
	default:
		t.fail(e)
	}
}

func (t *tally) fail(e query.TargetResult) {
	res := e.Result
	t.failed++
	if t.first == nil || e.Target.Pos < t.firstPos {
		t.first, t.firstPos = fmt.Errorf("%s: %w", command.Quoted(res.Ref), res.Err), e.Target.Pos
	}
	switch {
	case errors.Is(res.Err, query.ErrRejected):
		t.rejectedRun = cmp.Or(t.rejectedRun, e.Target.RunOf(ledger.Rejected))
	case errors.Is(res.Err, query.ErrNotSent):
		t.unsentRun = cmp.Or(t.unsentRun, e.Target.RunOf(ledger.Pending))
	case !errors.Is(res.Err, tracking.ErrAbsent) || res.Query.ReferID == "" || e.Target.IsKnown():
	case tracking.LikeNumber(res.Ref):
		t.number = cmp.Or(t.number, res.Ref)
	}
	if code := command.CodeOf(res.Err); !slices.Contains(t.codes, code) {
		t.codes = append(t.codes, code)
	}
}

// unanswered returns why the REFs left have no response: trouble, or a pause for all of them; nil if they have one.
func (t *tally) unanswered() error {
	if t.trouble == nil && t.paused > 0 && t.paused+t.notAsked == t.left {
		return t.lastErr
	}
	return t.trouble
}

func (t *tally) isDone(e query.TargetResult) bool {
	return !e.Unfinished && (e.Result.Err == nil || t.allowMissing && errors.Is(e.Result.Err, tracking.ErrAbsent))
}

// absent reports whether the last response says that there is no such tracking.
func absent(res query.Result) bool {
	return len(res.Trackings) > 0 && res.Trackings[0].Phase == ledger.Absent
}

// failure returns nil if no REF failed, the common error if all failed alike, else a partial failure.
func (t *tally) failure() error {
	switch {
	case t.failed == 0:
		return nil
	case t.failed < t.all || len(t.codes) > 1:
		failed := command.Number(t.failed) + " of " + command.Number(t.all) + " " + t.nouns()
		return &command.ExitError{Code: command.Partial, Err: errors.New(failed + " failed, the first: " + t.first.Error())}
	case t.all == 1:
		return t.first
	}
	return fmt.Errorf("%d of %d %s failed, the first: %w", t.all, t.all, t.nouns(), t.first)
}

func (t *tally) nouns() string {
	switch {
	case t.refs:
		return "REFs"
	case t.all == t.trackings:
		return "trackings"
	}
	return "orders"
}
