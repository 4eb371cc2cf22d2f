package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

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
	a, err := newArrival(delivery, rows)
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
		if err := t.putAll(ctx, []*arrival{a}); err != nil {
			return inbox.Receipt{}, err
		}
		_, err = t.exec(ctx, "INSERT INTO readmitted (refused, delivery) VALUES ($1, $2)", refused, a.receipt.Delivery)
		return a.receipt, err
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
	if _, err := t.exec(ctx, "UPDATE events SET mark = $1 WHERE delivery = $2 AND event_key IS NOT NULL", string(inbox.Superseded), d.Seq); err != nil {
		return nil, err
	}
	if _, err := t.exec(ctx, "INSERT INTO released (delivery) VALUES ($1)", d.Seq); err != nil {
		return nil, err
	}
	for i := range rows {
		rows[i].Mark = inbox.Current
	}
	a := &arrival{delivery: d, rows: rows, sums: sums, receipt: inbox.Receipt{Delivery: d.Seq}}
	lines, err := t.numberAndMark(ctx, []*arrival{a})
	if err == nil {
		err = t.addEvents(ctx, lines)
	}
	return a.receipt.Rows, err
}

// What a delivery's row holds but for its number: what is never large, and all of it.
const (
	deliveryFacts   = "received, method, path, raw_query, remote, verified, reason, scheme, secret_name, body_authenticated, single, anomaly"
	deliveryColumns = deliveryFacts + ", header, body"
)

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

func scanDelivery(s scanner) (inbox.Delivery, error) {
	var header, body []byte
	var pruned bool
	d, err := scanFacts(s, &pruned, &header, &body)
	if err != nil {
		return inbox.Delivery{}, err
	}
	if d.Body = body; body == nil && !pruned {
		d.Body = []byte{}
	}
	d.Header, err = unpackHeader(header)
	return d, err
}

// scanFacts reads a column into first, then the number and deliveryFacts, and further columns into more.
func scanFacts(s scanner, first any, more ...any) (inbox.Delivery, error) {
	var d inbox.Delivery
	var received int64
	err := s.Scan(append([]any{
		first, &d.Seq, &received, &d.Method, &d.Path, &d.RawQuery, &d.RemoteAddr, (*string)(&d.Verified), (*string)(&d.Reason),
		&d.Scheme, &d.SecretName, &d.BodyAuthenticated, &d.Single, &d.Anomaly,
	}, more...)...)
	d.ReceivedAt = instant(received)
	return d, err
}

// packHeader writes each name and each value after its length, since they may hold any byte.
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
