package store

import "context"

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

// adopt takes over a whole batch if it is no larger than the run's own, else up
// to n of its rows that are in the input.
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
