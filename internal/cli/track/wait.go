package track

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/poll"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

type waitOptions struct {
	refOptions
	For string
}

// NewWait returns the command that waits for trackings.
func NewWait(f *command.Factory) *cobra.Command {
	var o waitOptions
	cmd := &cobra.Command{
		Use:     "wait REF...",
		GroupID: command.GroupOps,
		Short:   "Wait until trackings are processed or have a status",
		Long: `wait asks about each REF again and again, with growing pauses, until the service
has worked it out, or until what you name has come about. A verified event that
waybill listen receives, in whichever process, ends it within a second. When the
time is up it shows what is known and ends with status 8.

  --for processed            the service tells a status (default)
  --for status=X             it has that status: a number or a name
  --for event=X              a verified event of that kind has come, now or earlier
  --for change               something differs from what was known at first`,
		Example: command.Example("waybill wait ORD-1001", "waybill wait --run 3 --timeout 10m", "waybill wait ORD-1 ORD-2 --for status=delivered",
			"waybill wait ORD-1001 --for event=router.delivered --timeout 2d"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			o.Refs = args
			return runWait(ctx, c, o)
		}),
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&o.For, "for", "processed", "`CONDITION` to wait for: processed, status=X, event=X or change")
	return cmd
}

func runWait(ctx context.Context, c *command.Call, o waitOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	cond, err := parseCondition(o.For)
	if err != nil {
		return err
	}
	qs, err := o.queries(ctx, c)
	if err != nil {
		return err
	}
	asker, err := c.Asker(ctx)
	if err != nil {
		return err
	}
	all, left, waitErr := (&Waiter{Call: c, Asker: asker, Cond: cond}).all(ctx, qs)
	if waitErr != nil && !errors.Is(waitErr, command.ErrTimeUp) && !command.As[*command.SignalError](waitErr) {
		return waitErr
	}
	ctx = context.WithoutCancel(ctx)
	showErr := report(ctx, c, asker, all, showOptions{refOptions: o.refOptions})
	if waitErr == nil {
		return showErr
	}
	return &WaitError{
		Cause: waitErr, Also: showErr, left: left, All: len(qs), cond: cond, refs: o.refOptions,
		next: resumeCommand(c, o.refOptions, cond), retry: retryAbsent(ctx, c, asker, all),
	}
}

// Pauses between questions about one tracking.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// WaitError says that waiting ended before its condition was met.
type WaitError struct {
	Cause error // errTimeUp or a signal
	Also  error // what went wrong with some of them, or nil
	left  int
	All   int
	cond  Condition
	refs  refOptions
	next  string // command that goes on waiting
	retry string // command that sends those again which the service proves not to have; empty if all were found
}

// Hint says what to do about accepted rows that the service does not find.
func (e *WaitError) Hint() string {
	if e.retry == "" {
		return ""
	}
	return "the service says of accepted rows that it has no such tracking: `" + e.retry + "` asks for those of the run, and sends them again once that is proven"
}

// retryAbsent is the command that is about the first accepted row that was not
// found, if there is one.
func retryAbsent(ctx context.Context, c *command.Call, asker *query.Asker, all []query.Result) string {
	for _, res := range all {
		if !errors.Is(res.Err, tracking.ErrAbsent) {
			continue
		}
		rows, err := asker.Rows(ctx, res.Query)
		if i := slices.IndexFunc(rows, func(r ledger.TrackingStatus) bool { return r.State == ledger.Accepted }); err == nil && i >= 0 {
			return c.CommandLine("runs", "retry", strconv.FormatInt(rows[i].Run, 10), "--absent")
		}
	}
	return ""
}

func (e *WaitError) Error() string {
	what, are := fmt.Sprintf("%d of %d", e.left, e.All), "are"
	if e.All == 1 {
		what, are = command.Quoted(strings.Join(e.refs.Refs, "")), "is"
	}
	text := fmt.Sprintf("%v: %s %s still without %s", e.Cause, what, are, e.cond)
	if e.cond == (Condition{}) {
		text = fmt.Sprintf("%v: %s %s not yet processed", e.Cause, what, are)
	}
	if away := (*api.ConnectError)(nil); errors.As(e.Also, &away) {
		text += "; " + away.Error()
	}
	return text
}

// Next returns the command that goes on waiting.
func (e *WaitError) Next() string { return e.next }

func (e *WaitError) Unwrap() []error {
	if e.Also == nil {
		return []error{e.Cause}
	}
	return []error{e.Cause, e.Also}
}

// resumeCommand is the command that goes on waiting.
func resumeCommand(c *command.Call, refs refOptions, cond Condition) string {
	words := append([]string{"wait"}, refs.Refs...)
	if refs.Run != "" {
		words = append(words, "--run", refs.Run)
	}
	if refs.By != "refer-id" {
		words = append(words, "--by", refs.By)
	}
	if cond != (Condition{}) {
		words = append(words, "--for", cond.String())
	}
	return c.CommandLine(words...)
}

// Waiter asks about many trackings until each meets the condition, or an event
// says that it does.
type Waiter struct {
	Call  *command.Call
	Asker *query.Asker
	Cond  Condition

	watch    *eventWatch
	onResult func(query.Result)
	progress *command.Progress
}

// all waits for qs and returns the last result of each, in order, and how many
// do not meet the condition. The errors are those of [Waiter.Each].
func (w *Waiter) all(ctx context.Context, qs []tracking.Query) (all []query.Result, left int, err error) {
	var mu sync.Mutex
	last := make(map[tracking.Query]query.Result, len(qs))
	left, err = w.Each(ctx, slices.Values(qs), len(qs), func(res query.Result) {
		mu.Lock()
		last[res.Query] = res
		mu.Unlock()
	})
	for _, q := range qs {
		res, ok := last[q]
		if !ok {
			res = query.Result{Query: q, Err: tracking.ErrProcessing}
		}
		all = append(all, res)
	}
	return all, left, err
}

// Each waits for any number of trackings and returns how many do not meet the
// Condition. onResult gets every result, from several goroutines. The error is
// [command.ErrTimeUp], the cause of ctx, or what stops all further questions.
func (w *Waiter) Each(ctx context.Context, qs iter.Seq[tracking.Query], total int, onResult func(query.Result)) (int, error) {
	var err error
	if w.watch, err = openEventWatch(ctx, w.Call, w.Asker, w.Cond); err != nil {
		return 0, err
	}
	limit := w.Call.Config.Timeout
	if limit == 0 {
		limit = command.WaitTimeout
	}
	timed, cancel := context.WithTimeoutCause(ctx, limit, command.ErrTimeUp)
	w.onResult, w.progress = onResult, command.NewProgress(w.Call.IO, "waiting", "trackings", int64(total))
	defer w.progress.Stop()
	signal := make(chan struct{}, 1)
	var watching sync.WaitGroup
	watching.Go(func() { w.watch.run(timed, signal) })
	defer watching.Wait()
	defer cancel()
	left, err := poll.All(timed, qs, w.Call.Config.Concurrency, pace.Backoff{First: firstPause, Max: longestPause}, w.ask,
		poll.Wakeup[tracking.Query]{Signal: signal, Done: func(q tracking.Query) bool { return w.metByEvent(timed, q) }})
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		err = command.ErrTimeUp
	}
	return len(left), err
}

// ask asks once about a tracking.
func (w *Waiter) ask(ctx context.Context, q tracking.Query) (poll.Result, error) {
	if err := w.watch.begin(ctx, q); err != nil && ctx.Err() == nil {
		return poll.Result{}, err
	}
	return w.judge(ctx, w.Asker.Query(ctx, q))
}

// metByEvent reports whether an event ended the waiting for a tracking.
func (w *Waiter) metByEvent(ctx context.Context, q tracking.Query) bool {
	res, met := w.watch.metByEvent(ctx, q)
	if met {
		w.end(res)
	}
	return met
}

// end notes that the waiting for a tracking is over.
func (w *Waiter) end(res query.Result) {
	w.onResult(res)
	w.watch.end(res.Query)
	w.progress.Add(1)
}

// judge decides whether a result ends the waiting for its tracking. What is
// absent is asked for again only if the ledger holds it as accepted: a service
// that works in the background may know it late. Where the service cannot be
// asked, events count.
func (w *Waiter) judge(ctx context.Context, res query.Result) (poll.Result, error) {
	if ctx.Err() != nil {
		return poll.Result{}, nil //nolint:nilerr // poll knows that ctx ended
	}
	var final bool
	switch {
	case query.Fatal(res.Err):
		return poll.Result{}, res.Err
	case errors.Is(res.Err, tracking.ErrAbsent):
		rows, err := w.Asker.Rows(ctx, res.Query)
		if err != nil {
			return poll.Result{}, err
		}
		final = !slices.ContainsFunc(rows, func(r ledger.TrackingStatus) bool { return r.State == ledger.Accepted || r.State == ledger.Unknown })
	case query.Temporary(res.Err):
		if known, err := w.watch.known(ctx, res.Query); err == nil && len(known.Trackings) > 0 {
			if !w.watch.met(known) {
				known.Err = res.Err
			}
			res = known
		}
	case res.Err != nil:
		final = !errors.Is(res.Err, tracking.ErrUndecided)
	}
	if len(res.Trackings) > 0 {
		w.watch.keep(res)
	}
	if final || (res.Err == nil && w.watch.met(res)) {
		w.end(res)
		return poll.Result{Done: true}, nil
	}
	w.onResult(res)
	return poll.Result{NotBefore: query.RetryAfter(res.Err)}, nil
}
