package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// SetVerdict changes the verdict on a delivery, see [inbox.Verdicts].
func (d *DB) SetVerdict(ctx context.Context, changed inbox.Delivery) (inbox.Receipt, error) {
	return runFor(ctx, d, func(ctx context.Context, t *tx) inbox.Receipt {
		receipt := inbox.Receipt{Delivery: changed.Seq}
		var before string
		var pruned bool
		found := t.row(ctx, []any{&before, &pruned, (*storedTime)(&changed.ReceivedAt)},
			"SELECT verified, body IS NULL, received FROM deliveries WHERE seq = $1", changed.Seq)
		switch {
		case !found:
			t.fail(fmt.Errorf("%w: %d", inbox.ErrNoDelivery, changed.Seq))
			return receipt
		case pruned, before == string(inbox.Yes):
			return receipt
		}
		verdict, reason, whole := string(changed.Verified), clean(string(changed.Reason)), flag(changed.BodyAuthenticated)
		t.exec(ctx, `UPDATE deliveries SET verified = $1, reason = $2, body_authenticated = $3,
			scheme = $4, secret_name = $5, released = CASE $1 WHEN 'yes' THEN `+lastReleased+` + 1 ELSE 0 END WHERE seq = $6`,
			verdict, reason, whole, clean(changed.Scheme), clean(changed.SecretName), changed.Seq)
		which := ""
		if changed.Verified == inbox.Yes {
			which = " AND mark = 'anomaly'"
			receipt.Rows = t.release(ctx, changed)
		}
		t.exec(ctx, `UPDATE events SET verified = $1, reason = $2, body_authenticated = $3
			WHERE delivery = $4`+which, verdict, reason, whole, changed.Seq)
		return receipt
	})
}

// Readmit stores a refused delivery, see [inbox.Verdicts].
func (d *DB) Readmit(
	ctx context.Context, refused int64, delivery inbox.Delivery, rows []inbox.Event,
) (inbox.Receipt, error) {
	a, err := newArrival(delivery, rows)
	if err != nil {
		return inbox.Receipt{}, err
	}
	return runFor(ctx, d, func(ctx context.Context, t *tx) inbox.Receipt {
		t.require(t.exec(ctx, "DELETE FROM refused WHERE seq = $1", refused) > 0, noRefused(refused))
		t.putAll(ctx, []*arrival{a})
		t.exec(ctx, "UPDATE deliveries SET refused = $1 WHERE seq = $2", refused, a.receipt.Delivery)
		return a.receipt
	})
}

// Readmitted returns the delivery that a refused one became, see [inbox.Store].
func (d *DB) Readmitted(ctx context.Context, refused int64) (int64, error) {
	var delivery int64
	r := d.reader()
	found := r.row(ctx, []any{&delivery}, "SELECT seq FROM deliveries WHERE refused = $1 AND refused > 0", refused)
	r.require(found, noRefused(refused))
	return delivery, r.err
}

func noRefused(seq int64) error { return fmt.Errorf("%w: refused %d", inbox.ErrNoDelivery, seq) }

// release adds the events of a delivery a second time, when it becomes verified.
func (t *tx) release(ctx context.Context, d inbox.Delivery) []inbox.Placement {
	rows := list(ctx, t, func(s scanner) (e newEvent, err error) {
		e.Event, err = scanEvent(s, &e.sum)
		return e, err
	}, "SELECT "+eventColumns+", sum FROM events WHERE delivery = $1 AND event_key IS NOT NULL ORDER BY seq", d.Seq)
	t.exec(ctx, "UPDATE events SET mark = $1 WHERE delivery = $2 AND event_key IS NOT NULL",
		string(inbox.Superseded), d.Seq)
	a := &arrival{delivery: d, rows: rows}
	t.addEvents(ctx, t.numberAndMark(ctx, []*arrival{a}))
	return a.receipt.Rows
}

// deliveryFields are the columns of tables deliveries and refused, except for the number. Header and body, which may
// be large, are the last two. A new field is a line here and one for each table in each schema.
var deliveryFields = fields[inbox.Delivery]{
	{"received", func(d *inbox.Delivery) any { return (*storedTime)(&d.ReceivedAt) }},
	{"method", func(d *inbox.Delivery) any { return &d.Method }},
	{"path", func(d *inbox.Delivery) any { return (*binaryText)(&d.Path) }},
	{"raw_query", func(d *inbox.Delivery) any { return (*binaryText)(&d.RawQuery) }},
	{"remote", func(d *inbox.Delivery) any { return &d.RemoteAddr }},
	{"verified", func(d *inbox.Delivery) any { return (*string)(&d.Verified) }},
	{"reason", func(d *inbox.Delivery) any { return (*string)(&d.Reason) }},
	{"scheme", func(d *inbox.Delivery) any { return &d.Scheme }},
	{"secret_name", func(d *inbox.Delivery) any { return &d.SecretName }},
	{"body_authenticated", func(d *inbox.Delivery) any { return &d.BodyAuthenticated }},
	{"single", func(d *inbox.Delivery) any { return &d.Single }},
	{"anomaly", func(d *inbox.Delivery) any { return &d.Anomaly }},
	{"header", func(d *inbox.Delivery) any { return (*storedHeader)(&d.Header) }},
	{"body", func(d *inbox.Delivery) any { return (*storedBytes)(&d.Body) }},
}

// deliveryFacts are the columns that are never large.
var deliveryFacts = deliveryFields[:len(deliveryFields)-2]

var (
	deliveryColumns = deliveryFields.list()
	selectDelivery  = "SELECT " + deliveryColumns + ", seq FROM "
)

var scanDelivery = scanInto(func(d *inbox.Delivery) []any { return deliveryFields.dest(d, &d.Seq) })

// packHeader writes each name and each value after its length, since they may contain any byte.
func packHeader(header []webhook.Field) []byte {
	b := []byte{}
	for _, f := range header {
		for _, text := range [...]string{f.Name, f.Value} {
			b = binary.AppendUvarint(b, uint64(len(text)))
			b = append(b, text...)
		}
	}
	return b
}

var errHeader = errors.New("a kept header cannot be read")

func unpackHeader(b []byte) (header []webhook.Field, err error) {
	var texts []string
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return nil, errHeader
		}
		end := size + int(n)
		texts = append(texts, string(b[size:end]))
		b = b[end:]
	}
	if len(texts)%2 > 0 {
		return nil, errHeader
	}
	for f := range slices.Chunk(texts, 2) {
		header = append(header, webhook.Field{Name: f[0], Value: f[1]})
	}
	return header, nil
}

// putBytes limits the headers and bodies in one statement, unless one delivery alone has more.
const putBytes = 4 << 20

// arrival is a delivery to be stored with its events, and its receipt.
type arrival struct {
	delivery inbox.Delivery
	rows     []newEvent
	receipt  inbox.Receipt
}

// newEvent is an event to add, or an event that it is compared with.
type newEvent struct {
	inbox.Event

	sum    []byte // SHA-256 of its bytes, nil for an anomaly
	stored bool   // it was already stored
}

// newArrival returns an error if an event does not fit the delivery.
func newArrival(delivery inbox.Delivery, rows []inbox.Event) (*arrival, error) {
	if delivery.Body == nil {
		delivery.Body = []byte{} // nil would mean pruned
	}
	a := &arrival{delivery: delivery, rows: make([]newEvent, len(rows))}
	for i, e := range rows {
		a.rows[i].Event = e
		switch {
		case e.Offset < 0 || e.Length < 0 || e.Offset > len(delivery.Body)-e.Length:
			return nil, fmt.Errorf("put: event %d does not lie in the body", e.Index)
		case e.Mark == inbox.Anomaly:
			a.rows[i].Key = nil
		case len(e.Key) == 0:
			return nil, fmt.Errorf("put: event %d has no key", e.Index)
		default:
			sum := sha256.Sum256(delivery.Body[e.Offset : e.Offset+e.Length])
			a.rows[i].sum = sum[:]
		}
	}
	return a, nil
}

// Put stores a delivery and its events, see [inbox.Store]. Deliveries that are waiting are stored together.
func (d *DB) Put(ctx context.Context, delivery inbox.Delivery, rows []inbox.Event) (inbox.Receipt, error) {
	a, err := newArrival(delivery, rows) // before others have to wait
	if err == nil {
		do := func(ctx context.Context, t *tx) { t.putAll(ctx, []*arrival{a}) }
		err = d.fail("write", d.writer.runJob(ctx, &job{put: a, do: do}))
	}
	if err != nil {
		return inbox.Receipt{}, err
	}
	return a.receipt, nil
}

var (
	insertDeliveries = newMultiInsert("INSERT INTO deliveries (seq, "+deliveryColumns+")", "i"+deliveryFields.types(), "")
	insertEvents     = newMultiInsert("INSERT INTO events (sum, folded, "+eventColumns+")", "bt"+eventFields.types(), "")

	selectCurrentEvents = newKeyStatement[[]byte]('b', `SELECT event_key, synthetic, seq, verified, sum FROM events
		WHERE mark = '' AND event_key`, "")
)

// putAll adds deliveries and their events, with the same result as one after the other.
func (t *tx) putAll(ctx context.Context, all []*arrival) {
	if len(all) == 0 {
		return
	}
	t.readLast(ctx)
	t.dropErased(ctx, all)
	for _, a := range all {
		t.last.delivery++
		a.delivery.Seq = t.last.delivery
	}
	added := t.numberAndMark(ctx, all)
	t.closing = t.putsOnly
	for from := 0; from < len(all); {
		to, size := from, 0
		for ; to < len(all) && (to == from || size < putBytes); to++ {
			size += len(all[to].delivery.Body)
		}
		insertDeliveries.exec(ctx, t, to-from, func(args []any, n int) []any {
			d := &all[from+n].delivery
			return deliveryFields.appendValues(append(args, d.Seq), d)
		})
		from = to
	}
	t.addEvents(ctx, added)
}

// eventKey identifies an event: repeats have the same key. Synthetic events are compared among themselves.
type eventKey struct {
	key       string
	synthetic bool
}

// numberAndMark makes the receipts of deliveries, and returns their events ready to be added.
func (t *tx) numberAndMark(ctx context.Context, all []*arrival) []*newEvent {
	t.readLast(ctx)
	current := t.currentEvents(ctx, all)
	var added []*newEvent
	for _, a := range all {
		d := &a.delivery
		a.receipt = inbox.Receipt{Delivery: d.Seq, Rows: make([]inbox.Placement, len(a.rows))}
		for i := range a.rows {
			e := &a.rows[i]
			t.last.event++
			e.Seq, e.Delivery, e.ReceivedAt = t.last.event, d.Seq, d.ReceivedAt
			e.Verified, e.Reason, e.BodyAuthenticated = d.Verified, d.Reason, d.BodyAuthenticated
			if e.Mark != inbox.Anomaly {
				t.mark(ctx, e, current)
			}
			a.receipt.Rows[i] = inbox.Placement{Seq: e.Seq, Mark: e.Mark}
			added = append(added, e)
		}
	}
	return added
}

// mark compares an event with the current one of its key, and may replace that one.
func (t *tx) mark(ctx context.Context, e *newEvent, current map[eventKey]*newEvent) {
	key := eventKey{string(e.Key), e.Synthetic}
	before := current[key]
	if e.Mark = markOf(before, e); e.Mark != inbox.Current {
		return
	}
	current[key] = e
	if before == nil {
		return
	}
	before.Mark = inbox.Superseded
	if before.stored {
		t.exec(ctx, "UPDATE events SET mark = $1 WHERE seq = $2", string(inbox.Superseded), before.Seq)
	}
}

func (t *tx) addEvents(ctx context.Context, added []*newEvent) {
	insertEvents.exec(ctx, t, len(added), func(args []any, n int) []any {
		e := added[n]
		return eventFields.appendValues(append(args, e.sum, foldKey(clean(e.TrackingNumber))), &e.Event)
	})
}

// markOf compares an event with the current one of its key, nil if there is none.
func markOf(before, e *newEvent) inbox.Mark {
	switch {
	case before == nil, e.Verified.Outranks(before.Verified):
		return inbox.Current
	case bytes.Equal(before.sum, e.sum):
		return inbox.Duplicate
	default:
		return inbox.Conflict
	}
}

func (t *tx) currentEvents(ctx context.Context, all []*arrival) map[eventKey]*newEvent {
	var keys [][]byte
	asked, current := map[string]bool{}, map[eventKey]*newEvent{}
	for _, a := range all {
		for i := range a.rows {
			e := &a.rows[i]
			if e.Mark != inbox.Anomaly && !asked[string(e.Key)] {
				asked[string(e.Key)] = true
				keys = append(keys, e.Key)
			}
		}
	}
	selectCurrentEvents.each(ctx, t, keys, func(s scanner) error {
		e := newEvent{stored: true}
		err := s.Scan(&e.Key, &e.Synthetic, &e.Seq, (*string)(&e.Verified), &e.sum)
		current[eventKey{string(e.Key), e.Synthetic}] = &e
		return err
	})
	return current
}
