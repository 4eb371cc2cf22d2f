package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// sortKey is what an order compares: of a row r with its sighting s and its answer a, and
// of a sighting s without a row. Where known does not hold, it comes last.
type sortKey struct {
	table             string // is read for the first rows of a list
	row, known        string
	unheld, unheldToo string // the same without a row
}

func sortKeyOf(o ledger.Order) sortKey {
	ofSighting := func(key, known string) sortKey { return sortKey{"sightings s", key, known, key, known} }
	const status = "LOWER(COALESCE(NULLIF(s.status_label, ''), NULLIF(s.status_track, ''), NULLIF(s.status, '')))"
	switch o {
	case ledger.ByAsked:
		const unheld = "COALESCE((SELECT a.asked FROM answers a WHERE a.refer_id = s.refer_id), 0)"
		return sortKey{"rows r", "COALESCE(a.asked, 0)", "1 = 1", unheld, "1 = 1"}
	case ledger.ByReceived:
		return ofSighting("s.seen", "s.seen > 0")
	case ledger.ByCheckpoint:
		return ofSighting("s.checkpoint", "s.checkpoint > 0")
	case ledger.ByReference:
		// + as an index would have it read all.
		return sortKey{"rows r", "r.refer_id", "1 = 1", "+s.refer_id", "s.refer_id <> ''"}
	case ledger.ByNumber:
		return sortKey{"numbers n", "n.folded", "1 = 1", "s.folded", "s.folded <> ''"}
	case ledger.ByStatus:
		return ofSighting(status, status+" IS NOT NULL")
	case ledger.ByCarrier:
		const carrier = "LOWER(COALESCE(NULLIF(s.carrier, ''), NULLIF(r.carrier, '')))"
		return sortKey{"rows r", carrier, carrier + " IS NOT NULL", "LOWER(s.carrier)", "s.carrier <> ''"}
	default:
		return sortKey{"rows r", "r.id", "1 = 1", "s.id", "1 = 0"}
	}
}

func (l *lister) sortedQuery(key sortKey) string {
	if l.f.Order == ledger.ByNumber {
		key.row = folded
	}
	query := l.selectRows("rows r", "CASE WHEN "+key.known+" THEN "+key.row+" END", "1 = 1")
	if l.withoutRow() {
		query += " UNION ALL SELECT s.id, CASE WHEN " + key.unheldToo + " THEN " + key.unheld +
			" END FROM sightings s WHERE s.id < 0 AND " + l.whereUnheld()
	}
	return "SELECT id FROM (" + query + ") AS l ORDER BY k IS NULL, k" + l.direction() + ", id < 0, ABS(id)"
}

// idIn returns the column of a table that has the ids of rows.
func idIn(table string) string {
	return map[string]string{"rows r": "r.id", "numbers n": "n.row_id", "sightings s": "s.id"}[table]
}

// selectRows returns a query for the ids of rows in a table that the filter takes, and their keys k.
func (l *lister) selectRows(table, key, condition string) string {
	id, from := idIn(table), table
	condition += " AND " + l.where(ofRow) + l.inRuns()
	if table == "sightings s" {
		condition += " AND s.id > 0"
	}
	switch {
	case table == "rows r" && key == "r.refer_id": // + has rows read in the order of the key
		condition += strings.Replace(visible, "r.id", "+r.id", 1)
	case table == "rows r": // also has rows that are being staged
		condition += visible
	}
	if table != "rows r" && strings.Contains(condition, "r.") {
		from, condition = from+" CROSS JOIN rows r", condition+" AND r.id = "+id
	}
	if strings.Contains(condition, "b.") {
		from, condition = from+" CROSS JOIN batches b", condition+" AND b.id = r.batch_id"
	}
	if table != "sightings s" && strings.Contains(condition+key, "s.") {
		from += " LEFT JOIN sightings s ON s.id = " + id
	}
	if l.f.Order == ledger.ByAsked {
		from += " LEFT JOIN answers a ON a.refer_id = r.refer_id"
	}
	return "SELECT " + id + " AS id, " + key + " AS k FROM " + from + " WHERE " + condition
}

// firstQuery returns the query for the first of a list, as far as their key is known: in
// their order where there is an index, else from one table.
func (l *lister) firstQuery(key sortKey) string {
	first := func(query, id string, limit int) string {
		return fmt.Sprintf("%s ORDER BY k%s, ABS(%s) LIMIT %d OFFSET 0", query, l.direction(), id, limit)
	}
	parts := []string{first(l.selectRows(key.table, key.row, key.known), idIn(key.table), l.f.Limit)}
	if l.withoutRow() { // whether one is held is looked up in their order
		seen := first("SELECT s.id, s.refer_id, s.number, s.folded, s.router_id, "+key.unheld+
			" AS k FROM sightings s WHERE s.id < 0 AND "+key.unheldToo+" AND "+l.where(ofSeen), "s.id", math.MaxInt64)
		parts = append(parts, first("SELECT s.id, k FROM ("+seen+") AS s WHERE "+unheld, "s.id", l.f.Limit))
	}
	all := strings.Join(parts, ") AS p UNION ALL SELECT * FROM (")
	return "SELECT id FROM (SELECT * FROM (" + all + ") AS p) AS l ORDER BY k" + l.direction() + ", id < 0, ABS(id)"
}

func (l *lister) direction() string {
	if l.f.Descending {
		return " DESC"
	}
	return ""
}

func (l *lister) sorted(ctx context.Context) (statusList, error) {
	key := sortKeyOf(l.f.Order)
	query, limit := l.sortedQuery(key), ""
	if l.f.Limit > 0 && !l.unindexed && l.filterIsExact() {
		limit = fmt.Sprint(" LIMIT ", l.f.Limit)
		first, err := list(ctx, l.d.each, scanOne[int64], l.firstQuery(key)+limit)
		if err != nil || len(first) == l.f.Limit {
			return l.listOf(first), err
		} // else what is not known comes after these
	}
	ids, err := list(ctx, l.d.each, scanOne[int64], query+limit)
	return l.listOf(ids), err
}

// filterIsExact reports whether the filter takes whatever its conditions in SQL
// leave: not where these say nothing of which rejected rows are open.
func (l *lister) filterIsExact() bool {
	return l.f.StuckSince.IsZero() && !l.orStuck() && l.states == nil && l.f.Own == nil
}

// listOf is rows, and sightings without one, whose ids were sorted when the list began: their
// order changes while it is read. The ids not yet read take eight bytes of each tracking.
func (l *lister) listOf(sorted []int64) statusList {
	return func(ctx context.Context, _ int) ([]ledger.TrackingStatus, bool, error) {
		ids := sorted[:min(manyFound, len(sorted))]
		if sorted = sorted[len(ids):]; len(ids) == 0 {
			return nil, false, nil
		}
		page, err := l.read(ctx, ids)
		return page, len(sorted) > 0, err
	}
}

// read reads what there is still of up to manyFound rows and sightings, in the order of ids.
func (l *lister) read(ctx context.Context, ids []int64) ([]ledger.TrackingStatus, error) {
	found := make([]*ledger.TrackingStatus, len(ids))
	columns := newStatusScanner()
	args := make([]any, manyFound) // NULL finds nothing
	for i, id := range ids {
		args[i] = id
	}
	for _, query := range []string{findQueries().byID, findQueries().seenByID} {
		if err := l.d.each(ctx, func(s scanner) error {
			var place int
			id, st, err := columns.scan(s, &place)
			l.addRun(&st, id)
			found[place] = &st
			return err
		}, query, args...); err != nil {
			return nil, err
		}
		if !slices.Contains(found, nil) {
			break
		}
	}
	page := make([]ledger.TrackingStatus, 0, len(ids))
	for _, st := range found {
		if st != nil {
			page = append(page, *st)
		}
	}
	return page, nil
}
