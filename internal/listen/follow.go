package listen

import (
	"context"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pace"
)

// Type says what a [Notification] is about.
type Type string

// The types.
const (
	Event     Type = "event"     // a new event
	Duplicate Type = "duplicate" // a known event, byte for byte
	Conflict  Type = "conflict"  // a known eventId with other bytes
	Anomaly   Type = "anomaly"   // a part of a delivery that is not an event
	Refused   Type = "refused"   // a refused delivery
)

// Notification is one row of the inbox, or one refusal.
type Notification struct {
	Type       Type
	Event      inbox.Event    // of all types except Refused
	Refused    inbox.Delivery // of Refused: without Header and Body; Seq is 0 if no evidence was kept
	Unreported int64          // of Refused: how many earlier refusals were not reported, because fn was too slow
	More       bool           // more follow at once
}

// Follow calls fn for every row of the inbox after the one numbered after, in order, and for every refusal of this
// receiver: first for what is stored, then for what arrives. If after is [inbox.Counts.LastEvent] as of before Serve,
// these are exactly the new rows. Rows of other processes are found within half a second, or after [Receiver.Wake].
//
// When ctx ends, Follow reads to the end once more and returns nil; so ctx should end after Serve has returned.
// Otherwise it returns the first error of fn, or of the inbox if that is not temporary.
//
// fn is called by one goroutine and may take its time: rows wait in the inbox. Follow rests as long as fn has worked,
// and then reads up to 512 rows, or 1 MiB of them, at once: under load, deliveries are answered first. Refusals wait
// in memory; beyond 256 they are only counted.
func (r *Receiver) Follow(ctx context.Context, after int64, fn func(Notification) error) error {
	page := make([]inbox.Event, pageSize)
	for {
		last, from, began := ctx.Err() != nil, after, time.Now()
		err := r.readNew(context.WithoutCancel(ctx), page, &after, last, fn)
		if err != nil && (last || !inbox.IsTemporary(err)) {
			return err
		}
		r.readAlert.update(err)
		err = r.reportRefusals(fn)
		if last || err != nil {
			return err
		}
		if after != from {
			_ = pace.Sleep(ctx, min(max(time.Since(began), minRest), maxRest)) // the loop notices the end of ctx
			continue
		}
		select {
		case <-r.subscribers[0]:
		case <-time.After(pollInterval):
		case d := <-r.refusals:
			if err := r.reportRefusal(d, fn); err != nil {
				return err
			}
		case <-ctx.Done():
		}
	}
}

// readNew reads one page, so that a slow fn does not keep the inbox reading, or with toEnd page by page to the end.
func (r *Receiver) readNew(
	ctx context.Context, page []inbox.Event, after *int64, toEnd bool, fn func(Notification) error,
) error {
	for {
		rows, size := page[:0], 0
		for row, err := range r.o.Store.Events(ctx, inbox.Query{After: *after, Limit: pageSize}) {
			if err != nil {
				return err
			}
			rows = append(rows, row)
			if size += len(row.Raw); size >= pageBytes {
				break
			}
		}
		for i, row := range rows {
			if err := fn(Notification{Type: notificationType(row.Mark), Event: row, More: i+1 < len(rows)}); err != nil {
				return err
			}
			*after = row.Seq
		}
		if !toEnd || len(rows) < pageSize && size < pageBytes {
			return nil
		}
	}
}

// notificationType reports a row that was superseded before it was reported as new, as it was when it arrived.
func notificationType(m inbox.Mark) Type {
	switch m {
	case inbox.Duplicate, inbox.Conflict, inbox.Anomaly:
		return Type(m)
	default:
		return Event
	}
}

func (r *Receiver) reportRefusals(fn func(Notification) error) error {
	for {
		select {
		case d := <-r.refusals:
			if err := r.reportRefusal(d, fn); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (r *Receiver) reportRefusal(d inbox.Delivery, fn func(Notification) error) error {
	return fn(Notification{Type: Refused, Refused: d, Unreported: r.unreported.Swap(0)})
}
