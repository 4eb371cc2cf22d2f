package store

import (
	"context"
	"fmt"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// OpenSink returns a sink, created if needed, see [inbox.Outbox].
func (d *DB) OpenSink(ctx context.Context, key inbox.SinkKey, from *inbox.StartPosition) (inbox.Sink, error) {
	if err := checkText("name", key.Name, "URL", key.URL, "filter", key.Filter); err != nil {
		return inbox.Sink{}, err
	}
	var s inbox.Sink
	err := d.run(ctx, func(ctx context.Context, t *tx) {
		known := t.row(ctx, []any{&s.ID}, "SELECT id FROM sinks WHERE name = $1 AND url = $2 AND filter = $3",
			key.Name, key.URL, key.Filter)
		s.New = !known
		if known && from == nil {
			return
		}
		at := t.startOf(ctx, from)
		if known {
			const behind = "sink = $1 AND delivery > $2"
			t.execAll(ctx, []string{
				"UPDATE attempts SET unverified = 0 WHERE " + behind,
				"DELETE FROM attempts WHERE " + oldAttempts + " AND " + behind,
			}, s.ID, at.passed)
			t.setCursor(ctx, s.ID, at)
			return
		}
		s.ID = value[int64](ctx, t, `INSERT INTO sinks (name, url, filter, passed, released)
			VALUES ($1, $2, $3, $4, $5) RETURNING id`, key.Name, key.URL, key.Filter, at.passed, at.released)
	})
	if err != nil {
		return inbox.Sink{}, err
	}
	r := d.reader()
	r.require(r.row(ctx, sinkDest(&s), selectSink+"WHERE id = $1", s.ID), noSink(s.ID))
	return s, r.err
}

// cursor is how far a sink has read: the number of a delivery, and the number of a release. A delivery that becomes
// verified after it was stored gets the next release number.
type cursor struct{ passed, released int64 }

const lastReleased = "(SELECT COALESCE(MAX(released), 0) FROM deliveries WHERE released > 0)"

// startOf returns the cursor of a sink that starts at from; nil means now.
func (t *tx) startOf(ctx context.Context, from *inbox.StartPosition) (at cursor) {
	t.row(ctx, []any{&at.passed, &at.released},
		"SELECT (SELECT COALESCE(MAX(seq), 0) FROM deliveries), "+lastReleased)
	if from == nil {
		return at
	}
	first := value[int64](ctx, t, `SELECT COALESCE(MIN(seq), $1) FROM deliveries
		WHERE seq >= $2 AND received >= $3`, at.passed+1, from.Delivery, millis(from.Since))
	at.passed = first - 1
	return at
}

func (t *tx) setCursor(ctx context.Context, sink int64, at cursor) {
	n := t.exec(ctx, "UPDATE sinks SET passed = $1, released = $2 WHERE id = $3", at.passed, at.released, sink)
	t.require(n > 0, noSink(sink))
}

const selectSink = `SELECT id, name, url, filter, passed,
	(SELECT COUNT(*) FROM deliveries WHERE seq > passed),
	(SELECT COUNT(*) FROM outbox WHERE sink = id AND dead = 0),
	(SELECT COUNT(*) FROM outbox WHERE sink = id AND dead <> 0),
	(SELECT COALESCE(MIN(added), 0) FROM outbox WHERE sink = id AND dead = 0) FROM sinks `

func sinkDest(k *inbox.Sink) []any {
	return []any{&k.ID, &k.Name, &k.URL, &k.Filter, &k.Cursor, &k.Unread, &k.Waiting, &k.Dead, (*storedTime)(&k.Oldest)}
}

func noSink(id int64) error { return fmt.Errorf("%w: %d", inbox.ErrNoSink, id) }

// Sinks returns all sinks, see [inbox.Outbox].
func (d *DB) Sinks(ctx context.Context) ([]inbox.Sink, error) {
	return readFor(d, func(r *reader) []inbox.Sink {
		return list(ctx, r, scanInto(sinkDest), selectSink+"ORDER BY id")
	})
}

// SkipBacklog removes the waiting entries of a sink, see [inbox.Outbox].
func (d *DB) SkipBacklog(ctx context.Context, sink int64) (int64, error) {
	return runFor(ctx, d, func(ctx context.Context, t *tx) int64 {
		t.setCursor(ctx, sink, t.startOf(ctx, nil))
		t.releaseDeadClaims(ctx, sink)
		// Entries being sent are not blocked, and block none that stay.
		t.exec(ctx, `DELETE FROM outbox_numbers WHERE sink = $1 AND
			entry IN (SELECT seq FROM outbox WHERE sink = $1 AND owner = '' AND dead = 0)`, sink)
		return t.exec(ctx, "DELETE FROM outbox WHERE sink = $1 AND owner = '' AND dead = 0", sink)
	})
}

// ForgetSink removes a sink, see [inbox.Outbox].
func (d *DB) ForgetSink(ctx context.Context, sink int64) error {
	return d.run(ctx, func(ctx context.Context, t *tx) {
		for _, table := range []string{"outbox_numbers", "outbox", "attempts"} {
			t.exec(ctx, "DELETE FROM "+table+" WHERE sink = $1", sink)
		}
		t.require(t.exec(ctx, "DELETE FROM sinks WHERE id = $1", sink) > 0, noSink(sink))
	})
}

// eventFilter reports whether a sink accepts a delivery with these events.
type eventFilter = func([]inbox.Event) bool

// Advance advances a sink's cursor, see [inbox.Outbox].
func (d *DB) Advance(ctx context.Context, sink int64, n int, accepts eventFilter) (inbox.Progress, error) {
	for {
		r := d.reader()
		step := r.planStep(ctx, sink, n, accepts)
		if r.err != nil || step.to == step.from {
			return inbox.Progress{}, r.err
		}
		moved, err := runFor(ctx, d, func(ctx context.Context, t *tx) bool { return t.applyStep(ctx, sink, step) })
		if err != nil {
			return inbox.Progress{}, err
		}
		if moved {
			p := inbox.Progress{Read: len(step.read)}
			for _, a := range step.accepted {
				p.Queued = append(p.Queued, a.delivery)
			}
			return p, nil
		}
	}
}

// cursorStep is the next step of a sink's cursor.
type cursorStep struct {
	from, to cursor
	read     []int64 // numbers of deliveries
	accepted []acceptedDelivery
}

type acceptedDelivery struct {
	delivery int64
	numbers  []string // folded, each once
}

// planStep reads the next deliveries and calls accepts. Deliveries that became verified after the cursor had passed
// them come first, unless they were sent unverified. It reads beyond the cursor only when none of these is left, so
// that a delivery released later is known to have been passed unverified.
func (r *reader) planStep(ctx context.Context, sink int64, n int, accepts eventFilter) (s cursorStep) {
	known := r.row(ctx, []any{&s.from.passed, &s.from.released, &s.to.released},
		"SELECT passed, released, "+lastReleased+" FROM sinks WHERE id = $1", sink)
	r.require(known, noSink(sink))
	var last int64
	read := func(row scanner) error {
		var delivery int64
		err := row.Scan(&delivery, &last)
		s.read = append(s.read, delivery)
		return err
	}
	r.each(ctx, read, `SELECT seq, released FROM deliveries d
		WHERE released > $1 AND released > 0 AND released <= $2 AND seq <= $3 AND
		NOT EXISTS (SELECT 1 FROM attempts u WHERE u.delivery = d.seq AND u.sink = $4 AND u.unverified = 1)
		ORDER BY released LIMIT $5`, s.from.released, s.to.released, s.from.passed, sink, n)
	if len(s.read) == n {
		s.to.released = last
	}
	last = s.from.passed
	const behind = "SELECT seq, seq FROM deliveries WHERE seq > $1 ORDER BY seq LIMIT $2"
	r.each(ctx, read, behind, s.from.passed, n-len(s.read))
	s.to.passed = last
	s.accepted = r.matchDeliveries(ctx, s.read, accepts)
	return s
}

func (r *reader) matchDeliveries(ctx context.Context, seqs []int64, accepts eventFilter) (accepted []acceptedDelivery) {
	found := map[int64][]eventRow{}
	r.each(ctx, func(s scanner) error {
		e, err := scanEventRow(s)
		found[e.Delivery] = append(found[e.Delivery], e)
		return err
	}, eventsWithBodies+"WHERE delivery IN "+idList(seqs)+" ORDER BY seq")
	for _, delivery := range seqs {
		bodies := bodyReader{reader: r}
		var rows []inbox.Event
		for _, row := range found[delivery] {
			if row.Anomaly != inbox.Erased {
				bodies.fill(ctx, &row.Event, row.body)
				rows = append(rows, row.Event)
			}
		}
		if r.err == nil && len(rows) > 0 && accepts(rows) {
			accepted = append(accepted, acceptedDelivery{delivery, numbersOf(rows)})
		}
	}
	return accepted
}

// numbersOf returns the folded tracking numbers of events, each once.
func numbersOf(rows []inbox.Event) (numbers []string) {
	seen := map[string]bool{"": true}
	for _, e := range rows {
		if n := foldKey(e.TrackingNumber); !seen[n] {
			seen[n] = true
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// applyStep stores a step, unless the cursor has moved or a passed delivery was released meanwhile.
func (t *tx) applyStep(ctx context.Context, sink int64, s cursorStep) bool {
	moved := t.exec(ctx, `UPDATE sinks SET passed = $1, released = $2 WHERE id = $3 AND passed = $4 AND released = $5
		AND NOT EXISTS (SELECT 1 FROM deliveries d
			WHERE d.released > $2 AND d.released > 0 AND +d.seq > $4 AND +d.seq <= $1)`,
		s.to.passed, s.to.released, sink, s.from.passed, s.from.released)
	if moved > 0 {
		t.addEntries(ctx, sink, s.accepted, millis(time.Now()))
	}
	return moved > 0
}
