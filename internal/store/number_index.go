package store

import (
	"context"
	"errors"
)

// The index of rows by tracking number. To update it with each row would cost
// more than the rest of the row, since numbers come in no order. So it is updated
// when it is asked, many rows at once and in order; the last few are scanned.
const (
	maxUnindexed = 5_000   // as many rows may be missing
	indexAtOnce  = 100_000 // as many are added in one transaction
)

// rowsByNumber finds the ids of the rows of account ?1 whose folded number is v.column2.
const rowsByNumber = `SELECT row_id FROM numbers WHERE account_id = ?1 AND folded = v.column2
	UNION ALL SELECT id FROM rows WHERE id > (SELECT value FROM counters WHERE name = 'numbered')
		AND +account_id = ?1 AND fold_number(number) = v.column2`

// indexNumbers updates the index, but for the last few rows: those that may be
// missing. Of a store that can't be written now more are missing.
func (d *DB) indexNumbers(ctx context.Context, mayMiss int64) error {
	for {
		var missing int64
		if _, err := d.row(ctx, []any{&missing}, `SELECT (SELECT value FROM counters WHERE name = 'row') -
			(SELECT value FROM counters WHERE name = 'numbered')`); err != nil || missing <= mayMiss {
			return err
		}
		err := d.run(ctx, indexSomeNumbers)
		if errors.Is(err, ErrReadOnly) || errors.Is(err, ErrFull) || errors.Is(err, ErrLocked) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// indexForUnowned updates the whole index if there are sightings of numbers that
// no account held. In a store that can't be written now, some of these are listed
// beside the rows with the same number.
func (d *DB) indexForUnowned(ctx context.Context) error {
	var unowned bool
	if _, err := d.row(ctx, []any{&unowned}, "SELECT EXISTS (SELECT 1 FROM sightings WHERE account_id = 0)"); err != nil || !unowned {
		return err
	}
	return d.indexNumbers(ctx, 0)
}

// indexAllNumbers is indexNumbers for all rows, in a transaction under way.
func (t *tx) indexAllNumbers(ctx context.Context) error {
	for {
		last, err := t.counter(ctx, "row")
		if err != nil {
			return err
		}
		done, err := t.counter(ctx, "numbered")
		if err != nil || done >= last {
			return err
		}
		if err := indexSomeNumbers(ctx, t); err != nil {
			return err
		}
	}
}

func indexSomeNumbers(ctx context.Context, t *tx) error {
	last, err := t.counter(ctx, "row")
	if err != nil {
		return err
	}
	done, err := t.counter(ctx, "numbered")
	if err != nil {
		return err
	}
	upTo := min(last, done+indexAtOnce)
	if _, err := t.exec(ctx, `INSERT INTO numbers (account_id, folded, row_id) SELECT account_id, fold_number(number) AS f, id FROM rows
		WHERE id > $1 AND id <= $2 ORDER BY account_id, f, id`, done, upTo); err != nil {
		return err
	}
	_, err = t.exec(ctx, "UPDATE counters SET value = $1 WHERE name = 'numbered'", upTo)
	return err
}
