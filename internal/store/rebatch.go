package store

import (
	"context"
	"maps"
	"slices"
)

// inInput holds for a row r that is in the input of a run n: its own, or before the end of
// its last known range that begins at or before r.
const inInput = `(r.id BETWEEN n.first_row AND n.last_row OR
	r.id < (SELECT k.row_id + k.rows FROM run_known_rows k WHERE k.run_id = n.id AND k.row_id <= r.id ORDER BY k.row_id DESC LIMIT 1))`

// rowMover moves rows between batches. Until finish the counts and ranges of the
// batches it touched are wrong.
type rowMover struct {
	t       *tx
	touched map[int64]batch // with the range that their rows lie in at most
	runs    []int64         // whose input has rows in one of them
}

func (t *tx) newRowMover() *rowMover { return &rowMover{t: t, touched: map[int64]batch{}} }

// addSource registers a batch that rows will be moved out of.
func (m *rowMover) addSource(ctx context.Context, b batch) error {
	if _, ok := m.touched[b.id]; ok {
		return nil
	}
	m.touched[b.id] = b
	return m.t.each(ctx, func(s scanner) error {
		var run int64
		err := s.Scan(&run)
		if !slices.Contains(m.runs, run) {
			m.runs = append(m.runs, run)
		}
		return err
	}, "SELECT run_id FROM run_batches WHERE batch_id = $1", b.id)
}

// moveTo moves a row into a batch. Its state is then that of the batch.
func (m *rowMover) moveTo(ctx context.Context, row int64, to int64) error {
	b, ok := m.touched[to]
	if !ok {
		b = batch{id: to, first: row, last: row}
	}
	b.first, b.last = min(b.first, row), max(b.last, row)
	m.touched[to] = b
	_, err := m.t.exec(ctx, "UPDATE rows SET batch_id = $1, state = NULL, reason = NULL WHERE id = $2", to, row)
	return err
}

// finish updates the touched batches.
func (m *rowMover) finish(ctx context.Context) error {
	for _, id := range slices.Sorted(maps.Keys(m.touched)) {
		b := m.touched[id]
		if _, err := m.t.row(ctx, []any{&b.rows, &b.first, &b.last}, `SELECT COUNT(*), COALESCE(MIN(id), 0), COALESCE(MAX(id), 0)
			FROM rows WHERE id BETWEEN $1 AND $2 AND batch_id = $3`, b.first, b.last, id); err != nil {
			return err
		}
		if _, err := m.t.exec(ctx, "UPDATE batches SET rows = $1, first_row = $2, last_row = $3 WHERE id = $4", b.rows, b.first, b.last, id); err != nil {
			return err
		}
		for _, run := range m.runs {
			if err := m.t.countRunBatch(ctx, run, b); err != nil {
				return err
			}
		}
		if err := m.t.cleanUpBatch(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// countRunBatch counts the rows of a run's input in a batch.
func (t *tx) countRunBatch(ctx context.Context, run int64, b batch) error {
	var rows int64
	if b.rows > 0 {
		if _, err := t.row(ctx, []any{&rows}, "SELECT COUNT(*) FROM rows r JOIN runs n ON n.id = $1 WHERE r.id BETWEEN $2 AND $3 AND r.batch_id = $4 AND "+inInput,
			run, b.first, b.last, b.id); err != nil {
			return err
		}
	}
	if rows == 0 {
		_, err := t.exec(ctx, "DELETE FROM run_batches WHERE run_id = $1 AND batch_id = $2", run, b.id)
		return err
	}
	_, err := t.exec(ctx, `INSERT INTO run_batches (run_id, batch_id, rows) VALUES ($1, $2, $3)
		ON CONFLICT (run_id, batch_id) DO UPDATE SET rows = excluded.rows`, run, b.id, rows)
	return err
}

// scanBatch reads the id, the first and the last row, and the number of rows of a
// batch.
func scanBatch(s scanner) (b batch, err error) {
	err = s.Scan(&b.id, &b.first, &b.last, &b.rows)
	return b, err
}

// rowsInBatchState returns up to limit rows of a batch that have no state of their own, in
// order.
func (t *tx) rowsInBatchState(ctx context.Context, b batch, limit int64) ([]int64, error) {
	return list(ctx, t.each, scanOne[int64], "SELECT id FROM rows WHERE id BETWEEN $1 AND $2 AND batch_id = $3 AND state IS NULL ORDER BY id LIMIT $4", b.first, b.last, b.id, limit)
}

// rebatcher moves rows into new pending batches of a run, each of up to size rows.
type rebatcher struct {
	*rowMover
	run, size int64
	target    int64 // the batch being filled
	filled    int64 // rows in it
}

func (t *tx) newRebatcher(run, size int64) *rebatcher {
	return &rebatcher{rowMover: t.newRowMover(), run: run, size: size}
}

// add moves a row out of a batch.
func (g *rebatcher) add(ctx context.Context, row int64, from batch) error {
	if err := g.addSource(ctx, from); err != nil {
		return err
	}
	if g.target == 0 || g.filled == g.size {
		id, err := g.t.addBatch(ctx, g.run, from.id)
		if err != nil {
			return err
		}
		g.target, g.filled = id, 0
	}
	g.filled++
	return g.moveTo(ctx, row, g.target)
}

// addBatch adds an empty pending batch to a run, for rows of another one: it was last sent
// when that was, or never.
func (t *tx) addBatch(ctx context.Context, run, from int64) (int64, error) {
	id, err := t.nextBatch(ctx)
	if err != nil {
		return 0, err
	}
	_, err = t.exec(ctx, `INSERT INTO batches (id, run_id, state, rows, first_row, last_row, claimed, began, took, http_status, reason)
		SELECT $1, $2, 'pending', 0, 0, 0, 0, began, took, 0, '' FROM batches WHERE id = $3`, id, run, from)
	return id, err
}

// batchSize returns how many rows a full batch of the run has.
func (t *tx) batchSize(ctx context.Context, run int64) (int64, error) {
	var size int64
	ok, err := t.row(ctx, []any{&size}, "SELECT batch_size FROM runs WHERE id = $1 AND state = 'open'", run)
	if err == nil && !ok {
		err = noRun(run)
	}
	return size, err
}

// cleanUpBatch removes a pending batch without rows. One whose rows all have
// states of their own gets one of these, so that it is not claimed.
func (t *tx) cleanUpBatch(ctx context.Context, id int64) error {
	return t.execAll(ctx, []string{
		"DELETE FROM batches WHERE id = $1 AND rows = 0 AND state = 'pending'",
		"DELETE FROM batch_answers WHERE batch_id = $1 AND NOT EXISTS (SELECT 1 FROM batches WHERE id = $1)",
		`UPDATE batches SET state = (SELECT MIN(r.state) FROM rows r WHERE r.batch_id = batches.id AND r.state IS NOT NULL)
			WHERE id = $1 AND state = 'pending' AND rows = (SELECT COUNT(*) FROM rows r WHERE r.batch_id = batches.id AND r.state IS NOT NULL)`,
	}, id)
}
