package store

import (
	"context"
	"errors"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// The index of rows by tracking number. To update it with each row would cost
// more than the rest of the row, since numbers come in no order. So it is updated
// when it is asked, many rows at once and in order; the last few are scanned.
//
// With a row it takes in what was known before of its number alone. From then on
// the row has that itself.
const (
	maxUnindexed = 5_000   // as many rows may be missing
	indexAtOnce  = 100_000 // as many are added in one transaction
)

// indexNumbers updates the index, but for the last few rows: those that may be
// missing. Of a store that can't be written now more are missing.
func (d *DB) indexNumbers(ctx context.Context, mayMiss int64) error {
	_, err := d.countUnindexed(ctx, mayMiss)
	return err
}

// countUnindexed is indexNumbers that returns how many rows are missing.
func (d *DB) countUnindexed(ctx context.Context, mayMiss int64) (missing int64, err error) {
	for {
		if _, err := d.row(ctx, []any{&missing}, `SELECT (SELECT value FROM counters WHERE name = 'row') -
			(SELECT value FROM counters WHERE name = 'numbered')`); err != nil || missing <= mayMiss {
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
		done, err := t.counter(ctx, "numbered")
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
	done, err := t.counter(ctx, "numbered")
	if err != nil {
		return err
	}
	upTo := min(last, done+indexAtOnce)
	if _, err := t.exec(ctx, `INSERT INTO numbers (folded, row_id) SELECT fold_number(number) AS f, id FROM rows
		WHERE id > $1 AND id <= $2 ORDER BY f, id`, done, upTo); err != nil {
		return err
	}
	if _, err := t.exec(ctx, "UPDATE counters SET value = $1 WHERE name = 'numbered'", upTo); err != nil {
		return err
	}
	if err := t.execAll(ctx, []string{
		`UPDATE sightings SET id = r.id FROM rows r WHERE r.id > $1 AND r.id <= $2 AND sightings.id < 0
			AND sightings.refer_id = r.refer_id AND sightings.number = r.number`,
		// They were counted without a row so far.
		insertCounts + ` SELECT 0, status_id, carrier, ` + transitDays + `, -COUNT(*) FROM sightings s
			WHERE s.id > $1 AND s.id <= $2 GROUP BY 1, 2, 3, 4` + onKnownCount,
		insertCounts + ` SELECT n.id, COALESCE(s.status_id, 0), COALESCE(NULLIF(s.carrier, ''), r.carrier), ` + transitDays + `, COUNT(*)
			FROM runs n CROSS JOIN rows r LEFT JOIN sightings s ON s.id = r.id
			WHERE n.last_row > $1 AND n.first_row <= $2 AND r.id BETWEEN n.first_row AND n.last_row AND r.id > $1 AND r.id <= $2 GROUP BY 1, 2, 3, 4` + onKnownCount,
	}, done, upTo); err != nil {
		return err
	}
	return d.recordKnownOfNumbers(ctx, t, done, upTo)
}

// recordKnownOfNumbers records for each row after done what was known of its number alone.
func (d *DB) recordKnownOfNumbers(ctx context.Context, t *tx, done, upTo int64) error {
	var some bool
	if _, err := t.row(ctx, []any{&some}, "SELECT EXISTS (SELECT 1 FROM sightings WHERE refer_id = '')"); err != nil || !some {
		return err
	}
	c := newStatusScanner()
	all, err := list(ctx, t.each, func(s scanner) (ledger.Sighting, error) {
		if err := s.Scan(c.dest[:2+sightingWidth]...); err != nil {
			return ledger.Sighting{}, err
		}
		one := *c.sighting(2, tracking.Key{ReferID: c.text(0), Number: c.text(1)})
		one.RouterID = "" // it may be another's of that number
		return one, nil
	}, "SELECT r.refer_id, r.number, "+sightingColumns+` FROM rows r CROSS JOIN sightings s
		WHERE r.id > $1 AND r.id <= $2 AND s.refer_id = '' AND s.folded = fold_number(r.number) AND s.folded <> '' ORDER BY r.id, s.id DESC`, done, upTo)
	if err != nil {
		return err
	}
	return d.recordSightings(ctx, t, all)
}
