package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
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

// condition says when waiting for a tracking is over.
type condition struct {
	status string // empty: as soon as it is processed
}

func parseCondition(s string) (condition, error) {
	status, ok := strings.CutPrefix(s, "status=")
	switch {
	case s == "processed":
		return condition{}, nil
	case ok && status != "":
		return condition{status: status}, nil
	}
	return condition{}, usagef("use --for processed or --for status=X, where X is a status number or name", "--for %q is not understood", s)
}

func (c condition) String() string {
	if c.status == "" {
		return "processed"
	}
	return "status=" + c.status
}

// met reports whether every tracking of a view fulfils the condition. A parcel
// that no answer tells of does not hold up waiting for the others to be
// processed, but no status is claimed of it.
func (c condition) met(v app.View) bool {
	processed := 0
	for _, f := range v.Found {
		switch {
		case f.Phase == ledger.Processed && (c.status == "" || statusIs(f.Tracking, c.status)):
			processed++
		case f.Phase == app.Undecided && c.status == "":
		default:
			return false
		}
	}
	return processed > 0
}

// processed is how many trackings of a view are.
func processed(v app.View) int64 {
	n := int64(0)
	for _, f := range v.Found {
		if f.Phase == ledger.Processed {
			n++
		}
	}
	return n
}

func (r *runner) wait() *cobra.Command {
	var o refOptions
	var until string
	cmd := &cobra.Command{
		Use:     "wait REF...",
		GroupID: groupOps,
		Short:   "Wait until trackings are processed or have a status",
		Long: `wait asks about each REF again and again, with growing pauses, until the service
has worked it out, or until it has the status you name. When the time is up it
shows what is known and ends with status 8.`,
		Example: example("waybill wait ORD-1001", "waybill wait --run 3 --timeout 10m", "waybill wait ORD-1 ORD-2 --for status=delivered"),
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
			return &waitError{cause: waitErr, also: showErr, left: left, all: len(qs), cond: cond, refs: o}
		}),
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&until, "for", "processed", "`CONDITION` to wait for: processed or status=X")
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
}

func (e *waitError) Error() string {
	what := fmt.Sprintf("%d of %d are", e.left, e.all)
	if e.all == 1 {
		what = quoted(strings.Join(e.refs.Refs, "")) + " is"
	}
	return fmt.Sprintf("%v: %s not yet %s", e.cause, what, e.cond)
}

func (e *waitError) Unwrap() []error {
	if e.also == nil {
		return []error{e.cause}
	}
	return []error{e.cause, e.also}
}

// next is the command that goes on waiting.
func (e *waitError) next() string {
	words := []string{"waybill", "wait"}
	words = append(words, e.refs.Refs...)
	if e.refs.Run != "" {
		words = append(words, "--run", e.refs.Run)
	}
	if e.refs.By != "refer-id" {
		words = append(words, "--by", e.refs.By)
	}
	if e.cond.status != "" {
		words = append(words, "--for", e.cond.String())
	}
	return commandLine(words...)
}

// waiting asks about many trackings until each meets the condition.
type waiting struct {
	s    *app.Session
	cond condition

	mu   sync.Mutex
	last map[api.Query]looked
}

// all waits for qs and returns the last that was heard of each, in order, and
// how many do not meet the condition. The error is errTimeUp, the cause of
// ctx, or what stops all further questions.
func (w *waiting) all(ctx context.Context, qs []api.Query) (all []looked, left int, err error) {
	w.last = make(map[api.Query]looked, len(qs))
	left, err = w.each(ctx, slices.Values(qs), len(qs), func(l looked) {
		w.mu.Lock()
		w.last[l.query] = l
		w.mu.Unlock()
	})
	for _, q := range qs {
		l, ok := w.last[q]
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
	if _, err := w.s.ExistingStore(ctx); err != nil {
		return 0, err
	}
	limit := w.s.Config.Timeout
	if limit == 0 {
		limit = waitPatience
	}
	timed, cancel := context.WithTimeoutCause(ctx, limit, errTimeUp)
	defer cancel()
	p := newCountProgress(w.s.IO, "waiting", "trackings", int64(total))
	defer p.stop()
	left, err := poll.All(timed, qs, w.s.Config.Concurrency, poll.Pauses{First: firstPause, Max: longestPause},
		func(ctx context.Context, q api.Query) (poll.Verdict, error) {
			v, err := w.s.Look(ctx, w.s.Config.Account, q)
			return w.judge(ctx, looked{q, v, err}, heard, p)
		})
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		err = errTimeUp
	}
	return len(left), err
}

// judge decides whether one answer ends the waiting for its tracking. What is
// absent is asked for again only if the ledger holds it as accepted: a service
// that works in the background may know it late.
func (w *waiting) judge(ctx context.Context, l looked, heard func(looked), p *countProgress) (poll.Verdict, error) {
	if ctx.Err() != nil {
		return poll.Verdict{}, nil //nolint:nilerr // poll knows that ctx ended
	}
	var hopeless bool
	switch {
	case fatal(l.err):
		return poll.Verdict{}, l.err
	case errors.Is(l.err, tracking.ErrAbsent):
		created, err := w.created(ctx, l.query)
		if err != nil {
			return poll.Verdict{}, err
		}
		hopeless = !created
	case l.err != nil:
		hopeless = !app.Passing(l.err) && !errors.Is(l.err, api.ErrUndecided)
	}
	heard(l)
	if hopeless || (l.err == nil && w.cond.met(l.view)) {
		p.add(1)
		return poll.Verdict{Done: true}, nil
	}
	return poll.Verdict{NotBefore: app.RetryAfter(l.err)}, nil
}

// created reports whether the ledger holds the tracking as accepted, or as
// possibly so.
func (w *waiting) created(ctx context.Context, q api.Query) (bool, error) {
	db, err := w.s.ExistingStore(ctx)
	if err != nil || db == nil {
		return false, err
	}
	rows, err := db.Find(ctx, w.s.Config.Account, q.ReferID, q.Number)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(rows, func(r ledger.Standing) bool {
		return r.State == ledger.Accepted || r.State == ledger.Unknown
	}), nil
}
