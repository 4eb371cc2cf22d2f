package store

import (
	"context"
	"fmt"
	"math"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// Overviews returns the deliveries of a range, see [inbox.Overviews].
func (d *DB) Overviews(ctx context.Context, r inbox.DeliveryRange) ([]inbox.Overview, error) {
	sinks, err := d.sinkCursors(ctx) // first: what a cursor has passed by now is in the outbox by then
	if err != nil {
		return nil, err
	}
	end, args := inDeliveryRange(r)
	all, err := list(ctx, d.each, scanInto(func(o *inbox.Overview) []any {
		return deliveryFacts.dest(&o.Delivery, &o.Seq, &o.Size)
	}), "SELECT "+deliveryFacts.list()+", seq, COALESCE(length(body), -1)"+end, args...)
	if err != nil || len(all) == 0 || r.Refused || r.Bare {
		return all, err
	}
	from, to := all[len(all)-1].Seq, all[0].Seq
	if err := d.addOverviewEvents(ctx, all, from, to); err != nil || len(sinks) == 0 {
		return all, err
	}
	const inRange = "WHERE sink IN (SELECT id FROM sinks) AND delivery >= $1 AND delivery <= $2"
	queued, err := d.queuedEntries(ctx, inRange, from, to)
	if err != nil {
		return nil, err
	}
	of, err := d.forwardings(ctx, sinks, queued, from, to)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Forwardings = of(all[i].Seq)
	}
	return all, nil
}

// inDeliveryRange ends a query for the rows of a range, newest first. It returns its arguments, too.
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

// sinkCursors returns all sinks, without what waits for them.
func (d *DB) sinkCursors(ctx context.Context) ([]inbox.Sink, error) {
	return list(ctx, d.each, scanInto(sinkDest), "SELECT id, name, url, filter, passed, 0, 0, 0, 0 FROM sinks ORDER BY id")
}

// addOverviewEvents adds their events to the deliveries from..to, which are in descending order.
func (d *DB) addOverviewEvents(ctx context.Context, all []inbox.Overview, from, to int64) error {
	o := len(all) - 1
	return d.each(ctx, func(s scanner) error {
		var count int
		e, err := scanEvent(s, &count)
		for o > 0 && all[o].Seq < e.Delivery {
			o--
		}
		at := &all[o]
		if err != nil || at.Seq != e.Delivery { // of a delivery that came since
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
func (d *DB) Bodies(ctx context.Context, r inbox.DeliveryRange) (map[int64][]byte, error) {
	all := map[int64][]byte{}
	end, args := inDeliveryRange(r)
	err := d.each(ctx, func(s scanner) error {
		var seq int64
		var body storedBytes
		err := s.Scan(&seq, &body)
		if body != nil {
			all[seq] = body
		}
		return err
	}, "SELECT seq, body"+end, args...)
	return all, err
}
