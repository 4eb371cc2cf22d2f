package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// reasonDied is why the rows of a dead process's batches are unknown.
const reasonDied = "the process that sent it ended before the answer was on disk"

// Claim moves batches to sending and returns them, see [ledger.Store].
func (d *DB) Claim(ctx context.Context, run int64, n int) ([]ledger.Batch, error) {
	me, err := d.owner.get()
	if err != nil {
		return nil, d.fail("lock", err)
	}
	var batches []ledger.Batch
	err = d.run(ctx, func(ctx context.Context, t *tx) error {
		if err := d.workOn(ctx, t, run, me); err != nil {
			return err
		}
		var err error
		batches, err = t.claim(ctx, run, n, me)
		return err
	})
	if err != nil {
		return nil, err
	}
	return batches, nil
}

// workOn notes that this process works on the run, unless another living one
// does so already.
func (d *DB) workOn(ctx context.Context, t *tx, run int64, me string) error {
	var owner string
	ok, err := t.row(ctx, []any{&owner}, "SELECT owner FROM runs WHERE id = $1 AND state = 'open'", run)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %d", ledger.ErrNoRun, run)
	}
	if err != nil || owner == me {
		return err
	}
	if alive, err := d.owner.lives(owner); alive || err != nil {
		return err
	}
	_, err = t.exec(ctx, "UPDATE runs SET owner = $1 WHERE id = $2", me, run)
	return err
}

func (t *tx) claim(ctx context.Context, run int64, n int, me string) ([]ledger.Batch, error) {
	var claimed []batch
	if err := t.each(ctx, func(s scanner) error {
		var b batch
		err := s.Scan(&b.id, &b.first, &b.last, &b.rows)
		claimed = append(claimed, b)
		return err
	}, `UPDATE batches SET state = 'sending', owner = $1, claimed = $2
		WHERE id IN (SELECT id FROM batches WHERE run_id = $3 AND state = 'pending' ORDER BY id LIMIT $4)
		RETURNING id, first_row, last_row, rows`, me, millis(time.Now()), run, n); err != nil {
		return nil, err
	}
	slices.SortFunc(claimed, func(a, b batch) int { return cmp.Compare(a.id, b.id) })
	batches := make([]ledger.Batch, len(claimed))
	for i, b := range claimed {
		batches[i] = ledger.Batch{ID: b.id, Rows: make([]ledger.BatchRow, 0, b.rows)}
		if err := t.each(ctx, func(s scanner) error {
			var r ledger.BatchRow
			err := s.Scan(&r.ID, &r.Item.ReferID, &r.Item.Number, &r.Item.CarrierCode)
			batches[i].Rows = append(batches[i].Rows, r)
			return err
		}, `SELECT id, refer_id, number, carrier FROM rows
			WHERE id BETWEEN $1 AND $2 AND batch_id = $3 AND state IS NULL ORDER BY id`, b.first, b.last, b.id); err != nil {
			return nil, err
		}
	}
	return batches, nil
}

// Recover makes unknown what dead processes were sending, see [ledger.Store].
func (d *DB) Recover(ctx context.Context) (int64, error) {
	var owners []string
	if err := d.each(ctx, func(s scanner) error {
		var o string
		err := s.Scan(&o)
		owners = append(owners, o)
		return err
	}, "SELECT DISTINCT owner FROM batches WHERE state = 'sending'"); err != nil {
		return 0, err
	}
	var total int64
	for _, o := range owners {
		alive, err := d.owner.lives(o)
		if err != nil {
			return total, d.fail("lock", err)
		}
		if alive {
			continue
		}
		var rows int64
		if err := d.run(ctx, func(ctx context.Context, t *tx) error {
			var err error
			rows, err = t.bury(ctx, o)
			return err
		}); err != nil {
			return total, err
		}
		total += rows
	}
	return total, nil
}

// bury makes unknown what that owner was sending, and returns the number of
// rows. Each batch counts as one request, for it may have been sent.
func (t *tx) bury(ctx context.Context, owner string) (int64, error) {
	var rows int64
	if _, err := t.row(ctx, []any{&rows}, `SELECT COALESCE(SUM(b.rows - (SELECT COUNT(*) FROM rows r WHERE r.batch_id = b.id AND r.state IS NOT NULL)), 0)
		FROM batches b WHERE b.state = 'sending' AND b.owner = $1`, owner); err != nil {
		return 0, err
	}
	if _, err := t.exec(ctx, `UPDATE runs SET
			requests = requests + (SELECT COUNT(*) FROM batches b WHERE b.run_id = runs.id AND b.state = 'sending' AND b.owner = $1),
			last_sent = (SELECT COALESCE(MAX(s), 0) FROM (SELECT last_sent AS s UNION ALL
				SELECT b.claimed FROM batches b WHERE b.run_id = runs.id AND b.state = 'sending' AND b.owner = $1) AS times)
		WHERE id IN (SELECT run_id FROM batches WHERE state = 'sending' AND owner = $1)`, owner); err != nil {
		return 0, err
	}
	_, err := t.exec(ctx, `UPDATE batches SET state = 'unknown', owner = NULL, began = claimed, took = 0, http_status = 0, reason = $1
		WHERE state = 'sending' AND owner = $2`, reasonDied, owner)
	return rows, err
}
