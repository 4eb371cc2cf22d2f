package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
)

// Intervals at which new events are read.
const (
	pollInterval = time.Second / 4        // if nothing reports changes
	minInterval  = 100 * time.Millisecond // however many changes there are
)

type waitOptions struct {
	Count         int64
	Filter, Since string
	Unverified    bool
	MadeUp        bool // count made-up events too
}

func newWait(f *command.Factory) *cobra.Command {
	var o waitOptions
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait for events to arrive",
		Long: `wait ends when --count events have arrived, and prints them. When the time is up,
it prints the events so far and exits with 8. It counts new events that are verified
and not made up, and that a listener stores from now on, or stored --since. The
listener may be another process, started before or after.`,
		Example: command.Example("waybill events wait",
			"waybill events wait --count 3 --filter event=router.delivered --timeout 2m",
			"waybill events wait --since 10m -o jsonl"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error { return runWait(ctx, c, o) }),
	}
	flags := cmd.Flags()
	flags.Int64Var(&o.Count, "count", 1, "wait for `N` events")
	filterFlag(cmd, &o.Filter)
	sinceFlag(cmd, &o.Since)
	flags.BoolVar(&o.Unverified, "unverified", false, "count events that are not verified too")
	flags.BoolVar(&o.MadeUp, "made-up", false, "count made-up events of `events send` too")
	command.ColumnsFlag(cmd, eventColumns(view.StatusFormatter{}, listOptions{}))
	return cmd
}

func runWait(ctx context.Context, c *command.Call, o waitOptions) error {
	if o.Count < 1 {
		return command.Usagef("use 1 or more", "--count %d must be at least 1", o.Count)
	}
	filter, filterErr := parseFilter(c, o.Filter)
	since, err := command.ParseSince("--since", o.Since)
	if err := cmp.Or(filterErr, err); err != nil {
		return err
	}
	limit := cmp.Or(c.Config.Timeout, command.WaitTimeout)
	c.StoreUntil = time.Now().Add(limit)
	w := &eventWait{
		waitOptions: o, session: c.Session, filter: filter, began: since, counted: map[string]bool{},
		query: inbox.Query{Marks: []inbox.Mark{inbox.Current}, Since: since},
	}
	if since.IsZero() {
		w.began = time.Now().Truncate(time.Millisecond) // the precision of the store
		if err := w.fromNow(ctx); err != nil {
			return err
		}
	}
	timed, cancel := context.WithTimeoutCause(ctx, limit, command.ErrTimeUp)
	defer cancel()
	w.progress = command.NewProgress(c.IO, "Waiting", "events", o.Count)
	err = eventListing(c, listOptions{}).Print(w.events(timed))
	w.progress.Stop()
	if !errors.Is(err, command.ErrTimeUp) && !command.As[*command.SignalError](err) {
		return err
	}
	hint := ""
	switch what := command.Plural(w.ignored, "event") + " not counted: "; {
	case w.madeUpSeen && w.unverifiedSeen:
		hint = what + "made up or unverified; add --made-up --unverified"
	case w.madeUpSeen:
		hint = what + "made up; add --made-up"
	case w.unverifiedSeen:
		hint = what + "unverified; add --unverified"
	}
	return &command.ExitError{
		Code: command.Pending, Hint: hint,
		Err:  fmt.Errorf("%w: %d of %s received", err, len(w.counted), command.Plural(o.Count, "event")),
		Next: c.Again([]string{"since"}, "--since", w.began.UTC().Format("2006-01-02T15:04:05.000Z")),
	}
}

type eventWait struct {
	waitOptions

	session *app.Session
	filter  forward.Filter
	began   time.Time // only events received since count

	query   inbox.Query     // After advances
	counted map[string]bool // by key, since an event may come again when it verifies later
	ignored int64           // events that matched but did not count

	madeUpSeen, unverifiedSeen bool // why events did not count
	progress                   *command.Progress
}

// fromNow makes only events count that are received from now on. A store that a listener is creating opens once the
// listener can receive.
func (w *eventWait) fromNow(ctx context.Context) error {
	db, err := w.session.ExistingStore(ctx)
	if err != nil || db == nil {
		return err
	}
	counts, err := db.Inbox.Counts(ctx)
	if err != nil {
		return err
	}
	w.query.After = counts.LastEvent
	for e, err := range db.Inbox.Events(ctx, inbox.Query{Newest: true}) {
		if err != nil || e.ReceivedAt.Before(w.began) {
			return err
		}
		w.query.After = min(w.query.After, e.Seq-1)
	}
	return nil
}

// events yields events as they arrive until there are enough. When ctx ends, it yields the cause as an error.
func (w *eventWait) events(ctx context.Context) iter.Seq2[inbox.Event, error] {
	return func(yield func(inbox.Event, error) bool) {
		err, changes := context.Cause(ctx), app.ChangeWatch{Session: w.session}
		for ; err == nil; err = changes.Wait(ctx, minInterval, pollInterval) {
			db, err := w.session.ExistingStore(ctx)
			if err != nil {
				yield(inbox.Event{}, cmp.Or(context.Cause(ctx), err))
				return
			}
			for e, err := range db.Received().Events(ctx, w.query) {
				if err != nil {
					yield(e, cmp.Or(context.Cause(ctx), err))
					return
				}
				w.query.After = e.Seq
				if w.counts(e) && (!yield(e, nil) || int64(len(w.counted)) >= w.Count) {
					return
				}
			}
		}
		yield(inbox.Event{}, err)
	}
}

func (w *eventWait) counts(e inbox.Event) bool {
	if !w.filter.Match(e) || w.counted[string(e.Key)] {
		return false
	}
	madeUp, unverified := e.Synthetic && !w.MadeUp, !e.Verified.Counts() && !w.Unverified
	w.madeUpSeen, w.unverifiedSeen = w.madeUpSeen || madeUp, w.unverifiedSeen || unverified
	if madeUp || unverified {
		w.ignored++
		return false
	}
	w.counted[string(e.Key)] = true
	w.progress.Add(1)
	return true
}
