package store

import (
	"context"
	"maps"
	"slices"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// The statements about an outbox. Their keys are entries, but for those of a sink.
var (
	claimEntries   = newKeyStatement[int64]('i', "UPDATE outbox SET owner = ?, attempts = attempts + 1 WHERE seq", "")
	releaseEntries = newKeyStatement[int64]('i', "UPDATE outbox SET owner = '', attempts = attempts - ? WHERE seq", "")
	deleteEntries  = newKeyStatement[int64]('i', "DELETE FROM outbox WHERE seq", "")
	// It is sent unverified if it is not verified, or the sink has not read its release yet.
	selectSettled = newKeyStatement[int64]('i', `SELECT o.seq, o.sink, o.delivery, o.attempts, o.dead <> 0,
		EXISTS (SELECT 1 FROM deliveries d JOIN sinks k ON k.id = o.sink
			WHERE d.seq = o.delivery AND (d.verified <> 'yes' OR d.released > k.released))
		FROM outbox o WHERE (o.owner = ? OR o.dead <> 0) AND o.seq`, "")
	deleteNumbers = newKeyStatement[int64]('i', "DELETE FROM outbox_numbers WHERE letter", " RETURNING folded")

	// Of a sink, by delivery.
	selectWaiting = newKeyStatement[int64]('i', "SELECT delivery, seq FROM outbox WHERE sink = ? AND delivery", "")
	deleteDead    = newKeyStatement[int64]('i', "DELETE FROM outbox WHERE sink = ? AND dead <> 0 AND delivery", "")

	// Of a sink, by number.
	selectHeld = newKeyStatement[string]('t', "SELECT DISTINCT folded FROM outbox_numbers WHERE sink = ? AND folded", "")
	unblock    = newKeyStatement[string]('t', `UPDATE outbox SET blocked = blocked - next.numbers
		FROM (SELECT first.letter, COUNT(*) AS numbers FROM (
			SELECT MIN(letter) AS letter FROM outbox_numbers WHERE sink = ? AND folded`,
		" GROUP BY folded) AS first GROUP BY first.letter) AS next WHERE outbox.seq = next.letter")

	insertEntries = newMultiInsert(`INSERT INTO outbox (sink, delivery, added, due, blocked,
		owner, attempts, failures, first_fail, dead, status, problem, reply)`, "iiiii", "",
		"''", "0", "0", "0", "0", "0", "''", "''")
	insertNumbers  = newMultiInsert("INSERT INTO outbox_numbers (sink, folded, letter)", "iti", "")
	insertAttempts = newMultiInsert(
		"INSERT INTO attempts (delivery, sink, at, attempt, status, micros, sent, unverified)", "iiiiiiii",
		` ON CONFLICT (delivery, sink, at, attempt) DO UPDATE SET status = excluded.status, micros = excluded.micros,
			sent = excluded.sent, unverified = excluded.unverified`)
)

// oldAttempts holds for attempts before the last 20 of their delivery and sink.
const oldAttempts = `at < (SELECT b.at FROM attempts b WHERE b.delivery = attempts.delivery AND b.sink = attempts.sink
	ORDER BY b.at DESC LIMIT 1 OFFSET 19)`

type entryOutcome struct {
	inbox.AttemptOutcome

	entry int64
}

type settledEntry struct {
	*entryOutcome

	sink, delivery, attempts int64
	dead, unverified         bool
}

// SettleEntry records the result of an entry, see [inbox.Outbox]. Results that wait to be
// recorded are recorded together.
func (d *DB) SettleEntry(ctx context.Context, entry int64, o inbox.AttemptOutcome) error {
	d.settling.Add(1)
	defer d.settling.Add(-1)
	s := &entryOutcome{o, entry}
	do := func(ctx context.Context, t *tx) error { return t.settleAll(ctx, []*entryOutcome{s}) }
	return d.fail("write", d.writer.runJob(ctx, &job{settle: s, do: do}))
}

// settleAll records results, as if one after the other.
func (t *tx) settleAll(ctx context.Context, all []*entryOutcome) error {
	for len(all) > 0 {
		some, later := map[int64]*entryOutcome{}, []*entryOutcome(nil)
		for _, s := range all {
			if some[s.entry] == nil {
				some[s.entry] = s
			} else {
				later = append(later, s)
			}
		}
		if err := t.settleEach(ctx, some); err != nil {
			return err
		}
		all = later
	}
	return nil
}

// settleEach records the results of entries that are this process's, or dead.
func (t *tx) settleEach(ctx context.Context, all map[int64]*entryOutcome) error {
	me, err := t.owner(ctx)
	if err != nil {
		return err
	}
	entries, returned := slices.Collect(maps.Keys(all)), map[inbox.Disposition][]int64{}
	done := map[int64][]int64{} // that wait for nothing any more, by sink
	var sent, failed []settledEntry
	var leave []int64
	if err := selectSettled.each(ctx, t, entries, func(row scanner) error {
		var e settledEntry
		var seq int64
		err := row.Scan(&seq, &e.sink, &e.delivery, &e.attempts, &e.dead, &e.unverified)
		e.entryOutcome = all[seq]
		if e.Attempt != 0 && (e.dead || int64(e.Attempt) != e.attempts) {
			return err // it is recorded, without its sender knowing it
		}
		switch e.Disposition {
		case inbox.Returned, inbox.Unbegun:
			returned[e.Disposition] = append(returned[e.Disposition], seq)
			return err
		case inbox.Sent:
			sent, leave = append(sent, e), append(leave, seq)
		default:
			failed = append(failed, e)
		}
		if !e.dead && e.Disposition != inbox.Retry {
			done[e.sink] = append(done[e.sink], seq)
		}
		return err
	}, me); err != nil {
		return err
	}
	for disposition, some := range returned {
		if err := releaseEntries.exec(ctx, t, some, flag(disposition == inbox.Unbegun)); err != nil {
			return err
		}
	}
	if err := t.addAttempts(ctx, append(slices.Clip(sent), failed...)); err != nil {
		return err
	}
	if err := deleteEntries.exec(ctx, t, leave); err != nil {
		return err
	}
	for _, e := range failed {
		if err := t.recordFailure(ctx, e); err != nil {
			return err
		}
	}
	for sink, some := range done {
		if err := t.unblock(ctx, sink, some); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) addAttempts(ctx context.Context, all []settledEntry) error {
	return insertAttempts.exec(ctx, t, len(all), func(args []any, n int) []any {
		e := all[n]
		sent := e.Disposition == inbox.Sent
		// What was given up is sent by an attempt that nobody has counted yet.
		return append(args, e.delivery, e.sink, millis(e.Now), e.attempts+flag(e.dead), e.Status, e.Took.Microseconds(),
			flag(sent), flag(sent && e.unverified))
	})
}

// recordFailure records in the outbox that an attempt failed. A dead entry stays dead.
func (t *tx) recordFailure(ctx context.Context, e settledEntry) error {
	if e.dead { // nothing else bounds how often it is tried
		const remove = "DELETE FROM attempts WHERE " + oldAttempts + " AND sink = $1 AND delivery = $2"
		if _, err := t.exec(ctx, remove, e.sink, e.delivery); err != nil {
			return err
		}
	}
	died := int64(0)
	if e.Disposition == inbox.GivenUp || e.dead {
		died = max(millis(e.Now), 1)
	}
	reply := append([]byte{}, e.Reply...) // never nil, which is NULL
	_, err := t.exec(ctx, `UPDATE outbox SET owner = '', due = $1, failures = failures + 1,
		first_fail = CASE first_fail WHEN 0 THEN $2 ELSE first_fail END,
		dead = $3, status = $4, problem = $5, reply = $6 WHERE seq = $7`,
		millis(e.Due), millis(e.Now), died, e.Status, clean(e.Problem), reply, e.entry)
	return err
}

func (t *tx) unblock(ctx context.Context, sink int64, entries []int64) error {
	var numbers []string
	if err := deleteNumbers.each(ctx, t, entries, func(s scanner) error {
		number, err := scanOne[string](s)
		numbers = append(numbers, number)
		return err
	}); err != nil {
		return err
	}
	return unblock.exec(ctx, t, numbers, sink)
}
