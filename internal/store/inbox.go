package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// SetVerdict changes the verdict on a delivery, see [inbox.Verdicts].
func (d *DB) SetVerdict(ctx context.Context, judged inbox.Delivery) (inbox.Receipt, error) {
	return runFor(ctx, d, func(ctx context.Context, t *tx) (inbox.Receipt, error) {
		receipt := inbox.Receipt{Delivery: judged.Seq}
		var verified string
		var pruned bool
		found, err := t.row(ctx, []any{&verified, &pruned, (*storedTime)(&judged.ReceivedAt)},
			"SELECT verified, body IS NULL, received FROM deliveries WHERE seq = $1", judged.Seq)
		switch {
		case err != nil:
			return receipt, err
		case !found:
			return receipt, fmt.Errorf("%w: %d", inbox.ErrNoDelivery, judged.Seq)
		case pruned, verified == string(inbox.Yes):
			return receipt, nil
		}
		verdict, reason, whole := string(judged.Verified), clean(string(judged.Reason)), flag(judged.BodyAuthenticated)
		if _, err := t.exec(ctx, `UPDATE deliveries SET verified = $1, reason = $2, body_authenticated = $3,
			scheme = $4, secret_name = $5, released = CASE $1 WHEN 'yes' THEN `+lastReleased+` + 1 ELSE 0 END WHERE seq = $6`,
			verdict, reason, whole, clean(judged.Scheme), clean(judged.SecretName), judged.Seq); err != nil {
			return receipt, err
		}
		which := ""
		if judged.Verified == inbox.Yes {
			which = " AND mark = 'anomaly'"
			if receipt.Rows, err = t.release(ctx, judged); err != nil {
				return receipt, err
			}
		}
		_, err = t.exec(ctx, `UPDATE events SET verified = $1, reason = $2, body_authenticated = $3
			WHERE delivery = $4`+which, verdict, reason, whole, judged.Seq)
		return receipt, err
	})
}

// Readmit stores a delivery that was refused, see [inbox.Verdicts].
func (d *DB) Readmit(
	ctx context.Context, refused int64, delivery inbox.Delivery, rows []inbox.Event,
) (inbox.Receipt, error) {
	a, err := newArrival(delivery, rows)
	if err != nil {
		return inbox.Receipt{}, err
	}
	return runFor(ctx, d, func(ctx context.Context, t *tx) (inbox.Receipt, error) {
		n, err := t.exec(ctx, "DELETE FROM refused WHERE seq = $1", refused)
		err = require(n > 0, err, noRefused(refused))
		if err == nil {
			err = t.putAll(ctx, []*arrival{a})
		}
		if err == nil {
			_, err = t.exec(ctx, "UPDATE deliveries SET refused = $1 WHERE seq = $2", refused, a.receipt.Delivery)
		}
		return a.receipt, err
	})
}

// Readmitted returns what a refused delivery became, see [inbox.Store].
func (d *DB) Readmitted(ctx context.Context, refused int64) (int64, error) {
	var delivery int64
	found, err := d.row(ctx, []any{&delivery}, "SELECT seq FROM deliveries WHERE refused = $1 AND refused > 0", refused)
	return delivery, require(found, err, noRefused(refused))
}

func noRefused(seq int64) error { return fmt.Errorf("%w: refused %d", inbox.ErrNoDelivery, seq) }

// release adds the events of a delivery that became verified a second time.
func (t *tx) release(ctx context.Context, d inbox.Delivery) ([]inbox.Placement, error) {
	rows, err := list(ctx, t.each, func(s scanner) (e newEvent, err error) {
		e.Event, err = scanEvent(s, &e.sum)
		return e, err
	}, "SELECT "+eventColumns+", sum FROM events WHERE delivery = $1 AND event_key IS NOT NULL ORDER BY seq", d.Seq)
	if err != nil {
		return nil, err
	}
	if _, err := t.exec(ctx, "UPDATE events SET mark = $1 WHERE delivery = $2 AND event_key IS NOT NULL",
		string(inbox.Superseded), d.Seq); err != nil {
		return nil, err
	}
	a := &arrival{delivery: d, rows: rows}
	added, err := t.numberAndMark(ctx, []*arrival{a})
	if err == nil {
		err = t.addEvents(ctx, added)
	}
	return a.receipt.Rows, err
}

// deliveryFields are the columns that tables deliveries and refused have of a delivery, but for its number. Header
// and body, which may be large, are the last two. A field more is a line here, and one for each table in each schema.
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

// packHeader writes each name and each value after its length, since they may hold any byte.
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
