package store

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// Overviews returns the deliveries of a range, see [inbox.Overviews].
func (d *DB) Overviews(ctx context.Context, which inbox.DeliveryRange) ([]inbox.Overview, error) {
	r := d.reader()
	sinks := r.sinkCursors(ctx) // first: what a cursor has passed by now is in the outbox by then
	end, args := inDeliveryRange(which)
	all := list(ctx, r, scanInto(func(o *inbox.Overview) []any {
		return deliveryFacts.dest(&o.Delivery, &o.Seq, &o.Size)
	}), "SELECT "+deliveryFacts.list()+", seq, COALESCE(length(body), -1)"+end, args...)
	if r.err != nil || len(all) == 0 || which.Refused || which.Bare {
		return all, r.err
	}
	from, to := all[len(all)-1].Seq, all[0].Seq
	r.addOverviewEvents(ctx, all, from, to)
	if len(sinks) == 0 {
		return all, r.err
	}
	const inRange = "WHERE sink IN (SELECT id FROM sinks) AND delivery >= $1 AND delivery <= $2"
	of := r.forwardings(ctx, sinks, r.queuedEntries(ctx, inRange, from, to), from, to)
	for i := range all {
		all[i].Forwardings = of(all[i].Seq)
	}
	return all, r.err
}

// inDeliveryRange returns the end of a query for the deliveries of a range, newest first, and its arguments.
func inDeliveryRange(r inbox.DeliveryRange) (end string, args []any) {
	table := "deliveries"
	if r.Refused {
		table = "refused"
	}
	if r.To <= 0 {
		r.To = math.MaxInt64
	}
	if r.Limit <= 0 {
		r.Limit = math.MaxInt
	}
	return " FROM " + table + " WHERE seq >= $1 AND seq <= $2 ORDER BY seq DESC LIMIT $3", []any{r.From, r.To, r.Limit}
}

// sinkCursors returns all sinks, without their counts and Oldest.
func (r *reader) sinkCursors(ctx context.Context) []inbox.Sink {
	return list(ctx, r, scanInto(sinkDest), "SELECT id, name, url, filter, passed, 0, 0, 0, 0 FROM sinks ORDER BY id")
}

// addOverviewEvents adds their events to all, which has the deliveries from..to in descending order.
func (r *reader) addOverviewEvents(ctx context.Context, all []inbox.Overview, from, to int64) {
	o := len(all) - 1
	r.each(ctx, func(s scanner) error {
		var count int
		e, err := scanEvent(s, &count)
		for o > 0 && all[o].Seq < e.Delivery {
			o--
		}
		at := &all[o]
		if err != nil || at.Seq != e.Delivery { // of a delivery that was stored since
			return err
		}
		at.EventCount = count
		if n := len(at.Events); n > 0 && at.Events[n-1].Index == e.Index { // verified again
			at.Events[n-1] = e
		} else {
			at.Events = append(at.Events, e)
		}
		return nil
	}, "SELECT "+eventColumns+fmt.Sprintf(`, places FROM (SELECT delivery AS listed, MAX(place) + 1 AS places
			FROM events WHERE delivery >= $1 AND delivery <= $2 GROUP BY delivery) AS c
		JOIN events ON delivery = listed AND place < %d ORDER BY delivery, place, seq`, inbox.MaxOverviewEvents), from, to)
}

// Bodies returns the bodies of a range, see [inbox.Overviews].
func (d *DB) Bodies(ctx context.Context, which inbox.DeliveryRange) (map[int64][]byte, error) {
	all := map[int64][]byte{}
	end, args := inDeliveryRange(which)
	r := d.reader()
	r.each(ctx, func(s scanner) error {
		var seq int64
		var body storedBytes
		err := s.Scan(&seq, &body)
		if body != nil {
			all[seq] = body
		}
		return err
	}, "SELECT seq, body"+end, args...)
	return all, r.err
}

// WaitingEntries yields the waiting entries, see [inbox.Forwardings].
func (d *DB) WaitingEntries(ctx context.Context) iter.Seq2[inbox.WaitingEntry, error] {
	return inPages(d, 0, pageRows, func(r *reader, last inbox.WaitingEntry, n int) []inbox.WaitingEntry {
		return r.waitingEntries(ctx, "WHERE dead = 0 AND seq > $1 ORDER BY seq LIMIT $2", last.ID, n)
	})
}

func (r *reader) waitingEntries(ctx context.Context, where string, args ...any) []inbox.WaitingEntry {
	page := r.queuedEntries(ctx, where, args...)
	for i := range page {
		// Of all that must be sent before, the latest: the others must before that one.
		r.row(ctx, []any{&page[i].HeldBy, &page[i].Number}, `SELECT b.delivery, n.folded FROM outbox_numbers n
			JOIN outbox_numbers p ON p.sink = n.sink AND p.folded = n.folded AND p.entry < n.entry
			JOIN outbox b ON b.seq = p.entry WHERE n.entry = $1 ORDER BY p.entry DESC LIMIT 1`, page[i].ID)
	}
	return page
}

// queuedEntries returns entries, without HeldBy and Number.
func (r *reader) queuedEntries(ctx context.Context, where string, args ...any) []inbox.WaitingEntry {
	page := list(ctx, r, scanEntry, "SELECT "+entryColumns+" FROM outbox "+where, args...)
	alive := r.owners(ctx)
	for i := range page {
		page[i].Sending = alive(page[i].Owner)
	}
	return page
}

// ForwardingsOf returns what sinks did with a delivery, see [inbox.Forwardings].
func (d *DB) ForwardingsOf(ctx context.Context, delivery int64) ([]inbox.Forwarding, error) {
	return readFor(d, func(r *reader) []inbox.Forwarding {
		sinks := r.sinkCursors(ctx) // first: what a cursor has passed by now is in the outbox by then
		waiting := r.waitingEntries(ctx, "WHERE delivery = $1", delivery)
		return r.forwardings(ctx, sinks, waiting, delivery, delivery)(delivery)
	})
}

// forwardings returns a function that returns what sinks did with a delivery from..to. waiting are their entries.
func (r *reader) forwardings(
	ctx context.Context, sinks []inbox.Sink, waiting []inbox.WaitingEntry, from, to int64,
) func(delivery int64) []inbox.Forwarding {
	type forwardingKey struct{ delivery, sink int64 }
	found := map[forwardingKey]inbox.Forwarding{}
	r.each(ctx, func(s scanner) error {
		var at forwardingKey
		var a inbox.Attempt
		var micros int64
		err := s.Scan(&at.delivery, &at.sink, (*storedTime)(&a.At), &a.Number, &a.Status, &micros, &a.Sent)
		a.Took = time.Duration(micros) * time.Microsecond
		f := found[at]
		if f.History = append(f.History, a); a.Sent {
			f.SentAt, f.Status = a.At, a.Status
			f.Attempts += a.Number
		}
		found[at] = f
		return err
	}, `SELECT delivery, sink, at, attempt, status, micros, sent FROM attempts WHERE delivery >= $1 AND delivery <= $2
		ORDER BY delivery, sink, at, attempt`, from, to)
	for _, w := range waiting {
		at := forwardingKey{w.Delivery, w.Sink}
		f := found[at]
		f.Waiting = &w
		found[at] = f
	}
	return func(delivery int64) []inbox.Forwarding {
		all := make([]inbox.Forwarding, len(sinks))
		for i, sink := range sinks {
			all[i] = found[forwardingKey{delivery, sink.ID}]
			all[i].Sink, all[i].Read = sink, sink.Cursor >= delivery
		}
		return all
	}
}
