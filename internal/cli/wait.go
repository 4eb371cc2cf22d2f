package cli

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
	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/poll"
	"github.com/waybill-cli/waybill/internal/tracking"
)

const (
	waitPatience = 30 * time.Minute
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

func (r *runner) wait() *cobra.Command {
	var o refOptions
	var until string
	cmd := &cobra.Command{
		Use:     "wait REF...",
		GroupID: groupOps,
		Short:   "Wait until trackings are processed or have a status",
		Long: `wait asks about each REF again and again, with growing pauses, until the service
has worked it out, or until what you name has come about. A verified event that
waybill listen receives, in whichever process, ends it within a second. When the
time is up it shows what is known and ends with status 8.

  --for processed            the service tells a status (default)
  --for status=X             it has that status: a number or a name
  --for event=X              a verified event of that kind has come, now or earlier
  --for change               something differs from what was known at first`,
		Example: example("waybill wait ORD-1001", "waybill wait --run 3 --timeout 10m", "waybill wait ORD-1 ORD-2 --for status=delivered",
			"waybill wait ORD-1001 --for event=router.delivered --timeout 2d"),
		RunE: r.run(func(ctx context.Context, s *app.Session, args []string) error {
			o.Refs = args
			if err := o.check(); err != nil {
				return err
			}
			cond, err := parseCondition(until)
			if err != nil {
				return err
			}
			qs, err := o.queries(ctx, s)
			if err != nil {
				return err
			}
			w := &waiting{s: s, cond: cond}
			all, left, waitErr := w.all(ctx, qs)
			if waitErr != nil && !errors.Is(waitErr, errTimeUp) && !as[*signalError](waitErr) {
				return waitErr
			}
			showErr := r.showLooked(context.WithoutCancel(ctx), s, all, o.single(), false)
			if waitErr == nil {
				return showErr
			}
			return &waitError{cause: waitErr, also: showErr, left: left, all: len(qs), cond: cond, refs: o, next: r.goOn(o, cond), retry: r.retryAbsent(context.WithoutCancel(ctx), s, all)}
		}),
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&until, "for", "processed", "`CONDITION` to wait for: processed, status=X, event=X or change")
	return cmd
}

// errTimeUp says that the time for waiting ran out.
var errTimeUp = errors.New("the time is up")

// waitError says that waiting ended before its condition was met.
type waitError struct {
	cause error // errTimeUp or a signal
	also  error // what went wrong with some of them, or nil
	left  int
	all   int
	cond  condition
	refs  refOptions
	next  string // command that goes on waiting
	retry string // command that sends those again which the service proves not to have; empty if all were found
}

// Hint says what to do about accepted rows that the service does not find.
func (e *waitError) Hint() string {
	if e.retry == "" {
		return ""
	}
	return "the service says of accepted rows that it has no such tracking: `" + e.retry + "` asks for those of the run, and sends them again once that is proven"
}

// retryAbsent is the command that is about the first accepted row that was not
// found, if there is one.
func (r *runner) retryAbsent(ctx context.Context, s *app.Session, all []looked) string {
	db, err := s.ExistingStore(ctx)
	if err != nil || db == nil {
		return ""
	}
	for _, l := range all {
		if !errors.Is(l.err, tracking.ErrAbsent) {
			continue
		}
		rows, err := db.Find(ctx, s.Account(ctx), l.query.ReferID, l.query.Number)
		if i := slices.IndexFunc(rows, func(st ledger.Standing) bool { return st.State == ledger.Accepted }); err == nil && i >= 0 {
			return r.command("runs", "retry", strconv.FormatInt(rows[i].Run, 10), "--absent")
		}
	}
	return ""
}

func (e *waitError) Error() string {
	what, are := fmt.Sprintf("%d of %d", e.left, e.all), "are"
	if e.all == 1 {
		what, are = quoted(strings.Join(e.refs.Refs, "")), "is"
	}
	text := fmt.Sprintf("%v: %s %s still without %s", e.cause, what, are, e.cond)
	if e.cond == (condition{}) {
		text = fmt.Sprintf("%v: %s %s not yet processed", e.cause, what, are)
	}
	if away := (*api.ConnectError)(nil); errors.As(e.also, &away) {
		text += "; " + away.Error()
	}
	return text
}

// Next returns the command that goes on waiting.
func (e *waitError) Next() string { return e.next }

func (e *waitError) Unwrap() []error {
	if e.also == nil {
		return []error{e.cause}
	}
	return []error{e.cause, e.also}
}

// goOn is the command that goes on waiting.
func (r *runner) goOn(refs refOptions, cond condition) string {
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
	return r.command(words...)
}

// waiting asks about many trackings until each meets the condition, or an event
// says that it does.
type waiting struct {
	s     *app.Session
	cond  condition
	news  *news
	heard func(looked) // told of every answer; called by several goroutines
	p     *countProgress
}

// all waits for qs and returns the last that was heard of each, in order, and
// how many do not meet the condition. The error is errTimeUp, the cause of
// ctx, or what stops all further questions.
func (w *waiting) all(ctx context.Context, qs []api.Query) (all []looked, left int, err error) {
	var mu sync.Mutex
	last := make(map[api.Query]looked, len(qs))
	left, err = w.each(ctx, slices.Values(qs), len(qs), func(l looked) {
		mu.Lock()
		last[l.query] = l
		mu.Unlock()
	})
	for _, q := range qs {
		l, ok := last[q]
		if !ok {
			ref := q.ReferID + q.Number
			l = looked{query: q, view: app.View{Ref: ref}, err: tracking.ErrProcessing}
		}
		all = append(all, l)
	}
	return all, left, err
}

// each is all for a sequence of any length: heard is told of every answer.
func (w *waiting) each(ctx context.Context, qs iter.Seq[api.Query], total int, heard func(looked)) (int, error) {
	if _, err := w.s.Client(); err != nil {
		return 0, err
	}
	var err error
	if w.news, err = openNews(ctx, w.s, w.cond); err != nil {
		return 0, err
	}
	limit := w.s.Config.Timeout
	if limit == 0 {
		limit = waitPatience
	}
	timed, cancel := context.WithTimeoutCause(ctx, limit, errTimeUp)
	w.heard, w.p = heard, newCountProgress(w.s.IO, "waiting", "trackings", int64(total))
	defer w.p.stop()
	woken := make(chan struct{}, 1)
	var watching sync.WaitGroup
	watching.Go(func() { w.news.watch(timed, woken) })
	defer watching.Wait()
	defer cancel()
	left, err := poll.All(timed, qs, w.s.Config.Concurrency, poll.Pauses{First: firstPause, Max: longestPause}, w.ask,
		poll.News[api.Query]{Woken: woken, Done: func(q api.Query) bool { return w.told(timed, q) }})
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		err = errTimeUp
	}
	return len(left), err
}

// ask asks once about a tracking.
func (w *waiting) ask(ctx context.Context, q api.Query) (poll.Verdict, error) {
	if err := w.news.begin(ctx, q); err != nil && ctx.Err() == nil {
		return poll.Verdict{}, err
	}
	v, err := w.s.Look(ctx, w.s.Account(ctx), q)
	return w.judge(ctx, looked{q, v, err})
}

// told reports whether news ended the waiting for a tracking.
func (w *waiting) told(ctx context.Context, q api.Query) bool {
	v, met := w.news.told(ctx, q)
	if met {
		w.done(looked{query: q, view: v})
	}
	return met
}

// done notes that the waiting for a tracking is over.
func (w *waiting) done(l looked) {
	w.heard(l)
	w.news.end(l.query)
	w.p.add(1)
}

// judge decides whether one answer ends the waiting for its tracking. What is
// absent is asked for again only if the ledger holds it as accepted: a service
// that works in the background may know it late. Where the service cannot be
// asked, what events told counts.
func (w *waiting) judge(ctx context.Context, l looked) (poll.Verdict, error) {
	if ctx.Err() != nil {
		return poll.Verdict{}, nil //nolint:nilerr // poll knows that ctx ended
	}
	var hopeless bool
	switch {
	case app.Fatal(l.err):
		return poll.Verdict{}, l.err
	case errors.Is(l.err, tracking.ErrAbsent):
		created, err := w.created(ctx, l.query)
		if err != nil {
			return poll.Verdict{}, err
		}
		hopeless = !created
	case app.Passing(l.err):
		if v, err := w.news.known(ctx, l.query); err == nil && len(v.Found) > 0 {
			l.view = v
			if w.news.met(l.query, v) {
				l.err = nil
			}
		}
	case l.err != nil:
		hopeless = !errors.Is(l.err, api.ErrUndecided)
	}
	if len(l.view.Found) > 0 {
		w.news.note(l.query, l.view)
	}
	if hopeless || (l.err == nil && w.news.met(l.query, l.view)) {
		w.done(l)
		return poll.Verdict{Done: true}, nil
	}
	w.heard(l)
	return poll.Verdict{NotBefore: app.RetryAfter(l.err)}, nil
}

// created reports whether the ledger holds the tracking as accepted, or as
// possibly so.
func (w *waiting) created(ctx context.Context, q api.Query) (bool, error) {
	db, err := w.s.ExistingStore(ctx)
	if err != nil || db == nil {
		return false, err
	}
	rows, err := db.Find(ctx, w.s.Account(ctx), q.ReferID, q.Number)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(rows, func(r ledger.Standing) bool {
		return r.State == ledger.Accepted || r.State == ledger.Unknown
	}), nil
}
