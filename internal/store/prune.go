package store

import (
	"cmp"
	"context"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// pruneAtOnce is how many deliveries one transaction prunes: others wait for it.
const pruneAtOnce = 500

// pruneAfter is how long a delivery that a sink has not read yet is kept whole.
// A sink that is never opened again would keep everything.
const pruneAfter = 24 * time.Hour

// UnverifiedBytes returns how much is kept of unverified deliveries, see
// [inbox.Retention].
func (d *DB) UnverifiedBytes(ctx context.Context) (int64, error) {
	var n int64
	_, err := d.row(ctx, []any{&n}, cmp.Or(d.engine.Parts.UnverifiedBytes,
		"SELECT COALESCE(SUM(length(body) + length(header)), 0) FROM deliveries WHERE verified <> 'yes' AND body IS NOT NULL"))
	return n, err
}

// part is one that a statement of [Parts] was about.
type part struct {
	first, last int64
	dropped     bool
	rows, bytes int64
}

// dropParts calls do for each part that a statement of [Parts] is about, in the order of
// their numbers. Each takes a transaction of its own.
func (d *DB) dropParts(ctx context.Context, do func(part), query string, args ...any) error {
	if query == "" {
		return nil
	}
	for after := int64(-1); ; {
		p, err := runFor(ctx, d, func(ctx context.Context, t *tx) (*part, error) {
			var p part
			found, err := t.row(ctx, []any{&p.first, &p.last, &p.dropped, &p.rows, &p.bytes}, query, append([]any{after}, args...)...)
			if !found {
				return nil, err
			}
			return &p, err
		})
		if p == nil || err != nil {
			return err
		}
		do(*p)
		after = p.last
	}
}

// Prune drops the bytes of old deliveries, see [inbox.Retention].
func (d *DB) Prune(ctx context.Context, before time.Time) (inbox.PruneResult, error) {
	var p inbox.PruneResult
	kept := int64(-1) // where what is not dropped whole begins
	if err := d.dropParts(ctx, func(one part) {
		switch {
		case one.dropped:
			p.Deliveries, p.Bytes = p.Deliveries+one.rows, p.Bytes+one.bytes
		case kept < 0:
			kept = one.first
		}
	}, d.engine.Parts.DropBodies, millis(before), millis(time.Now().Add(-pruneAfter))); err != nil {
		return p, err
	}
	for after := kept - 1; ; {
		seqs, err := list(ctx, d.each, scanOne[int64], "SELECT seq FROM deliveries WHERE seq > $1 AND body IS NOT NULL AND received < $2 ORDER BY seq LIMIT $3",
			after, millis(before), pruneAtOnce)
		if err != nil {
			return p, err
		}
		if len(seqs) == 0 {
			break
		}
		some, err := runFor(ctx, d, func(ctx context.Context, t *tx) (inbox.PruneResult, error) { return t.prune(ctx, seqs) })
		if err != nil {
			return p, err
		}
		after = seqs[len(seqs)-1]
		p.Deliveries += some.Deliveries
		p.Bytes += some.Bytes
		p.Waiting += some.Waiting
	}
	var refused, dead int64
	err := d.run(ctx, func(ctx context.Context, t *tx) (err error) {
		if refused, err = t.exec(ctx, "DELETE FROM refused WHERE received < $1", millis(before)); err != nil {
			return err
		}
		dead, err = t.exec(ctx, `DELETE FROM outbox WHERE dead <> 0 AND
			EXISTS (SELECT 1 FROM deliveries d WHERE d.seq = outbox.delivery AND d.body IS NULL AND d.received < $1)`, millis(before))
		return err
	})
	if err == nil {
		p.Refused, p.Dead = refused, dead
	}
	return p, err
}

// prunableSince is the time from which a delivery that a sink has not read yet is kept whole.
func prunableSince() int64 { return millis(time.Now().Add(-pruneAfter)) }

// isQueuedOrUnread says that a delivery d is in an outbox; or that it came at $2 or
// later and a sink has not read it yet, or its release.
const isQueuedOrUnread = `(EXISTS (SELECT 1 FROM sinks k JOIN outbox o ON o.sink = k.id AND o.delivery = d.seq AND o.dead = 0) OR d.received >= $2 AND
	(EXISTS (SELECT 1 FROM sinks k WHERE k.passed < d.seq) OR EXISTS (SELECT 1 FROM sinks k JOIN released r ON r.seq > k.released AND r.delivery = d.seq)))`

// prune drops the bytes of those deliveries that no sink waits for.
func (t *tx) prune(ctx context.Context, seqs []int64) (inbox.PruneResult, error) {
	var p inbox.PruneResult
	since := prunableSince()
	for _, seq := range seqs {
		var bytes int64
		var waits bool
		there, err := t.row(ctx, []any{&bytes, &waits}, "SELECT length(body) + length(header), "+isQueuedOrUnread+" FROM deliveries d WHERE seq = $1 AND body IS NOT NULL", seq, since)
		switch {
		case err != nil:
			return p, err
		case !there: // somebody else was faster
		case waits:
			p.Waiting++
		default:
			if _, err := t.exec(ctx, "UPDATE deliveries SET body = NULL, header = $1 WHERE seq = $2", []byte{}, seq); err != nil {
				return p, err
			}
			p.Deliveries++
			p.Bytes += bytes
		}
	}
	return p, nil
}
