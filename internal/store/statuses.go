package store

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// Page sizes, in rows. The first page is short: somebody may be waiting while a filter matches few of many rows.
const (
	firstStatusPage = 50
	statusPage      = 2000
)

// Statuses is for [ledger.Trackings]. Of an unlimited list, the next page is read while the caller uses the current
// one.
func (d *DB) Statuses(ctx context.Context, f ledger.Filter) iter.Seq2[ledger.TrackingStatus, error] {
	return func(yield func(ledger.TrackingStatus, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		left, pages := f.Limit, d.statusPages(ctx, f)
		if left <= 0 {
			left, pages = math.MaxInt, readAhead(cancel, pages)
		}
		for page, err := range pages {
			if err != nil {
				yield(ledger.TrackingStatus{}, err)
				return
			}
			for _, st := range page {
				if !f.Matches(st) {
					continue
				}
				if left--; !yield(st, nil) || left == 0 {
					return
				}
			}
		}
	}
}

func (d *DB) statusPages(ctx context.Context, f ledger.Filter) iter.Seq2[[]ledger.TrackingStatus, error] {
	return func(yield func([]ledger.TrackingStatus, error) bool) {
		l, lists := d.statusLists(ctx, f)
		size := firstStatusPage
		if f.Limit > 0 {
			size = min(size, f.Limit)
		}
		for _, read := range lists {
			for more := true; more && l.err == nil; size = min(2*size, statusPage) {
				var page []ledger.TrackingStatus
				if page, more = read(ctx, size); l.err == nil && !yield(page, nil) {
					return
				}
			}
		}
		if l.err != nil {
			yield(nil, l.err)
		}
	}
}

// readAhead yields the values of seq, and runs seq meanwhile. cancel ends seq early.
func readAhead[T any](cancel func(), seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	type result struct {
		value T
		err   error
	}
	return func(yield func(T, error) bool) {
		results, stop := make(chan result), make(chan struct{})
		go func() {
			defer close(results)
			for v, err := range seq {
				select {
				case results <- result{v, err}:
				case <-stop:
					return
				}
			}
		}()
		defer func() {
			close(stop)
			cancel()
			for range results { // until seq has ended
			}
		}()
		for r := range results {
			if !yield(r.value, r.err) {
				return
			}
		}
	}
}

// statusList reads the next page of a part of a list, of about size entries, and reports whether more may follow. The
// lister keeps its error.
type statusList func(ctx context.Context, size int) (page []ledger.TrackingStatus, more bool)

// statusLists returns lists that together hold at least what the filter matches. Concurrent writes move nothing from
// one list to another.
func (d *DB) statusLists(ctx context.Context, f ledger.Filter) (*lister, []statusList) {
	r := d.reader()
	var unindexed int64
	if f.Order == ledger.ByNumber {
		unindexed, r.err = d.indexNumbers(ctx, 0)
	}
	l := r.newLister(ctx, f)
	l.unindexed = unindexed > 0
	if l.f.Order != ledger.ByCreation || l.f.Descending || l.f.ReferIDs != nil { // ids are sorted first
		return l, []statusList{l.sorted(ctx)}
	}
	lists := l.rows(ctx)
	if l.withoutRow() {
		lists = append(lists, l.rowless())
	}
	return l, lists
}

func (r *reader) newLister(ctx context.Context, f ledger.Filter) *lister {
	if f.Run != 0 {
		requireRun(ctx, r, f.Run)
	}
	for try := 1; ; try++ {
		l := &lister{reader: r, f: f}
		l.readWords()
		l.readRuns(ctx)
		l.readStatuses(ctx)
		l.readCriteria()
		l.readCounts(ctx)
		if l.err != nil || l.countedTo == 0 || l.countedTo == l.visibleTo || try == maxReads {
			return l
		}
	}
}

// maxReads is how often runs and counts are read until both cover the same rows.
const maxReads = 20

// lister makes lists for a filter, and counts their entries.
type lister struct {
	*reader
	f        ledger.Filter
	criteria []criterion
	runs     []rowRun                     // ascending
	known    map[int64]ledger.StatusCount // statuses of trackings, and of numbers alone
	statuses []int64                      // statuses that the filter matches
	final    []int64                      // statuses of delivered trackings
	counts   []trackingCount              // counts that the filter may match
	counted  map[int64]bool               // the runs of counts
	carriers []string                     // spellings of the filter's carrier in the store
	dense    bool                         // the filter matches many trackings by their status

	visibleTo, countedTo int64 // last visible row when runs, and when counts, were read; 0 if none
	unindexed            bool  // rows are missing in the index of numbers

	// See readWords.
	states     []string // row states that may match; nil for none
	notChecked bool     // accepted rows of which nothing is known match
}

type rowRun struct {
	id, first, last int64
	pruned          bool
	created         int64
}

func (l *lister) readRuns(ctx context.Context) {
	l.runs = list(ctx, l, scanInto(func(r *rowRun) []any {
		return []any{&r.id, &r.first, &r.last, &r.pruned, &r.created, &l.visibleTo}
	}), `SELECT id, first_row, last_row, state = 'pruned', created, (`+lastVisible+`) FROM runs
		WHERE state <> 'staged' AND last_row >= first_row ORDER BY first_row`)
}

// readStatuses reads all statuses, and finds those that the filter matches.
func (l *lister) readStatuses(ctx context.Context) {
	l.known = map[int64]ledger.StatusCount{}
	l.each(ctx, func(s scanner) error {
		var id int64
		var c ledger.StatusCount
		err := s.Scan(&id, (*string)(&c.Phase), &c.Status, &c.StatusLabel, &c.StatusTrack)
		l.known[id] = c
		seen := ledger.Sighting{Phase: c.Phase}
		seen.Status, seen.StatusLabel, seen.StatusTrack = c.Status, c.StatusLabel, c.StatusTrack
		if l.f.TakesStatus(seen) {
			l.statuses = append(l.statuses, id)
		}
		if seen.Delivered() {
			l.final = append(l.final, id)
		}
		return err
	}, "SELECT id, phase, status, status_label, status_track FROM statuses")
}

// bounds returns the range of ids that the rows of the list are in.
func (l *lister) bounds(ctx context.Context) (low, high int64) {
	low, high = math.MinInt64, math.MaxInt64
	if l.states != nil && !l.notChecked && len(l.statuses) == 0 && !l.orStuck() {
		var c conditions
		in := bindAll(&c, l.states)
		l.row(ctx, []any{&low, &high}, `SELECT COALESCE(MIN(low), 0), COALESCE(MAX(high), -1) FROM (
			SELECT MIN(first_row) AS low, MAX(last_row) AS high FROM batches WHERE state IN `+in+`
			UNION ALL SELECT MIN(id), MAX(id) FROM rows WHERE state IN `+in+`) AS ranges`, c.args...)
	}
	return low, high
}

func (l *lister) rows(ctx context.Context) (lists []statusList) {
	low, high := l.bounds(ctx)
	if l.f.Run != 0 && l.runWithID(l.f.Run) != nil {
		c := newPageConditions()
		c.add(`r.id BETWEEN CASE WHEN k.row_id <= ?1 THEN ?1 + 1 ELSE k.row_id END AND k.row_id + k.rows - 1
			AND k.run_id = {} AND k.row_id >= COALESCE((SELECT MAX(row_id) FROM run_known_rows
				WHERE run_id = {} AND row_id BETWEEN 1 AND ?1), 0) AND r.id <= ?2`, l.f.Run, l.f.Run)
		l.addCriteria(ofRow, c)
		l.addRuns(c)
		lists = append(lists, l.list(listColumns+"FROM run_known_rows k CROSS JOIN rows r"+rowJoins+"WHERE "+c.String()+
			" ORDER BY k.row_id, r.id LIMIT ?3", c.args, 0, math.MaxInt64))
	}
	c := newPageConditions()
	from, id := `FROM rows r CROSS JOIN batches b
		LEFT JOIN sightings s ON s.id = r.id AND s.id > ?1 AND s.id <= ?2 WHERE b.id = r.batch_id`, "r.id"
	if l.has(func(c criterion) bool { return c.onlySeen }) {
		from, id = `FROM sightings s CROSS JOIN rows r CROSS JOIN batches b WHERE r.id = s.id AND b.id = r.batch_id`, "s.id"
	}
	c.add(id + " > ?1 AND " + id + " <= ?2")
	query := listColumns + from + " AND " + l.addCriteria(ofRow, c).String() + " ORDER BY " + id + " LIMIT ?3"
	for _, s := range l.spans(l.mayTakeRows) {
		if s.first, s.last = max(s.first, low), min(s.last, high); s.first <= s.last {
			lists = append(lists, l.list(query, c.args, s.first-1, s.last))
		}
	}
	return lists
}

// list is a list of rows, or of sightings, by id. In the query, ?1 is the id after which a page begins, ?2 the last id
// of the list, and ?3 the page size, see newPageConditions.
func (l *lister) list(query string, args []any, after, to int64) statusList {
	args = slices.Clone(args)
	return func(ctx context.Context, size int) ([]ledger.TrackingStatus, bool) {
		page := make([]ledger.TrackingStatus, 0, size)
		columns := newStatusScanner()
		args[0], args[1], args[2] = after, to, size
		l.each(ctx, func(s scanner) error {
			id, st, err := columns.scan(s)
			after = max(id, -id)
			l.addRun(&st, id)
			page = append(page, st)
			return err
		}, query, args...)
		return page, len(page) == size
	}
}

// newPageConditions returns conditions for [lister.list].
func newPageConditions() *conditions { return &conditions{args: make([]any, 3)} }

func (l *lister) rowless() statusList {
	c := l.addRowless(newPageConditions())
	query := rowlessColumns + "FROM sightings s WHERE s.id < -CAST(?1 AS BIGINT) AND s.id >= -CAST(?2 AS BIGINT) AND " +
		c.String() + " ORDER BY s.id DESC LIMIT ?3"
	return l.list(query, c.args, 0, math.MaxInt64)
}

// runWithID returns a run, nil if it has no rows.
func (l *lister) runWithID(id int64) *rowRun {
	if i := slices.IndexFunc(l.runs, func(r rowRun) bool { return r.id == id }); i >= 0 {
		return &l.runs[i]
	}
	return nil
}

// addRun adds the run that brought a row in, unless it was pruned, and when that run began.
func (l *lister) addRun(st *ledger.TrackingStatus, row int64) {
	r := l.runAt(row)
	if r == nil || row > r.last {
		return
	}
	st.Created = instant(r.created)
	if !r.pruned {
		st.Run = r.id
	}
}

// runAt returns the last run whose range begins at or before a row, nil if there is none.
func (l *lister) runAt(row int64) *rowRun {
	i, found := slices.BinarySearchFunc(l.runs, row, func(r rowRun, row int64) int { return cmp.Compare(r.first, row) })
	if !found {
		i--
	}
	if i < 0 {
		return nil
	}
	return &l.runs[i]
}
