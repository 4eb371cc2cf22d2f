// Package follow records in the ledger what verified events say about trackings. It continues in the inbox where it,
// or another process, stopped, so that a crash between the two loses nothing. Unverified events change nothing.
package follow

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/observed"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Pace of following.
const (
	pageSize    = 100             // events recorded in one transaction; other writers wait for it
	observePage = 2000            // the same for observations
	busyPause   = time.Second     // between two pages while more events arrive
	idlePause   = 2 * time.Second // until the inbox is read without a signal, and after a failure
	restFactor  = 4               // otherwise a follower rests this many times as long as it worked
)

type events interface {
	Events(ctx context.Context, q inbox.Query) iter.Seq2[inbox.Event, error]
}

// Follower records the events of an inbox in a ledger. Any number of them, in
// any number of processes, may work at once: each event is recorded once.
type Follower struct {
	Inbox  events
	Ledger ledger.EventFollower
}

// CatchUp records all events that are stored. If none are new it costs one read.
func (f *Follower) CatchUp(ctx context.Context) error { return catchUp(ctx, f.step) }

func catchUp(ctx context.Context, step func(context.Context) (more bool, err error)) error {
	for {
		if more, err := step(ctx); err != nil || !more {
			return err
		}
	}
}

// readPage reads up to q.Limit new events that q selects, adds each, and saves. read returns the numbers of the last
// event that was read before, and of the last event in the inbox. more is true if there are more events to read.
func readPage(
	ctx context.Context, box events, q inbox.Query, read func(context.Context) (to, last int64, err error),
	add func(inbox.Event) error, save func(from, to int64) (moved bool, err error),
) (more bool, err error) {
	from, last, err := read(ctx)
	if err != nil || from >= last {
		return false, err
	}
	n, to := 0, last
	q.After, q.Before = from, last+1
	for e, err := range box.Events(ctx, q) {
		if err == nil {
			err = add(e)
		}
		if err != nil {
			return false, err
		}
		if n++; n == q.Limit {
			to = e.Seq
		}
	}
	// If another process has read on meanwhile, there is more to read.
	moved, err := save(from, to)
	return !moved || to < last, err
}

// Run records events as they arrive until ctx ends, slowly enough not to delay whoever stores them. signal has a value
// when there are new ones. failed gets the first of consecutive failures; failures are retried.
func (f *Follower) Run(ctx context.Context, signal <-chan struct{}, failed func(error)) {
	failing := false
	for ctx.Err() == nil {
		began := time.Now()
		more, err := f.step(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			failed(err)
		}
		failing = err != nil
		pause := idlePause
		if more {
			pause = restFactor * time.Since(began)
		}
		if failing {
			_ = pace.Sleep(ctx, idlePause) // the loop notices the end of ctx
		} else if pace.Wait(ctx, signal, time.Now().Add(pause)) || !more {
			_ = pace.Sleep(ctx, busyPause)
		}
	}
}

func (f *Follower) step(ctx context.Context) (more bool, err error) {
	var seen []ledger.Sighting
	index := map[[2]string]int{} // in seen, by number and routerId
	q := inbox.Query{Limit: pageSize, Verified: inbox.Counting(), Genuine: true, Marks: []inbox.Mark{inbox.Current}}
	return readPage(ctx, f.Inbox, q, f.Ledger.Followed, func(e inbox.Event) error {
		s, ok := Sighting(e)
		if !ok {
			return nil
		}
		about := [2]string{s.Key.Number, s.RouterID}
		if i, ok := index[about]; !ok {
			index[about] = len(seen)
			seen = append(seen, s)
		} else if s.Supersedes(seen[i]) {
			seen[i] = s
		}
		return nil
	}, func(from, to int64) (bool, error) { return f.Ledger.Follow(ctx, seen, from, to) })
}

// Sighting returns what an event says about the tracking with its number or routerId, and false if nothing may be
// learned from it: it does not count, is synthetic, is not current, names no tracking, or says nothing about it.
//
// Interface: Events.
// Assumed: eventTime is when what an event says became true, by a clock that agrees with ours. If it can't be read, or
// is later than the receipt, the time of receipt counts.
func Sighting(e inbox.Event) (ledger.Sighting, bool) {
	t := Tracking(e)
	if !e.Verified.Counts() || e.Synthetic || e.Mark != inbox.Current ||
		!t.Known() && t.Error == "" || (t.Number == "" && t.RouterID == "") {
		return ledger.Sighting{}, false
	}
	s := ledger.NewSighting(t, ledger.Processed, tracking.Key{Number: t.Number}, e.ReceivedAt, ledger.FromEvent)
	s.AsOf, s.Event = e.ReceivedAt, e.Seq
	if at, err := time.Parse(time.RFC3339, e.EventTime); err == nil && at.Before(s.AsOf) {
		s.AsOf = at
	}
	return s, true
}

// Tracking returns the tracking in an event, whether or not it verified. For an event whose bytes were pruned, it
// consists of what the inbox has read.
//
// Interface: Webhook delivery data object (`data` inside each delivered event).
func Tracking(e inbox.Event) tracking.Tracking {
	t := tracking.Tracking{}
	for _, found := range tracking.ReadBody(e.Data).Answer().Trackings {
		if t.Number == "" || tracking.SameNumber(found.Number, e.TrackingNumber) {
			t = found
		}
	}
	// The inbox has read these by the rules for events.
	t.Number, t.Status, t.StatusLabel, t.StatusTrack = e.TrackingNumber, e.Status, e.StatusLabel, e.StatusTrack
	t.LatestEvent, t.RouterID = e.LatestEvent, e.RouterID
	return t
}

type deliveries interface {
	events
	Delivery(ctx context.Context, seq int64) (inbox.Delivery, error)
}

// Observer adds the contents of stored deliveries to the register of observations. It continues where it, or another
// process, stopped: receivers do not wait for it, and it misses nothing that was stored until its bytes are pruned.
//
// Events count once, when they are verified or while nothing can verify them; events that did not verify, and
// synthetic ones, do not count.
type Observer struct {
	Inbox deliveries
	Store observed.Store
}

// CatchUp reads all events that are stored. If none are new it costs one read.
func (o *Observer) CatchUp(ctx context.Context) error { return catchUp(ctx, o.step) }

func (o *Observer) step(ctx context.Context) (more bool, err error) {
	verified, unverified, delivery := observed.NewRecorder(), observed.NewRecorder(), int64(0)
	recorders := map[inbox.Verified]*observed.Recorder{
		inbox.Yes: verified, inbox.Unsigned: unverified, inbox.Unknown: unverified,
	}
	q := inbox.Query{Limit: observePage, Genuine: true, Marks: []inbox.Mark{inbox.Current}}
	return readPage(ctx, o.Inbox, q, o.Store.EventsObserved, func(e inbox.Event) error {
		recorder := recorders[e.Verified]
		if recorder == nil || !json.Valid(e.Raw) {
			return nil
		}
		met := observed.Event{Body: e.Raw}
		if e.Delivery != delivery {
			delivery = e.Delivery
			d, err := o.Inbox.Delivery(ctx, delivery)
			if err != nil {
				return err
			}
			met.Header = map[string][]string{}
			for _, f := range d.Header {
				met.Header[f.Name] = append(met.Header[f.Name], f.Value)
			}
		}
		recorder.Event(met, e.ReceivedAt)
		return nil
	}, func(from, to int64) (bool, error) {
		return o.Store.ObserveEvents(ctx, verified.Take(), unverified.Take(), from, to)
	})
}
