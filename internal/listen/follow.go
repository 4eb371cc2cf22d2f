package listen

import (
	"context"
	"errors"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// Type says what a [Notice] is about.
type Type string

// The types.
const (
	Event     Type = "event"     // an event that was not known
	Duplicate Type = "duplicate" // an event that was known, byte for byte
	Conflict  Type = "conflict"  // other bytes under an eventId that was known
	Anomaly   Type = "anomaly"   // a part of a delivery that is no event
	Refused   Type = "refused"   // a delivery that was not taken
)

// Notice is one thing that happened.
type Notice struct {
	Type    Type
	Event   inbox.Event    // of all types but Refused
	Refused inbox.Delivery // of Refused: without Seq, Header and Body
	Missed  int64          // of Refused: how many refusals before this one were not told, because fn was too slow
}

// Follow calls fn for every row of the inbox behind the one numbered after, in
// order, and for every refusal of this receiver: first for what is there, then
// for what arrives. With [inbox.Counts.LastEvent] as of before Serve, these are
// exactly the new ones. Rows that another process stores are told too, within
// a moment.
//
// When ctx ends, Follow reads to the end once more and returns nil; so ctx
// should end after Serve has. Otherwise it returns the first error of fn, or of
// the inbox, unless that is one that goes away by itself.
//
// fn is called by one goroutine and may take its time: rows wait in the inbox.
// Follow rests as long as fn has worked, and then reads up to 128 rows at once:
// when many come, they are answered first.
// Refusals wait in memory; beyond 256 of them they are counted only.
func (r *Receiver) Follow(ctx context.Context, after int64, fn func(Notice) error) error {
	poll := time.NewTimer(0)
	defer poll.Stop()
	for {
		last, from, began := ctx.Err() != nil, after, time.Now()
		err := r.readOn(context.WithoutCancel(ctx), &after, last, fn)
		if err != nil && (last || !passes(err)) {
			return err
		}
		if err != nil {
			r.o.Log.Warn("inbox not read, trying again", "err", err)
		}
		err = r.tellRefusals(fn)
		if last || err != nil {
			return err
		}
		if after != from {
			poll.Reset(min(max(time.Since(began), leastRest), mostRest))
			select {
			case <-poll.C:
			case <-ctx.Done():
			}
			continue
		}
		poll.Reset(storePoll)
		select {
		case <-r.sinks[0]:
		case <-poll.C:
		case d := <-r.refusals:
			if err := r.tellRefusal(d, fn); err != nil {
				return err
			}
		case <-ctx.Done():
		}
	}
}

func passes(err error) bool {
	return errors.Is(err, inbox.ErrLocked) || errors.Is(err, inbox.ErrFull) || errors.Is(err, inbox.ErrReadOnly)
}

// readOn tells rows behind *after and moves it on with each: a page of them, so
// that a slow fn does not keep the inbox reading, or page by page to the end.
func (r *Receiver) readOn(ctx context.Context, after *int64, toEnd bool, fn func(Notice) error) error {
	for {
		rows := make([]inbox.Event, 0, page)
		for row, err := range r.o.Store.Events(ctx, inbox.Query{After: *after, Limit: page}) {
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		for _, row := range rows {
			if err := fn(Notice{Type: typeOf(row.Mark), Event: row}); err != nil {
				return err
			}
			*after = row.Seq
		}
		if !toEnd || len(rows) < page {
			return nil
		}
	}
}

// typeOf returns the type of a row's notice. One that was superseded before it
// was told was new when it came.
func typeOf(m inbox.Mark) Type {
	switch m {
	case inbox.Duplicate:
		return Duplicate
	case inbox.Conflict:
		return Conflict
	case inbox.Anomaly:
		return Anomaly
	default:
		return Event
	}
}

// tellRefusals tells the refusals that wait.
func (r *Receiver) tellRefusals(fn func(Notice) error) error {
	for {
		select {
		case d := <-r.refusals:
			if err := r.tellRefusal(d, fn); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (r *Receiver) tellRefusal(d inbox.Delivery, fn func(Notice) error) error {
	return fn(Notice{Type: Refused, Refused: d, Missed: r.missed.Swap(0)})
}
