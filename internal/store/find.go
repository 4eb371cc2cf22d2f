package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// manyFound is how many queries one statement answers, if there are more than one.
const manyFound = 250

// findQuery finds what is known of referIds, or of numbers: rows, and sightings that are no row's. The parameters are
// what is asked for; each line ends with the place of that. late finds rows that the index of numbers lacks.
type findQuery struct{ rows, late, seen string }

// findQueries are queries for one and for manyFound; byID finds rows, seenByID sightings, by their ids.
var findQueries = sync.OnceValue(func() (f struct {
	byReferID, byNumber [2]findQuery
	byID, seenByID      string
}) {
	from := func(places, table string) string {
		return ", v.column1 FROM (VALUES " + places + ") v CROSS JOIN " + table
	}
	for i, n := range []int{1, manyFound} {
		places := joined(n, func(place int) string { return fmt.Sprintf("(%d, ?%d)", place, place+1) })
		rows := rowColumns + from(places, "rows r") + rowJoins + "WHERE "
		seen := unheldColumns + from(places, "sightings s WHERE ")
		f.byReferID[i] = findQuery{
			rows: rows + "r.refer_id = v.column2" + visible,
			seen: seen + "s.refer_id = v.column2 AND " + unheld,
		}
		f.byNumber[i] = findQuery{
			rows: rowColumns + from(places, "numbers n CROSS JOIN rows r") + rowJoins +
				"WHERE n.folded = v.column2 AND r.id = n.row_id" + visible,
			late: rows + "r.id > " + indexed + " AND fold_number(r.number) = v.column2" + visible,
			seen: seen + "s.folded = v.column2 AND " + unheld,
		}
	}
	places := joined(manyFound, func(place int) string { return fmt.Sprintf("(%d, CAST(? AS BIGINT))", place) })
	f.byID = rowColumns + from(places, "rows r") + rowJoins + "WHERE r.id = v.column2"
	f.seenByID = unheldColumns + from(places, "sightings s") + " WHERE s.id = v.column2 AND s.id < 0"
	return f
})

// Find returns what is known of a referId or a number, see [ledger.Trackings].
func (d *DB) Find(ctx context.Context, referID, number string) ([]ledger.TrackingStatus, error) {
	all, err := d.FindAll(ctx, []tracking.Query{{ReferID: referID, Number: number}})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// FindAll returns what is known of many, see [ledger.Trackings].
func (d *DB) FindAll(ctx context.Context, qs []tracking.Query) ([][]ledger.TrackingStatus, error) {
	f := finder{d: d, found: make([][]foundStatus, len(qs))}
	var byReferID, byNumber []int
	for i, q := range qs {
		if q.ReferID != "" {
			byReferID = append(byReferID, i)
		} else {
			byNumber = append(byNumber, i)
		}
	}
	err := f.find(ctx, findQueries().byReferID, byReferID, func(i int) string { return qs[i].ReferID })
	if err == nil && len(byNumber) > 0 {
		var mayMiss, missing int64
		if len(byNumber) == 1 {
			mayMiss = maxUnindexed
		}
		if missing, err = d.indexNumbers(ctx, mayMiss); err == nil {
			f.late = missing > 0
			err = f.find(ctx, findQueries().byNumber, byNumber, func(i int) string { return tracking.FoldNumber(qs[i].Number) })
		}
	}
	if err != nil {
		return nil, err
	}
	all := make([][]ledger.TrackingStatus, len(qs))
	for i, found := range f.found {
		slices.SortFunc(found, func(a, b foundStatus) int { // rows as they were created, then what was only seen
			return cmp.Or(cmp.Compare(flag(a.id < 0), flag(b.id < 0)), cmp.Compare(max(a.id, -a.id), max(b.id, -b.id)))
		})
		for _, one := range found {
			all[i] = append(all[i], one.TrackingStatus)
		}
	}
	return all, nil
}

type finder struct {
	d     *DB
	late  bool            // the index of numbers lacks rows
	found [][]foundStatus // by query
}

type foundStatus struct {
	id int64 // of the row, or of the sighting without one, which is negative
	ledger.TrackingStatus
}

func (f *finder) find(ctx context.Context, queries [2]findQuery, numbers []int, value func(int) string) error {
	width, query := 1, queries[0]
	if len(numbers) > 1 {
		width, query = manyFound, queries[1]
	}
	args := make([]any, width)
	for part := range slices.Chunk(numbers, width) {
		clear(args) // NULL finds nothing
		for i, n := range part {
			args[i] = value(n)
		}
		for _, text := range []string{query.rows, query.late, query.seen} {
			if text == "" || text == query.late && !f.late {
				continue
			}
			columns := newStatusScanner()
			err := f.d.each(ctx, func(s scanner) error {
				var place int
				id, st, err := columns.scan(s, &place)
				if err == nil {
					f.found[part[place]] = append(f.found[part[place]], foundStatus{id, st})
				}
				return err
			}, text, args...)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

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
