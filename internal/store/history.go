package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// pageRows is how many rows are read at once. No connection is held between pages.
const pageRows = 1000

// inputCounts counts the distinct rows of a run's input by state: all, and those in batches of other runs.
type inputCounts struct{ all, elsewhere ledger.Counts }

// countRows adds up whole batches and corrects the sums for rows with a state of their own.
func countRows(ctx context.Context, q querier, runs ...int64) map[int64]inputCounts {
	counts := make(map[int64]inputCounts, len(runs))
	inRuns, args := idList(runs), []any(nil)
	if len(runs) == 1 { // a transaction prepares each text
		inRuns, args = "($1)", []any{runs[0]}
	}
	q.each(ctx, func(s scanner) error {
		var run, n int64
		var state ledger.State
		var elsewhere bool
		err := s.Scan(&run, &elsewhere, (*string)(&state), &n)
		c := counts[run]
		c.all.Add(state, n)
		if elsewhere {
			c.elsewhere.Add(state, n)
		}
		counts[run] = c
		return err
	}, `WITH touched AS (SELECT p.run_id, b.run_id <> p.run_id AS elsewhere, p.batch_id, p.rows, b.state
			FROM run_batches p JOIN batches b ON b.id = p.batch_id WHERE p.run_id IN `+inRuns+`),
		apart AS (SELECT t.run_id, t.elsewhere, t.state AS batch_state, r.state AS row_state
			FROM touched t JOIN rows r ON r.batch_id = t.batch_id AND r.state IS NOT NULL
			JOIN runs n ON n.id = t.run_id WHERE `+inInput+`)
		SELECT run_id, elsewhere, state, SUM(rows) FROM touched GROUP BY run_id, elsewhere, state
		UNION ALL SELECT run_id, elsewhere, batch_state, -COUNT(*) FROM apart GROUP BY run_id, elsewhere, batch_state
		UNION ALL SELECT run_id, elsewhere, row_state, COUNT(*) FROM apart GROUP BY run_id, elsewhere, row_state`, args...)
	return counts
}

// CountRows counts the rows of a run's input, see [ledger.Queue].
func (d *DB) CountRows(ctx context.Context, run int64) (ledger.Counts, error) {
	return readFor(d, func(r *reader) ledger.Counts {
		requireRun(ctx, r, run)
		return countRows(ctx, r, run)[run].all
	})
}

// requireRun fails with [ledger.ErrNoRun] unless the run is open.
func requireRun(ctx context.Context, q querier, run int64) {
	var one int
	openRun(ctx, q, run, "1", &one)
}

// openRun is requireRun that reads columns of the run into dest.
func openRun(ctx context.Context, q querier, run int64, columns string, dest ...any) {
	q.require(q.row(ctx, dest, "SELECT "+columns+" FROM runs WHERE id = $1 AND state = 'open'", run), noRun(run))
}

func noRun(run int64) error { return fmt.Errorf("%w: %d", ledger.ErrNoRun, run) }

const runColumns = `SELECT r.id, r.created, r.files, r.mode, r.batch_size, r.new_rows, r.known_rows,
	r.known_pending, r.known_open, r.other_carrier, r.repeats, r.skipped, r.erased, r.requests, r.last_sent, r.filling <> 0
	FROM runs r WHERE r.state = 'open' `

// ownedRun is a run and a process that is staging it or sending its rows.
type ownedRun struct {
	id    int64
	owner string
}

var scanOwnedRun = scanInto(func(o *ownedRun) []any { return []any{&o.id, &o.owner} })

// addCounts adds the data of other tables to all runs at once, and whether living processes work on them.
func (r *reader) addCounts(ctx context.Context, runs []ledger.RunSummary) {
	var all, rejected []int64
	at := map[int64]*ledger.RunSummary{}
	for i := range runs {
		all, at[runs[i].ID] = append(all, runs[i].ID), &runs[i]
	}
	counts := countRows(ctx, r, all...)
	if r.err != nil {
		return
	}
	for run, c := range counts {
		at[run].Counts, at[run].Elsewhere = c.all, c.elsewhere.Accepted
		if c.all.Rejected > 0 {
			rejected = append(rejected, run)
		}
	}
	r.countClosed(ctx, rejected, at)
	ids := idList(all)
	owned := list(ctx, r, scanOwnedRun, "SELECT id, owner FROM runs WHERE id IN "+ids+
		" UNION SELECT run_id, owner FROM batches WHERE run_id IN "+ids+" AND state = 'sending'")
	if r.err != nil {
		return
	}
	alive := r.owners(ctx)
	for _, o := range owned {
		at[o.id].Live = alive(o.owner) || at[o.id].Live
	}
}

// Run returns one run, see [ledger.History].
func (d *DB) Run(ctx context.Context, id int64) (ledger.RunSummary, error) {
	r := d.reader()
	found := r.runs(ctx, runColumns+"AND r.id = $1", id)
	r.require(len(found) > 0, noRun(id))
	if r.err != nil {
		return ledger.RunSummary{}, r.err
	}
	return found[0], nil
}

func (r *reader) runs(ctx context.Context, query string, args ...any) []ledger.RunSummary {
	all := list(ctx, r, scanInto(func(sum *ledger.RunSummary) []any {
		r, n := &sum.Run, &sum.Run.Tally
		return []any{
			&r.ID, (*storedTime)(&r.Created),
			storedJSON{&r.Plan.Files},
			&r.Plan.Mode, &r.Plan.BatchSize,
			&n.New, &n.Known, &n.KnownPending, &n.KnownOpen, &n.OtherCarrier, &n.Repeats, &n.Skipped, &n.Erased,
			&sum.Requests, (*storedTime)(&sum.LastSent), &sum.Partial,
		}
	}), query, args...)
	if r.err == nil && len(all) > 0 {
		r.addCounts(ctx, all)
	}
	return all
}

// Runs yields runs, newest first, see [ledger.History].
func (d *DB) Runs(ctx context.Context, limit int) iter.Seq2[ledger.RunSummary, error] {
	return inPages(d, limit, 50, func(r *reader, last ledger.RunSummary, n int) []ledger.RunSummary {
		before := cmp.Or(last.ID, math.MaxInt64)
		return r.runs(ctx, runColumns+"AND r.id < $1 ORDER BY r.id DESC LIMIT $2", before, n)
	})
}

// Batches yields the batches of a run, see [ledger.History].
func (d *DB) Batches(ctx context.Context, run int64) iter.Seq2[ledger.BatchSummary, error] {
	return func(yield func(ledger.BatchSummary, error) bool) {
		answers := d.reader()
		for b, err := range inPages(d, 0, pageRows, func(r *reader, last ledger.BatchSummary, n int) []ledger.BatchSummary {
			if last.ID == 0 {
				requireRun(ctx, r, run)
			}
			return r.batches(ctx, run, last.ID, n)
		}) {
			answers.fail(err)
			b.Answer, b.AnswerCut = answers.answer(ctx, b.ID)
			if !yield(b, answers.err) || answers.err != nil {
				return
			}
		}
	}
}

// batches returns the next n batches of a run, without their answers.
func (r *reader) batches(ctx context.Context, run, after int64, n int) []ledger.BatchSummary {
	page := list(ctx, r, func(s scanner) (b ledger.BatchSummary, err error) {
		var micros int64
		err = s.Scan(&b.ID, &b.State, &b.Rows, &b.HTTPStatus, &b.Reason, (*storedTime)(&b.Began), &micros)
		b.Took = time.Duration(micros) * time.Microsecond
		return b, err
	}, `SELECT id, state, rows, http_status, reason, began, took FROM batches
		WHERE run_id = $1 AND id > $2 ORDER BY id LIMIT $3`, run, after, n)
	if len(page) == 0 {
		return nil
	}
	at := make(map[int64]*ledger.BatchSummary, len(page))
	for i := range page {
		b := &page[i]
		b.Counts.Add(b.State, b.Rows)
		at[b.ID] = b
	}
	r.each(ctx, func(s scanner) error {
		var id, n int64
		var state ledger.State
		err := s.Scan(&id, &state, &n)
		if b := at[id]; err == nil && b != nil {
			b.Counts.Add(b.State, -n)
			b.Counts.Add(state, n)
		}
		return err
	}, `SELECT b.id, r.state, COUNT(*) FROM batches b JOIN rows r ON r.batch_id = b.id AND r.state IS NOT NULL
		WHERE b.run_id = $1 AND b.id BETWEEN $2 AND $3 GROUP BY b.id, r.state`, run, page[0].ID, page[len(page)-1].ID)
	return page
}

// answer returns the service's answer to a batch, nil if none, and whether it was cut.
func (r *reader) answer(ctx context.Context, batch int64) (raw []byte, cut bool) {
	var packed []byte
	r.row(ctx, []any{&packed, &cut}, "SELECT answer, cut FROM batches WHERE id = $1", batch)
	raw, err := unpack(packed)
	r.fail(err)
	return raw, cut
}

// Pending counts pending rows that are not in the run's input, see [ledger.History].
func (d *DB) Pending(ctx context.Context, except int64) (int64, error) {
	return readFor(d, func(r *reader) int64 {
		all := value[int64](ctx, r, countInBatchState+`FROM runs n
			JOIN batches b ON b.run_id = n.id AND b.state = 'pending' WHERE n.state = 'open'`)
		return max(0, all-countRows(ctx, r, except)[except].all.Pending)
	})
}

// KnownOrders finds new rows of known orders, see [ledger.Stager].
func (d *DB) KnownOrders(ctx context.Context, run int64) (ledger.KnownOrders, error) {
	const (
		earlier = "SELECT MIN(o.id) FROM rows o WHERE o.id < n.first_row AND o.refer_id "
		before  = "COALESCE((" + earlier + "= r.refer_id), (" + earlier +
			"IN (UPPER(r.refer_id), LOWER(r.refer_id), TRIM(r.refer_id))))"
	)
	var o ledger.KnownOrders
	r := d.reader()
	requireRun(ctx, r, run)
	r.row(ctx, []any{&o.Rows, &o.First.ID}, `SELECT COUNT(*), COALESCE(MIN(r.id), 0)
		FROM runs n JOIN rows r ON r.id BETWEEN n.first_row AND n.last_row AND r.id < n.first_row + $2
		WHERE n.id = $1 AND n.first_row > 1 AND `+before+` > 0`, run, ledger.ComparedOrders)
	if r.err != nil || o.Rows == 0 {
		return ledger.KnownOrders{}, r.err
	}
	var files []string
	var file int
	var at int64
	item := &o.First.Item
	dest := []any{
		storedJSON{&files}, &file, &at, &item.ReferID, &item.Number, &item.CarrierCode, &o.Before.ReferID, &o.Before.Number,
	}
	found := r.row(ctx, dest, `SELECT n.files, r.file, r.line, r.refer_id, r.number, r.carrier, o.refer_id, o.number
			FROM runs n JOIN rows r ON r.id = $2 JOIN rows o ON o.id = `+before+` WHERE n.id = $1`, run, o.First.ID)
	r.require(found, noRun(run))
	if found {
		o.First.File = files[file]
		o.First.Line, o.First.Row = placeOf(at)
	}
	return o, r.err
}

// Lookup returns the state of a pair, see [ledger.History].
func (d *DB) Lookup(ctx context.Context, key tracking.Key) (ledger.State, bool, error) {
	var state ledger.State
	r := d.reader()
	ok := r.row(ctx, []any{&state}, `SELECT COALESCE(r.state, b.state) FROM rows r JOIN batches b ON b.id = r.batch_id
		WHERE r.refer_id = $1 AND r.number = $2`+visible, key.ReferID, key.Number)
	return state, ok, r.err
}

// Rows yields the records of a run's input, see [ledger.History].
func (d *DB) Rows(ctx context.Context, run int64) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		var first, last int64 // numbers that the records use
		var files []string
		r := d.reader()
		openRun(ctx, r, run, "first_row, last_row, files", &first, &last, storedJSON{&files})
		for from := first; from <= last && r.err == nil; from += pageRows {
			for _, row := range r.inputPage(ctx, run, from, min(last, from+pageRows-1), files) {
				if r.err == nil && row.ID != 0 && !yield(row, nil) {
					return
				}
			}
		}
		if r.err != nil {
			yield(ledger.Row{}, r.err)
		}
	}
}

// reasonOf is the reason of a row r in a batch b.
const reasonOf = `CASE WHEN r.state IS NOT NULL THEN COALESCE(r.reason, '')
	WHEN b.state IN ('rejected', 'unknown') THEN b.reason ELSE '' END`

// inputPage returns records by their numbers. A number without a record has a row with ID 0.
func (r *reader) inputPage(ctx context.Context, run, from, to int64, files []string) []ledger.Row {
	page := make([]ledger.Row, to-from+1)
	const columns = ", r.id, r.refer_id, r.number, r.carrier, COALESCE(r.state, b.state), " + reasonOf + ", " +
		closeReason + " FROM "
	r.each(ctx, func(s scanner) error {
		var pos, file, at, own int64
		var row ledger.Row
		item := &row.Item
		if err := s.Scan(&pos, &file, &at, &row.Repeat, &own, &row.ID, &item.ReferID, &item.Number, &item.CarrierCode,
			(*string)(&row.State), &row.Reason, (*storedCloseReason)(&row.CloseReason)); err != nil {
			return err
		}
		row.Known = row.ID < own
		row.File = files[file]
		row.Line, row.Row = placeOf(at)
		page[pos-from] = row
		return nil
	}, `WITH own AS (SELECT first_row FROM runs WHERE id = $1)
		SELECT r.id, r.file, r.line, 0, own.first_row`+columns+`own, rows r
			JOIN batches b ON b.id = r.batch_id WHERE r.id BETWEEN $2 AND $3
		UNION ALL SELECT k.pos + r.id - k.row_id, k.file, k.line + (r.id - k.row_id) * k.step, 0, own.first_row`+columns+`
			own, run_known_rows k
			JOIN rows r ON r.id BETWEEN CASE WHEN k.pos < $2 THEN k.row_id + $2 - k.pos ELSE k.row_id END
				AND CASE WHEN k.pos + k.rows > $3 THEN k.row_id + $3 - k.pos ELSE k.row_id + k.rows - 1 END
			JOIN batches b ON b.id = r.batch_id
			WHERE k.run_id = $1 AND k.pos <= $3
			AND k.pos >= (SELECT COALESCE(MAX(pos), 0) FROM run_known_rows WHERE run_id = $1 AND pos <= $2)
		UNION ALL SELECT k.pos, k.file, k.line, 1, own.first_row`+columns+`own, run_known_rows k
			JOIN rows r ON r.id = -k.row_id JOIN batches b ON b.id = r.batch_id
			WHERE k.run_id = $1 AND k.rows = 0 AND k.pos BETWEEN $2 AND $3`, run, from, to)
	return page
}
