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

// rowAndIndexed are the last visible row and the last one in the index.
const rowAndIndexed = "SELECT (" + lastVisible + "), " + indexed

// indexNumbers updates the index, but for the last few rows, and returns how many are
// missing. Of a store that can't be written now more are missing.
func (d *DB) indexNumbers(ctx context.Context, mayMiss int64) (missing int64, err error) {
	for {
		var last, done int64
		if _, err := d.row(ctx, []any{&last, &done}, rowAndIndexed); err != nil || last-done <= mayMiss {
			return last - done, err
		}
		_, err := runFor(ctx, d, func(ctx context.Context, t *tx) (bool, error) { return t.indexSomeNumbers(ctx) })
		if errors.Is(err, ErrReadOnly) || errors.Is(err, ErrFull) || errors.Is(err, ErrLocked) {
			return last - done, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// indexAllNumbers is [DB.indexNumbers] for all rows, in a transaction under way.
func (t *tx) indexAllNumbers(ctx context.Context) error {
	for {
		if more, err := t.indexSomeNumbers(ctx); !more || err != nil {
			return err
		}
	}
}

// indexSomeNumbers returns whether rows were missing.
func (t *tx) indexSomeNumbers(ctx context.Context) (more bool, err error) {
	var last, done int64
	if _, err := t.row(ctx, []any{&last, &done}, rowAndIndexed); err != nil || done >= last {
		return false, err
	}
	upTo := min(last, done+indexAtOnce)
	if _, err := t.exec(ctx, `INSERT INTO numbers (folded, row_id) SELECT fold_number(number) AS f, id FROM rows
		WHERE id > $1 AND id <= $2 ORDER BY f, id`, done, upTo); err != nil {
		return false, err
	}
	_, err = t.exec(ctx, "UPDATE counters SET value = $1 WHERE name = 'indexed'", upTo)
	return true, err
}
