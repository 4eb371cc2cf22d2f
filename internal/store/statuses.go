package store

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// Rows of a page of statuses. The first one is short: somebody may wait for it
// while a filter takes few of many rows.
const (
	firstStatusPage = 50
	statusPage      = 2000
)

// Statuses yields what is known of trackings, see [ledger.Trackings].
func (d *DB) Statuses(ctx context.Context, account string, f ledger.Filter) iter.Seq2[ledger.TrackingStatus, error] {
	return func(yield func(ledger.TrackingStatus, error) bool) {
		left := f.Limit
		if left <= 0 {
			left = math.MaxInt
		}
		lists, err := d.statusLists(ctx, account, f)
		defer closeLists(lists)
		size := min(firstStatusPage, left)
		for _, l := range lists {
			for more := true; more && err == nil; size = min(2*size, statusPage) {
				var page []ledger.TrackingStatus
				if page, more, err = l.next(ctx, size); err != nil {
					break
				}
				if left = yieldPage(page, f, left, yield); left < 0 {
					return
				}
			}
		}
		if err != nil {
			yield(ledger.TrackingStatus{}, err)
		}
	}
}

// closeLists closes the files of lists.
func closeLists(lists []statusList) {
	for _, l := range lists {
		if c, ok := l.(io.Closer); ok {
			_ = c.Close() // nobody reads it again
		}
	}
}

// yieldPage yields what matches of a page, up to left of them, and returns how
// many more may follow: -1 for none, or if the caller stopped.
func yieldPage(page []ledger.TrackingStatus, f ledger.Filter, left int, yield func(ledger.TrackingStatus, error) bool) int {
	for _, st := range page {
		if !f.Matches(st) {
			continue
		}
		if left--; !yield(st, nil) || left == 0 {
			return -1
		}
	}
	return left
}

// statusList is a part of a list, read page by page.
type statusList interface {
	// next returns the next page, about so long, and whether more may follow.
	next(ctx context.Context, size int) ([]ledger.TrackingStatus, bool, error)
}

// statusLists returns the lists that together hold at least what the filter
// takes. What is written while they are read moves nothing from one to another.
func (d *DB) statusLists(ctx context.Context, account string, f ledger.Filter) ([]statusList, error) {
	if f.Run != 0 {
		if err := d.requireRun(ctx, f.Run); err != nil {
			return nil, err
		}
	}
	l := lister{d: d, f: f}
	var err error
	if l.account, err = d.accountID(ctx, account); err != nil {
		return nil, err
	}
	if err := d.indexForList(ctx, f.Status != "" || !f.SeenSince.IsZero() || !f.StaleSince.IsZero()); err != nil {
		return nil, err
	}
	if _, err := d.row(ctx, []any{&l.numbered}, "SELECT "+numbered); err != nil {
		return nil, err
	}
	if err := l.readRuns(ctx); err != nil {
		return nil, err
	}
	if err := l.readStatuses(ctx); err != nil {
		return nil, err
	}
	var lists []statusList
	if f.LeastRecentlyAsked {
		sorted, err := l.leastRecentlyAsked(ctx)
		if err != nil {
			return nil, err
		}
		lists = append(lists, sorted)
	} else if lists, err = l.rows(ctx); err != nil {
		return nil, err
	}
	if f.Run == 0 && f.State == "" {
		lists = append(lists, l.unheld())
	}
	return lists, nil
}

// lister makes lists for a filter.
type lister struct {
	d        *DB
	f        ledger.Filter
	account  int64
	numbered int64    // rows up to this one have their sighting by its id
	runs     []rowRun // of the account, ascending
	statuses []int64  // those that the filter takes
	dense    bool     // many trackings have these
	final    []int64  // those of what was delivered
}

// rowRun is the range of the rows of a run.
type rowRun struct{ id, first, last int64 }

// indexForList brings the index of numbers up to date where a list needs it: for
// sightings of numbers alone, and to filter and count by what is known.
func (d *DB) indexForList(ctx context.Context, byKnown bool) error {
	var unowned bool
	_, err := d.row(ctx, []any{&unowned}, "SELECT EXISTS (SELECT 1 FROM sightings WHERE account_id = 0)")
	switch {
	case err != nil:
		return err
	case unowned:
		return d.indexNumbers(ctx, 0)
	case byKnown:
		return d.indexNumbers(ctx, maxUnindexed)
	}
	return nil
}

func (l *lister) readRuns(ctx context.Context) (err error) {
	l.runs, err = list(ctx, l.d.each, func(s scanner) (r rowRun, err error) {
		err = s.Scan(&r.id, &r.first, &r.last)
		return r, err
	}, `SELECT CASE state WHEN 'pruned' THEN 0 ELSE id END, first_row, last_row FROM runs
		WHERE account_id = $1 AND state <> 'staged' AND last_row >= first_row ORDER BY first_row`, l.account)
	return err
}

// readStatuses finds the statuses that the filter takes, and those of what was
// delivered.
func (l *lister) readStatuses(ctx context.Context) error {
	if l.f.Status == "" && l.f.StaleSince.IsZero() {
		return nil
	}
	var taken, all int64
	err := l.d.each(ctx, func(s scanner) error {
		var id, trackings int64
		var seen ledger.Sighting
		err := s.Scan(&id, &trackings, &seen.Status, &seen.StatusLabel, &seen.StatusTrack)
		all += trackings
		if seen.HasStatus(l.f.Status) {
			l.statuses = append(l.statuses, id)
			taken += trackings
		}
		if seen.Delivered() {
			l.final = append(l.final, id)
		}
		return err
	}, "SELECT id, trackings, status, status_label, status_track FROM statuses WHERE account_id IN (0, $1)", l.account)
	l.dense = taken > all/50
	return err
}

// spans returns the ranges of ids in which the rows of the list are, but for
// those of earlier runs that a run's input names.
func (l *lister) spans(ctx context.Context) ([]rowRun, error) {
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	var err error
	switch {
	case l.f.State != "":
		_, err = l.d.row(ctx, []any{&low, &high}, `SELECT COALESCE(MIN(low), 0), COALESCE(MAX(high), -1) FROM (
			SELECT MIN(first_row) AS low, MAX(last_row) AS high FROM batches WHERE state = $1
			UNION ALL SELECT MIN(id), MAX(id) FROM rows WHERE state = $1)`, string(l.f.State))
	case !l.f.StaleSince.IsZero():
		_, err = l.d.row(ctx, []any{&low, &high}, "SELECT COALESCE(MIN(first_row), 0), COALESCE(MAX(last_row), -1) FROM batches WHERE began + took / 1000 <= $1", millis(l.f.StaleSince))
	}
	if err != nil {
		return nil, err
	}
	var spans []rowRun
	for _, r := range l.runs {
		if l.f.Run != 0 && r.id != l.f.Run {
			continue
		}
		r.first, r.last = max(r.first, low), min(r.last, high)
		if end := len(spans) - 1; end >= 0 && spans[end].last+1 == r.first {
			spans[end].last = r.last
		} else if r.first <= r.last {
			spans = append(spans, r)
		}
	}
	return spans, nil
}

// rows returns the lists of rows.
func (l *lister) rows(ctx context.Context) ([]statusList, error) {
	spans, err := l.spans(ctx)
	if err != nil {
		return nil, err
	}
	var lists []statusList
	if l.f.Run != 0 && l.ownsRun() {
		lists = append(lists, l.list(rowColumns+"FROM run_known_rows k CROSS JOIN rows r ON r.id BETWEEN CASE WHEN k.row_id <= ?1 THEN ?1 + 1 ELSE k.row_id END AND k.row_id + k.rows - 1"+rowJoins+
			fmt.Sprintf("WHERE k.run_id = %[1]d AND k.row_id >= COALESCE((SELECT MAX(row_id) FROM run_known_rows WHERE run_id = %[1]d AND row_id <= ?1), 0) AND r.id <= ?2", l.f.Run)+
			" AND (r.id > "+numbered+" OR "+l.where()+") ORDER BY k.row_id, r.id LIMIT ?3", statusWidth, 0, math.MaxInt64))
	}
	from, id := "FROM rows r CROSS JOIN batches b ON b.id = r.batch_id LEFT JOIN sightings s ON s.id = r.id", "r.id"
	if l.f.Status != "" || !l.f.SeenSince.IsZero() {
		from, id = "FROM sightings s CROSS JOIN rows r ON r.id = s.id CROSS JOIN batches b ON b.id = r.batch_id", "s.id"
	}
	quick := listColumns + from + " WHERE " + id + " > ?1 AND " + id + " <= ?2 AND " + l.where() + " ORDER BY " + id + " LIMIT ?3"
	slow := rowColumns + rowTables + "WHERE r.id > ?1 AND r.id <= ?2 ORDER BY r.id LIMIT ?3"
	for _, s := range spans {
		if s.first <= l.numbered && (l.f.Status == "" || len(l.statuses) > 0) {
			lists = append(lists, l.list(quick, statusAlone, s.first-1, min(s.last, l.numbered)))
		}
		if s.last > l.numbered {
			lists = append(lists, l.list(slow, statusWidth, max(s.first-1, l.numbered), s.last))
		}
	}
	return lists, nil
}

func (l *lister) ownsRun() bool {
	return slices.ContainsFunc(l.runs, func(r rowRun) bool { return r.id == l.f.Run })
}

// where returns the condition of the filter on a numbered row r, its batch b and
// its sighting s.
func (l *lister) where() string {
	all := []string{"1 = 1"}
	if l.f.Status != "" {
		column := "s.status_id"
		if len(l.statuses) != 1 && l.dense {
			column = "+s.status_id" // in the order of rows
		}
		all = append(all, column+" IN "+idList(l.statuses))
	}
	if !l.f.SeenSince.IsZero() {
		all = append(all, fmt.Sprint("s.seen >= ", millis(l.f.SeenSince)))
	}
	if !l.f.StaleSince.IsZero() {
		all = append(all, fmt.Sprintf("COALESCE(r.state, b.state) = 'accepted' AND b.began + b.took / 1000 <= %[1]d AND (s.id IS NULL OR s.seen < %[1]d AND s.status_id NOT IN %[2]s)",
			millis(l.f.StaleSince), idList(l.final)))
	}
	if l.f.State != "" {
		all = append(all, "COALESCE(r.state, b.state) = '"+strings.ReplaceAll(string(l.f.State), "'", "''")+"'")
	}
	return strings.Join(all, " AND ")
}

// idList returns "(1,2,3)".
func idList(ids []int64) string {
	return "(" + strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", ",") + ")"
}

// list returns the list of what a query finds.
func (l *lister) list(query string, width int, after, to int64) *queriedList {
	return &queriedList{lister: l, query: query, width: width, after: after, to: to}
}

// unheld returns the list of what is no row's.
func (l *lister) unheld() *queriedList {
	account := fmt.Sprint(l.account)
	conditions := ""
	if l.f.Status != "" {
		conditions = " AND +s.status_id IN " + idList(l.statuses)
	}
	return l.list(unheldColumns+"FROM sightings s WHERE s.id < -?1 AND s.id >= -?2 AND +s.account_id IN (0, "+account+")"+conditions+
		" AND "+unheld(account)+" ORDER BY s.id DESC LIMIT ?3", statusWidth, 0, math.MaxInt64)
}

// queriedList is a list of rows, or of sightings, by their ids.
type queriedList struct {
	*lister
	query     string // ?1 is the id after which the page begins, ?2 the last one there may be, ?3 how long it is
	width     int    // of its columns
	after, to int64
}

func (l *queriedList) next(ctx context.Context, size int) ([]ledger.TrackingStatus, bool, error) {
	page := make([]ledger.TrackingStatus, 0, size)
	columns := newStatusScanner()
	err := l.d.each(ctx, func(s scanner) error {
		id, st, err := columns.scan(s, l.width)
		l.after = max(id, -id)
		if l.width == statusAlone {
			st.Run = l.runOf(id)
		}
		page = append(page, st)
		return err
	}, l.query, l.after, l.to, size)
	return page, len(page) == size, err
}

// runOf returns the run that brought a row in, 0 if it was pruned.
func (l *lister) runOf(row int64) int64 {
	i, found := slices.BinarySearchFunc(l.runs, row, func(r rowRun, row int64) int { return int(min(max(r.first-row, -1), 1)) })
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return l.runs[i].id
}

// leastRecentlyAsked returns the list of rows in the order in which the service
// was asked about them.
func (l *lister) leastRecentlyAsked(ctx context.Context) (*sortedList, error) {
	run := ""
	if l.f.Run != 0 {
		run = fmt.Sprintf(" AND EXISTS (SELECT 1 FROM runs n WHERE n.id = %d AND %s)", l.f.Run, inInput)
	}
	file, err := disk.Temp()
	if err != nil {
		return nil, err
	}
	sorted := &sortedList{lister: l, file: file}
	ids := bufio.NewWriter(file)
	err = l.d.each(ctx, func(s scanner) error {
		var id int64
		if err := s.Scan(&id); err != nil {
			return err
		}
		sorted.left++
		return binary.Write(ids, binary.LittleEndian, id)
	}, "SELECT r.id FROM rows r CROSS JOIN batches b ON b.id = r.batch_id LEFT JOIN sightings s ON s.id = r.id LEFT JOIN answers a ON a.account_id = r.account_id AND a.refer_id = r.refer_id WHERE +r.account_id = $1"+
		visible+run+" AND (r.id > "+numbered+" OR "+l.where()+") ORDER BY COALESCE(a.asked, 0), r.id", l.account)
	if err == nil {
		err = ids.Flush()
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	sorted.ids = bufio.NewReader(file)
	return sorted, nil
}

// sortedList is a list of rows whose ids were sorted when it began: their order
// changes while it is read. They wait in a file.
type sortedList struct {
	*lister
	file *os.File
	ids  *bufio.Reader
	left int // ids that were not read
}

// Close removes the file.
func (l *sortedList) Close() error { return l.file.Close() }

func (l *sortedList) next(ctx context.Context, _ int) ([]ledger.TrackingStatus, bool, error) {
	ids := make([]int64, min(manyFound, l.left))
	if len(ids) == 0 {
		return nil, false, nil
	}
	if err := binary.Read(l.ids, binary.LittleEndian, ids); err != nil {
		return nil, false, err
	}
	l.left -= len(ids)
	page := make([]ledger.TrackingStatus, 0, len(ids))
	columns := newStatusScanner()
	args := make([]any, 1+manyFound)
	for i, id := range ids {
		args[1+i] = id
	}
	err := l.d.each(ctx, func(s scanner) error {
		_, _, st, err := columns.scanFound(s)
		page = append(page, st)
		return err
	}, l.d.sql.find.byID, args...)
	return page, l.left > 0, err
}

// CountByStatus counts trackings, see [ledger.Trackings].
func (d *DB) CountByStatus(ctx context.Context, account string) ([]ledger.StatusCount, error) {
	id, err := d.accountID(ctx, account)
	if err != nil {
		return nil, err
	}
	if err := d.indexForList(ctx, true); err != nil {
		return nil, err
	}
	return list(ctx, d.each, func(s scanner) (c ledger.StatusCount, err error) {
		err = s.Scan((*string)(&c.Phase), &c.Status, &c.StatusLabel, &c.StatusTrack, &c.Trackings)
		return c, err
	}, `WITH late AS (SELECT r.id, r.account_id, r.refer_id, r.number FROM rows r WHERE r.id > `+numbered+visible+` AND +r.account_id = $1),
		counted AS (SELECT id, trackings FROM statuses WHERE account_id = $1 AND trackings > 0
			UNION ALL SELECT s.status_id, COUNT(*) FROM sightings s WHERE s.account_id = 0 AND `+unheld("$1")+`GROUP BY s.status_id)
		SELECT phase, status, status_label, status_track, SUM(n) FROM (
			SELECT t.phase, t.status, t.status_label, t.status_track, c.trackings AS n FROM counted c JOIN statuses t ON t.id = c.id
			UNION ALL SELECT '', '', '', '', COUNT(*) FROM late l WHERE NOT EXISTS
				(SELECT 1 FROM sightings s WHERE s.account_id = l.account_id AND s.refer_id = l.refer_id AND s.number = l.number)) AS k
		GROUP BY phase, status, status_label, status_track HAVING SUM(n) > 0 ORDER BY SUM(n) DESC, phase, status, status_label, status_track`, id)
}
