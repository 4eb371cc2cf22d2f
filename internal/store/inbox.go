package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Put stores a delivery and its events, see [inbox.Store].
func (d *DB) Put(ctx context.Context, delivery inbox.Delivery, rows []inbox.Event) (inbox.Receipt, error) {
	sums, err := sumsOf(delivery, rows) // made before others are kept waiting
	if err != nil {
		return inbox.Receipt{}, err
	}
	return runFor(ctx, d, func(ctx context.Context, t *tx) (inbox.Receipt, error) { return t.put(ctx, delivery, rows, sums) })
}

// sumsOf returns the hash of each row's bytes, nil for an anomaly. Its error
// names a row that does not fit its delivery.
func sumsOf(delivery inbox.Delivery, rows []inbox.Event) ([][]byte, error) {
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
	return sums, nil
}

// put adds a delivery and its events.
func (t *tx) put(ctx context.Context, delivery inbox.Delivery, rows []inbox.Event, sums [][]byte) (inbox.Receipt, error) {
	receipt := inbox.Receipt{Rows: make([]inbox.Placement, len(rows))}
	var err error
	if receipt.Delivery, err = t.next(ctx, "deliveries"); err != nil {
		return receipt, err
	}
	values := append(deliveryValues(delivery), receipt.Delivery)
	if _, err := t.exec(ctx, "INSERT INTO deliveries ("+deliveryColumns+", seq) VALUES "+numberedParams, values...); err != nil {
		return receipt, err
	}
	for i, e := range rows {
		if receipt.Rows[i], err = t.place(ctx, receipt.Delivery, delivery, e, sums[i]); err != nil {
			return receipt, err
		}
	}
	return receipt, nil
}

// place adds one event with its mark.
func (t *tx) place(ctx context.Context, delivery int64, d inbox.Delivery, e inbox.Event, sum []byte) (inbox.Placement, error) {
	p := inbox.Placement{Mark: inbox.Anomaly}
	var key any
	if e.Mark != inbox.Anomaly {
		var err error
		if p.Mark, err = t.mark(ctx, e, d.Verified, sum); err != nil {
			return p, err
		}
		key = e.Key
	}
	var err error
	if p.Seq, err = t.next(ctx, "events"); err != nil {
		return p, err
	}
	_, err = t.exec(ctx, `INSERT INTO events (seq, delivery, received, place, start, length, event_key, sum, event_id, kind, event_time,
			tracking_number, status, status_track, status_label, latest_event, router_id, verified, reason, body_authenticated, mark, anomaly, folded, synthetic)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)`,
		p.Seq, delivery, millis(d.ReceivedAt), e.Index, e.Offset, e.Length, key, sum, clean(e.EventID), clean(e.Kind), clean(e.EventTime),
		clean(e.TrackingNumber), clean(e.Status), clean(e.StatusTrack), clean(e.StatusLabel), clean(e.LatestEvent), clean(e.RouterID),
		string(d.Verified), string(d.Reason), flag(d.BodyAuthenticated), string(p.Mark), clean(e.Anomaly), foldKey(clean(e.TrackingNumber)), flag(e.Synthetic))
	return p, err
}

// mark compares an event with the current one of its key that is as synthetic.
func (t *tx) mark(ctx context.Context, e inbox.Event, verified inbox.Verified, sum []byte) (inbox.Mark, error) {
	var seq int64
	var stands string
	var same []byte
	ok, err := t.row(ctx, []any{&seq, &stands, &same}, "SELECT seq, verified, sum FROM events WHERE event_key = $1 AND mark = '' AND synthetic = $2", e.Key, flag(e.Synthetic))
	switch {
	case err != nil || !ok:
		return inbox.Current, err
	case verified == inbox.Yes && stands != string(inbox.Yes):
		_, err := t.exec(ctx, "UPDATE events SET mark = $1 WHERE seq = $2", string(inbox.Superseded), seq)
		return inbox.Current, err
	case bytes.Equal(same, sum):
		return inbox.Duplicate, nil
	default:
		return inbox.Conflict, nil
	}
}

// SetVerdict changes the verdict on a delivery, see [inbox.Verdicts].
func (d *DB) SetVerdict(ctx context.Context, judged inbox.Delivery) (inbox.Receipt, error) {
	return runFor(ctx, d, func(ctx context.Context, t *tx) (inbox.Receipt, error) {
		receipt := inbox.Receipt{Delivery: judged.Seq}
		var verified string
		var pruned bool
		var received int64
		found, err := t.row(ctx, []any{&verified, &pruned, &received}, "SELECT verified, body IS NULL, received FROM deliveries WHERE seq = $1", judged.Seq)
		switch {
		case err != nil:
			return receipt, err
		case !found:
			return receipt, fmt.Errorf("%w: %d", inbox.ErrNoDelivery, judged.Seq)
		case pruned, verified == string(inbox.Yes):
			return receipt, nil
		}
		judged.ReceivedAt = instant(received)
		if _, err := t.exec(ctx, "UPDATE deliveries SET verified = $1, reason = $2, scheme = $3, secret_name = $4, body_authenticated = $5 WHERE seq = $6",
			string(judged.Verified), clean(string(judged.Reason)), clean(judged.Scheme), clean(judged.SecretName), flag(judged.BodyAuthenticated), judged.Seq); err != nil {
			return receipt, err
		}
		which := ""
		if judged.Verified == inbox.Yes {
			which = " AND mark = 'anomaly'"
			if receipt.Rows, err = t.release(ctx, judged); err != nil {
				return receipt, err
			}
		}
		_, err = t.exec(ctx, "UPDATE events SET verified = $1, reason = $2, body_authenticated = $3 WHERE delivery = $4"+which,
			string(judged.Verified), clean(string(judged.Reason)), flag(judged.BodyAuthenticated), judged.Seq)
		return receipt, err
	})
}

// Readmit stores a delivery that was refused, see [inbox.Verdicts].
func (d *DB) Readmit(ctx context.Context, refused int64, delivery inbox.Delivery, rows []inbox.Event) (inbox.Receipt, error) {
	sums, err := sumsOf(delivery, rows)
	if err != nil {
		return inbox.Receipt{}, err
	}
	return runFor(ctx, d, func(ctx context.Context, t *tx) (inbox.Receipt, error) {
		n, err := t.exec(ctx, "DELETE FROM refused WHERE seq = $1", refused)
		if err == nil && n == 0 {
			err = fmt.Errorf("%w: refused %d", inbox.ErrNoDelivery, refused)
		}
		if err != nil {
			return inbox.Receipt{}, err
		}
		receipt, err := t.put(ctx, delivery, rows, sums)
		if err == nil {
			_, err = t.exec(ctx, "INSERT INTO readmitted (refused, delivery) VALUES ($1, $2)", refused, receipt.Delivery)
		}
		return receipt, err
	})
}

// Readmitted returns what a refused delivery became, see [inbox.Store].
func (d *DB) Readmitted(ctx context.Context, refused int64) (int64, error) {
	var delivery int64
	found, err := d.row(ctx, []any{&delivery}, "SELECT delivery FROM readmitted WHERE refused = $1", refused)
	if err == nil && !found {
		err = fmt.Errorf("%w: refused %d", inbox.ErrNoDelivery, refused)
	}
	return delivery, err
}

// release adds the events of a delivery that became verified a second time.
func (t *tx) release(ctx context.Context, d inbox.Delivery) ([]inbox.Placement, error) {
	const which = "WHERE delivery = $1 AND event_key IS NOT NULL ORDER BY seq"
	rows, err := list(ctx, t.each, func(s scanner) (inbox.Event, error) { return scanEvent(s) }, eventColumns+which, d.Seq)
	if err != nil {
		return nil, err
	}
	sums, err := list(ctx, t.each, scanOne[[]byte], "SELECT sum FROM events "+which, d.Seq)
	if err != nil {
		return nil, err
	}
	placed := make([]inbox.Placement, len(rows))
	for i, e := range rows {
		e.Mark = inbox.Current
		if placed[i], err = t.place(ctx, d.Seq, d, e, sums[i]); err != nil {
			return nil, err
		}
		if _, err := t.exec(ctx, "UPDATE events SET mark = $1 WHERE seq = $2", string(inbox.Superseded), e.Seq); err != nil {
			return nil, err
		}
	}
	return placed, nil
}

// The columns of a delivery but for its number, and parameters for them and a
// number.
const (
	deliveryColumns = "received, method, path, raw_query, remote, verified, reason, scheme, secret_name, body_authenticated, single, anomaly, header, body"
	numberedParams  = "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"
)

// deliveryValues returns what deliveryColumns are to hold.
func deliveryValues(d inbox.Delivery) []any {
	body := d.Body
	if body == nil {
		body = []byte{} // nil would say that it was pruned
	}
	return []any{
		millis(d.ReceivedAt), clean(d.Method), []byte(d.Path), []byte(d.RawQuery), clean(d.RemoteAddr), string(d.Verified), clean(string(d.Reason)),
		clean(d.Scheme), clean(d.SecretName), flag(d.BodyAuthenticated), flag(d.Single), clean(d.Anomaly), packHeader(d.Header), body,
	}
}

// selectDelivery begins a query for deliveries. Whether a body was pruned is a
// column of its own: the driver returns nil for an empty body too.
const selectDelivery = "SELECT body IS NULL, seq, " + deliveryColumns + " FROM "

// scanDelivery reads a row of selectDelivery.
func scanDelivery(s scanner) (inbox.Delivery, error) {
	var d inbox.Delivery
	var received int64
	var header []byte
	var pruned bool
	if err := s.Scan(&pruned, &d.Seq, &received, &d.Method, &d.Path, &d.RawQuery, &d.RemoteAddr, (*string)(&d.Verified), (*string)(&d.Reason),
		&d.Scheme, &d.SecretName, &d.BodyAuthenticated, &d.Single, &d.Anomaly, &header, &d.Body); err != nil {
		return inbox.Delivery{}, err
	}
	if d.Body == nil && !pruned {
		d.Body = []byte{}
	}
	d.ReceivedAt = instant(received)
	var err error
	d.Header, err = unpackHeader(header)
	return d, err
}

// packHeader returns the bytes that a header is kept as: each name and each
// value after its length, since they may hold any byte.
func packHeader(fields []webhook.Field) []byte {
	b := []byte{}
	for _, f := range fields {
		b = binary.AppendUvarint(b, uint64(len(f.Name)))
		b = append(b, f.Name...)
		b = binary.AppendUvarint(b, uint64(len(f.Value)))
		b = append(b, f.Value...)
	}
	return b
}

var errHeader = errors.New("a kept header cannot be read")

// unpackHeader is the reverse of packHeader.
func unpackHeader(b []byte) ([]webhook.Field, error) {
	var fields []webhook.Field
	next := func() (string, bool) {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return "", false
		}
		s := string(b[size : size+int(n)])
		b = b[size+int(n):]
		return s, true
	}
	for len(b) > 0 {
		name, ok := next()
		if !ok {
			return nil, errHeader
		}
		value, ok := next()
		if !ok {
			return nil, errHeader
		}
		fields = append(fields, webhook.Field{Name: name, Value: value})
	}
	return fields, nil
}
