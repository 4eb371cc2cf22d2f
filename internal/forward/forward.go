// Package forward passes deliveries on to local applications, over HTTP.
//
// What a target gets is the delivery: its bytes, its headers in their order.
// Each target reads on from its own place in the inbox and has an outbox of
// its own there, so that a slow, broken or absent one loses nothing and holds
// no other up. Deliveries that share a tracking number arrive in the order in
// which they were received. Each arrives at least once; [HeaderAttempt] says
// when one may have arrived before.
package forward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// When a delivery is tried again, and when it is given up.
const (
	firstPause   = time.Second // the longest pause after the first failure; it doubles
	longestPause = time.Hour
	mostFailures = 20
	longestLife  = 24 * time.Hour // from the first failure
)

// How a forwarder works.
const (
	pageSize   = 64              // deliveries looked at in one step of a cursor
	readAhead  = 1024            // letters in an outbox before it is filled further only if none can be sent
	poll       = time.Second     // how often deliveries of other processes are looked for
	storePause = time.Second     // before a store that has trouble is asked again
	grace      = 5 * time.Second // for requests under way when the forwarder is to end
	storeTries = 5               // for an outcome, once the forwarder is to end
)

// Inbox is what a forwarder needs of the inbox.
type Inbox interface {
	// Delivery returns one delivery with its body and headers.
	Delivery(ctx context.Context, seq int64) (inbox.Delivery, error)
}

// Options say what a [Forwarder] does.
type Options struct {
	Outbox  inbox.Outbox
	Inbox   Inbox // where its deliveries are
	Client  *Client
	Targets []Target // no two alike

	From       *inbox.From                  // where targets begin; nil: new ones with what is received from now on
	Unverified bool                         // deliveries that did not verify are forwarded too
	Withhold   func(webhook.Field) bool     // headers that no target gets, such as secrets; nil for none
	Workers    int                          // requests under way at once to one target, at most; 0 is 8
	Answers    bool                         // [Forwarder.Answer] will be called for every delivery
	Tell       func(Notice)                 // is told of every try, one at a time; nil: nobody is
	Trouble    func(what string, err error) // is told when the store has trouble, once until it is over; nil: nobody is
}

// Notice is what came of one try.
type Notice struct {
	Target   Target
	Delivery int64
	Attempt  int // from 1
	Fate     inbox.Fate
	Status   int           // 0 if no answer came
	Took     time.Duration // until the answer, or until there was none
	Problem  string        // empty if it was sent
	Reply    []byte        // start of the answer
	Due      time.Time     // of Retry: when it is tried again

	Failing time.Time     // since when the target fails; zero if this try was fine
	Healed  time.Duration // how long it had failed before this try; 0 if it had not
}

// Forwarder forwards deliveries to targets. It is safe for concurrent use.
type Forwarder struct {
	o       Options
	routes  []*route
	telling sync.Mutex
	answers answers
}

// route is one target with its sink.
type route struct {
	f      *Forwarder
	target Target
	sink   inbox.Sink
	gate   *pace.Gate
	inbox  bell         // there may be something new in the inbox
	outbox bell         // likewise in the outbox
	ahead  atomic.Int64 // about how many letters were put into the outbox and not sent yet

	reading, claiming, sending, noting alarm

	mu      sync.Mutex
	failing time.Time // since when nothing got through; zero if the last try did
}

// bell wakes one who waits, or who is about to.
type bell chan struct{}

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// alarm tells of trouble once, until it is over.
type alarm struct{ told atomic.Bool }

// hear takes an error of the store, or nil for none.
func (a *alarm) hear(tell func(what string, err error), what string, err error) {
	if told := a.told.Swap(err != nil); err != nil && !told {
		tell(what, err)
	}
}

// Open opens the sinks of all targets and returns a forwarder of them.
func Open(ctx context.Context, o Options) (*Forwarder, error) {
	if o.Trouble == nil {
		o.Trouble = func(string, error) {}
	}
	if o.Workers <= 0 {
		o.Workers = 8
	}
	f := &Forwarder{o: o}
	f.answers.open(o.Answers)
	for _, t := range o.Targets {
		sink, err := o.Outbox.OpenSink(ctx, t.Key(), o.From)
		if err != nil {
			return nil, err
		}
		for _, r := range f.routes {
			if r.sink.ID == sink.ID {
				return nil, fmt.Errorf("forward: target %s is there twice", t.Show())
			}
		}
		f.routes = append(f.routes, &route{f: f, target: t, sink: sink, gate: pace.New(o.Workers, 0).Widen(), inbox: make(bell, 1), outbox: make(bell, 1)})
	}
	return f, nil
}

// Sinks returns the sinks of the targets, in their order, as they were when
// the forwarder was opened.
func (f *Forwarder) Sinks() []inbox.Sink {
	sinks := make([]inbox.Sink, len(f.routes))
	for i, r := range f.routes {
		sinks[i] = r.sink
	}
	return sinks
}

// Left returns the sinks of the targets, as they are now.
func (f *Forwarder) Left(ctx context.Context) ([]inbox.Sink, error) {
	all, err := f.o.Outbox.Sinks(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(k inbox.Sink) bool {
		return !slices.ContainsFunc(f.routes, func(r *route) bool { return r.sink.ID == k.ID })
	}), nil
}

// Wake says that there may be something new in the inbox. It never blocks.
func (f *Forwarder) Wake() {
	for _, r := range f.routes {
		r.inbox.ring()
	}
}

// Run forwards until ctx ends. Then it begins nothing, gives requests under way
// a few seconds, or until hard ends, and returns nil; what is still waiting
// waits for the next Run. Any other end is an error of the store that does not
// go away by itself. It is called once.
func (f *Forwarder) Run(ctx, hard context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	flight, land := context.WithCancel(hard)
	defer land()
	late := context.AfterFunc(ctx, func() {
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-t.C:
			land()
		case <-flight.Done():
		}
	})
	defer late()
	var jobs []func() error
	for _, r := range f.routes {
		jobs = append(jobs, func() error { return r.read(ctx) }, func() error { return r.work(ctx, flight) })
	}
	errs := make([]error, len(jobs))
	var wg sync.WaitGroup
	for i, job := range jobs {
		wg.Go(func() {
			if errs[i] = job(); errs[i] != nil {
				stop()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// read moves deliveries from the inbox to the target's outbox until ctx ends,
// whatever the target does.
func (r *route) read(ctx context.Context) error {
	for ctx.Err() == nil {
		if r.ahead.Load() >= readAhead {
			wait(ctx, r.inbox, time.Now().Add(poll))
			continue
		}
		p, err := r.f.o.Outbox.Advance(ctx, r.sink.ID, pageSize, r.wants)
		if err != nil {
			if err := r.bear(ctx, &r.reading, "inbox not read, trying again", err); err != nil {
				return err
			}
			continue
		}
		r.reading.hear(nil, "", nil)
		for _, seq := range p.Left {
			r.f.answers.give(seq, 200)
		}
		if len(p.Taken) > 0 {
			r.ahead.Add(int64(len(p.Taken)))
			r.outbox.ring()
		}
		if p.Seen == 0 {
			wait(ctx, r.inbox, time.Now().Add(poll))
		}
	}
	return nil
}

// work sends what is in the target's outbox until ctx ends.
func (r *route) work(ctx, flight context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		pass, err := r.gate.Enter(ctx)
		if err != nil {
			return nil // ctx has ended
		}
		letters, due, err := r.f.o.Outbox.ClaimLetters(ctx, r.sink.ID, 1, time.Now())
		if err == nil && len(letters) > 0 {
			wg.Go(func() {
				r.carry(flight, pass, letters[0])
				r.outbox.ring()
			})
			continue
		}
		pass.Release()
		if err != nil {
			if err := r.bear(ctx, &r.claiming, "outbox not read, trying again", err); err != nil {
				return err
			}
			continue
		}
		r.claiming.hear(nil, "", nil)
		if r.ahead.Swap(0) >= readAhead {
			r.inbox.ring() // what is there can't be sent now: perhaps what follows can
		}
		if look := time.Now().Add(poll); due.IsZero() || due.After(look) {
			due = look
		}
		wait(ctx, r.outbox, due)
	}
}

// bear tells of an error of the store and waits for it to go away, or returns
// it if it does not by itself. It returns nil when ctx has ended.
func (r *route) bear(ctx context.Context, a *alarm, what string, err error) error {
	switch {
	case ctx.Err() != nil:
		err = nil
	case passes(err):
		a.hear(r.f.o.Trouble, what, err)
		wait(ctx, nil, time.Now().Add(storePause))
		err = nil
	}
	return err
}

// wants reports whether a delivery goes to the target: one of its events was
// new when it came, matches, and may be forwarded. Of a delivery that verified
// later than it came, the rows count that it has since.
func (r *route) wants(rows []inbox.Event) bool {
	verified := slices.ContainsFunc(rows, func(e inbox.Event) bool { return e.Verified == inbox.Yes })
	for _, e := range rows {
		isNew := e.Mark == inbox.Standing || e.Mark == inbox.Superseded
		counts := e.Verified == inbox.Yes || !verified && r.f.o.Unverified
		if isNew && counts && r.target.Filter.Match(e) {
			return true
		}
	}
	return false
}

// wait waits for a time, a wake-up, or the end of ctx.
func wait(ctx context.Context, woken <-chan struct{}, until time.Time) {
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-t.C:
	case <-woken:
	case <-ctx.Done():
	}
}

// passes reports whether an error of the store goes away by itself.
func passes(err error) bool {
	return errors.Is(err, inbox.ErrLocked) || errors.Is(err, inbox.ErrFull) || errors.Is(err, inbox.ErrReadOnly)
}
