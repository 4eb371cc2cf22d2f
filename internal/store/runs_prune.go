package store

import (
	"context"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// PruneRuns removes old runs, see [ledger.History].
func (d *DB) PruneRuns(ctx context.Context, before time.Time) (ledger.PrunedRuns, error) {
	p, err := d.eachOldRun(ctx, before, func(run int64) (bool, error) {
		return runFor(ctx, d, func(ctx context.Context, t *tx) (bool, error) { return t.pruneRun(ctx, run) })
	})
	if err == nil {
		err = d.dropParts(ctx, func(part) {}, d.engine.Parts.DropAnswers)
	}
	if err == nil && p.Runs > 0 {
		err = d.run(ctx, func(ctx context.Context, t *tx) error {
			_, err := t.exec(ctx, "DELETE FROM tracking_counts WHERE trackings = 0")
			return err
		})
	}
	return p, d.fail("lock", err)
}

// eachOldRun calls prune for every run from before that time that no living process
// works on, and counts how many it pruned.
func (d *DB) eachOldRun(ctx context.Context, before time.Time, prune func(run int64) (bool, error)) (ledger.PrunedRuns, error) {
	type old struct {
		id    int64
		owner string
	}
	runs, err := list(ctx, d.each, func(s scanner) (o old, err error) {
		err = s.Scan(&o.id, &o.owner)
		return o, err
	}, "SELECT id, owner FROM runs WHERE state = 'open' AND created < $1 ORDER BY id", millis(before))
	var p ledger.PrunedRuns
	for _, o := range runs {
		if err != nil {
			break
		}
		var alive, pruned bool
		if alive, err = d.isAlive(ctx, o.owner); err == nil && !alive {
			pruned, err = prune(o.id)
		}
		switch {
		case err != nil:
		case pruned:
			p.Runs++
		default:
			p.Unfinished++
		}
	}
	return p, err
}

// pruneRun removes a run whose rows all have a definite outcome, and reports
// whether it did. Its line stays, hidden, as far as rows and batches need it.
func (t *tx) pruneRun(ctx context.Context, run int64) (bool, error) {
	if ended, err := hasEnded(ctx, t.each, run); !ended || err != nil {
		return false, err
	}
	if t.w.engine.Parts.DropAnswers == "" { // else they go at the end
		if _, err := t.exec(ctx, "DELETE FROM batch_answers WHERE batch_id IN (SELECT id FROM batches WHERE run_id = $1)", run); err != nil {
			return false, err
		}
	}
	err := t.execAll(ctx, []string{
		"DELETE FROM run_known_rows WHERE run_id = $1",
		"DELETE FROM repeats WHERE run_id = $1",
		"DELETE FROM run_batches WHERE run_id = $1",
		"DELETE FROM batches WHERE run_id = $1 AND rows = 0",
		"DELETE FROM runs WHERE id = $1 AND new_rows = 0 AND NOT EXISTS (SELECT 1 FROM batches WHERE run_id = $1)",
		"UPDATE runs SET state = 'pruned', owner = '', files = '[]' WHERE id = $1",
	}, run)
	return err == nil, err
}

// hasEnded reports whether all rows of a run have a definite outcome.
func hasEnded(ctx context.Context, ask querier, run int64) (bool, error) {
	c, err := countRowsOf(ctx, ask, 0, run)
	return err == nil && c.Pending+c.Sending+c.Unknown == 0, err
}
