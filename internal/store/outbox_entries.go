package store

import (
	"context"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// addEntries adds the deliveries that are not waiting in the outbox yet. It replaces dead entries.
func (t *tx) addEntries(ctx context.Context, sink int64, all []acceptedDelivery, now int64) {
	var deliveries []int64
	var numbers []string
	for _, p := range all {
		deliveries, numbers = append(deliveries, p.delivery), append(numbers, p.numbers...)
	}
	deleteDead.exec(ctx, t, deliveries, sink)
	entries := t.entriesFor(ctx, sink, deliveries)
	queued := map[string]bool{}
	selectQueued.each(ctx, t, numbers, func(s scanner) error {
		number, err := scanOne[string](s)
		queued[number] = true
		return err
	}, sink)
	type named struct {
		delivery int64
		number   string
	}
	var added []acceptedDelivery
	var blocked []int64
	var of []named // names of the added entries
	for _, p := range all {
		if _, waits := entries[p.delivery]; waits {
			continue
		}
		entries[p.delivery] = 0
		added, blocked = append(added, p), append(blocked, 0)
		for _, n := range p.numbers {
			blocked[len(blocked)-1] += flag(queued[n])
			queued[n] = true
			of = append(of, named{p.delivery, n})
		}
	}
	insertEntries.exec(ctx, t, len(added), func(args []any, n int) []any {
		return append(args, sink, added[n].delivery, now, now, blocked[n])
	})
	entries = t.entriesFor(ctx, sink, deliveries)
	insertNumbers.exec(ctx, t, len(of), func(args []any, n int) []any {
		return append(args, sink, of[n].number, entries[of[n].delivery])
	})
}

// entriesFor returns a sink's entries for deliveries, by delivery.
func (t *tx) entriesFor(ctx context.Context, sink int64, deliveries []int64) map[int64]int64 {
	entries := map[int64]int64{}
	selectWaiting.each(ctx, t, deliveries, func(s scanner) error {
		var delivery, entry int64
		err := s.Scan(&delivery, &entry)
		entries[delivery] = entry
		return err
	}, sink)
	return entries
}

const (
	entryColumns   = "seq, sink, delivery, owner, added, attempts, failures, first_fail, dead, status, problem, reply, due"
	whereUnclaimed = "WHERE sink = $1 AND blocked = 0 AND owner = '' AND dead = 0 "
)

// scanEntry scans entryColumns.
func scanEntry(s scanner) (w inbox.WaitingEntry, err error) {
	err = s.Scan(&w.ID, &w.Sink, &w.Delivery, &w.Owner, (*storedTime)(&w.Added), &w.Attempt, &w.Failures,
		(*storedTime)(&w.FirstFailure), (*storedTime)(&w.GivenUpAt), &w.Status, &w.Problem, &w.Reply, (*storedTime)(&w.Due))
	return w, err
}

// entryClaims is the state of this process's claims on the entries of a sink.
type entryClaims struct {
	mu      sync.Mutex      // held while claiming
	backlog bool            // more entries were due than the last call claimed
	unsure  []*entryOutcome // releases what failed calls may have claimed: nobody sends it
}

func (d *DB) claimsOf(sink int64) *entryClaims {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.claims[sink] == nil {
		d.claims[sink] = &entryClaims{}
	}
	return d.claims[sink]
}

// ClaimEntries returns entries that are due, see [inbox.Outbox].
func (d *DB) ClaimEntries(
	ctx context.Context, sink int64, n int, now time.Time,
) (entries []inbox.OutboxEntry, next time.Time, err error) {
	claims := d.claimsOf(sink)
	claims.mu.Lock()
	defer claims.mu.Unlock()
	backlog := claims.backlog
	claims.backlog = false
	// A transaction that is about to run may free entries.
	if !backlog && d.recording.Load() == 0 {
		r := d.reader()
		if some, next := r.mayClaim(ctx, sink, now); !some {
			return nil, next, r.err
		}
	}
	err = d.run(ctx, func(ctx context.Context, t *tx) {
		t.recordAttempts(ctx, claims.unsure)
		entries, next = t.claimEntries(ctx, sink, n, now)
	})
	if err != nil {
		for _, e := range entries {
			unbegun := inbox.AttemptOutcome{Disposition: inbox.Unbegun}
			claims.unsure = append(claims.unsure, &entryOutcome{unbegun, e.ID})
		}
		return nil, time.Time{}, err
	}
	claims.backlog, claims.unsure = !next.IsZero() && !next.After(now), nil
	return entries, next, nil
}

// claimEntries claims up to n due entries. It also returns when the next one is due, zero if never.
func (t *tx) claimEntries(
	ctx context.Context, sink int64, n int, now time.Time,
) (entries []inbox.OutboxEntry, next time.Time) {
	me := t.owner()
	t.releaseDeadClaims(ctx, sink)
	entries, next = t.dueEntries(ctx, sink, math.MinInt64, millis(now), n)
	if len(entries) == 0 {
		entries, _ = t.dueEntries(ctx, sink, millis(now.Add(inbox.MaxRetryDelay)), math.MaxInt64, n)
	}
	var claimed []int64
	for i := range entries {
		entries[i].Owner = me
		entries[i].Attempt++
		claimed = append(claimed, entries[i].ID)
	}
	claimEntries.exec(ctx, t, claimed, me)
	if next.IsZero() {
		t.row(ctx, []any{(*storedTime)(&next)}, "SELECT COALESCE(MIN(due), 0) FROM outbox "+whereUnclaimed, sink)
	}
	return entries, next
}

// mayClaim reports whether an entry is due, or is claimed by an owner that may be dead, and when the next one is due,
// zero if never. It saves an idle sink a transaction per call.
func (r *reader) mayClaim(ctx context.Context, sink int64, now time.Time) (some bool, next time.Time) {
	var due, claimed int64
	found := r.row(ctx, []any{&due, &claimed, (*storedTime)(&next)}, `SELECT
		(SELECT COUNT(*) FROM (SELECT 1 FROM outbox `+whereUnclaimed+`AND (due <= $2 OR due > $3) LIMIT 1) AS d),
		(SELECT COUNT(*) FROM (SELECT 1 FROM outbox WHERE sink = $1 AND owner <> '' LIMIT 1) AS c),
		(SELECT COALESCE(MIN(due), 0) FROM outbox `+whereUnclaimed+")",
		sink, millis(now), millis(now.Add(inbox.MaxRetryDelay)))
	return found && due+claimed > 0, next
}

// dueEntries returns up to n unclaimed entries due in (after, until], and when one more is due, zero if none.
func (t *tx) dueEntries(
	ctx context.Context, sink, after, until int64, n int,
) (entries []inbox.OutboxEntry, next time.Time) {
	due := list(ctx, t, scanEntry, "SELECT "+entryColumns+" FROM outbox "+whereUnclaimed+
		"AND due > $2 AND due <= $3 ORDER BY due, seq LIMIT $4", sink, after, until, n+1)
	for i, e := range due {
		if i == n {
			next = e.Due
			break
		}
		entries = append(entries, e.OutboxEntry)
	}
	return entries, next
}

func (t *tx) releaseDeadClaims(ctx context.Context, sink int64) {
	const claiming = "SELECT DISTINCT owner FROM outbox WHERE sink = $1 AND owner <> ''"
	for _, name := range list(ctx, t, scanOne[string], claiming, sink) {
		if t.fence(ctx, name) {
			t.exec(ctx, "UPDATE outbox SET owner = '' WHERE sink = $1 AND owner = $2", sink, name)
		}
	}
}

// DeadEntries yields the entries that were given up, see [inbox.Outbox].
func (d *DB) DeadEntries(ctx context.Context) iter.Seq2[inbox.OutboxEntry, error] {
	return inPages(d, 0, pageRows, func(r *reader, last inbox.OutboxEntry, n int) []inbox.OutboxEntry {
		return list(ctx, r, func(s scanner) (inbox.OutboxEntry, error) {
			w, err := scanEntry(s)
			return w.OutboxEntry, err
		}, "SELECT "+entryColumns+" FROM outbox WHERE dead <> 0 AND seq > $1 ORDER BY seq LIMIT $2", last.ID, n)
	})
}

// Statements on outboxes. The first ones select entries by their numbers.
var (
	claimEntries   = newKeyStatement[int64]('i', "UPDATE outbox SET owner = ?, attempts = attempts + 1 WHERE seq", "")
	releaseEntries = newKeyStatement[int64]('i', "UPDATE outbox SET owner = '', attempts = attempts - ? WHERE seq", "")
	deleteEntries  = newKeyStatement[int64]('i', "DELETE FROM outbox WHERE seq", "")
	// An entry is sent unverified if its delivery is not verified, or the sink has not read its release yet.
	selectAttempted = newKeyStatement[int64]('i', `SELECT o.seq, o.sink, o.delivery, o.attempts, o.dead <> 0,
		EXISTS (SELECT 1 FROM deliveries d JOIN sinks k ON k.id = o.sink
			WHERE d.seq = o.delivery AND (d.verified <> 'yes' OR d.released > k.released))
		FROM outbox o WHERE (o.owner = ? OR o.dead <> 0) AND o.seq`, "")
	deleteNumbers = newKeyStatement[int64]('i', "DELETE FROM outbox_numbers WHERE entry", " RETURNING folded")

	// By sink and delivery.
	selectWaiting = newKeyStatement[int64]('i', "SELECT delivery, seq FROM outbox WHERE sink = ? AND delivery", "")
	deleteDead    = newKeyStatement[int64]('i', "DELETE FROM outbox WHERE sink = ? AND dead <> 0 AND delivery", "")

	// By sink and tracking number.
	selectQueued = newKeyStatement[string]('t', "SELECT DISTINCT folded FROM outbox_numbers WHERE sink = ? AND folded", "")
	unblock      = newKeyStatement[string]('t', `UPDATE outbox SET blocked = blocked - next.numbers
		FROM (SELECT first.entry, COUNT(*) AS numbers FROM (
			SELECT MIN(entry) AS entry FROM outbox_numbers WHERE sink = ? AND folded`,
		" GROUP BY folded) AS first GROUP BY first.entry) AS next WHERE outbox.seq = next.entry")

	insertEntries = newMultiInsert(`INSERT INTO outbox (sink, delivery, added, due, blocked,
		owner, attempts, failures, first_fail, dead, status, problem, reply)`, "iiiii", "",
		"''", "0", "0", "0", "0", "0", "''", "''")
	insertNumbers  = newMultiInsert("INSERT INTO outbox_numbers (sink, folded, entry)", "iti", "")
	insertAttempts = newMultiInsert(
		"INSERT INTO attempts (delivery, sink, at, attempt, status, micros, sent, unverified)", "iiiiiiii",
		` ON CONFLICT (delivery, sink, at, attempt) DO UPDATE SET status = excluded.status, micros = excluded.micros,
			sent = excluded.sent, unverified = excluded.unverified`)
)

// oldAttempts holds for attempts older than the last 20 of their delivery and sink.
const oldAttempts = `at < (SELECT b.at FROM attempts b WHERE b.delivery = attempts.delivery AND b.sink = attempts.sink
	ORDER BY b.at DESC LIMIT 1 OFFSET 19)`

type entryOutcome struct {
	inbox.AttemptOutcome

	entry int64
}

type attemptedEntry struct {
	*entryOutcome

	sink, delivery, attempts int64
	dead, unverified         bool
}

// RecordAttempt records the outcome of an attempt, see [inbox.Outbox]. Outcomes that are waiting are recorded together.
func (d *DB) RecordAttempt(ctx context.Context, entry int64, o inbox.AttemptOutcome) error {
	d.recording.Add(1)
	defer d.recording.Add(-1)
	s := &entryOutcome{o, entry}
	do := func(ctx context.Context, t *tx) { t.recordAttempts(ctx, []*entryOutcome{s}) }
	return d.fail("write", d.writer.runJob(ctx, &job{attempt: s, do: do}))
}

// recordAttempts records outcomes, with the same result as one after the other.
func (t *tx) recordAttempts(ctx context.Context, all []*entryOutcome) {
	for len(all) > 0 {
		some, later := map[int64]*entryOutcome{}, []*entryOutcome(nil)
		for _, s := range all {
			if some[s.entry] == nil {
				some[s.entry] = s
			} else {
				later = append(later, s)
			}
		}
		t.recordEach(ctx, some)
		all = later
	}
}

// recordEach records the outcomes of entries that this process has claimed, or that are dead.
func (t *tx) recordEach(ctx context.Context, all map[int64]*entryOutcome) {
	me := t.owner()
	entries, returned := slices.Collect(maps.Keys(all)), map[inbox.Disposition][]int64{}
	done := map[int64][]int64{} // entries that no longer wait, by sink
	var sent, failed []attemptedEntry
	var leave []int64
	selectAttempted.each(ctx, t, entries, func(row scanner) error {
		var e attemptedEntry
		var seq int64
		err := row.Scan(&seq, &e.sink, &e.delivery, &e.attempts, &e.dead, &e.unverified)
		e.entryOutcome = all[seq]
		if e.Attempt != 0 && (e.dead || int64(e.Attempt) != e.attempts) {
			return err // already recorded, though its sender does not know
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
	}, me)
	for disposition, some := range returned {
		releaseEntries.exec(ctx, t, some, flag(disposition == inbox.Unbegun))
	}
	t.addAttempts(ctx, append(slices.Clip(sent), failed...))
	deleteEntries.exec(ctx, t, leave)
	for _, e := range failed {
		t.recordFailure(ctx, e)
	}
	for sink, some := range done {
		t.unblock(ctx, sink, some)
	}
}

func (t *tx) addAttempts(ctx context.Context, all []attemptedEntry) {
	insertAttempts.exec(ctx, t, len(all), func(args []any, n int) []any {
		e := all[n]
		sent := e.Disposition == inbox.Sent
		// An attempt to send a dead entry was not counted by a claim.
		return append(args, e.delivery, e.sink, millis(e.Now), e.attempts+flag(e.dead), e.Status, e.Took.Microseconds(),
			flag(sent), flag(sent && e.unverified))
	})
}

// recordFailure records a failed attempt in the outbox. A dead entry stays dead.
func (t *tx) recordFailure(ctx context.Context, e attemptedEntry) {
	if e.dead { // nothing else limits its number of attempts
		const remove = "DELETE FROM attempts WHERE " + oldAttempts + " AND sink = $1 AND delivery = $2"
		t.exec(ctx, remove, e.sink, e.delivery)
	}
	died := int64(0)
	if e.Disposition == inbox.GivenUp || e.dead {
		died = max(millis(e.Now), 1)
	}
	reply := append([]byte{}, e.Reply...) // never nil, which is NULL
	t.exec(ctx, `UPDATE outbox SET owner = '', due = $1, failures = failures + 1,
		first_fail = CASE first_fail WHEN 0 THEN $2 ELSE first_fail END,
		dead = $3, status = $4, problem = $5, reply = $6 WHERE seq = $7`,
		millis(e.Due), millis(e.Now), died, e.Status, clean(e.Problem), reply, e.entry)
}

func (t *tx) unblock(ctx context.Context, sink int64, entries []int64) {
	var numbers []string
	deleteNumbers.each(ctx, t, entries, func(s scanner) error {
		number, err := scanOne[string](s)
		numbers = append(numbers, number)
		return err
	})
	unblock.exec(ctx, t, numbers, sink)
}
