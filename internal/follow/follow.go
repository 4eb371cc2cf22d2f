// Package follow carries verified events to what is known of trackings. It
// reads on in the inbox from where it, or another process, stopped, so that a
// crash between the two loses nothing. Events that did not verify change
// nothing.
package follow

import (
	"context"
	"iter"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Pace of following.
const (
	page  = 100             // events carried over in one transaction; others wait for it
	busy  = time.Second     // between two pages while more arrives
	again = 2 * time.Second // after which the inbox is looked at without being woken, and a failure tried again
	share = 4               // otherwise a background follower rests so many times as long as it worked
)

// events is what a sink needs of the inbox.
type events interface {
	Events(ctx context.Context, q inbox.Query) iter.Seq2[inbox.Event, error]
}

// Sink carries the events of an inbox to a ledger. Any number of them, in any
// number of processes, may work at once: each event is carried over once.
type Sink struct {
	Inbox  events
	Ledger ledger.EventFollower
}

// CatchUp carries over all that is there. If that is nothing it costs one look.
func (s *Sink) CatchUp(ctx context.Context) error {
	for {
		more, err := s.step(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// Run carries over what comes until ctx ends, slowly enough not to hold up
// whoever stores it: what is left then is for others to catch up with. woken
// holds a value when there is something new. The first of failures that follow
// each other is told to failed; they are tried again.
func (s *Sink) Run(ctx context.Context, woken <-chan struct{}, failed func(error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	rest := func(d time.Duration, woken <-chan struct{}) (more bool) {
		timer.Reset(d)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-woken:
			return true
		}
		return false
	}
	failing := false
	for ctx.Err() == nil {
		began := time.Now()
		more, err := s.step(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			failed(err)
		}
		failing = err != nil
		switch {
		case failing:
			rest(again, nil)
		case !more:
			rest(again, woken)
			rest(busy, nil)
		case rest(share*time.Since(began), woken):
			rest(busy, nil)
		}
	}
}

// step carries over one page of events and reports whether there may be more.
func (s *Sink) step(ctx context.Context) (more bool, err error) {
	at, last, err := s.Ledger.Followed(ctx)
	if err != nil || at >= last {
		return false, err
	}
	n, to := 0, last
	var seen []ledger.Sighting
	place := map[[2]string]int{} // in seen, by what it is about
	q := inbox.Query{After: at, Before: last + 1, Limit: page, Verified: inbox.Yes, Marks: []inbox.Mark{inbox.Current}}
	for e, err := range s.Inbox.Events(ctx, q) {
		if err != nil {
			return false, err
		}
		if n++; n == page {
			to = e.Seq
		}
		tells, ok := Sighting(e)
		if !ok {
			continue
		}
		about := [2]string{tells.Key.Number, tells.RouterID}
		if i, ok := place[about]; !ok {
			place[about] = len(seen)
			seen = append(seen, tells)
		} else if tells.Supersedes(seen[i]) {
			seen[i] = tells
		}
	}
	// If somebody else has moved on meanwhile, there is more to look at.
	moved, err := s.Ledger.Follow(ctx, seen, at, to)
	return !moved || to < last, err
}

// Sighting returns what an event tells of the tracking with its number or
// routerId, and false if nothing may be learnt from it: it did not verify, does
// not stand, or says nothing of a shipment.
//
// Interface: Events.
// Assumed: eventTime is when what an event tells became so, by a clock that
// agrees with ours. Where it can't be read, or is later than the receipt, the
// receipt counts.
func Sighting(e inbox.Event) (ledger.Sighting, bool) {
	t := Tracking(e)
	if e.Verified != inbox.Yes || e.Mark != inbox.Current || !t.Known() || (t.Number == "" && t.RouterID == "") {
		return ledger.Sighting{}, false
	}
	s := ledger.NewSighting(t, ledger.Processed, tracking.Key{Number: t.Number}, e.ReceivedAt, ledger.FromEvent)
	s.AsOf, s.Event = e.ReceivedAt, e.Seq
	if at, err := time.Parse(time.RFC3339, e.EventTime); err == nil && at.Before(s.AsOf) {
		s.AsOf = at
	}
	return s, true
}

// Tracking returns the tracking that an event holds, whether or not it verified.
// Of an event whose bytes were pruned, it is what the inbox has read of it.
//
// Interface: Webhook delivery data object (`data` inside each delivered event).
func Tracking(e inbox.Event) tracking.Tracking {
	t := tracking.Tracking{}
	for _, found := range tracking.ReadBody(e.Data).Answer().Trackings {
		if t.Number == "" || tracking.SameNumber(found.Number, e.TrackingNumber) {
			t = found
		}
	}
	// The inbox has read these by the rules of events.
	t.Number, t.Status, t.StatusLabel, t.StatusTrack = e.TrackingNumber, e.Status, e.StatusLabel, e.StatusTrack
	t.LatestEvent, t.RouterID = e.LatestEvent, e.RouterID
	return t
}
