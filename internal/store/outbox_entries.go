package store

import (
	"context"
	"iter"
	"math"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// addEntry adds a delivery to an outbox, unless it waits there already. It
// replaces a dead entry.
func (t *tx) addEntry(ctx context.Context, sink int64, p passedDelivery, now int64) error {
	if _, err := t.exec(ctx, "DELETE FROM outbox WHERE sink = $1 AND delivery = $2 AND dead <> 0", sink, p.delivery); err != nil {
		return err
	}
	var blocked int64
	for _, n := range p.numbers {
		var held int64
		if _, err := t.row(ctx, []any{&held}, "SELECT COUNT(*) FROM (SELECT 1 FROM outbox_numbers WHERE sink = $1 AND folded = $2 LIMIT 1) AS one", sink, n); err != nil {
			return err
		}
		blocked += held
	}
	var entry int64
	added, err := t.row(ctx, []any{&entry}, `INSERT INTO outbox (sink, delivery, added, blocked, owner, due, attempts, failures, first_fail, dead, status, problem, reply)
		VALUES ($1, $2, $3, $4, '', $3, 0, 0, 0, 0, 0, '', '') ON CONFLICT DO NOTHING RETURNING seq`, sink, p.delivery, now, blocked)
	if err != nil || !added {
		return err
	}
	for _, n := range p.numbers {
		if _, err := t.exec(ctx, "INSERT INTO outbox_numbers (sink, folded, letter) VALUES ($1, $2, $3)", sink, n, entry); err != nil {
			return err
		}
	}
	return nil
}

const (
	entryColumns   = "seq, sink, delivery, owner, added, attempts, failures, first_fail, dead, status, problem, reply"
	selectEntry    = "SELECT " + entryColumns + " FROM outbox "
	whereUnclaimed = "WHERE sink = $1 AND blocked = 0 AND owner = '' AND dead = 0 "
)

func scanOutboxEntry(s scanner) (inbox.OutboxEntry, error) { return scanEntry(s) }

// scanEntry reads a row of selectEntry, and what follows in it into more.
func scanEntry(s scanner, more ...any) (inbox.OutboxEntry, error) {
	var l inbox.OutboxEntry
	var added, firstFail, dead int64
	err := s.Scan(append([]any{&l.ID, &l.Sink, &l.Delivery, &l.Owner, &added, &l.Attempt, &l.Failures, &firstFail, &dead, &l.Status, &l.Problem, &l.Reply}, more...)...)
	l.Added, l.FirstFailure, l.GivenUpAt = instant(added), instant(firstFail), instant(dead)
	return l, err
}

// ClaimEntries returns entries that are due, see [inbox.Outbox].
func (d *DB) ClaimEntries(ctx context.Context, sink int64, n int, now time.Time) ([]inbox.OutboxEntry, time.Time, error) {
	var entries []inbox.OutboxEntry
	some, next, err := d.mayClaim(ctx, sink, now)
	if err != nil || !some {
		return nil, instant(next), err
	}
	err = d.run(ctx, func(ctx context.Context, t *tx) error {
		me, err := t.owner(ctx)
		if err != nil {
			return err
		}
		if err := t.releaseDeadClaims(ctx, sink); err != nil {
			return err
		}
		if entries, err = t.dueEntries(ctx, sink, math.MinInt64, millis(now), n); err == nil && len(entries) == 0 {
			entries, err = t.dueEntries(ctx, sink, millis(now.Add(inbox.MaxRetryDelay)), math.MaxInt64, n)
		}
		if err != nil {
			return err
		}
		for i := range entries {
			entries[i].Owner = me
			entries[i].Attempt++
			if _, err := t.exec(ctx, "UPDATE outbox SET owner = $1, attempts = attempts + 1 WHERE seq = $2", me, entries[i].ID); err != nil {
				return err
			}
		}
		_, err = t.row(ctx, []any{&next}, "SELECT COALESCE(MIN(due), 0) FROM outbox "+whereUnclaimed, sink)
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	return entries, instant(next), nil
}

// mayClaim reports whether an entry is due, or one is claimed, whose owner may be dead;
// and when the next one is due, 0 for never. It spares a sink that has nothing to do a
// transaction each time it asks.
func (d *DB) mayClaim(ctx context.Context, sink int64, now time.Time) (some bool, next int64, err error) {
	var due, claimed int64
	_, err = d.row(ctx, []any{&due, &claimed, &next}, `SELECT
		(SELECT COUNT(*) FROM (SELECT 1 FROM outbox `+whereUnclaimed+`AND (due <= $2 OR due > $3) LIMIT 1) AS d),
		(SELECT COUNT(*) FROM (SELECT 1 FROM outbox WHERE sink = $1 AND owner <> '' LIMIT 1) AS c),
		(SELECT COALESCE(MIN(due), 0) FROM outbox `+whereUnclaimed+`)`, sink, millis(now), millis(now.Add(inbox.MaxRetryDelay)))
	return due+claimed > 0, next, err
}

// dueEntries returns up to n unclaimed entries, due later than after and not
// later than until.
func (t *tx) dueEntries(ctx context.Context, sink, after, until int64, n int) ([]inbox.OutboxEntry, error) {
	return list(ctx, t.each, scanOutboxEntry, selectEntry+whereUnclaimed+"AND due > $2 AND due <= $3 ORDER BY due, seq LIMIT $4", sink, after, until, n)
}

// releaseDeadClaims releases the entries that dead processes had claimed.
func (t *tx) releaseDeadClaims(ctx context.Context, sink int64) error {
	owners, err := list(ctx, t.each, scanOne[string], "SELECT DISTINCT owner FROM outbox WHERE sink = $1 AND owner <> ''", sink)
	if err != nil {
		return err
	}
	for _, name := range owners {
		dead, err := t.fence(ctx, name)
		if err == nil && dead {
			_, err = t.exec(ctx, "UPDATE outbox SET owner = '' WHERE sink = $1 AND owner = $2", sink, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SettleEntry records the result of an entry, see [inbox.Outbox].
func (d *DB) SettleEntry(ctx context.Context, entry int64, o inbox.Settlement) error {
	return d.run(ctx, func(ctx context.Context, t *tx) error {
		me, err := t.owner(ctx)
		if err != nil {
			return err
		}
		var sink int64
		var dead bool
		ours, err := t.row(ctx, []any{&sink, &dead}, "SELECT sink, dead <> 0 FROM outbox WHERE seq = $1 AND (owner = $2 OR dead <> 0)", entry, me)
		if err != nil || !ours {
			return err
		}
		if o.Disposition == inbox.Returned {
			_, err := t.exec(ctx, "UPDATE outbox SET owner = '' WHERE seq = $1", entry)
			return err
		}
		if o.Disposition == inbox.Sent {
			err = t.removeSent(ctx, entry, o)
		} else {
			err = t.recordFailure(ctx, entry, dead, o)
		}
		if err != nil || dead || o.Disposition == inbox.Retry {
			return err
		}
		return t.unblock(ctx, sink, entry)
	})
}

// removeSent removes an entry that was sent, and records that. It records that it
// was sent unverified if its delivery is not verified, or its release was not read by the
// sink yet.
func (t *tx) removeSent(ctx context.Context, entry int64, o inbox.Settlement) error {
	// What was given up is sent by an attempt that nobody has counted yet.
	if _, err := t.exec(ctx, `INSERT INTO forwarded (delivery, sink, attempts, sent, status)
		SELECT delivery, sink, attempts + CASE WHEN dead <> 0 THEN 1 ELSE 0 END, $1, $2 FROM outbox WHERE seq = $3
		ON CONFLICT (delivery, sink) DO UPDATE SET attempts = forwarded.attempts + excluded.attempts, sent = excluded.sent, status = excluded.status`,
		millis(o.Now), o.Status, entry); err != nil {
		return err
	}
	_, err := t.exec(ctx, `INSERT INTO sent_unverified (sink, delivery) SELECT o.sink, o.delivery FROM outbox o JOIN deliveries d ON d.seq = o.delivery
		WHERE o.seq = $1 AND (d.verified <> 'yes' OR EXISTS (
			SELECT 1 FROM sinks k JOIN released r ON r.seq > k.released WHERE k.id = o.sink AND r.delivery = o.delivery)) ON CONFLICT DO NOTHING`, entry)
	if err == nil {
		_, err = t.exec(ctx, "DELETE FROM outbox WHERE seq = $1", entry)
	}
	return err
}

// recordFailure records a failed attempt. A dead entry stays dead.
func (t *tx) recordFailure(ctx context.Context, entry int64, dead bool, o inbox.Settlement) error {
	died := int64(0)
	if o.Disposition == inbox.GivenUp || dead {
		died = max(millis(o.Now), 1)
	}
	reply := o.Reply
	if reply == nil {
		reply = []byte{}
	}
	_, err := t.exec(ctx, `UPDATE outbox SET owner = '', due = $1, failures = failures + 1, first_fail = CASE first_fail WHEN 0 THEN $2 ELSE first_fail END,
		dead = $3, status = $4, problem = $5, reply = $6 WHERE seq = $7`,
		millis(o.Due), millis(o.Now), died, o.Status, clean(o.Problem), reply, entry)
	return err
}

// unblock unblocks the entries that waited for an entry.
func (t *tx) unblock(ctx context.Context, sink, entry int64) error {
	numbers, err := list(ctx, t.each, scanOne[string], "SELECT folded FROM outbox_numbers WHERE letter = $1", entry)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if _, err := t.exec(ctx, "DELETE FROM outbox_numbers WHERE sink = $1 AND folded = $2 AND letter = $3", sink, n, entry); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `UPDATE outbox SET blocked = blocked - 1
			WHERE seq = (SELECT MIN(letter) FROM outbox_numbers WHERE sink = $1 AND folded = $2)`, sink, n); err != nil {
			return err
		}
	}
	return nil
}

// EntryOf returns a sink's entry for a delivery, see [inbox.Outbox].
func (d *DB) EntryOf(ctx context.Context, sink, delivery int64) (*inbox.OutboxEntry, bool, error) {
	at, err := d.cursorOf(ctx, sink) // first: what it has passed by now is in the outbox by then
	if err != nil {
		return nil, false, err
	}
	found, err := list(ctx, d.each, scanOutboxEntry, selectEntry+"WHERE sink = $1 AND delivery = $2", sink, delivery)
	if err != nil || len(found) == 0 {
		return nil, at.passed >= delivery, err
	}
	return &found[0], false, nil
}

// DeadEntries yields the entries that were given up, see [inbox.Outbox].
func (d *DB) DeadEntries(ctx context.Context) iter.Seq2[inbox.OutboxEntry, error] {
	return func(yield func(inbox.OutboxEntry, error) bool) {
		last := int64(math.MinInt64)
		for {
			page, err := list(ctx, d.each, scanOutboxEntry, selectEntry+"WHERE dead <> 0 AND seq > $1 ORDER BY seq LIMIT $2", last, pageRows)
			if err != nil {
				yield(inbox.OutboxEntry{}, err)
				return
			}
			for _, l := range page {
				if !yield(l, nil) {
					return
				}
				last = l.ID
			}
			if len(page) < pageRows {
				return
			}
		}
	}
}
