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

// readWords reads the row states of the filter.
func (l *lister) readWords() {
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

// criterion is what one member of a [ledger.Filter] asks for, except for Run and Created, see addRuns.
type criterion struct {
	// add adds conditions that hold for all matches. If the subject has no row, they say only what its sighting decides.
	add func(of subject, c *conditions)
	// mayTake reports whether trackings of a count may match; nil: of any.
	mayTake func(trackingCount) bool

	needsRow, needsBatch bool // the conditions for a row use it, or its batch
	inexact              bool // not all that the conditions hold for matches, see [ledger.Filter.Matches]
	onlyRows             bool // no sighting without a row matches
	onlySeen             bool // no row without a sighting matches
	byTime               bool // table tracking_counts can't tell the matches, but sightings can
	uncounted            bool // neither can
}

// readCriteria makes the criteria of the filter, one for each of its members that is set.
func (l *lister) readCriteria() {
	f := &l.f
	seen := func(c trackingCount) bool { return c.status != 0 }
	final := func(c trackingCount) bool { return slices.Contains(l.final, c.status) }
	add := func(isSet bool, c criterion) {
		if isSet {
			l.criteria = append(l.criteria, c)
		}
	}
	add(!f.Updated.IsZero(), criterion{
		add: func(_ subject, c *conditions) {
			c.within("CASE WHEN s.updated > s.checkpoint THEN s.updated ELSE s.checkpoint END", f.Updated)
		},
		mayTake: seen, onlySeen: true, byTime: true,
	})
	add(!f.Delivered.IsZero(), criterion{
		add: func(_ subject, c *conditions) {
			c.within("s.checkpoint", f.Delivered)
			c.add("+s.status_id IN " + idList(l.final))
		},
		mayTake: final, onlySeen: true, byTime: true,
	})
	add(!f.StuckSince.IsZero(), criterion{
		add:      func(of subject, c *conditions) { l.addStuck(of, c, f.StuckSince) },
		mayTake:  func(c trackingCount) bool { return seen(c) && !final(c) },
		needsRow: true, needsBatch: true, inexact: true, onlySeen: true, byTime: true,
	})
	add(f.Statuses != nil || f.States != nil || l.orStuck(), l.wordsCriterion(final))
	add(f.Carrier != "", criterion{
		add:      func(of subject, c *conditions) { c.add(of.carrier + " IN " + bindAll(c, l.carriers)) },
		mayTake:  func(c trackingCount) bool { return strings.EqualFold(c.carrier, f.Carrier) },
		needsRow: true,
	})
	add(f.ReferIDs != nil, criterion{add: l.addReferIDs, needsRow: true, uncounted: true})
	add(f.Own != nil, criterion{
		add: func(_ subject, c *conditions) {
			for _, o := range f.Own {
				c.add("LOWER(r.own) LIKE {}", `%"`+likely(o.Column)+`":"`+likely(o.Pattern)+`"%`)
			}
		},
		needsRow: true, inexact: true, onlyRows: true, uncounted: true,
	})
}

// wordsCriterion is the criterion of the filter's statuses and row states.
func (l *lister) wordsCriterion(final func(trackingCount) bool) criterion {
	needsBatch := l.states != nil || l.notChecked || l.orStuck()
	inexact := l.states != nil || l.orStuck() // SQL can't tell which rejected rows are open
	return criterion{
		add: func(of subject, c *conditions) { c.any(func(either *conditions) { l.addWords(of, either) }) },
		mayTake: func(c trackingCount) bool {
			return l.states != nil || slices.Contains(l.statuses, c.status) ||
				c.status == 0 && l.notChecked || l.orStuck() && c.status != 0 && !final(c)
		},
		needsRow: needsBatch, needsBatch: needsBatch, inexact: inexact, uncounted: inexact,
		onlyRows: len(l.statuses) == 0 && !l.orStuck(),
		onlySeen: l.states == nil && !l.notChecked,
	}
}

// has reports whether a criterion has a property.
func (l *lister) has(property func(criterion) bool) bool {
	return slices.ContainsFunc(l.criteria, property)
}

// withoutRow reports whether the filter may match trackings without a row.
func (l *lister) withoutRow() bool {
	return l.f.Run == 0 && l.f.Created.IsZero() && !l.has(func(c criterion) bool { return c.onlyRows })
}

// mayTakeRows reports whether the filter may match rows of a run.
func (l *lister) mayTakeRows(r rowRun) bool { return l.counted[r.id] && l.takesRun(r) }

func (l *lister) takesRun(r rowRun) bool {
	return (l.f.Run == 0 || r.id == l.f.Run) && l.f.Created.Holds(instant(r.created))
}

// mayTake reports whether the filter may match trackings of the given count.
func (l *lister) mayTake(count trackingCount) bool {
	return !l.has(func(c criterion) bool { return c.mayTake != nil && !c.mayTake(count) })
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

// addCriteria adds the filter's conditions for a subject to c, and returns them.
func (l *lister) addCriteria(of subject, c *conditions) *conditions {
	for _, one := range l.criteria {
		one.add(of, c)
	}
	return c
}

// addRowless adds the filter's conditions for a sighting, and that it has no row.
func (l *lister) addRowless(c *conditions) *conditions {
	l.addCriteria(ofSeen, c).add(rowless)
	return c
}

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

// addWords adds the conditions of the filter's words, one of which must hold.
func (l *lister) addWords(of subject, c *conditions) {
	if len(l.statuses) > 0 || l.states == nil && !l.notChecked {
		column := "s.status_id"
		if of == ofSeen || l.dense {
			column = "+s.status_id" // in the order of rows
		}
		c.add(column + " IN " + idList(l.statuses))
	}
	if l.orStuck() {
		l.addStuck(of, c, l.f.OrStuckSince)
	}
	if of == ofSeen {
		return
	}
	if l.notChecked {
		c.add("s.id IS NULL AND " + inStates("('accepted')"))
	}
	if l.states != nil {
		c.add(inStates(bindAll(c, l.states)))
	}
}

// addStuck adds that the subject last moved before since, see [ledger.TrackingStatus.StuckSince].
func (l *lister) addStuck(of subject, c *conditions, since time.Time) {
	c.add("s.phase <> 'absent' AND +s.status_id NOT IN "+idList(l.final)+" AND "+of.moved+" BETWEEN 1 AND {}",
		millis(since)-1)
}

// inStates holds for a row r of a batch b in one of these states. Unlike with COALESCE, the planner can estimate how
// many there are.
func inStates(states string) string {
	return "(r.state IN " + states + " OR r.state IS NULL AND b.state IN " + states + ")"
}

// within adds that a time is known and in a range.
func (c *conditions) within(column string, r ledger.Range) {
	c.add(column + " > 0")
	c.addIf(!r.Since.IsZero(), column+" >= {}", millis(r.Since))
	c.addIf(!r.Until.IsZero(), column+" < {}", millis(r.Until))
}

// addRuns adds that a row r was brought in by a run that the filter matches, and that it is in the input of the
// filter's run.
func (l *lister) addRuns(c *conditions) {
	if !l.f.Created.IsZero() {
		c.any(func(either *conditions) {
			for _, s := range l.spans(func(r rowRun) bool { return l.f.Created.Holds(instant(r.created)) }) {
				either.add(fmt.Sprintf("r.id BETWEEN %d AND %d", s.first, s.last))
			}
		})
	}
	if l.f.Run != 0 {
		c.add("EXISTS (SELECT 1 FROM runs n WHERE n.id = {} AND "+inInput+")", l.f.Run)
	}
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

func (l *lister) addReferIDs(of subject, c *conditions) {
	c.any(func(either *conditions) {
		for _, pattern := range l.f.ReferIDs {
			if prefix, open := strings.CutSuffix(pattern, "*"); open {
				either.add(of.referID+" >= {} AND "+of.referID+" < {}", prefix, prefix+lastText)
			}
		}
		either.add(of.referID + " IN " + bindAll(either, l.f.ReferIDs))
	})
	c.add(of.referID + " <> ''")
}

// lastText sorts after any continuation of a referId.
const lastText = "\U0010ffff"

// idList returns "(1,2,3)", or "(0)", which matches nothing, for no ids.
func idList(ids []int64) string {
	return "(" + cmp.Or(strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", ","), "0") + ")"
}

// listTable is a table from which the ids of rows are read, excluding rows being staged.
type listTable struct{ name, id, visible string }

var (
	listRows = listTable{"rows r", "r.id", isVisible}
	// + makes the database read rows in key order.
	listReferences = listTable{"rows r", "r.id", "+" + isVisible}
	listNumbers    = listTable{"numbers n", "n.row_id", ""}
	listSightings  = listTable{"sightings s", "s.id", "s.id > 0"}
)

// sortKey holds the SQL expressions that a list is ordered by: for a row r with its sighting s and its answer a, and
// for a sighting s without a row. Where known does not hold, the tracking comes last.
type sortKey struct {
	table                 listTable // read for the first rows of a list
	row, known            string
	rowless, rowlessKnown string // the same without a row
}

func sortKeyOf(o ledger.Order) sortKey {
	ofSighting := func(key, known string) sortKey { return sortKey{listSightings, key, known, key, known} }
	const status = "LOWER(COALESCE(NULLIF(s.status_label, ''), NULLIF(s.status_track, ''), NULLIF(s.status, '')))"
	switch o {
	case ledger.ByAsked:
		const asked = "COALESCE((SELECT a.asked FROM answers a WHERE a.refer_id = s.refer_id), 0)"
		return sortKey{listRows, "COALESCE(a.asked, 0)", "1 = 1", asked, "1 = 1"}
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

// sortedQuery returns the query for all ids of a list, and adds the values of its parameters to c.
func (l *lister) sortedQuery(c *conditions, key sortKey) string {
	if l.f.Order == ledger.ByNumber {
		key.row = folded
	}
	query := l.selectRows(c, listRows, "CASE WHEN "+key.known+" THEN "+key.row+" END")
	if l.withoutRow() {
		c.terms = []string{"s.id < 0"}
		query += " UNION ALL SELECT s.id, CASE WHEN " + key.rowlessKnown + " THEN " + key.rowless +
			" END FROM sightings s WHERE " + l.addRowless(c).String()
	}
	return "SELECT id FROM (" + query + ") AS l ORDER BY k IS NULL, k" + l.direction() + ", id < 0, ABS(id)"
}

// selectRows returns a query for the ids of the rows that match the filter and c, and their keys k. It adds the
// filter's conditions to c.
func (l *lister) selectRows(c *conditions, t listTable, key string) string {
	needsBatch := l.has(func(c criterion) bool { return c.needsBatch })
	needsRow := l.has(func(c criterion) bool { return c.needsRow }) || l.f.Run != 0 || !l.f.Created.IsZero()
	from := t.name
	l.addCriteria(ofRow, c)
	l.addRuns(c)
	c.addIf(t.visible != "", t.visible)
	if needsRow && t.id != "r.id" {
		from += " CROSS JOIN rows r"
		c.add("r.id = " + t.id)
	}
	if needsBatch {
		from += " CROSS JOIN batches b"
		c.add("b.id = r.batch_id")
	}
	if t.id != "s.id" { // planners drop it if nothing uses it
		from += " LEFT JOIN sightings s ON s.id = " + t.id
	}
	if l.f.Order == ledger.ByAsked {
		from += " LEFT JOIN answers a ON a.refer_id = r.refer_id"
	}
	return "SELECT " + t.id + " AS id, " + key + " AS k FROM " + from + " WHERE " + c.String()
}

// firstQuery returns the query for the first entries of a list whose key is known: in key order where there is an
// index, else from one table. It adds the values of its parameters to c.
func (l *lister) firstQuery(c *conditions, key sortKey) string {
	first := func(query, id string, limit int) string {
		return fmt.Sprintf("%s ORDER BY k%s, ABS(%s) LIMIT %d OFFSET 0", query, l.direction(), id, limit)
	}
	c.add(key.known)
	parts := []string{first(l.selectRows(c, key.table, key.row), key.table.id, l.f.Limit)}
	if l.withoutRow() { // whether a sighting has a row is looked up in key order
		c.terms = []string{"s.id < 0", key.rowlessKnown}
		seen := first("SELECT s.id, s.refer_id, s.number, s.folded, s.router_id, "+key.rowless+
			" AS k FROM sightings s WHERE "+l.addCriteria(ofSeen, c).String(), "s.id", math.MaxInt64)
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
	key, limit := sortKeyOf(l.f.Order), ""
	if l.f.Limit > 0 && !l.unindexed && !l.has(func(c criterion) bool { return c.inexact }) {
		limit = fmt.Sprint(" LIMIT ", l.f.Limit)
		var c conditions
		query := l.firstQuery(&c, key) + limit
		if first := list(ctx, l, scanOne[int64], query, c.args...); len(first) == l.f.Limit {
			return l.listOf(first)
		} // else what is not known comes after these
	}
	var c conditions
	query := l.sortedQuery(&c, key) + limit
	return l.listOf(list(ctx, l, scanOne[int64], query, c.args...))
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
