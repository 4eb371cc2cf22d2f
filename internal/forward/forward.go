// Package forward sends deliveries to local applications over HTTP.
//
// A target gets the delivery itself: its bytes, and its headers in their order. Each target has its own cursor in the
// inbox and its own outbox, so that a slow, broken or absent target loses nothing and delays no other. Deliveries that
// share a tracking number arrive in the order of receipt. Each delivery arrives at least once; [HeaderAttempt] counts
// the attempts.
package forward

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// When a delivery is retried, and when it is given up.
const (
	firstRetryDelay = time.Second // the longest delay after the first failure; doubles with each further one
	maxRetryDelay   = time.Hour
	maxFailures     = 20
	maxRetryTime    = 24 * time.Hour // from the first failure
)

const (
	pageSize        = 64              // deliveries read per step of a cursor
	maxQueued       = 1024            // entries in an outbox; above it, more are added only while none can be sent
	pollInterval    = time.Second     // how often deliveries stored by other processes are read
	storeRetryDelay = time.Second     // before a failed store is used again
	shutdownGrace   = 5 * time.Second // for requests under way when the forwarder ends
	maxRecordTries  = 5               // to record an attempt while the forwarder ends
)

// Inbox is the part of the inbox that a forwarder needs.
type Inbox interface {
	// Delivery returns one delivery with its body and headers.
	Delivery(ctx context.Context, seq int64) (inbox.Delivery, error)
	// Events yields the events that match q, see [inbox.Store].
	Events(ctx context.Context, q inbox.Query) iter.Seq2[inbox.Event, error]
}

// Options control a [Forwarder].
type Options struct {
	Outbox  inbox.Outbox
	Claims  inbox.Claims // of the outbox; nil if no other process uses it
	Inbox   Inbox        // where its deliveries are
	Client  *Client
	Targets []Target // no two are equal

	From         *inbox.StartPosition         // where targets start; nil: new ones with the next delivery
	Unverified   bool                         // unverified deliveries are forwarded too
	Withhold     func(webhook.Field) bool     // headers that no target gets, such as secrets; may be nil
	Workers      int                          // maximum concurrent requests to one target; 0 means 8
	OnAttempt    func(AttemptReport)          // called after every attempt, one at a time; may be nil
	OnStoreError func(what string, err error) // called when the store fails, once until it works again; may be nil
}

// AttemptReport is the result of one attempt.
type AttemptReport struct {
	inbox.AttemptOutcome

	Target       Target
	Delivery     int64
	FailingSince time.Time     // since when the target has failed; zero if this attempt succeeded
	FailedFor    time.Duration // how long it had failed before this attempt; 0 if it had not
}

// Forwarder forwards deliveries to targets. It is safe for concurrent use.
type Forwarder struct {
	o         Options
	routes    []*route
	reporting sync.Mutex
}

type route struct {
	forwarder     *Forwarder
	target        Target
	sink          inbox.Sink
	gate          *pace.Gate
	inboxChanged  chan struct{} // the inbox may have something new
	outboxChanged chan struct{} // the outbox may have something new
	queued        atomic.Int64  // approximate number of entries in the outbox
	ended         atomic.Int64  // attempts that ended since the last claim

	readAlert, claimAlert, loadAlert, recordAlert onceAlert

	mu           sync.Mutex
	succeeded    bool      // an attempt succeeded
	failingSince time.Time // since when all attempts have failed; zero if the last one succeeded
}

type onceAlert struct{ reported atomic.Bool }

// update reports an error of the store, unless one was already reported and still lasts. A nil error ends it.
func (a *onceAlert) update(report func(what string, err error), what string, err error) {
	if reported := a.reported.Swap(err != nil); err != nil && !reported {
		report(what, err)
	}
}

// Open opens the sinks of all targets and returns a forwarder for them.
func Open(ctx context.Context, o Options) (*Forwarder, error) {
	if o.OnStoreError == nil {
		o.OnStoreError = func(string, error) {}
	}
	if o.Workers <= 0 {
		o.Workers = 8
	}
	f := &Forwarder{o: o}
	for _, t := range o.Targets {
		sink, err := o.Outbox.OpenSink(ctx, t.Key(), o.From)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(f.routes, func(r *route) bool { return r.sink.ID == sink.ID }) {
			return nil, fmt.Errorf("forward: target %s is there twice", t.Show())
		}
		f.routes = append(f.routes, &route{
			forwarder: f, target: t, sink: sink, gate: pace.New(o.Workers, 0).Widen(),
			inboxChanged: make(chan struct{}, 1), outboxChanged: make(chan struct{}, 1),
		})
	}
	return f, nil
}

// Sinks returns the sinks of the targets, in their order, as they were when the forwarder was opened.
func (f *Forwarder) Sinks() []inbox.Sink {
	sinks := make([]inbox.Sink, len(f.routes))
	for i, r := range f.routes {
		sinks[i] = r.sink
	}
	return sinks
}

// CurrentSinks returns the sinks of the targets, as they are now.
func (f *Forwarder) CurrentSinks(ctx context.Context) ([]inbox.Sink, error) {
	all, err := f.o.Outbox.Sinks(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(k inbox.Sink) bool {
		return !slices.ContainsFunc(f.routes, func(r *route) bool { return r.sink.ID == k.ID })
	}), nil
}

// maxCounted is how many unread deliveries are examined to count those that will be forwarded.
const maxCounted = 2_000

// CountUnread returns how many of a sink's unread deliveries will be forwarded, and whether that is exact. If there
// are too many to examine, it is the number of all unread ones.
func (f *Forwarder) CountUnread(ctx context.Context, sink inbox.Sink) (n int64, exact bool, err error) {
	i := slices.IndexFunc(f.routes, func(r *route) bool { return r.sink.ID == sink.ID })
	if i < 0 || sink.Unread == 0 || sink.Unread > maxCounted {
		return sink.Unread, sink.Unread == 0, nil
	}
	for delivery := sink.Cursor + 1; delivery <= sink.Cursor+sink.Unread; delivery++ {
		var rows []inbox.Event
		for e, err := range f.o.Inbox.Events(ctx, inbox.Query{Delivery: delivery}) {
			if err != nil {
				return 0, false, err
			}
			rows = append(rows, e)
		}
		if f.routes[i].accepts(rows) {
			n++
		}
	}
	return n, true, nil
}

// Wake makes all targets read the inbox. It never blocks.
func (f *Forwarder) Wake() {
	for _, r := range f.routes {
		pace.Notify(r.inboxChanged)
	}
}

// WakeAll makes all targets read inbox and outboxes, since another process may have changed them. It never blocks.
func (f *Forwarder) WakeAll() {
	f.Wake()
	for _, r := range f.routes {
		pace.Notify(r.outboxChanged)
	}
}

// Run forwards until ctx ends. Then it starts nothing new, gives requests under way a few seconds, or until hard ends,
// and returns nil; the rest waits for the next Run. Otherwise it returns an error of the store that is not temporary.
// It is called once.
func (f *Forwarder) Run(ctx, hard context.Context) error {
	jobs, ctx := errgroup.WithContext(ctx)
	requests, cancel := context.WithCancel(hard)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		_ = pace.Sleep(requests, shutdownGrace) // or until hard ends
		cancel()
	})()
	for _, r := range f.routes {
		jobs.Go(func() error { return r.fillOutbox(ctx) })
		jobs.Go(func() error { return r.sendQueued(ctx, requests) })
	}
	return jobs.Wait()
}

// fillOutbox runs until ctx ends or the target is forgotten, whatever the target does.
func (r *route) fillOutbox(ctx context.Context) error {
	for ctx.Err() == nil {
		if r.queued.Load() >= maxQueued {
			pace.Wait(ctx, r.inboxChanged, time.Now().Add(pollInterval))
			continue
		}
		p, err := r.forwarder.o.Outbox.Advance(ctx, r.sink.ID, pageSize, r.accepts)
		if errors.Is(err, inbox.ErrNoSink) {
			r.forwarder.o.OnStoreError("nothing more is forwarded to "+r.target.Show(), errors.New("the target was forgotten"))
			return nil
		}
		if err != nil {
			if err := r.handleStoreError(ctx, &r.readAlert, "inbox not read, trying again", err); err != nil {
				return err
			}
			continue
		}
		r.readAlert.update(nil, "", nil)
		if len(p.Queued) > 0 {
			r.queued.Add(int64(len(p.Queued)))
			pace.Notify(r.outboxChanged)
		}
		if p.Read == 0 {
			pace.Wait(ctx, r.inboxChanged, time.Now().Add(pollInterval))
		}
	}
	return nil
}

// sendQueued sends entries until ctx ends. requests ends when requests under way must end.
func (r *route) sendQueued(ctx, requests context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		passes, err := r.gate.EnterAll(ctx)
		if err != nil {
			return nil // ctx has ended
		}
		// As many attempts as ended since the last claim will end during this one: entries for them are claimed too.
		n := max(len(passes), min(r.forwarder.o.Workers, int(r.ended.Swap(0))))
		entries, due, err := r.forwarder.o.Outbox.ClaimEntries(ctx, r.sink.ID, n, time.Now())
		r.begin(ctx, requests, &wg, passes, entries)
		if len(entries) == n {
			continue
		}
		if err != nil {
			if err := r.handleStoreError(ctx, &r.claimAlert, "outbox not read, trying again", err); err != nil {
				return err
			}
			continue
		}
		r.claimAlert.update(nil, "", nil)
		if r.queued.Swap(0) >= maxQueued {
			pace.Notify(r.inboxChanged) // queued entries can't be sent now, but perhaps later ones can
		}
		if poll := time.Now().Add(pollInterval); due.IsZero() || due.After(poll) {
			due = poll
		}
		pace.Wait(ctx, r.outboxChanged, due)
	}
}

// begin starts the attempts and releases unused passes. An entry that gets no pass for a while is returned.
func (r *route) begin(ctx, requests context.Context, wg *sync.WaitGroup, passes []*pace.Pass,
	entries []inbox.OutboxEntry,
) {
	soon, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	for _, e := range entries {
		if len(passes) == 0 {
			passes, _ = r.gate.EnterAll(soon)
		}
		if len(passes) == 0 {
			wg.Go(func() {
				r.record(requests, e, inbox.AttemptOutcome{Disposition: inbox.Unbegun, Attempt: e.Attempt, Now: time.Now()})
			})
			continue
		}
		pass := passes[0]
		passes = passes[1:]
		wg.Go(func() {
			r.attempt(requests, pass, e)
			r.ended.Add(1)
			pace.Notify(r.outboxChanged)
		})
	}
	for _, pass := range passes {
		pass.Release()
	}
}

// handleStoreError waits after a temporary error, and returns any other one. It returns nil once ctx has ended.
func (r *route) handleStoreError(ctx context.Context, a *onceAlert, what string, err error) error {
	switch {
	case ctx.Err() != nil:
		err = nil
	case inbox.IsTemporary(err):
		a.update(r.forwarder.o.OnStoreError, what, err)
		_ = pace.Sleep(ctx, storeRetryDelay) // the callers notice the end of ctx
		err = nil
	}
	return err
}

// accepts reports whether a delivery goes to the target: one of its rows is not a repeat, matches, and may be
// forwarded. If any row counts, only rows that count may be forwarded.
func (r *route) accepts(rows []inbox.Event) bool {
	anyCounts := slices.ContainsFunc(rows, func(e inbox.Event) bool { return e.Verified.Counts() })
	return slices.ContainsFunc(rows, func(e inbox.Event) bool {
		counts := e.Verified.Counts() || !anyCounts && r.forwarder.o.Unverified
		return !e.IsRepeat() && counts && r.target.Filter.Match(e)
	})
}
