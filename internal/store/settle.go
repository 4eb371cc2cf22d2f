package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// Settle records what became of claimed batches, see [ledger.Queue].
func (d *DB) Settle(ctx context.Context, outcomes []ledger.BatchOutcome) error {
	answers := make([]any, len(outcomes)) // compressed before others are kept waiting; nil: none
	for i, s := range outcomes {
		if err := s.Check(); err != nil {
			return err
		}
		packed, err := d.pack.pack(s.Answer)
		if err != nil {
			return err
		}
		if packed != nil {
			answers[i] = packed
		}
	}
	return d.run(ctx, func(ctx context.Context, t *tx) error {
		me, err := t.owner(ctx)
		if err != nil {
			return err
		}
		runs := make([]int64, len(outcomes))
		for i, s := range outcomes {
			if runs[i], err = t.settle(ctx, s, answers[i], me); err != nil {
				return fmt.Errorf("record batch %d: %w", s.Batch, err)
			}
		}
		t.closing = !slices.ContainsFunc(outcomes, rearranges)
		if err := t.countRequests(ctx, outcomes, runs); err != nil {
			return err
		}
		for i, s := range outcomes {
			switch { // its answer is stored by now
			case s.Halve:
				err = t.halve(ctx, s.Batch, runs[i])
			case rearranges(s): // and perhaps no row is left in it
				err = t.cleanUpBatch(ctx, s.Batch)
			}
			if err != nil {
				return fmt.Errorf("record batch %d: %w", s.Batch, err)
			}
		}
		return nil
	})
}

// settle records what became of a batch. Without an answer, nil, it keeps an earlier one.
func (t *tx) settle(ctx context.Context, s ledger.BatchOutcome, answer any, me string) (run int64, err error) {
	ok, err := t.row(ctx, []any{&run}, `UPDATE batches SET state = $1, owner = NULL,
			began = $2, took = $3, http_status = $4, reason = $5, shape = $6,
			answer = COALESCE($9, answer), cut = CASE WHEN $9 IS NULL THEN cut ELSE $10 END
		WHERE id = $7 AND state = 'sending' AND owner = $8 RETURNING run_id`,
		string(s.State), millis(s.Began), s.Took.Microseconds(), s.HTTPStatus, clean(s.Reason), s.Shape, s.Batch, me,
		answer, flag(s.AnswerCut))
	err = require(ok, err, &Error{Kind: ErrTakenOver, Path: t.w.engine.Place, Op: "write"})
	if err == nil {
		err = t.settleRows(ctx, s, run)
	}
	return run, err
}

func rearranges(s ledger.BatchOutcome) bool {
	return s.Halve || s.State == ledger.Pending && len(s.Rows) > 0
}

func (t *tx) countRequests(ctx context.Context, outcomes []ledger.BatchOutcome, runs []int64) error {
	sent := map[int64][]time.Time{}
	for i, s := range outcomes {
		if s.WasSent() {
			sent[runs[i]] = append(sent[runs[i]], s.Began)
		}
	}
	for run, began := range sent {
		if _, err := t.exec(ctx, `UPDATE runs SET requests = requests + $1,
			last_sent = CASE WHEN last_sent > $2 THEN last_sent ELSE $2 END WHERE id = $3`,
			len(began), millis(slices.MaxFunc(began, time.Time.Compare)), run); err != nil {
			return err
		}
	}
	return nil
}

// halve moves the rows still to send into two new batches, and keeps the batch for its answer.
func (t *tx) halve(ctx context.Context, id, run int64) error {
	b, err := t.readBatch(ctx, id)
	if err != nil {
		return err
	}
	rows, err := t.rowsInBatchState(ctx, b, b.rows)
	if err != nil {
		return err
	}
	if _, err := t.exec(ctx, "UPDATE batches SET state = 'rejected' WHERE id = $1", id); err != nil {
		return err
	}
	g := t.newRebatcher(run, (int64(len(rows))+1)/2)
	if err := g.move(ctx, b, rows...); err != nil {
		return err
	}
	return g.finish(ctx)
}

func (t *tx) readBatch(ctx context.Context, id int64) (batch, error) {
	b := batch{id: id}
	const columns = "SELECT first_row, last_row, rows FROM batches WHERE id = $1"
	_, err := t.row(ctx, []any{&b.first, &b.last, &b.rows}, columns, id)
	return b, err
}

// settleRows records the rows whose outcome is not that of their batch. Those
// that become pending while the batch does not get a batch of their own.
func (t *tx) settleRows(ctx context.Context, s ledger.BatchOutcome, run int64) error {
	var pending []int64
	for _, v := range s.Rows {
		if v.State == ledger.Pending && s.State != ledger.Pending {
			pending = append(pending, v.Row)
			continue
		}
		var state, reason any // NULL: what the batch says
		if v.State != s.State || clean(v.Reason) != clean(s.Reason) {
			state, reason = string(v.State), clean(v.Reason)
		}
		if v.State == ledger.Pending {
			state, reason = nil, nil
		}
		n, err := t.exec(ctx, `UPDATE rows SET state = $1, reason = $2
			WHERE id = $3 AND batch_id = $4 AND state IS NULL`, state, reason, v.Row, s.Batch)
		if err := require(n == 1, err, notInBatch(v.Row)); err != nil {
			return err
		}
	}
	if len(pending) == 0 {
		return nil
	}
	for _, row := range pending {
		if err := t.requireInBatch(ctx, row, s.Batch); err != nil {
			return err
		}
	}
	b, err := t.readBatch(ctx, s.Batch)
	if err != nil {
		return err
	}
	g := t.newRebatcher(run, int64(len(pending)))
	if err := g.move(ctx, b, pending...); err != nil {
		return err
	}
	return g.finish(ctx)
}

// requireInBatch returns an error unless the row is in the batch, without a state of its own.
func (t *tx) requireInBatch(ctx context.Context, row, batch int64) error {
	var one int
	ok, err := t.row(ctx, []any{&one}, "SELECT 1 FROM rows WHERE id = $1 AND batch_id = $2 AND state IS NULL", row, batch)
	return require(ok, err, notInBatch(row))
}

func notInBatch(row int64) error {
	return fmt.Errorf("row %d is not one of it: %w", row, ledger.ErrNotClaimed)
}
