package store

import (
	"context"
	"errors"
)

// The index of rows by tracking number. To update it with each row would cost as much
// as the rest of the row, since numbers come in no order. So it is updated when it is
// asked, many rows at once and in order; the last few are scanned.
const (
	maxUnindexed = 5_000   // as many rows may be missing
	indexAtOnce  = 100_000 // as many are added in one transaction
)

// indexNumbers updates the index, but for the last few rows, and returns how many are
// missing. Of a store that can't be written now more are missing.
func (d *DB) indexNumbers(ctx context.Context, mayMiss int64) (missing int64, err error) {
	for {
		if _, err := d.row(ctx, []any{&missing}, `SELECT (SELECT value FROM counters WHERE name = 'row') -
			(SELECT value FROM counters WHERE name = 'indexed')`); err != nil || missing <= mayMiss {
			return missing, err
		}
		err := d.run(ctx, d.indexSomeNumbers)
		if errors.Is(err, ErrReadOnly) || errors.Is(err, ErrFull) || errors.Is(err, ErrLocked) {
			return missing, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// indexAllNumbers is indexNumbers for all rows, in a transaction under way.
func (d *DB) indexAllNumbers(ctx context.Context, t *tx) error {
	for {
		last, err := t.counter(ctx, "row")
		if err != nil {
			return err
		}
		done, err := t.counter(ctx, "indexed")
		if err != nil || done >= last {
			return err
		}
		if err := d.indexSomeNumbers(ctx, t); err != nil {
			return err
		}
	}
}

func (d *DB) indexSomeNumbers(ctx context.Context, t *tx) error {
	last, err := t.counter(ctx, "row")
	if err != nil {
		return err
	}
	done, err := t.counter(ctx, "indexed")
	if err != nil {
		return err
	}
	upTo := min(last, done+indexAtOnce)
	if _, err := t.exec(ctx, `INSERT INTO numbers (folded, row_id) SELECT fold_number(number) AS f, id FROM rows
		WHERE id > $1 AND id <= $2 ORDER BY f, id`, done, upTo); err != nil {
		return err
	}
	_, err = t.exec(ctx, "UPDATE counters SET value = $1 WHERE name = 'indexed'", upTo)
	return err
}
