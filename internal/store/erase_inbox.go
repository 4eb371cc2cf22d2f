package store

import (
	"context"
	"slices"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// eraseDeliveries blanks the events of what is erased in the bytes of their deliveries:
// the bytes of others stay where they are. What names it elsewhere is dropped whole.
func (e *erasure) eraseDeliveries(ctx context.Context) error {
	return e.eachDelivery(ctx, "deliveries", e.eraseDelivery)
}

// eraseRefused removes refused deliveries that name what is erased.
func (e *erasure) eraseRefused(ctx context.Context) error {
	return e.eachDelivery(ctx, "refused", func(ctx context.Context, seq int64) error {
		return e.run(ctx, func(ctx context.Context, t *tx, done *ledger.Erasure) error {
			n, err := t.exec(ctx, "DELETE FROM refused WHERE seq = $1", seq)
			done.Refused += n
			return err
		})
	})
}

// eachDelivery calls found for each delivery in a table whose bytes name what is erased.
func (e *erasure) eachDelivery(ctx context.Context, table string, found func(ctx context.Context, seq int64) error) error {
	if e.common.empty() {
		return nil
	}
	type kept struct {
		seq                       int64
		path, query, header, body []byte
	}
	for after := int64(0); ; {
		page, err := list(ctx, e.d.each, func(s scanner) (k kept, err error) {
			err = s.Scan(&k.seq, &k.path, &k.query, &k.header, &k.body)
			return k, err
		}, "SELECT seq, path, raw_query, header, body FROM "+table+" WHERE seq > $1 ORDER BY seq LIMIT $2", after, erasePage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, k := range page {
			after = k.seq
			if !slices.ContainsFunc([][]byte{k.path, k.query, k.body}, e.common.inBytes) && !e.common.inHeader(k.header) {
				continue
			}
			if err := found(ctx, k.seq); err != nil {
				return err
			}
		}
	}
}

// erasedDelivery is what stays of a delivery.
type erasedDelivery struct {
	seq          int64
	places       []int64 // of the events that are erased
	left         int     // events that stay
	path, query  []byte
	header, body []byte // body is nil where it is dropped, or was before
}

func (e *erasure) eraseDelivery(ctx context.Context, seq int64) error {
	return e.run(ctx, func(ctx context.Context, t *tx, done *ledger.Erasure) error {
		one, err := e.judge(ctx, t, seq)
		if err != nil {
			return err
		}
		for _, place := range one.places {
			n, err := t.exec(ctx, eraseEvent+"delivery = $1 AND place = $2", seq, place)
			if done.Events += n; err != nil {
				return err
			}
		}
		var body any // NULL: none
		if one.body != nil {
			body = one.body
			if len(one.places) == 0 {
				done.Texts++ // its path, query or header
			}
		} else {
			done.Deliveries++
		}
		if _, err := t.exec(ctx, "UPDATE deliveries SET path = $1, raw_query = $2, header = $3, body = $4, anomaly = $5 WHERE seq = $6",
			one.path, one.query, one.header, body, inbox.Erased, seq); err != nil {
			return err
		}
		return t.eraseEntries(ctx, seq, one.body == nil)
	})
}

// judge reads a delivery and blanks what is erased.
func (e *erasure) judge(ctx context.Context, t *tx, seq int64) (one erasedDelivery, err error) {
	one.seq = seq
	if _, err := t.row(ctx, []any{&one.path, &one.query, &one.header, &one.body}, "SELECT path, raw_query, header, body FROM deliveries WHERE seq = $1", seq); err != nil {
		return one, err
	}
	one.body = slices.Clone(one.body)
	type span struct {
		place         int64
		start, length int
		folded        string
		router        string
		anomaly       string
	}
	spans, err := list(ctx, t.each, func(s scanner) (p span, err error) {
		err = s.Scan(&p.place, &p.start, &p.length, &p.folded, &p.router, &p.anomaly)
		return p, err
	}, "SELECT place, start, length, folded, router_id, anomaly FROM events WHERE delivery = $1 ORDER BY place", seq)
	if err != nil {
		return one, err
	}
	for _, p := range spans {
		inside := p.start+p.length <= len(one.body)
		switch {
		case p.anomaly == inbox.Erased:
		case p.folded != "" && e.words.numbers[p.folded], e.routers[p.router], inside && e.common.inBytes(one.body[p.start:p.start+p.length]):
			one.places = append(one.places, p.place)
			if inside {
				blankSpan(one.body, p.start, p.length)
			}
		default:
			one.left++
		}
	}
	if one.left == 0 || len(one.body) == 0 || e.common.inBytes(one.body) {
		one.header, one.body = []byte{}, nil
	}
	for _, part := range []*[]byte{&one.path, &one.query} {
		if *part == nil || e.common.inBytes(*part) { // empty ones are read as nil
			*part = []byte{}
		}
	}
	if one.header == nil || e.common.inHeader(one.header) {
		one.header = []byte{}
	}
	return one, nil
}

// eraseEntries removes a delivery that was dropped from the outboxes, and of another the
// numbers that none of its events has any more. Then it counts what others wait for again.
func (t *tx) eraseEntries(ctx context.Context, delivery int64, dropped bool) error {
	const ofDelivery = "DELETE FROM outbox_numbers WHERE letter IN (SELECT seq FROM outbox WHERE delivery = $1)"
	queries := []string{ofDelivery + " AND NOT EXISTS (SELECT 1 FROM events e WHERE e.delivery = $1 AND e.folded = outbox_numbers.folded)"}
	if dropped {
		queries = []string{ofDelivery, "DELETE FROM outbox WHERE delivery = $1"}
	}
	removed := int64(0)
	for _, query := range queries {
		n, err := t.exec(ctx, query, delivery)
		if removed += n; err != nil {
			return err
		}
	}
	if removed == 0 {
		return nil
	}
	_, err := t.exec(ctx, `UPDATE outbox SET blocked = (SELECT COUNT(*) FROM outbox_numbers n WHERE n.letter = outbox.seq AND
		EXISTS (SELECT 1 FROM outbox_numbers o WHERE o.sink = n.sink AND o.folded = n.folded AND o.letter < n.letter)) WHERE dead = 0 AND blocked > 0`)
	return err
}
