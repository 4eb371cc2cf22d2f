package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// putBytes bounds the headers and bodies of one statement, unless one delivery has more.
const putBytes = 4 << 20

// arrival is a delivery with its events, and what became of them.
type arrival struct {
	delivery inbox.Delivery
	rows     []inbox.Event
	sums     [][]byte // hashes of the rows' bytes, nil for an anomaly
	receipt  inbox.Receipt
	dropped  bool // its header and its body are not kept: they name what was erased
}

// values returns what [deliveryColumns] are to hold.
func (a *arrival) values() []any {
	values := deliveryValues(a.delivery)
	if a.dropped {
		values[len(values)-2], values[len(values)-1] = []byte{}, nil
	}
	return values
}

// newArrival fails with a row that does not fit the delivery.
func newArrival(delivery inbox.Delivery, rows []inbox.Event) (*arrival, error) {
	sums := make([][]byte, len(rows))
	for i, e := range rows {
		if e.Offset < 0 || e.Length < 0 || e.Offset > len(delivery.Body)-e.Length {
			return nil, fmt.Errorf("put: event %d does not lie in the body", e.Index)
		}
		if e.Mark == inbox.Anomaly {
			continue
		}
		if len(e.Key) == 0 {
			return nil, fmt.Errorf("put: event %d has no key", e.Index)
		}
		sum := sha256.Sum256(delivery.Body[e.Offset : e.Offset+e.Length])
		sums[i] = sum[:]
	}
	return &arrival{delivery: delivery, rows: rows, sums: sums}, nil
}

// Put stores a delivery and its events, see [inbox.Store]. Deliveries that wait to be
// stored are stored together.
func (d *DB) Put(ctx context.Context, delivery inbox.Delivery, rows []inbox.Event) (inbox.Receipt, error) {
	a, err := newArrival(delivery, rows) // made before others are kept waiting
	if err == nil {
		do := func(ctx context.Context, t *tx) error { return t.putAll(ctx, []*arrival{a}) }
		err = d.fail("write", d.writer.runJob(ctx, &job{put: a, do: do}))
	}
	if err != nil {
		return inbox.Receipt{}, err
	}
	return a.receipt, nil
}

// putAll adds deliveries and their events, as if one after the other.
func (t *tx) putAll(ctx context.Context, all []*arrival) error {
	if len(all) == 0 {
		return nil
	}
	if err := t.readLast(ctx); err != nil {
		return err
	}
	if err := t.dropErased(ctx, all); err != nil {
		return err
	}
	for _, a := range all {
		t.last.delivery++
		a.receipt = inbox.Receipt{Delivery: t.last.delivery}
	}
	lines, err := t.numberAndMark(ctx, all)
	if err != nil {
		return err
	}
	t.closing = t.putsOnly
	for from := 0; from < len(all); {
		to, size := from, 0
		for ; to < len(all) && (to == from || size < putBytes); to++ {
			size += len(all[to].delivery.Body)
		}
		if err := t.w.sql.deliveries.exec(ctx, t, to-from, func(args []any, n int) []any {
			a := all[from+n]
			return append(append(args, a.receipt.Delivery), a.values()...)
		}); err != nil {
			return err
		}
		from = to
	}
	return t.addEvents(ctx, lines)
}

// eventKey makes two events be the same. Synthetic ones are compared among themselves.
type eventKey struct {
	key       string
	synthetic bool
}

type currentEvent struct {
	seq      int64
	verified inbox.Verified
	sum      []byte
	mark     *inbox.Mark // that it will be stored with; nil if it is stored
}

func (t *tx) numberAndMark(ctx context.Context, all []*arrival) ([]eventLine, error) {
	if err := t.readLast(ctx); err != nil {
		return nil, err
	}
	current, err := t.currentEvents(ctx, all)
	if err != nil {
		return nil, err
	}
	var lines []eventLine
	for _, a := range all {
		a.receipt.Rows = make([]inbox.Placement, len(a.rows))
		for i := range a.rows {
			t.last.event++
			a.receipt.Rows[i].Seq = t.last.event
			lines = append(lines, eventLine{a, i, new(inbox.Mark)})
		}
	}
	for _, l := range lines {
		e, p := &l.a.rows[l.i], &l.a.receipt.Rows[l.i]
		p.Mark = inbox.Anomaly
		if e.Mark != inbox.Anomaly {
			key := eventKey{string(e.Key), e.Synthetic}
			before := current[key]
			p.Mark = markOf(before, l.a.delivery.Verified, l.a.sums[l.i])
			if p.Mark == inbox.Current {
				if err := t.supersede(ctx, before); err != nil {
					return nil, err
				}
				current[key] = &currentEvent{p.Seq, l.a.delivery.Verified, l.a.sums[l.i], l.mark}
			}
		}
		*l.mark = p.Mark
	}
	return lines, nil
}

func (t *tx) addEvents(ctx context.Context, lines []eventLine) error {
	return t.w.sql.events.exec(ctx, t, len(lines), func(args []any, n int) []any { return append(args, lines[n].values()...) })
}

// markOf compares an event with the current one of its key, nil if there is none.
func markOf(before *currentEvent, verified inbox.Verified, sum []byte) inbox.Mark {
	switch {
	case before == nil, verified.Outranks(before.verified):
		return inbox.Current
	case bytes.Equal(before.sum, sum):
		return inbox.Duplicate
	default:
		return inbox.Conflict
	}
}

// supersede marks what was current before, nil if nothing was.
func (t *tx) supersede(ctx context.Context, before *currentEvent) error {
	switch {
	case before == nil:
		return nil
	case before.mark != nil:
		*before.mark = inbox.Superseded
		return nil
	}
	_, err := t.exec(ctx, "UPDATE events SET mark = $1 WHERE seq = $2", string(inbox.Superseded), before.seq)
	return err
}

func (t *tx) currentEvents(ctx context.Context, all []*arrival) (map[eventKey]*currentEvent, error) {
	var keys [][]byte
	asked, current := map[string]bool{}, map[eventKey]*currentEvent{}
	for _, a := range all {
		for _, e := range a.rows {
			if e.Mark != inbox.Anomaly && !asked[string(e.Key)] {
				asked[string(e.Key)] = true
				keys = append(keys, e.Key)
			}
		}
	}
	err := t.w.sql.currentEvents.each(ctx, t, keys, func(s scanner) error {
		var key []byte
		var k eventKey
		var one currentEvent
		err := s.Scan(&key, &k.synthetic, &one.seq, (*string)(&one.verified), &one.sum)
		k.key = string(key)
		current[k] = &one
		return err
	})
	return current, err
}

type eventLine struct {
	a    *arrival
	i    int         // in its rows
	mark *inbox.Mark // that it is stored with, which others of the same arrivals may change
}

// eventColumnsToAdd are those of [eventLine.values].
const eventColumnsToAdd = `seq, delivery, received, place, start, length, event_key, sum, event_id, kind, event_time,
	tracking_number, status, status_track, status_label, latest_event, router_id, verified, reason, body_authenticated, mark, anomaly, folded, synthetic`

func (l eventLine) values() []any {
	d, e := &l.a.delivery, &l.a.rows[l.i]
	var key any
	if e.Mark != inbox.Anomaly {
		key = e.Key
	}
	number := clean(e.TrackingNumber)
	return []any{
		l.a.receipt.Rows[l.i].Seq, l.a.receipt.Delivery, millis(d.ReceivedAt), e.Index, e.Offset, e.Length, key, l.a.sums[l.i], clean(e.EventID), clean(e.Kind), clean(e.EventTime),
		number, clean(e.Status), clean(e.StatusTrack), clean(e.StatusLabel), clean(e.LatestEvent), clean(e.RouterID),
		string(d.Verified), string(d.Reason), flag(d.BodyAuthenticated), string(*l.mark), clean(e.Anomaly), foldKey(number), flag(e.Synthetic),
	}
}
