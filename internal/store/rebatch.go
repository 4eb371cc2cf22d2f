package store

import (
	"context"
	"maps"
	"slices"
)

// inInput holds for a row r in the input of a run n: either it is a row of the run, or it lies before the end of the
// run's last known range that begins at or before r.
const inInput = `(r.id BETWEEN n.first_row AND n.last_row OR r.id < (SELECT k.row_id + k.rows FROM run_known_rows k
		WHERE k.run_id = n.id AND k.row_id <= r.id ORDER BY k.row_id DESC LIMIT 1))`

// rebatcher moves rows into new pending batches of a run, each of up to size rows, with a few statements for all rows.
// Until finish, no row is moved and the counts of batches may be wrong.
type rebatcher struct {
	t         *tx
	run, size int64
	added     []int64         // new batches; the last one is being filled
	filled    int64           // rows in the last one
	touched   map[int64]batch // with a range that contains all of their rows
	moves     []rowMove
}

type rowMove struct{ row, from, to int64 }

func (t *tx) newRebatcher(run, size int64) *rebatcher {
	return &rebatcher{t: t, run: run, size: size, touched: map[int64]batch{}}
}

// rebatcherFor returns a rebatcher with the batch size of the run.
func (t *tx) rebatcherFor(ctx context.Context, run int64) *rebatcher {
	g := t.newRebatcher(run, 0)
	openRun(ctx, t, run, "batch_size", &g.size)
	return g
}

// addSource registers a batch that rows will be moved out of, or were removed from.
func (g *rebatcher) addSource(b batch) {
	if _, ok := g.touched[b.id]; !ok {
		g.touched[b.id] = b
	}
}

// move moves rows out of a batch. They then have the state of the new batch.
func (g *rebatcher) move(ctx context.Context, from batch, rows ...int64) {
	for _, row := range rows {
		if len(g.added) == 0 || g.filled == g.size {
			id := g.t.addBatch(ctx, g.run, from.id)
			g.added, g.filled = append(g.added, id), 0
			g.touched[id] = batch{id: id, first: row, last: row}
		}
		g.filled++
		g.addSource(from)
		to := g.touched[g.added[len(g.added)-1]]
		to.first, to.last = min(to.first, row), max(to.last, row)
		g.touched[to.id] = to
		g.moves = append(g.moves, rowMove{row, from.id, to.id})
	}
}

var (
	moveRows = newMultiInsert("WITH given (id, target) AS (", "ii", `)
		UPDATE rows SET batch_id = given.target, state = NULL, reason = NULL, dismissed = NULL
		FROM given WHERE rows.id = given.id`)
	shareBatches = newMultiInsert("WITH given (source, target) AS (", "ii", `)
		INSERT INTO run_batches (run_id, batch_id, rows) SELECT p.run_id, given.target, 0
		FROM given JOIN run_batches p ON p.batch_id = given.source WHERE TRUE ON CONFLICT DO NOTHING`)
)

// finish moves the rows, and updates the touched batches. It reads nothing.
func (g *rebatcher) finish(ctx context.Context) {
	moveRows.exec(ctx, g.t, len(g.moves), func(args []any, n int) []any {
		return append(args, g.moves[n].row, g.moves[n].to)
	})
	pairs := slices.CompactFunc(g.moves, func(a, b rowMove) bool { return a.from == b.from && a.to == b.to })
	shareBatches.exec(ctx, g.t, len(pairs), func(args []any, n int) []any {
		return append(args, pairs[n].from, pairs[n].to)
	})
	for _, id := range slices.Sorted(maps.Keys(g.touched)) {
		g.t.recount(ctx, g.touched[id])
	}
}

// recount counts a batch's rows, in total and per input, and removes the batch if it is no longer needed.
func (t *tx) recount(ctx context.Context, b batch) {
	t.execAll(ctx, []string{
		`UPDATE batches SET (rows, first_row, last_row) = (
			SELECT COUNT(*), COALESCE(MIN(r.id), 0), COALESCE(MAX(r.id), 0) FROM rows r
			WHERE r.id BETWEEN $1 AND $2 AND r.batch_id = $3) WHERE id = $3`,
		`UPDATE run_batches SET rows = (SELECT COUNT(*) FROM rows r JOIN runs n ON n.id = run_batches.run_id
			WHERE r.id BETWEEN $1 AND $2 AND r.batch_id = $3 AND ` + inInput + ") WHERE batch_id = $3",
	}, b.first, b.last, b.id)
	t.exec(ctx, "DELETE FROM run_batches WHERE batch_id = $1 AND rows = 0", b.id)
	t.cleanUpBatch(ctx, b.id)
}

// rowsInBatchState returns the rows of a batch that have no state of their own, in order.
func (t *tx) rowsInBatchState(ctx context.Context, b batch) []int64 {
	return list(ctx, t, scanOne[int64], `SELECT id FROM rows WHERE id BETWEEN $1 AND $2
		AND batch_id = $3 AND state IS NULL ORDER BY id`, b.first, b.last, b.id)
}

// addBatch adds an empty pending batch to a run, for rows of batch from, whose time of sending it takes over.
func (t *tx) addBatch(ctx context.Context, run, from int64) int64 {
	id := t.nextBatch(ctx)
	t.exec(ctx, `INSERT INTO batches
		(id, run_id, state, rows, first_row, last_row, claimed, began, took, http_status, reason)
		SELECT $1, $2, 'pending', 0, 0, 0, 0, began, took, 0, '' FROM batches WHERE id = $3`, id, run, from)
	return id
}

// cleanUpBatch removes a pending batch without rows. If all of its rows have states of their own, the batch gets one
// of these, so that it is not claimed.
func (t *tx) cleanUpBatch(ctx context.Context, id int64) {
	const withStates = "FROM rows r WHERE r.batch_id = batches.id AND r.state IS NOT NULL)"
	t.execAll(ctx, []string{
		"DELETE FROM batches WHERE id = $1 AND rows = 0 AND state = 'pending'",
		"UPDATE batches SET state = (SELECT MIN(r.state) " + withStates + `
			WHERE id = $1 AND state = 'pending' AND rows = (SELECT COUNT(*) ` + withStates,
	}, id)
}

// sourcesAtOnce limits the batches that one transaction takes rows from.
const sourcesAtOnce = 16

// source is a batch that holds rows of the run's input.
type source struct {
	batch
	whole bool // all of its rows are in the input
}

var scanSource = scanInto(func(b *source) []any { return []any{&b.id, &b.first, &b.last, &b.rows, &b.whole} })

// moved is what one transaction took out of batches: the number of rows, and the last batch, 0 if none.
type moved struct{ rows, last int64 }

// takeRows calls take for batches until it has taken n rows for the run, and returns their number. The first three
// parameters of the query for batches are the run, the batch to continue after, and the maximum number of batches.
func (d *DB) takeRows(
	ctx context.Context, run, n int64,
	take func(ctx context.Context, g *rebatcher, b source, n int64) int64, query string, more ...any,
) (total int64, err error) {
	for after := int64(0); total < n; {
		got, err := runFor(ctx, d, func(ctx context.Context, t *tx) (all moved) {
			g := t.rebatcherFor(ctx, run)
			sources := list(ctx, t, scanSource, query, append([]any{run, after, sourcesAtOnce}, more...)...)
			for _, b := range sources {
				left := n - total - all.rows
				if left <= 0 {
					break
				}
				all = moved{all.rows + take(ctx, g, b, left), b.id}
			}
			t.closing = true
			g.finish(ctx)
			return all
		})
		if err != nil || got.last == 0 {
			return total, err
		}
		total, after = total+got.rows, got.last
	}
	return total, nil
}

// Adopt takes over pending rows of other runs, see [ledger.Queue].
func (d *DB) Adopt(ctx context.Context, run int64, n int) (int64, error) {
	return d.takeRows(ctx, run, int64(n), adopt, `SELECT b.id, b.first_row, b.last_row, b.rows, p.rows = b.rows
		FROM run_batches p JOIN batches b ON b.id = p.batch_id JOIN runs n ON n.id = b.run_id
		WHERE p.run_id = $1 AND p.batch_id > $2 AND b.run_id <> $1 AND b.state = 'pending'
		AND b.id <> n.filling AND n.state = 'open' ORDER BY p.batch_id LIMIT $3`)
}

// adopt takes over a whole batch if it is no larger than the run's own, else up to n of its rows that are in the input.
func adopt(ctx context.Context, g *rebatcher, b source, n int64) int64 {
	if b.whole && b.rows <= g.size {
		pending := value[int64](ctx, g.t, `SELECT $1 - COUNT(*) FROM rows r
			WHERE r.batch_id = $2 AND r.state IS NOT NULL`, b.rows, b.id)
		g.t.exec(ctx, "UPDATE batches SET run_id = $1 WHERE id = $2", g.run, b.id)
		return pending
	}
	rows := list(ctx, g.t, scanOne[int64], `SELECT r.id FROM rows r JOIN runs n ON n.id = $1
		WHERE r.id BETWEEN $2 AND $3 AND r.batch_id = $4 AND r.state IS NULL AND `+inInput+`
		ORDER BY r.id LIMIT $5`, g.run, b.first, b.last, b.id, n)
	g.move(ctx, b.batch, rows...)
	return int64(len(rows))
}
