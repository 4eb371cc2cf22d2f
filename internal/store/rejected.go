package store

import (
	"context"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// superseded holds for a rejected row r if a later input brought in another number
// of its referId that is accepted now. Inputs take their numbers of rows in turn.
const superseded = `EXISTS (SELECT 1 FROM rows s JOIN batches sb ON sb.id = s.batch_id
	WHERE s.refer_id = r.refer_id AND s.id > r.id AND COALESCE(s.state, sb.state) = 'accepted'
	AND EXISTS (SELECT 1 FROM runs u WHERE u.first_row > r.id AND u.first_row <= s.id))`

// rejection is what a rejected row r is: open, superseded or dismissed.
const rejection = `CASE WHEN r.dismissed IS NOT NULL THEN 'dismissed' WHEN ` + superseded + ` THEN 'superseded' ELSE 'open' END`

// ofRef holds for a row r of that referId or number.
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

// Dismiss marks rejected rows as settled, see [ledger.UnknownRows].
func (d *DB) Dismiss(ctx context.Context, run int64, ref string) (int64, error) {
	if err := d.requireRun(ctx, run); err != nil {
		return 0, err
	}
	return runFor(ctx, d, func(ctx context.Context, t *tx) (int64, error) {
		return t.exec(ctx, "UPDATE rows SET dismissed = $3 WHERE dismissed IS NULL AND id IN (SELECT r.id FROM "+
			rejectedRows("($1)")+" WHERE CASE WHEN $2 <> '' THEN "+ofRef("$2")+" ELSE "+rejection+" = 'open' END)", run, matchable(ref), millis(time.Now()))
	})
}

// countSettled counts the rejected rows of the runs' inputs that are not open.
func (d *DB) countSettled(ctx context.Context, runs []int64, at map[int64]*ledger.RunSummary) error {
	if len(runs) == 0 {
		return nil
	}
	return d.each(ctx, func(s scanner) error {
		var kind string
		var run, n int64
		err := s.Scan(&run, &kind, &n)
		switch kind {
		case "superseded":
			at[run].Superseded = n
		case "dismissed":
			at[run].Dismissed = n
		}
		return err
	}, "SELECT run_id, kind, COUNT(*) FROM (SELECT r.run_id, "+rejection+" AS kind FROM "+rejectedRows(idList(runs))+") AS k GROUP BY run_id, kind")
}
