package store

import (
	"context"
	"maps"
	"slices"
)

// inInput holds for a row r that is in the input of a run n: its own, or before the end of
// its last known range that begins at or before r.
const inInput = `(r.id BETWEEN n.first_row AND n.last_row OR r.id < (SELECT k.row_id + k.rows FROM run_known_rows k
		WHERE k.run_id = n.id AND k.row_id <= r.id ORDER BY k.row_id DESC LIMIT 1))`

// rowMover moves rows between batches, with a few statements for all of them. Until finish
// the rows are where they were, and what the batches count may be wrong.
type rowMover struct {
	t       *tx
	touched map[int64]batch // with the range that their rows lie in at most
	moves   []rowMove
}

type rowMove struct{ row, from, to int64 }

func (t *tx) newRowMover() *rowMover { return &rowMover{t: t, touched: map[int64]batch{}} }

// addSource registers a batch that rows will be moved out of, or were removed from.
func (m *rowMover) addSource(b batch) {
	if _, ok := m.touched[b.id]; !ok {
		m.touched[b.id] = b
	}
}

// moveTo moves a row into another batch. Its state is then that of the batch.
func (m *rowMover) moveTo(row int64, from batch, to int64) {
	m.addSource(from)
	b, ok := m.touched[to]
	if !ok {
		b = batch{id: to, first: row, last: row}
	}
	b.first, b.last = min(b.first, row), max(b.last, row)
	m.touched[to] = b
	m.moves = append(m.moves, rowMove{row, from.id, to})
}

// finish moves the rows, and updates the touched batches. It reads nothing.
func (m *rowMover) finish(ctx context.Context) error {
	if err := m.t.w.sql.moveRows.exec(ctx, m.t, len(m.moves), func(args []any, n int) []any {
		return append(args, m.moves[n].row, m.moves[n].to)
	}); err != nil {
		return err
	}
	pairs := slices.CompactFunc(m.moves, func(a, b rowMove) bool { return a.from == b.from && a.to == b.to })
	if err := m.t.w.sql.shareBatches.exec(ctx, m.t, len(pairs), func(args []any, n int) []any {
		return append(args, pairs[n].from, pairs[n].to)
	}); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(m.touched)) {
		if err := m.t.recount(ctx, m.touched[id]); err != nil {
			return err
		}
	}
	return nil
}

// recount counts a batch's rows, in all and of each input, and removes it if it needs no place any more.
func (t *tx) recount(ctx context.Context, b batch) error {
	if err := t.execAll(ctx, []string{
		`UPDATE batches SET (rows, first_row, last_row) = (
			SELECT COUNT(*), COALESCE(MIN(r.id), 0), COALESCE(MAX(r.id), 0) FROM rows r
			WHERE r.id BETWEEN $1 AND $2 AND r.batch_id = $3) WHERE id = $3`,
		`UPDATE run_batches SET rows = (SELECT COUNT(*) FROM rows r JOIN runs n ON n.id = run_batches.run_id
			WHERE r.id BETWEEN $1 AND $2 AND r.batch_id = $3 AND ` + inInput + ") WHERE batch_id = $3",
	}, b.first, b.last, b.id); err != nil {
		return err
	}
	if _, err := t.exec(ctx, "DELETE FROM run_batches WHERE batch_id = $1 AND rows = 0", b.id); err != nil {
		return err
	}
	return t.cleanUpBatch(ctx, b.id)
}

var scanBatch = scanInto(func(b *batch) []any { return []any{&b.id, &b.first, &b.last, &b.rows} })

// rowsInBatchState returns up to limit rows of a batch that have no state of their own, in order.
func (t *tx) rowsInBatchState(ctx context.Context, b batch, limit int64) ([]int64, error) {
	return list(ctx, t.each, scanOne[int64], `SELECT id FROM rows WHERE id BETWEEN $1 AND $2
		AND batch_id = $3 AND state IS NULL ORDER BY id LIMIT $4`, b.first, b.last, b.id, limit)
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

// rebatcherFor makes batches as large as those of the run's input.
func (t *tx) rebatcherFor(ctx context.Context, run int64) (*rebatcher, error) {
	g := t.newRebatcher(run, 0)
	return g, openRun(ctx, t.row, run, "batch_size", &g.size)
}

func (g *rebatcher) add(ctx context.Context, row int64, from batch) error {
	if g.target == 0 || g.filled == g.size {
		id, err := g.t.addBatch(ctx, g.run, from.id)
		if err != nil {
			return err
		}
		g.target, g.filled = id, 0
	}
	g.filled++
	g.moveTo(row, from, g.target)
	return nil
}

// addBatch adds an empty pending batch to a run, for rows of another one: it was last sent when that was, or never.
func (t *tx) addBatch(ctx context.Context, run, from int64) (int64, error) {
	id, err := t.nextBatch(ctx)
	if err != nil {
		return 0, err
	}
	_, err = t.exec(ctx, `INSERT INTO batches
		(id, run_id, state, rows, first_row, last_row, claimed, began, took, http_status, reason)
		SELECT $1, $2, 'pending', 0, 0, 0, 0, began, took, 0, '' FROM batches WHERE id = $3`, id, run, from)
	return id, err
}

// cleanUpBatch removes a pending batch without rows. One whose rows all have
// states of their own gets one of these, so that it is not claimed.
func (t *tx) cleanUpBatch(ctx context.Context, id int64) error {
	const withStates = "FROM rows r WHERE r.batch_id = batches.id AND r.state IS NOT NULL)"
	return t.execAll(ctx, []string{
		"DELETE FROM batches WHERE id = $1 AND rows = 0 AND state = 'pending'",
		"UPDATE batches SET state = (SELECT MIN(r.state) " + withStates + `
			WHERE id = $1 AND state = 'pending' AND rows = (SELECT COUNT(*) ` + withStates,
	}, id)
}

// adoptAtOnce bounds the batches that one transaction takes rows from.
const adoptAtOnce = 16

// Adopt takes over pending rows of other runs, see [ledger.Queue].
func (d *DB) Adopt(ctx context.Context, run int64, n int) (int64, error) {
	var total int64
	for after := int64(0); total < int64(n); {
		got, err := runFor(ctx, d, func(ctx context.Context, t *tx) (moved, error) {
			return t.adopt(ctx, run, int64(n)-total, after)
		})
		if err != nil || got.last == 0 {
			return total, err
		}
		total, after = total+got.rows, got.last
	}
	return total, nil
}

// moved is what one transaction took out of batches: how many rows, and the last batch, 0 for none.
type moved struct{ rows, last int64 }

// adoptable is a batch that holds rows of the run's input and can be sent.
type adoptable struct {
	batch
	whole bool // all its rows are of the input
}

func (t *tx) adopt(ctx context.Context, run, n, after int64) (all moved, err error) {
	g, err := t.rebatcherFor(ctx, run)
	if err != nil {
		return all, err
	}
	sources, err := list(ctx, t.each, scanInto(func(b *adoptable) []any {
		return []any{&b.id, &b.first, &b.last, &b.rows, &b.whole}
	}), `SELECT b.id, b.first_row, b.last_row, b.rows, p.rows = b.rows FROM run_batches p
		JOIN batches b ON b.id = p.batch_id JOIN runs n ON n.id = b.run_id
		WHERE p.run_id = $1 AND p.batch_id > $2 AND b.run_id <> $1 AND b.state = 'pending'
		AND b.id <> n.filling AND n.state = 'open' ORDER BY p.batch_id LIMIT $3`, run, after, adoptAtOnce)
	if err != nil {
		return all, err
	}
	for _, b := range sources {
		if all.rows >= n {
			break
		}
		got, err := g.adopt(ctx, b, n-all.rows)
		if err != nil {
			return all, err
		}
		all = moved{all.rows + got, b.id}
	}
	t.closing = true
	return all, g.finish(ctx)
}

// adopt takes over a whole batch if it is no larger than the run's own, else up to n of its rows that are in the input.
func (g *rebatcher) adopt(ctx context.Context, b adoptable, n int64) (int64, error) {
	if b.whole && b.rows <= g.size {
		pending, err := value[int64](ctx, g.t.row, `SELECT $1 - COUNT(*) FROM rows r
			WHERE r.batch_id = $2 AND r.state IS NOT NULL`, b.rows, b.id)
		if err == nil {
			_, err = g.t.exec(ctx, "UPDATE batches SET run_id = $1 WHERE id = $2", g.run, b.id)
		}
		return pending, err
	}
	rows, err := list(ctx, g.t.each, scanOne[int64], `SELECT r.id FROM rows r JOIN runs n ON n.id = $1
		WHERE r.id BETWEEN $2 AND $3 AND r.batch_id = $4 AND r.state IS NULL AND `+inInput+`
		ORDER BY r.id LIMIT $5`, g.run, b.first, b.last, b.id, n)
	for _, row := range rows {
		if err == nil {
			err = g.add(ctx, row, b.batch)
		}
	}
	return int64(len(rows)), err
}
