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

// Record records answers, see [ledger.Trackings].
func (d *DB) Record(ctx context.Context, answers []ledger.RecordedAnswer) error {
	if len(answers) == 0 {
		return nil
	}
	packed := make([][]byte, len(answers))
	for i, a := range answers {
		if err := checkSeen(a.Seen); err != nil {
			return err
		}
		err := checkText("referId", a.ReferID)
		if err == nil {
			packed[i], err = d.pack.pack(a.Raw)
		}
		if err != nil {
			return err
		}
	}
	namesNumber := func(a ledger.RecordedAnswer) bool { return slices.ContainsFunc(a.Seen, isOfNumber) }
	if slices.ContainsFunc(answers, namesNumber) {
		// Many at once; the rest follows below.
		if _, err := d.indexNumbers(ctx, maxUnindexed); err != nil {
			return err
		}
	}
	return d.run(ctx, func(ctx context.Context, t *tx) {
		t.recordSightings(ctx, t.seenIn(ctx, answers))
		kept := slices.Clone(packed) // the transaction may be retried
		t.dropErasedAnswers(ctx, answers, kept)
		t.keepAnswers(ctx, answers, kept)
	})
}

func isOfNumber(s ledger.Sighting) bool { return s.Key.ReferID == "" }

// seenIn returns the sightings in answers; those of a number alone also for each row with that number.
func (t *tx) seenIn(ctx context.Context, answers []ledger.RecordedAnswer) (all []ledger.Sighting) {
	for _, a := range answers {
		for _, s := range a.Seen {
			var rows []ledger.Sighting
			if isOfNumber(s) {
				t.indexAllNumbers(ctx)
				rows = t.sightingsOf(ctx, s, selectRowsOfNumber, tracking.FoldNumber(s.Key.Number))
			}
			all = append(append(all, s), rows...)
		}
	}
	return all
}

// checkSeen returns an error that matches [ledger.ErrText] if a name can't be stored.
func checkSeen(seen []ledger.Sighting) error {
	for _, s := range seen {
		if err := checkText("referId", s.Key.ReferID, "trackingNumber", s.Key.Number); err != nil {
			return err
		}
	}
	return nil
}

var insertAnswers = newMultiInsert("INSERT INTO answers (refer_id, seen, asked, raw)", "tiib",
	` ON CONFLICT (refer_id) DO UPDATE SET seen = excluded.seen, asked = excluded.asked, raw = excluded.raw
		WHERE excluded.seen >= answers.seen`)

// keepAnswers stores each answer and the time of its query, unless a later answer is stored.
func (t *tx) keepAnswers(ctx context.Context, answers []ledger.RecordedAnswer, packed [][]byte) {
	type answer struct {
		ref  string
		n    int // in answers
		seen int64
	}
	var all []answer
	at := map[string]int{} // in all: one statement can't change a row twice
	add := func(one answer) {
		if i, again := at[one.ref]; !again {
			at[one.ref], all = len(all), append(all, one)
		} else if one.seen >= all[i].seen {
			all[i] = one
		}
	}
	for n, a := range answers {
		switch {
		case packed[n] == nil:
		case a.ReferID != "":
			add(answer{a.ReferID, n, millis(a.Asked)})
		default:
			seen := millis(a.Asked)
			for _, s := range a.Seen {
				seen = max(seen, millis(s.Seen))
				add(answer{s.Key.ReferID, n, seen})
			}
		}
	}
	insertAnswers.exec(ctx, t, len(all), func(args []any, i int) []any {
		n := all[i].n
		asked := millis(answers[n].Asked)
		return append(args, all[i].ref, all[i].seen, asked, packed[n])
	})
}

// LastAnswer returns the last answer for a referId, see [ledger.Trackings].
func (d *DB) LastAnswer(ctx context.Context, referID string) ([]byte, error) {
	r := d.reader()
	raw, err := unpack(value[[]byte](ctx, r, "SELECT raw FROM answers WHERE refer_id = $1", referID))
	r.fail(err)
	return raw, r.err
}

// Columns of a status: of a row with its batch and its sighting, if it has one, or of a sighting without a row.
var (
	rowColumns = rowStart + `(SELECT CASE n.state WHEN 'pruned' THEN 0 ELSE n.id END FROM runs n
		WHERE n.first_row <= r.id ORDER BY n.first_row DESC, n.id DESC LIMIT 1), ` + rowRest
	// listColumns are rowColumns without the run.
	listColumns = rowStart + "0, " + rowRest

	rowStart = `SELECT r.id, r.refer_id, r.number, r.carrier, COALESCE(r.state, b.state), ` + reasonOf + `, `
	rowRest  = `COALESCE((SELECT a.asked FROM answers a WHERE a.refer_id = r.refer_id), 0),
		CASE b.began WHEN 0 THEN 0 ELSE b.began + b.took / 1000 END, ` + unverifiedBegin + folded + unverifiedEnd +
		closeReason + ", r.own, s.id, " + sightingColumns + " "

	// rowlessColumns are the columns of a sighting without a row.
	rowlessColumns = `SELECT s.id, s.refer_id, s.number, s.carrier, '', '', 0,
		COALESCE((SELECT a.asked FROM answers a WHERE a.refer_id = s.refer_id), 0), 0, ` +
		unverifiedBegin + "s.folded" + unverifiedEnd + "0, NULL, s.id, " + sightingColumns + " "
)

const (
	rowJoins = " JOIN batches b ON b.id = r.batch_id LEFT JOIN sightings s ON s.id = r.id "
	indexed  = "(SELECT value FROM counters WHERE name = 'indexed')"
	visible  = " AND " + isVisible + " "
	// isVisible holds for a row r that is not being staged.
	isVisible = "r.id <= (" + lastVisible + ")"
	// lastVisible is the last visible row: the rows of a run being staged come after it.
	lastVisible = "SELECT value FROM counters WHERE name = 'row'"
	// The folded number of row r.
	folded = "COALESCE(s.folded, fold_number(r.number))"
	// The latest unverified event about the folded number between these two.
	unverifiedBegin = "COALESCE((SELECT e.seq FROM events e WHERE e.folded = "
	unverifiedEnd   = ` AND e.verified <> 'yes' AND e.verified <> 'unsigned' AND e.mark = '' AND e.synthetic = 0
		ORDER BY e.seq DESC LIMIT 1), 0), `
)

// rowless holds for a sighting without a row; for one of a number alone, only if no sighting with a referId has the
// same number or routerId.
const (
	rowless = `(s.id < 0 AND (s.refer_id <> ''
		OR NOT EXISTS (SELECT 1 FROM sightings o WHERE o.folded = s.folded AND o.refer_id <> ''` + perRow + `)
		AND NOT EXISTS (SELECT 1 FROM sightings o
			WHERE o.router_id = s.router_id AND o.router_id <> '' AND o.refer_id <> ''` + perRow + "))) "
	perRow = " LIMIT 1 OFFSET 0" // the OFFSET makes PostgreSQL look each row up instead of reading all
)

// manyFound is how many queries one statement answers if there is more than one: as many as package poll loads at once.
const manyFound = 256

// findQuery finds rows, and sightings without a row, by referIds, numbers or ids. The parameters are these keys; each
// result row ends with the index of its key. late finds rows that are missing in the index of numbers.
type findQuery struct{ rows, late, seen string }

type findStatements struct{ byReferID, byNumber, byID, seenByID [2]findQuery }

// findQueries are the queries for one and for manyFound keys; byID finds rows, seenByID sightings.
var findQueries = sync.OnceValue(func() (f findStatements) {
	from := func(parameters, table string) string {
		return ", v.column1 FROM (VALUES " + parameters + ") v CROSS JOIN " + table
	}
	for i, n := range []int{1, manyFound} {
		parameters := joined(n, func(index int) string { return fmt.Sprintf("(%d, ?)", index) })
		ids := joined(n, func(index int) string { return fmt.Sprintf("(%d, CAST(? AS BIGINT))", index) })
		rows := rowColumns + from(parameters, "rows r") + rowJoins + "WHERE "
		seen := rowlessColumns + from(parameters, "sightings s WHERE ")
		f.byReferID[i] = findQuery{
			rows: rows + "r.refer_id = v.column2" + visible,
			seen: seen + "s.refer_id = v.column2 AND " + rowless,
		}
		f.byNumber[i] = findQuery{
			rows: rowColumns + from(parameters, "numbers n CROSS JOIN rows r") + rowJoins +
				"WHERE n.folded = v.column2 AND r.id = n.row_id" + visible,
			late: rows + "r.id > " + indexed + " AND fold_number(r.number) = v.column2" + visible,
			seen: seen + "s.folded = v.column2 AND " + rowless,
		}
		f.byID[i].rows = rowColumns + from(ids, "rows r") + rowJoins + "WHERE r.id = v.column2"
		f.seenByID[i].seen = rowlessColumns + from(ids, "sightings s") + " WHERE s.id = v.column2 AND s.id < 0"
	}
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

// FindAll is Find for many queries, see [ledger.Trackings].
func (d *DB) FindAll(ctx context.Context, qs []tracking.Query) ([][]ledger.TrackingStatus, error) {
	f := finder{reader: d.reader(), found: make([][]foundStatus, len(qs))}
	var byReferID, byNumber []int
	for i, q := range qs {
		if q.ReferID != "" {
			byReferID = append(byReferID, i)
		} else {
			byNumber = append(byNumber, i)
		}
	}
	f.find(ctx, findQueries().byReferID, byReferID, func(i int) any { return qs[i].ReferID })
	if f.err == nil && len(byNumber) > 0 {
		var mayMiss, missing int64
		if len(byNumber) == 1 {
			mayMiss = maxUnindexed
		}
		missing, f.err = d.indexNumbers(ctx, mayMiss)
		f.late = missing > 0
		f.find(ctx, findQueries().byNumber, byNumber, func(i int) any { return tracking.FoldNumber(qs[i].Number) })
	}
	if f.err != nil {
		return nil, f.err
	}
	all := make([][]ledger.TrackingStatus, len(qs))
	for i, found := range f.found {
		slices.SortFunc(found, func(a, b foundStatus) int { // rows by creation, then trackings only seen
			return cmp.Or(cmp.Compare(flag(a.id < 0), flag(b.id < 0)), cmp.Compare(max(a.id, -a.id), max(b.id, -b.id)))
		})
		for _, one := range found {
			all[i] = append(all[i], one.TrackingStatus)
		}
	}
	return all, nil
}

type finder struct {
	*reader
	late  bool            // the index of numbers lacks rows
	found [][]foundStatus // by key
}

type foundStatus struct {
	id int64 // of the row, or of the sighting without one, which is negative
	ledger.TrackingStatus
}

// find finds what is known of the keys with these numbers.
func (f *finder) find(ctx context.Context, queries [2]findQuery, numbers []int, key func(int) any) {
	width, query := 1, queries[0]
	if len(numbers) > 1 {
		width, query = manyFound, queries[1]
	}
	args := make([]any, width)
	for part := range slices.Chunk(numbers, width) {
		clear(args) // NULL finds nothing
		for i, n := range part {
			args[i] = key(n)
		}
		for _, text := range []string{query.rows, query.late, query.seen} {
			if text == "" || text == query.late && !f.late {
				continue
			}
			columns := newStatusScanner()
			f.each(ctx, func(s scanner) error {
				var index int
				id, st, err := columns.scan(s, &index)
				if err == nil {
					f.found[part[index]] = append(f.found[part[index]], foundStatus{id, st})
				}
				return err
			}, text, args...)
		}
	}
}

// The index of rows by tracking number. Since numbers come in no order, updating it with each row would double the
// cost of a row. So it is updated when it is needed, many rows at once and in order; the last few rows are scanned.
const (
	maxUnindexed = 5_000   // so many rows may be missing
	indexAtOnce  = 100_000 // so many are added in one transaction
)

// rowAndIndexed are the last visible row and the last one in the index.
const rowAndIndexed = "SELECT (" + lastVisible + "), " + indexed

// indexNumbers updates the index, except for up to mayMiss rows, and returns how many are missing. More are missing if
// the store can't be written now.
func (d *DB) indexNumbers(ctx context.Context, mayMiss int64) (missing int64, err error) {
	for {
		var last, done int64
		r := d.reader()
		if r.row(ctx, []any{&last, &done}, rowAndIndexed); r.err != nil || last-done <= mayMiss {
			return last - done, r.err
		}
		_, err := runFor(ctx, d, func(ctx context.Context, t *tx) bool { return t.indexSomeNumbers(ctx) })
		if errors.Is(err, ErrReadOnly) || errors.Is(err, ErrFull) || errors.Is(err, ErrLocked) {
			return last - done, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// indexAllNumbers is [DB.indexNumbers] for all rows, in the current transaction.
func (t *tx) indexAllNumbers(ctx context.Context) {
	for t.indexSomeNumbers(ctx) {
	}
}

// indexSomeNumbers reports whether rows were missing.
func (t *tx) indexSomeNumbers(ctx context.Context) bool {
	var last, done int64
	t.row(ctx, []any{&last, &done}, rowAndIndexed)
	if done >= last {
		return false
	}
	upTo := min(last, done+indexAtOnce)
	t.exec(ctx, `INSERT INTO numbers (folded, row_id) SELECT fold_number(number) AS f, id FROM rows
		WHERE id > $1 AND id <= $2 ORDER BY f, id`, done, upTo)
	t.exec(ctx, "UPDATE counters SET value = $1 WHERE name = 'indexed'", upTo)
	return true
}
