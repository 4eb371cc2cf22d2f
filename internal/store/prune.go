package store

import (
	"context"
	"math"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// pruneAtOnce is how many deliveries one transaction prunes; other writers wait for it.
const pruneAtOnce = 500

// pruneAfter is how long a delivery that a sink has not read yet is kept whole. Without that limit, a sink that is
// never opened again would keep everything.
const pruneAfter = 24 * time.Hour

// UnverifiedBytes returns the size of what is kept of unverified deliveries, see [inbox.Retention].
func (d *DB) UnverifiedBytes(ctx context.Context) (int64, error) {
	var n, rows int64
	r := d.reader()
	r.row(ctx, []any{&n, &rows}, `SELECT
		(SELECT COALESCE(SUM(length(body) + length(header) + length(path) + length(raw_query)), 0)
			FROM deliveries WHERE verified <> 'yes' AND body IS NOT NULL),
		(SELECT COUNT(*) FROM events WHERE verified <> 'yes')`)
	return n + rows*inbox.RowBytes, r.err
}

// Prune drops the bytes of old deliveries, see [inbox.Retention].
func (d *DB) Prune(ctx context.Context, before time.Time) (inbox.PruneResult, error) {
	var p inbox.PruneResult
	r := d.reader()
	for after := int64(-1); ; {
		// The last one of the next portion.
		last := value[int64](ctx, r, `SELECT COALESCE(MAX(seq), 0) FROM (SELECT seq FROM deliveries
			WHERE seq > $1 AND body IS NOT NULL AND received < $2 ORDER BY seq LIMIT $3) AS old`,
			after, millis(before), pruneAtOnce)
		if last == 0 {
			break
		}
		var some inbox.PruneResult
		some, r.err = runFor(ctx, d, func(ctx context.Context, t *tx) inbox.PruneResult {
			return t.prune(ctx, before, after, last)
		})
		after = last
		p.Deliveries += some.Deliveries
		p.Bytes += some.Bytes
		p.Waiting += some.Waiting
	}
	if r.err == nil {
		p.Refused, r.err = d.exec(ctx, "DELETE FROM refused WHERE received < $1", millis(before))
	}
	if r.err != nil {
		return p, r.err
	}
	p.Dead, r.err = d.exec(ctx, `DELETE FROM outbox WHERE dead <> 0 AND EXISTS (SELECT 1 FROM deliveries d
		WHERE d.seq = outbox.delivery AND d.body IS NULL AND d.received < $1)`, millis(before))
	return p, r.err
}

// prunableSince returns the time since which deliveries that a sink has not read yet are kept whole.
func prunableSince() int64 { return millis(time.Now().Add(-pruneAfter)) }

// isQueuedOrUnread holds for a delivery d that is in an outbox, or that arrived at $2 or later while a sink has not
// read it, or its release, yet.
const isQueuedOrUnread = `(EXISTS (
	SELECT 1 FROM sinks k JOIN outbox o ON o.sink = k.id AND o.delivery = d.seq AND o.dead = 0) OR d.received >= $2 AND
	EXISTS (SELECT 1 FROM sinks k WHERE k.passed < d.seq OR k.released < d.released))`

// ofOld holds for deliveries that have bytes, arrived before $1, and have a number in ($3, $4].
const ofOld = "body IS NOT NULL AND received < $1 AND seq > $3 AND seq <= $4"

// countOld counts old deliveries with bytes in (after, last], separately for those that a sink waits for.
func countOld(ctx context.Context, q querier, before, since, after, last int64) (p inbox.PruneResult) {
	q.each(ctx, func(s scanner) error {
		var waits bool
		var n, bytes int64
		err := s.Scan(&waits, &n, &bytes)
		if waits {
			p.Waiting = n
		} else {
			p.Deliveries, p.Bytes = n, bytes
		}
		return err
	}, "SELECT waits, COUNT(*), SUM(bytes) FROM (SELECT "+isQueuedOrUnread+` AS waits, length(body) + length(header) +
		CASE WHEN verified = 'yes' THEN 0 ELSE length(path) + length(raw_query) END AS bytes
		FROM deliveries d WHERE `+ofOld+") AS old GROUP BY waits", before, since, after, last)
	return p
}

// prune drops what no sink waits for, and unverified events, but not the last event, so that no number is reused.
func (t *tx) prune(ctx context.Context, before time.Time, after, last int64) inbox.PruneResult {
	since := prunableSince()
	p := countOld(ctx, t, millis(before), since, after, last)
	const which = ofOld + " AND NOT " + isQueuedOrUnread
	const of = "delivery IN (SELECT seq FROM deliveries d WHERE " + which + ")"
	t.execAll(ctx, []string{
		"DELETE FROM events WHERE verified <> 'yes' AND seq < (SELECT MAX(seq) FROM events) AND " + of,
		"DELETE FROM attempts WHERE sent = 0 AND " + of,
	}, millis(before), since, after, last)
	t.exec(ctx, `UPDATE deliveries AS d SET body = NULL, header = $5,
		path = CASE WHEN verified = 'yes' THEN path ELSE $5 END,
		raw_query = CASE WHEN verified = 'yes' THEN raw_query ELSE $5 END WHERE `+which,
		millis(before), since, after, last, []byte{})
	return p
}

// PrunePlan is what pruning everything before a given time would remove.
type PrunePlan struct {
	Runs  ledger.PrunedRuns
	Inbox inbox.PruneResult
}

// PlanPrune returns what PruneRuns and Prune would remove now. It writes nothing.
func (d *DB) PlanPrune(ctx context.Context, before time.Time) (PrunePlan, error) {
	var p PrunePlan
	r := d.reader()
	p.Runs = r.eachOldRun(ctx, before, func(run int64) bool { return hasEnded(ctx, r, run) })
	p.Inbox = countOld(ctx, r, millis(before), prunableSince(), 0, math.MaxInt64)
	p.Inbox.Refused = value[int64](ctx, r, "SELECT COUNT(*) FROM refused WHERE received < $1", millis(before))
	r.row(ctx, []any{&p.Inbox.Dead}, `SELECT COUNT(*) FROM outbox w JOIN deliveries d ON d.seq = w.delivery
		WHERE w.dead <> 0 AND d.received < $1 AND (d.body IS NULL OR NOT `+isQueuedOrUnread+")",
		millis(before), prunableSince())
	return p, r.err
}

// PruneRuns removes old runs, see [ledger.History].
func (d *DB) PruneRuns(ctx context.Context, before time.Time) (ledger.PrunedRuns, error) {
	r := d.reader()
	p := r.eachOldRun(ctx, before, func(run int64) (pruned bool) {
		pruned, r.err = runFor(ctx, d, func(ctx context.Context, t *tx) bool { return t.pruneRun(ctx, run) })
		return pruned
	})
	if r.err == nil && p.Runs > 0 {
		_, r.err = d.exec(ctx, "DELETE FROM tracking_counts WHERE trackings = 0")
	}
	return p, r.err
}

// eachOldRun calls prune for each run created before that time that no living process works on, and counts the
// results.
func (r *reader) eachOldRun(ctx context.Context, before time.Time, prune func(int64) bool) (p ledger.PrunedRuns) {
	runs := list(ctx, r, scanOwnedRun,
		"SELECT id, owner FROM runs WHERE state = 'open' AND created < $1 ORDER BY id", millis(before))
	for _, o := range runs {
		alive := r.isAlive(ctx, o.owner)
		pruned := r.err == nil && !alive && prune(o.id)
		switch {
		case r.err != nil:
		case pruned:
			p.Runs++
		default:
			p.Unfinished++
		}
	}
	return p
}

// pruneRun removes a run whose rows all have a definite outcome, and reports whether it did. Its row in table runs
// stays, hidden, if rows or batches need it.
func (t *tx) pruneRun(ctx context.Context, run int64) bool {
	if !hasEnded(ctx, t, run) {
		return false
	}
	t.execAll(ctx, []string{
		"DELETE FROM run_known_rows WHERE run_id = $1",
		"DELETE FROM run_batches WHERE run_id = $1",
		"DELETE FROM batches WHERE run_id = $1 AND rows = 0",
		"UPDATE batches SET answer = NULL, cut = 0 WHERE run_id = $1 AND answer IS NOT NULL",
		"DELETE FROM runs WHERE id = $1 AND new_rows = 0 AND NOT EXISTS (SELECT 1 FROM batches WHERE run_id = $1)",
		"UPDATE runs SET state = 'pruned', owner = '', files = '[]' WHERE id = $1",
	}, run)
	return true
}

// hasEnded reports whether all rows of a run have a definite outcome.
func hasEnded(ctx context.Context, q querier, run int64) bool {
	c := countRows(ctx, q, run)[run].all
	return c.Pending+c.Sending+c.Unknown == 0
}
