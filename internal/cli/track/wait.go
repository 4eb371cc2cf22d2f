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

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/poll"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func NewWait(f *command.Factory) *cobra.Command {
	var o refOptions
	var until string
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
			if err := o.check(); err != nil {
				return err
			}
			cond, err := ParseCondition(until)
			if err != nil {
				return err
			}
			qs, err := o.queries(ctx, c.Session)
			if err != nil {
				return err
			}
			w := &Waiting{S: c.Session, Cond: cond}
			all, left, waitErr := w.all(ctx, qs)
			if waitErr != nil && !errors.Is(waitErr, command.ErrTimeUp) && !command.As[*command.SignalError](waitErr) {
				return waitErr
			}
			showErr := showLooked(context.WithoutCancel(ctx), c, all, o.single(), false)
			if waitErr == nil {
				return showErr
			}
			return &WaitError{Cause: waitErr, Also: showErr, left: left, All: len(qs), cond: cond, refs: o, next: resumeCommand(c, o, cond), retry: retryAbsent(context.WithoutCancel(ctx), c, all)}
		}),
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&until, "for", "processed", "`CONDITION` to wait for: processed, status=X, event=X or change")
	return cmd
}

// WaitError says that waiting ended before its condition was met.
type WaitError struct {
	Cause error // errTimeUp or a signal
	Also  error // what went wrong with some of them, or nil
	left  int
	All   int
	cond  condition
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
func retryAbsent(ctx context.Context, c *command.Call, all []Looked) string {
	db, err := c.ExistingStore(ctx)
	if err != nil || db == nil {
		return ""
	}
	for _, l := range all {
		if !errors.Is(l.Err, tracking.ErrAbsent) {
			continue
		}
		rows, err := db.Trackings.Find(ctx, c.Account(ctx), l.Query.ReferID, l.Query.Number)
		if i := slices.IndexFunc(rows, func(st ledger.TrackingStatus) bool { return st.State == ledger.Accepted }); err == nil && i >= 0 {
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
	if e.cond == (condition{}) {
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
func resumeCommand(c *command.Call, refs refOptions, cond condition) string {
	words := append([]string{"wait"}, refs.Refs...)
	if refs.Run != "" {
		words = append(words, "--run", refs.Run)
	}
	if refs.By != "refer-id" {
		words = append(words, "--by", refs.By)
	}
	if cond != (condition{}) {
		words = append(words, "--for", cond.String())
	}
	return c.CommandLine(words...)
}

// Waiting asks about many trackings until each meets the condition, or an event
// says that it does.
type Waiting struct {
	S     *app.Session
	Cond  condition
	news  *news
	heard func(Looked) // told of every answer; called by several goroutines
	p     *command.Progress
}

// all waits for qs and returns the last that was heard of each, in order, and
// how many do not meet the condition. The error is errTimeUp, the cause of
// ctx, or what stops all further questions.
func (w *Waiting) all(ctx context.Context, qs []api.Query) (all []Looked, left int, err error) {
	var mu sync.Mutex
	last := make(map[api.Query]Looked, len(qs))
	left, err = w.Each(ctx, slices.Values(qs), len(qs), func(l Looked) {
		mu.Lock()
		last[l.Query] = l
		mu.Unlock()
	})
	for _, q := range qs {
		l, ok := last[q]
		if !ok {
			ref := q.ReferID + q.Number
			l = Looked{Query: q, View: app.View{Ref: ref}, Err: tracking.ErrProcessing}
		}
		all = append(all, l)
	}
	return all, left, err
}

// Each is all for a sequence of any length: heard is told of every answer.
func (w *Waiting) Each(ctx context.Context, qs iter.Seq[api.Query], total int, heard func(Looked)) (int, error) {
	if _, err := w.S.Client(); err != nil {
		return 0, err
	}
	var err error
	if w.news, err = openNews(ctx, w.S, w.Cond); err != nil {
		return 0, err
	}
	limit := w.S.Config.Timeout
	if limit == 0 {
		limit = command.WaitTimeout
	}
	timed, cancel := context.WithTimeoutCause(ctx, limit, command.ErrTimeUp)
	w.heard, w.p = heard, command.NewProgress(w.S.IO, "waiting", "trackings", int64(total))
	defer w.p.Stop()
	woken := make(chan struct{}, 1)
	var watching sync.WaitGroup
	watching.Go(func() { w.news.watch(timed, woken) })
	defer watching.Wait()
	defer cancel()
	left, err := poll.All(timed, qs, w.S.Config.Concurrency, poll.Pauses{First: command.FirstPause, Max: command.LongestPause}, w.ask,
		poll.News[api.Query]{Woken: woken, Done: func(q api.Query) bool { return w.told(timed, q) }})
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		err = command.ErrTimeUp
	}
	return len(left), err
}

// ask asks once about a tracking.
func (w *Waiting) ask(ctx context.Context, q api.Query) (poll.Verdict, error) {
	if err := w.news.begin(ctx, q); err != nil && ctx.Err() == nil {
		return poll.Verdict{}, err
	}
	v, err := w.S.Look(ctx, w.S.Account(ctx), q)
	return w.judge(ctx, Looked{q, v, err})
}

// told reports whether news ended the waiting for a tracking.
func (w *Waiting) told(ctx context.Context, q api.Query) bool {
	v, met := w.news.told(ctx, q)
	if met {
		w.done(Looked{Query: q, View: v})
	}
	return met
}

// done notes that the waiting for a tracking is over.
func (w *Waiting) done(l Looked) {
	w.heard(l)
	w.news.end(l.Query)
	w.p.Add(1)
}

// judge decides whether one answer ends the waiting for its tracking. What is
// absent is asked for again only if the ledger holds it as accepted: a service
// that works in the background may know it late. Where the service cannot be
// asked, what events told counts.
func (w *Waiting) judge(ctx context.Context, l Looked) (poll.Verdict, error) {
	if ctx.Err() != nil {
		return poll.Verdict{}, nil //nolint:nilerr // poll knows that ctx ended
	}
	var hopeless bool
	switch {
	case app.Fatal(l.Err):
		return poll.Verdict{}, l.Err
	case errors.Is(l.Err, tracking.ErrAbsent):
		created, err := w.created(ctx, l.Query)
		if err != nil {
			return poll.Verdict{}, err
		}
		hopeless = !created
	case app.Passing(l.Err):
		if v, err := w.news.known(ctx, l.Query); err == nil && len(v.Found) > 0 {
			l.View = v
			if w.news.met(l.Query, v) {
				l.Err = nil
			}
		}
	case l.Err != nil:
		hopeless = !errors.Is(l.Err, api.ErrUndecided)
	}
	if len(l.View.Found) > 0 {
		w.news.note(l.Query, l.View)
	}
	if hopeless || (l.Err == nil && w.news.met(l.Query, l.View)) {
		w.done(l)
		return poll.Verdict{Done: true}, nil
	}
	w.heard(l)
	return poll.Verdict{NotBefore: app.RetryAfter(l.Err)}, nil
}

// created reports whether the ledger holds the tracking as accepted, or as
// possibly so.
func (w *Waiting) created(ctx context.Context, q api.Query) (bool, error) {
	db, err := w.S.ExistingStore(ctx)
	if err != nil || db == nil {
		return false, err
	}
	rows, err := db.Trackings.Find(ctx, w.S.Account(ctx), q.ReferID, q.Number)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(rows, func(r ledger.TrackingStatus) bool {
		return r.State == ledger.Accepted || r.State == ledger.Unknown
	}), nil
}
