package store

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// reasonUnchecked is the reason of an unknown row that is to be queried before it is sent.
const reasonUnchecked = "not sent from this store: checked with the service first"

// Unknown yields the unknown rows of a run's input, see [ledger.UnknownRows].
func (d *DB) Unknown(ctx context.Context, run int64) iter.Seq2[ledger.UnknownRow, error] {
	return d.inState(ctx, run, ledger.Unknown)
}

// Accepted yields the accepted rows of a run's input, see [ledger.UnknownRows].
func (d *DB) Accepted(ctx context.Context, run int64) iter.Seq2[ledger.UnknownRow, error] {
	return d.inState(ctx, run, ledger.Accepted)
}

func (d *DB) inState(ctx context.Context, run int64, state ledger.State) iter.Seq2[ledger.UnknownRow, error] {
	return func(yield func(ledger.UnknownRow, error) bool) {
		r := d.reader()
		for b, err := range inPages(d, 0, 1, func(r *reader, last source, n int) []source {
			if last.id == 0 {
				requireRun(ctx, r, run)
			}
			return list(ctx, r, scanSource, batchesWithState, run, last.id, n, string(state))
		}) {
			r.fail(err)
			page := list(ctx, r, d.scanUnknownRow, selectUnknownRow+`JOIN runs n ON n.id = $1 WHERE b.id = $2
				AND COALESCE(r.state, b.state) = $3 AND `+inInput+" ORDER BY r.id", run, b.id, string(state))
			if r.err != nil {
				yield(ledger.UnknownRow{}, r.err)
				return
			}
			for _, x := range page {
				if !yield(x, nil) {
					return
				}
			}
		}
	}
}

// batchesWithState finds the next batches that may hold rows of a run's input in a state.
const batchesWithState = `SELECT b.id, b.first_row, b.last_row, b.rows, p.rows = b.rows
	FROM run_batches p JOIN batches b ON b.id = p.batch_id WHERE p.run_id = $1 AND p.batch_id > $2
	AND (b.state = $4 OR EXISTS (SELECT 1 FROM rows r WHERE r.batch_id = b.id AND r.state IS NOT NULL AND r.state = $4))
	ORDER BY p.batch_id LIMIT $3`

// The columns of an unknown row, from a row r with its batch b.
const (
	siblings         = "(SELECT COUNT(*) FROM rows s WHERE s.refer_id = r.refer_id) - 1"
	selectUnknownRow = "SELECT r.id, b.id, b.run_id, r.refer_id, r.number, r.carrier, " + siblings + `,
		b.began, b.began + (b.took + 999) / 1000, COALESCE(d.absent, 0), COALESCE(d.boot, ''), COALESCE(d.uptime, 0),
		COALESCE(d.fingerprint, ''), CASE WHEN r.state IS NULL THEN b.shape ELSE '' END
		FROM batches b JOIN rows r ON r.id BETWEEN b.first_row AND b.last_row AND r.batch_id = b.id
		LEFT JOIN absences d ON d.row_id = r.id AND d.batch_id = b.id `
)

func (d *DB) scanUnknownRow(s scanner) (ledger.UnknownRow, error) {
	var x ledger.UnknownRow
	var began, ended, up int64
	var boot string
	err := s.Scan(&x.Row, &x.Batch, &x.Run, &x.Item.ReferID, &x.Item.Number, &x.Item.CarrierCode, &x.Siblings,
		&began, &ended, (*storedTime)(&x.AbsentSince), &boot, &up, &x.Fingerprint, &x.Shape)
	if x.Unsent = began == 0; !x.Unsent {
		x.Ended = instant(ended)
	}
	if boot != "" && boot == d.engine.Clock.ID() {
		ago := d.engine.Clock.Now() - time.Duration(up)*time.Millisecond
		if (time.Since(x.AbsentSince) - ago).Abs() >= time.Second { // the wall clock was set since
			x.AbsentSince = time.Now().Add(-ago)
		}
	}
	return x, err
}

// MarkUnknown makes accepted rows unknown, see [ledger.UnknownRows].
func (d *DB) MarkUnknown(ctx context.Context, rows []ledger.UnknownRow, reason string) (int64, error) {
	return runFor(ctx, d, func(ctx context.Context, t *tx) int64 {
		applied := t.stillInState(ctx, ledger.Accepted, rows)
		t.setRowStates(ctx, len(applied), func(n int) (int64, ledger.State, string) {
			return applied[n], ledger.Unknown, reason
		})
		return int64(len(applied))
	})
}

// batchedRow is the batch of a row, and how many other rows have its referId.
type batchedRow struct {
	batch
	siblings int64
}

var (
	selectRowsInState = newKeyStatement[int64]('i', "SELECT r.id, b.id, b.first_row, b.last_row, b.rows, "+siblings+`
		FROM rows r JOIN batches b ON b.id = r.batch_id WHERE COALESCE(r.state, b.state) = ? AND r.id`, "")
	updateRowStates = newMultiInsert("WITH given (id, state, reason) AS (", "itt", `)
		UPDATE rows SET state = given.state, reason = given.reason FROM given WHERE rows.id = given.id`)
	deleteAbsences = newKeyStatement[int64]('i', "DELETE FROM absences WHERE row_id", "")
	insertAbsences = newMultiInsert("INSERT INTO absences (row_id, batch_id, absent, fingerprint, boot, uptime)", "iiitti",
		` ON CONFLICT (row_id) DO UPDATE SET batch_id = excluded.batch_id, absent = excluded.absent,
		fingerprint = excluded.fingerprint, boot = excluded.boot, uptime = excluded.uptime`)
)

// rowsInState returns the rows that are in that state, by id.
func (t *tx) rowsInState(ctx context.Context, state ledger.State, rows []int64) map[int64]batchedRow {
	found := make(map[int64]batchedRow, len(rows))
	selectRowsInState.each(ctx, t, rows, func(s scanner) error {
		var row int64
		var r batchedRow
		err := s.Scan(&row, &r.id, &r.first, &r.last, &r.rows, &r.siblings)
		found[row] = r
		return err
	}, string(state))
	return found
}

// stillInState returns the rows that are in that state and still in their batch.
func (t *tx) stillInState(ctx context.Context, state ledger.State, rows []ledger.UnknownRow) []int64 {
	ids := make([]int64, len(rows))
	for i, x := range rows {
		ids[i] = x.Row
	}
	found := t.rowsInState(ctx, state, ids)
	var applied []int64
	for _, x := range rows {
		if found[x.Row].id == x.Batch {
			applied = append(applied, x.Row)
		}
	}
	return applied
}

func (t *tx) setRowStates(ctx context.Context, n int, of func(n int) (int64, ledger.State, string)) {
	updateRowStates.exec(ctx, t, n, func(args []any, n int) []any {
		row, state, reason := of(n)
		return append(args, row, string(state), clean(reason))
	})
}

// Resolve records resolutions of unknown rows, see [ledger.UnknownRows]. Since others wait to write meanwhile, it
// reads all rows with one query, and changes them with the commit.
func (d *DB) Resolve(ctx context.Context, run int64, found []ledger.Resolution) (int64, error) {
	rows := make([]int64, len(found))
	for i, f := range found {
		if f.State != ledger.Unknown && !ledger.Unknown.CanBecome(f.State) {
			return 0, fmt.Errorf("resolve row %d: unknown cannot become %q: %w", f.Row, f.State, ledger.ErrNotClaimed)
		}
		rows[i] = f.Row
	}
	return runFor(ctx, d, func(ctx context.Context, t *tx) int64 {
		g := t.rebatcherFor(ctx, run)
		unknown := t.rowsInState(ctx, ledger.Unknown, rows)
		var applied []ledger.Resolution
		for _, f := range found {
			r := unknown[f.Row]
			if r.id != f.Batch || f.IfNoSiblings && r.siblings > 0 {
				continue
			}
			delete(unknown, f.Row) // a second resolution of a row does not apply
			applied = append(applied, f)
			if f.State == ledger.Pending {
				g.move(ctx, r.batch, f.Row)
			}
		}
		t.closing = true
		t.recordFindings(ctx, applied)
		g.finish(ctx)
		return int64(len(applied))
	})
}

// recordFindings sets the states of rows that are not sent again, and stores when absences were first proven.
func (t *tx) recordFindings(ctx context.Context, found []ledger.Resolution) {
	var absent, stay []ledger.Resolution
	var forget []int64
	for _, f := range found {
		if f.State == ledger.Unknown && !f.AbsentSince.IsZero() {
			absent = append(absent, f)
		} else {
			forget = append(forget, f.Row)
		}
		if f.State != ledger.Pending {
			stay = append(stay, f)
		}
	}
	deleteAbsences.exec(ctx, t, forget)
	clock := t.w.engine.Clock
	insertAbsences.exec(ctx, t, len(absent), func(args []any, n int) []any {
		f := absent[n]
		up := clock.Now() - time.Since(f.AbsentSince)
		return append(args, f.Row, f.Batch, millis(f.AbsentSince), clean(f.Fingerprint), clock.ID(), up.Milliseconds())
	})
	t.setRowStates(ctx, len(stay), func(n int) (int64, ledger.State, string) {
		return stay[n].Row, stay[n].State, stay[n].Reason
	})
}

// Reopen makes rows pending again, see [ledger.UnknownRows].
func (d *DB) Reopen(ctx context.Context, run int64, from ledger.State, ref string) (int64, error) {
	if from != ledger.Rejected && from != ledger.Unknown {
		return 0, fmt.Errorf("reopen %s rows: %w", from, ledger.ErrNotClaimed)
	}
	r := d.reader()
	if requireRun(ctx, r, run); r.err != nil {
		return 0, r.err
	}
	ref = matchable(ref)
	take := func(ctx context.Context, g *rebatcher, b source, _ int64) int64 {
		rows := list(ctx, g.t, scanOne[int64], `SELECT r.id FROM batches b
			JOIN rows r ON r.id BETWEEN b.first_row AND b.last_row AND r.batch_id = b.id
			JOIN runs n ON n.id = $1 WHERE b.id = $2 AND COALESCE(r.state, b.state) = $3 AND `+inInput+`
			AND CASE WHEN $4 <> '' THEN `+ofRef("$4")+` ELSE $3 <> 'rejected' OR `+rejection+` = 'rejected' END
			ORDER BY r.id`, g.run, b.id, string(from), ref)
		deleteAbsences.exec(ctx, g.t, rows)
		g.move(ctx, b.batch, rows...)
		return int64(len(rows))
	}
	return d.takeRows(ctx, run, math.MaxInt64, take, batchesWithState, string(from))
}

// controlBatches is how many batches are searched for controls.
const controlBatches = 8

// Controls returns accepted rows, see [ledger.UnknownRows].
func (d *DB) Controls(ctx context.Context, n int) ([]ledger.UnknownRow, error) {
	var alone, others []ledger.UnknownRow
	r := d.reader()
	r.each(ctx, func(s scanner) error {
		x, err := d.scanUnknownRow(s)
		if x.Siblings == 0 {
			alone = append(alone, x)
		} else {
			others = append(others, x)
		}
		return err
	}, `WITH latest AS (SELECT b.id FROM batches b JOIN runs n ON n.id = b.run_id WHERE n.state <> 'staged'
			AND (b.state = 'accepted' OR EXISTS (
				SELECT 1 FROM rows r WHERE r.batch_id = b.id AND r.state IS NOT NULL AND r.state = 'accepted'))
			ORDER BY b.id DESC LIMIT $1)
		`+selectUnknownRow+`WHERE b.id IN (SELECT id FROM latest) AND COALESCE(r.state, b.state) = 'accepted'
		ORDER BY b.id DESC, r.id DESC LIMIT $2`, controlBatches, max(n, 0)*controlBatches)
	alone = append(alone, others...)
	return alone[:min(len(alone), max(n, 0))], r.err
}

// CheckPending makes pending rows unknown, see [ledger.UnknownRows].
func (d *DB) CheckPending(ctx context.Context, run int64) (int64, error) {
	return runFor(ctx, d, func(ctx context.Context, t *tx) int64 {
		const pending = "state = 'pending' AND id IN (SELECT batch_id FROM run_batches WHERE run_id = $1)"
		n := value[int64](ctx, t, countInBatchState+"FROM batches b WHERE "+pending, run)
		if n > 0 {
			t.exec(ctx, `UPDATE batches SET state = 'unknown', reason = $2, shape = '',
				claimed = 0, began = 0, took = 0 WHERE `+pending, run, reasonUnchecked)
		}
		return n
	})
}

// FirstPending returns the next row to be sent, see [ledger.Queue].
func (d *DB) FirstPending(ctx context.Context, run int64) (*ledger.UnknownRow, error) {
	r := d.reader()
	rows := list(ctx, r, d.scanUnknownRow, selectUnknownRow+`JOIN runs n ON n.id = $1
		WHERE b.id = (SELECT b.id FROM run_batches p JOIN batches b ON b.id = p.batch_id
			WHERE p.run_id = $1 AND b.state = 'pending' AND EXISTS (SELECT 1 FROM rows r
				WHERE r.id BETWEEN b.first_row AND b.last_row AND r.batch_id = b.id AND r.state IS NULL AND `+inInput+`)
			ORDER BY b.id LIMIT 1) AND r.state IS NULL AND `+inInput+" ORDER BY r.id LIMIT 1", run)
	if len(rows) == 0 || r.err != nil {
		return nil, r.err
	}
	return &rows[0], nil
}

// superseded holds for a rejected row r if a later input brought in another number of its referId that is accepted
// now. Inputs take row numbers one after the other.
const superseded = `EXISTS (SELECT 1 FROM rows s JOIN batches sb ON sb.id = s.batch_id
	WHERE s.refer_id = r.refer_id AND s.id > r.id AND COALESCE(s.state, sb.state) = 'accepted'
	AND EXISTS (SELECT 1 FROM runs u WHERE u.first_row > r.id AND u.first_row <= s.id))`

// closeReason is, for a rejected row r of a batch b, when it was dismissed, -1 if it is superseded, or 0.
const closeReason = `CASE WHEN COALESCE(r.state, b.state) = 'rejected'
	THEN COALESCE(r.dismissed, CASE WHEN ` + superseded + " THEN -1 ELSE 0 END) END"

// rejection is the state of a rejected row r, see [ledger.CloseReason.Refine].
const rejection = "CASE WHEN r.dismissed IS NOT NULL THEN 'dismissed' WHEN " + superseded +
	" THEN 'superseded' ELSE 'rejected' END"

// ofRef holds for a row r with that referId or number.
func ofRef(arg string) string {
	return "(r.refer_id = " + arg + " OR fold_number(r.number) = fold_number(" + arg + "))"
}

// rejectedRows are the rejected rows r of the input of a list of runs.
func rejectedRows(runs string) string {
	return `(SELECT p.run_id, r.id, r.refer_id, r.number, r.dismissed
		FROM run_batches p JOIN batches b ON b.id = p.batch_id
		JOIN runs n ON n.id = p.run_id JOIN rows r ON r.id BETWEEN b.first_row AND b.last_row AND r.batch_id = b.id
		WHERE p.run_id IN ` + runs + ` AND b.state = 'rejected' AND r.state IS NULL AND ` + inInput + `
	UNION ALL SELECT p.run_id, r.id, r.refer_id, r.number, r.dismissed FROM run_batches p JOIN runs n ON n.id = p.run_id
		JOIN rows r ON r.batch_id = p.batch_id AND r.state IS NOT NULL
		WHERE p.run_id IN ` + runs + ` AND r.state = 'rejected' AND ` + inInput + `) AS r`
}

// Dismiss marks rejected rows as dismissed, see [ledger.UnknownRows].
func (d *DB) Dismiss(ctx context.Context, run int64, ref string) (int64, error) {
	r := d.reader()
	if requireRun(ctx, r, run); r.err != nil {
		return 0, r.err
	}
	return d.exec(ctx, "UPDATE rows SET dismissed = $3 WHERE dismissed IS NULL AND id IN (SELECT r.id FROM "+
		rejectedRows("($1)")+" WHERE CASE WHEN $2 <> '' THEN "+ofRef("$2")+" ELSE "+rejection+" = 'rejected' END)",
		run, matchable(ref), millis(time.Now()))
}

// countClosed counts the rejected rows of the runs' inputs that are not open.
func (r *reader) countClosed(ctx context.Context, runs []int64, at map[int64]*ledger.RunSummary) {
	if len(runs) == 0 {
		return
	}
	r.each(ctx, func(s scanner) error {
		var state ledger.State
		var run, n int64
		err := s.Scan(&run, (*string)(&state), &n)
		switch state {
		case ledger.Superseded:
			at[run].Superseded = n
		case ledger.Dismissed:
			at[run].Dismissed = n
		}
		return err
	}, "SELECT run_id, kind, COUNT(*) FROM (SELECT r.run_id, "+rejection+" AS kind FROM "+
		rejectedRows(idList(runs))+") AS k GROUP BY run_id, kind")
}
