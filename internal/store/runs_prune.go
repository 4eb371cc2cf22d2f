package store

import (
	"context"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// PruneRuns removes old runs, see [ledger.History].
func (d *DB) PruneRuns(ctx context.Context, before time.Time) (ledger.PrunedRuns, error) {
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
			pruned, err = runFor(ctx, d, func(ctx context.Context, t *tx) (bool, error) { return t.pruneRun(ctx, o.id) })
		}
		switch {
		case err != nil:
		case pruned:
			p.Runs++
		default:
			p.Unfinished++
		}
	}
	if err == nil {
		err = d.dropParts(ctx, func(part) {}, d.engine.Parts.DropAnswers)
	}
	return p, d.fail("lock", err)
}

// pruneRun removes a run whose rows all have a definite outcome, and reports
// whether it did. Its line stays, hidden, as far as rows and batches need it.
func (t *tx) pruneRun(ctx context.Context, run int64) (bool, error) {
	c, err := countRows(ctx, t.each, run, 0)
	if err != nil || c.Pending+c.Sending+c.Unknown > 0 {
		return false, err
	}
	if t.w.engine.Parts.DropAnswers == "" { // else they go at the end
		if _, err := t.exec(ctx, "DELETE FROM batch_answers WHERE batch_id IN (SELECT id FROM batches WHERE run_id = $1)", run); err != nil {
			return false, err
		}
	}
	err = t.execAll(ctx, []string{
		"DELETE FROM run_known_rows WHERE run_id = $1",
		"DELETE FROM repeats WHERE run_id = $1",
		"DELETE FROM run_batches WHERE run_id = $1",
		"DELETE FROM batches WHERE run_id = $1 AND rows = 0",
		"DELETE FROM runs WHERE id = $1 AND new_rows = 0 AND NOT EXISTS (SELECT 1 FROM batches WHERE run_id = $1)",
		"UPDATE runs SET state = 'pruned', owner = '', files = '[]' WHERE id = $1",
	}, run)
	return err == nil, err
}
