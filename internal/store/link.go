package store

import (
	"context"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// linkedAtOnce bounds the sightings of numbers that are in memory at once.
const linkedAtOnce = 100_000

// link gives the rows first to last of a run, which become visible, what was known of
// their keys and numbers before: the sighting of a visible row has the row's id.
func (d *DB) link(ctx context.Context, t *tx, run, first, last int64) error {
	var some bool
	if _, err := t.row(ctx, []any{&some}, "SELECT EXISTS (SELECT 1 FROM sightings WHERE id < 0)"); err != nil || !some {
		return err
	}
	// So far a row and its sighting count as two trackings.
	if err := t.execAll(ctx, []string{
		`UPDATE sightings SET id = r.id FROM rows r WHERE r.id BETWEEN $1 AND $2 AND sightings.id < 0
			AND sightings.refer_id = r.refer_id AND sightings.number = r.number`,
		insertCounts + ` SELECT 0, status_id, carrier, ` + transitDays + `, -COUNT(*) FROM sightings s
			WHERE s.id BETWEEN $1 AND $2 GROUP BY 1, 2, 3, 4` + onKnownCount,
	}, first, last); err != nil {
		return err
	}
	if err := t.execAll(ctx, []string{
		insertCounts + ` SELECT CAST($3 AS BIGINT), 0, r.carrier, -1, -COUNT(*) FROM sightings s CROSS JOIN rows r
			WHERE s.id BETWEEN $1 AND $2 AND r.id = s.id GROUP BY 1, 2, 3, 4` + onKnownCount,
		insertCounts + ` SELECT CAST($3 AS BIGINT), s.status_id, COALESCE(NULLIF(s.carrier, ''), r.carrier), ` + transitDays + `, COUNT(*)
			FROM sightings s CROSS JOIN rows r WHERE s.id BETWEEN $1 AND $2 AND r.id = s.id GROUP BY 1, 2, 3, 4` + onKnownCount,
	}, first, last, run); err != nil {
		return err
	}
	if _, err := t.row(ctx, []any{&some}, "SELECT EXISTS (SELECT 1 FROM sightings WHERE refer_id = '')"); err != nil || !some {
		return err
	}
	for ; first <= last; first += linkedAtOnce {
		if err := d.recordKnownOfNumbers(ctx, t, first, min(last, first+linkedAtOnce-1)); err != nil {
			return err
		}
	}
	return nil
}

// recordKnownOfNumbers records for each of these rows what was known of its number alone.
func (d *DB) recordKnownOfNumbers(ctx context.Context, t *tx, first, last int64) error {
	c := newStatusScanner()
	all, err := list(ctx, t.each, func(s scanner) (ledger.Sighting, error) {
		if err := s.Scan(c.dest[:2+len(sightingFields)]...); err != nil {
			return ledger.Sighting{}, err
		}
		one := *c.sighting(2, tracking.Key{ReferID: c.text(0), Number: c.text(1)})
		one.RouterID = "" // it may be another's of that number
		return one, nil
	}, "SELECT r.refer_id, r.number, "+sightingColumns+` FROM rows r CROSS JOIN sightings s
		WHERE r.id BETWEEN $1 AND $2 AND s.refer_id = '' AND s.folded = fold_number(r.number) AND s.folded <> '' ORDER BY r.id, s.id DESC`, first, last)
	if err != nil {
		return err
	}
	return d.recordSightings(ctx, t, all)
}
