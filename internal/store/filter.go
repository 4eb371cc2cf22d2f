package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// readWords reads the statuses and row states of the filter.
func (l *lister) readWords() {
	l.chosen = l.f.Statuses != nil || l.f.States != nil || l.orStuck()
	for _, s := range l.f.States {
		switch s {
		case ledger.NotChecked:
			l.notChecked = true
			continue
		case ledger.Superseded, ledger.Dismissed:
			s = ledger.Rejected
		}
		l.states = append(l.states, string(s))
	}
}

func (l *lister) orStuck() bool { return !l.f.OrStuckSince.IsZero() }

// ofRowsAlone reports whether the filter selects by row states only, and not by status.
func (l *lister) ofRowsAlone() bool { return l.chosen && len(l.statuses) == 0 && !l.orStuck() }

func (l *lister) takesByTime() bool {
	return !l.f.Updated.IsZero() || !l.f.Delivered.IsZero() || !l.f.StuckSince.IsZero()
}

// withoutRow reports whether the filter may match trackings without a row.
func (l *lister) withoutRow() bool {
	return l.f.Run == 0 && l.f.Created.IsZero() && l.f.Own == nil && !l.ofRowsAlone()
}

// mayTakeRows reports whether the filter may match rows of a run.
func (l *lister) mayTakeRows(r rowRun) bool { return l.counted[r.id] && l.takesRun(r) }

func (l *lister) takesRun(r rowRun) bool {
	return (l.f.Run == 0 || r.id == l.f.Run) && l.f.Created.Holds(instant(r.created))
}

// mayTake reports whether the filter may match trackings of the given count.
func (l *lister) mayTake(c trackingCount) bool {
	known, final := c.status != 0, slices.Contains(l.final, c.status)
	return (!l.chosen || l.states != nil || known && slices.Contains(l.statuses, c.status) ||
		!known && l.notChecked || l.orStuck() && known && !final) &&
		(l.f.Carrier == "" || strings.EqualFold(c.carrier, l.f.Carrier)) &&
		(l.f.Updated.IsZero() || known) &&
		(l.f.Delivered.IsZero() || final) &&
		(l.f.StuckSince.IsZero() || known && !final)
}

// subject holds the SQL expressions for a row r of a batch b with its sighting s, or for a sighting s without a row.
type subject struct {
	carrier, referID string
	moved            string // when it last moved, 0 if unknown
}

var (
	ofRow = subject{
		"COALESCE(NULLIF(s.carrier, ''), r.carrier)", "r.refer_id",
		"CASE WHEN s.checkpoint > 0 THEN s.checkpoint WHEN b.began > 0 THEN b.began + b.took / 1000 ELSE 0 END",
	}
	ofSeen = subject{"s.carrier", "s.refer_id", "s.checkpoint"}
)

// where returns the filter's condition without its run; without a row, only as far as s decides.
func (l *lister) where(of subject) string {
	all := []string{"1 = 1"}
	if !l.f.Updated.IsZero() {
		all = append(all, within("CASE WHEN s.updated > s.checkpoint THEN s.updated ELSE s.checkpoint END", l.f.Updated))
	}
	if !l.f.Delivered.IsZero() {
		all = append(all, within("s.checkpoint", l.f.Delivered), "+s.status_id IN "+idList(l.final))
	}
	if l.chosen {
		all = append(all, "("+strings.Join(l.whereChosen(of), " OR ")+")")
	}
	if !l.f.StuckSince.IsZero() {
		all = append(all, l.stuck(of, l.f.StuckSince))
	}
	if l.f.Carrier != "" {
		all = append(all, of.carrier+" IN "+textList(l.carriers))
	}
	if l.f.ReferIDs != nil {
		all = append(all, l.referIDs(of.referID))
	}
	for _, o := range l.f.Own {
		all = append(all, "LOWER(r.own) LIKE "+quoted(`%"`+likely(o.Column)+`":"`+likely(o.Pattern)+`"%`))
	}
	return strings.Join(all, " AND ")
}

func (l *lister) whereUnheld() string { return l.where(ofSeen) + " AND " + rowless }

// likely converts a pattern or a name for LIKE on lower-case JSON. It matches too much where databases differ or JSON
// has other characters; [ledger.Filter.Matches] decides.
func likely(pattern string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`*"\\'<>&`, r) {
			return '%'
		}
		return unicode.ToLower(r)
	}, pattern)
}

// whereChosen returns the conditions of the filter's words, one of which must hold.
func (l *lister) whereChosen(of subject) (wanted []string) {
	if len(l.statuses) > 0 || l.states == nil && !l.notChecked {
		column := "s.status_id"
		if of == ofSeen || l.dense {
			column = "+s.status_id" // in the order of rows
		}
		wanted = append(wanted, column+" IN "+idList(l.statuses))
	}
	if l.orStuck() {
		wanted = append(wanted, l.stuck(of, l.f.OrStuckSince))
	}
	if of == ofSeen {
		return wanted
	}
	if l.notChecked {
		wanted = append(wanted, "s.id IS NULL AND "+inStates("('accepted')"))
	}
	if l.states != nil {
		wanted = append(wanted, inStates(textList(l.states)))
	}
	return wanted
}

// stuck holds for what last moved before since, see [ledger.TrackingStatus.StuckSince].
func (l *lister) stuck(of subject, since time.Time) string {
	return fmt.Sprintf("s.phase <> 'absent' AND +s.status_id NOT IN %s AND %s BETWEEN 1 AND %d",
		idList(l.final), of.moved, millis(since)-1)
}

// inStates holds for a row r of a batch b in one of these states. Unlike with COALESCE, the planner can estimate how
// many there are.
func inStates(states string) string {
	return "(r.state IN " + states + " OR r.state IS NULL AND b.state IN " + states + ")"
}

func within(column string, r ledger.Range) string {
	condition := column + " > 0"
	if !r.Since.IsZero() {
		condition += fmt.Sprintf(" AND %s >= %d", column, millis(r.Since))
	}
	if !r.Until.IsZero() {
		condition += fmt.Sprintf(" AND %s < %d", column, millis(r.Until))
	}
	return condition
}

// inRuns is the condition that a row r was brought in by a run that the filter matches, and that it is in the input of
// the filter's run.
func (l *lister) inRuns() string {
	condition := ""
	if !l.f.Created.IsZero() {
		ranges := []string{"1 = 0"}
		for _, s := range l.spans(func(r rowRun) bool { return l.f.Created.Holds(instant(r.created)) }) {
			ranges = append(ranges, fmt.Sprintf("r.id BETWEEN %d AND %d", s.first, s.last))
		}
		condition = " AND (" + strings.Join(ranges, " OR ") + ")"
	}
	if l.f.Run != 0 {
		condition += fmt.Sprintf(" AND EXISTS (SELECT 1 FROM runs n WHERE n.id = %d AND %s)", l.f.Run, inInput)
	}
	return condition
}

// spans returns ranges that hold all rows of the runs for which takes returns true, and no others.
func (l *lister) spans(takes func(rowRun) bool) (spans []rowRun) {
	before := false // the previous run is in the last span
	for _, r := range l.runs {
		taken := takes(r)
		switch {
		case taken && before:
			spans[len(spans)-1].last = r.last
		case taken:
			spans = append(spans, r)
		}
		before = taken
	}
	return spans
}

func (l *lister) referIDs(column string) string {
	var conditions []string
	for _, pattern := range l.f.ReferIDs {
		if prefix, open := strings.CutSuffix(pattern, "*"); open {
			conditions = append(conditions, column+" >= "+quoted(prefix)+" AND "+column+" < "+quoted(prefix+lastText))
		}
	}
	conditions = append(conditions, column+" IN "+textList(l.f.ReferIDs))
	return "(" + strings.Join(conditions, " OR ") + ") AND " + column + " <> ''"
}

// lastText sorts after any continuation of a referId.
const lastText = "\U0010ffff"

// idList returns "(1,2,3)", or "(0)", which matches nothing, for no ids.
func idList(ids []int64) string {
	return "(" + cmp.Or(strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", ","), "0") + ")"
}

// textList returns "('a', 'b')", or "(NULL)", which matches nothing, for no texts.
func textList(texts []string) string {
	if len(texts) == 0 {
		return "(NULL)"
	}
	return "(" + joined(len(texts), func(i int) string { return quoted(texts[i]) }) + ")"
}

func quoted(text string) string { return "'" + strings.ReplaceAll(matchable(text), "'", "''") + "'" }

// listTable is a table from which the ids of rows are read, excluding rows being staged.
type listTable struct{ name, id, visible string }

var (
	listRows = listTable{"rows r", "r.id", visible}
	// + makes the database read rows in key order.
	listReferences = listTable{"rows r", "r.id", strings.Replace(visible, "r.id", "+r.id", 1)}
	listNumbers    = listTable{"numbers n", "n.row_id", ""}
	listSightings  = listTable{"sightings s", "s.id", " AND s.id > 0"}
)

// sortKey holds the SQL expressions that a list is ordered by: for a row r with its sighting s and its answer a, and
// for a sighting s without a row. Where known does not hold, the tracking comes last.
type sortKey struct {
	table             listTable // read for the first rows of a list
	row, known        string
	unheld, unheldToo string // the same without a row
}

func sortKeyOf(o ledger.Order) sortKey {
	ofSighting := func(key, known string) sortKey { return sortKey{listSightings, key, known, key, known} }
	const status = "LOWER(COALESCE(NULLIF(s.status_label, ''), NULLIF(s.status_track, ''), NULLIF(s.status, '')))"
	switch o {
	case ledger.ByAsked:
		const unheld = "COALESCE((SELECT a.asked FROM answers a WHERE a.refer_id = s.refer_id), 0)"
		return sortKey{listRows, "COALESCE(a.asked, 0)", "1 = 1", unheld, "1 = 1"}
	case ledger.ByReceived:
		return ofSighting("s.seen", "s.seen > 0")
	case ledger.ByCheckpoint:
		return ofSighting("s.checkpoint", "s.checkpoint > 0")
	case ledger.ByReference:
		// + since with an index it would read everything.
		return sortKey{listReferences, "r.refer_id", "1 = 1", "+s.refer_id", "s.refer_id <> ''"}
	case ledger.ByNumber:
		return sortKey{listNumbers, "n.folded", "1 = 1", "s.folded", "s.folded <> ''"}
	case ledger.ByStatus:
		return ofSighting(status, status+" IS NOT NULL")
	case ledger.ByCarrier:
		const carrier = "LOWER(COALESCE(NULLIF(s.carrier, ''), NULLIF(r.carrier, '')))"
		return sortKey{listRows, carrier, carrier + " IS NOT NULL", "LOWER(s.carrier)", "s.carrier <> ''"}
	default:
		return sortKey{listRows, "r.id", "1 = 1", "s.id", "1 = 0"}
	}
}

func (l *lister) sortedQuery(key sortKey) string {
	if l.f.Order == ledger.ByNumber {
		key.row = folded
	}
	query := l.selectRows(listRows, "CASE WHEN "+key.known+" THEN "+key.row+" END", "1 = 1")
	if l.withoutRow() {
		query += " UNION ALL SELECT s.id, CASE WHEN " + key.unheldToo + " THEN " + key.unheld +
			" END FROM sightings s WHERE s.id < 0 AND " + l.whereUnheld()
	}
	return "SELECT id FROM (" + query + ") AS l ORDER BY k IS NULL, k" + l.direction() + ", id < 0, ABS(id)"
}

// selectRows returns a query for the ids of the rows that match the filter, and their keys k.
func (l *lister) selectRows(t listTable, key, condition string) string {
	// The tables besides sightings that the filter's conditions use.
	needsBatch := l.states != nil || l.notChecked || l.orStuck() || !l.f.StuckSince.IsZero()
	needsRow := needsBatch || l.f.Carrier != "" || l.f.ReferIDs != nil || l.f.Own != nil ||
		l.f.Run != 0 || !l.f.Created.IsZero()
	from := t.name
	condition += " AND " + l.where(ofRow) + l.inRuns() + t.visible
	if needsRow && t.id != "r.id" {
		from, condition = from+" CROSS JOIN rows r", condition+" AND r.id = "+t.id
	}
	if needsBatch {
		from, condition = from+" CROSS JOIN batches b", condition+" AND b.id = r.batch_id"
	}
	if t.id != "s.id" { // planners drop it if nothing uses it
		from += " LEFT JOIN sightings s ON s.id = " + t.id
	}
	if l.f.Order == ledger.ByAsked {
		from += " LEFT JOIN answers a ON a.refer_id = r.refer_id"
	}
	return "SELECT " + t.id + " AS id, " + key + " AS k FROM " + from + " WHERE " + condition
}

// firstQuery returns the query for the first entries of a list whose key is known: in key order where there is an
// index, else from one table.
func (l *lister) firstQuery(key sortKey) string {
	first := func(query, id string, limit int) string {
		return fmt.Sprintf("%s ORDER BY k%s, ABS(%s) LIMIT %d OFFSET 0", query, l.direction(), id, limit)
	}
	parts := []string{first(l.selectRows(key.table, key.row, key.known), key.table.id, l.f.Limit)}
	if l.withoutRow() { // whether a sighting is held is looked up in key order
		seen := first("SELECT s.id, s.refer_id, s.number, s.folded, s.router_id, "+key.unheld+
			" AS k FROM sightings s WHERE s.id < 0 AND "+key.unheldToo+" AND "+l.where(ofSeen), "s.id", math.MaxInt64)
		parts = append(parts, first("SELECT s.id, k FROM ("+seen+") AS s WHERE "+rowless, "s.id", l.f.Limit))
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

func (l *lister) sorted(ctx context.Context) statusList {
	key := sortKeyOf(l.f.Order)
	query, limit := l.sortedQuery(key), ""
	if l.f.Limit > 0 && !l.unindexed && l.filterIsExact() {
		limit = fmt.Sprint(" LIMIT ", l.f.Limit)
		if first := list(ctx, l, scanOne[int64], l.firstQuery(key)+limit); len(first) == l.f.Limit {
			return l.listOf(first)
		} // else what is not known comes after these
	}
	return l.listOf(list(ctx, l, scanOne[int64], query+limit))
}

// filterIsExact reports whether the SQL conditions match exactly what the filter does. They don't where they can't
// tell which rejected rows are open.
func (l *lister) filterIsExact() bool {
	return l.f.StuckSince.IsZero() && !l.orStuck() && l.states == nil && l.f.Own == nil
}

// listOf is a list of rows, and sightings without one, whose ids were sorted at its beginning, since their order
// changes while it is read. Unread ids take eight bytes per tracking.
func (l *lister) listOf(sorted []int64) statusList {
	return func(ctx context.Context, _ int) ([]ledger.TrackingStatus, bool) {
		ids := sorted[:min(manyFound, len(sorted))]
		if sorted = sorted[len(ids):]; len(ids) == 0 {
			return nil, false
		}
		return l.read(ctx, ids), len(sorted) > 0
	}
}

// read reads rows and sightings in the order of ids. It leaves out ids that no longer exist.
func (l *lister) read(ctx context.Context, ids []int64) []ledger.TrackingStatus {
	f := finder{reader: l.reader, found: make([][]foundStatus, len(ids))}
	var rows, seen []int
	for i, id := range ids {
		if id > 0 {
			rows = append(rows, i)
		} else {
			seen = append(seen, i)
		}
	}
	f.find(ctx, findQueries().byID, rows, func(i int) any { return ids[i] })
	f.find(ctx, findQueries().seenByID, seen, func(i int) any { return ids[i] })
	page := make([]ledger.TrackingStatus, 0, len(ids))
	for _, found := range f.found {
		for _, one := range found {
			l.addRun(&one.TrackingStatus, one.id)
			page = append(page, one.TrackingStatus)
		}
	}
	return page
}
