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
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Pace of following.
const (
	pageSize   = 100             // events recorded in one transaction; other writers wait for it
	busyPause  = time.Second     // between two pages while more events arrive
	idlePause  = 2 * time.Second // until the inbox is read without a signal, and after a failure
	restFactor = 4               // otherwise a follower rests this many times as long as it worked
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
func (f *Follower) CatchUp(ctx context.Context) error {
	for {
		more, err := f.step(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// Run records events as they arrive until ctx ends, slowly enough not to delay whoever stores them. signal has a value
// when there are new ones. failed gets the first of consecutive failures; failures are retried.
func (f *Follower) Run(ctx context.Context, signal <-chan struct{}, failed func(error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	rest := func(d time.Duration, signal <-chan struct{}) (more bool) {
		timer.Reset(d)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-signal:
			return true
		}
		return false
	}
	failing := false
	for ctx.Err() == nil {
		began := time.Now()
		more, err := f.step(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			failed(err)
		}
		failing = err != nil
		switch {
		case failing:
			rest(idlePause, nil)
		case !more:
			rest(idlePause, signal)
			rest(busyPause, nil)
		case rest(restFactor*time.Since(began), signal):
			rest(busyPause, nil)
		}
	}
}

func (f *Follower) step(ctx context.Context) (more bool, err error) {
	at, last, err := f.Ledger.Followed(ctx)
	if err != nil || at >= last {
		return false, err
	}
	n, to := 0, last
	var seen []ledger.Sighting
	index := map[[2]string]int{} // in seen, by number and routerId
	q := inbox.Query{After: at, Before: last + 1, Limit: pageSize}
	q.Verified, q.Genuine, q.Marks = inbox.Counting(), true, []inbox.Mark{inbox.Current}
	for e, err := range f.Inbox.Events(ctx, q) {
		if err != nil {
			return false, err
		}
		if n++; n == pageSize {
			to = e.Seq
		}
		s, ok := Sighting(e)
		if !ok {
			continue
		}
		about := [2]string{s.Key.Number, s.RouterID}
		if i, ok := index[about]; !ok {
			index[about] = len(seen)
			seen = append(seen, s)
		} else if s.Supersedes(seen[i]) {
			seen[i] = s
		}
	}
	// If another follower has moved on meanwhile, there is more to read.
	moved, err := f.Ledger.Follow(ctx, seen, at, to)
	return !moved || to < last, err
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

const observePage = 2000

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
func (o *Observer) CatchUp(ctx context.Context) error {
	for {
		from, last, err := o.Store.EventsObserved(ctx)
		if err != nil || from >= last {
			return err
		}
		verified, unverified := observed.NewRecorder(), observed.NewRecorder()
		recorders := recorders{inbox.Yes: verified, inbox.Unsigned: unverified, inbox.Unknown: unverified}
		to, err := o.read(ctx, from, last, recorders)
		if err != nil {
			return err
		}
		if _, err := o.Store.ObserveEvents(ctx, verified.Take(), unverified.Take(), from, to); err != nil {
			return err
		}
	}
}

type recorders map[inbox.Verified]*observed.Recorder

// read returns the number up to which it has read. Events whose verdict has no recorder are left out.
func (o *Observer) read(ctx context.Context, from, last int64, recorders recorders) (to int64, err error) {
	n, delivery := 0, int64(0)
	q := inbox.Query{After: from, Before: last + 1, Limit: observePage, Genuine: true, Marks: []inbox.Mark{inbox.Current}}
	for e, err := range o.Inbox.Events(ctx, q) {
		if err != nil {
			return 0, err
		}
		if n++; n == observePage {
			last = e.Seq
		}
		recorder := recorders[e.Verified]
		if recorder == nil || !json.Valid(e.Raw) {
			continue
		}
		met := observed.Event{Body: e.Raw}
		if e.Delivery != delivery {
			delivery = e.Delivery
			d, err := o.Inbox.Delivery(ctx, delivery)
			if err != nil {
				return 0, err
			}
			met.Header = map[string][]string{}
			for _, f := range d.Header {
				met.Header[f.Name] = append(met.Header[f.Name], f.Value)
			}
		}
		recorder.Event(met, e.ReceivedAt)
	}
	return last, nil
}
