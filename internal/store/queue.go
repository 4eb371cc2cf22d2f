package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

const reasonDied = "the process that sent it was stopped, or cut off from the store, before the response was saved"

var claimBatches = newKeyStatement[int64]('i',
	"UPDATE batches SET state = 'sending', owner = ?, claimed = ? WHERE id", "")

// Claim moves batches to Sending and returns them, see [ledger.Queue].
func (d *DB) Claim(ctx context.Context, run int64, n, size int) ([]ledger.Batch, error) {
	if size < 1 {
		return nil, fmt.Errorf("claim batches of %d rows", size)
	}
	var me string
	claimed, err := runFor(ctx, d, func(ctx context.Context, t *tx) []batch {
		me = t.owner()
		t.takeOver(ctx, run, me)
		next := t.nextPending(ctx, run, n, int64(size))
		ids := make([]int64, len(next))
		for i, b := range next {
			ids[i] = b.id
		}
		t.closing = true
		claimBatches.exec(ctx, t, ids, me, millis(time.Now()))
		return next
	})
	if err != nil {
		return nil, err
	}
	batches := make([]ledger.Batch, len(claimed))
	r := d.reader()
	for i, b := range claimed {
		batches[i] = r.readClaimed(ctx, b, me)
	}
	if r.err != nil {
		return nil, errors.Join(r.err, d.unclaim(context.WithoutCancel(ctx), claimed, me))
	}
	if err := d.present(); err != nil { // the rows may be from another store
		return nil, err
	}
	return batches, nil
}

// readClaimed reads the rows of a batch. No transaction is needed: no other process changes those of a claimed batch.
func (r *reader) readClaimed(ctx context.Context, b batch, me string) ledger.Batch {
	rows := list(ctx, r, scanInto(func(r *ledger.BatchRow) []any {
		return []any{&r.ID, &r.Item.ReferID, &r.Item.Number, &r.Item.CarrierCode}
	}), `SELECT id, refer_id, number, carrier FROM rows
		WHERE id BETWEEN $1 AND $2 AND batch_id = $3 AND state IS NULL ORDER BY id`, b.first, b.last, b.id)
	return ledger.Batch{ID: b.id, Owner: me, Rows: rows}
}

// unclaim makes batches whose rows could not be read pending again.
func (d *DB) unclaim(ctx context.Context, claimed []batch, me string) error {
	return d.run(ctx, func(ctx context.Context, t *tx) {
		for _, b := range claimed {
			t.exec(ctx, `UPDATE batches SET state = 'pending', owner = NULL
				WHERE id = $1 AND state = 'sending' AND owner = $2`, b.id, me)
		}
	})
}

// takeOver makes this process the owner of the run unless its owner is alive.
func (t *tx) takeOver(ctx context.Context, run int64, me string) {
	var owner string
	openRun(ctx, t, run, "owner", &owner)
	if owner != me && !t.isAlive(ctx, owner) {
		t.exec(ctx, "UPDATE runs SET owner = $1, filling = "+filledNoMore+" WHERE id = $2", me, run)
	}
}

// filledNoMore is the value of filling once nobody stages the run any more.
const filledNoMore = "CASE WHEN filling > 0 THEN -1 ELSE filling END"

// ClaimFull moves batches that were just staged to Sending, see [ledger.Queue].
func (d *DB) ClaimFull(ctx context.Context, run int64, full []ledger.Batch) ([]ledger.Batch, error) {
	return runFor(ctx, d, func(ctx context.Context, t *tx) (claimed []ledger.Batch) {
		me := t.owner()
		now := millis(time.Now())
		for _, b := range full {
			// A batch that was never claimed, with as many rows between the same ids, is as it was staged.
			rows := b.Rows
			n := t.exec(ctx, `UPDATE batches SET state = 'sending', owner = $1, claimed = $2
				WHERE id = $3 AND run_id = $4 AND state = 'pending' AND claimed = 0
				AND rows = $5 AND first_row = $6 AND last_row = $7`,
				me, now, b.ID, run, len(rows), rows[0].ID, rows[len(rows)-1].ID)
			if b.Owner = me; n == 1 {
				claimed = append(claimed, b)
			}
		}
		return claimed
	})
}

// nextPending returns up to n pending batches of the run. It splits batches of more than size rows to send.
func (t *tx) nextPending(ctx context.Context, run int64, n int, size int64) []batch {
	scan := scanInto(func(b *batch) []any { return []any{&b.id, &b.first, &b.last, &b.rows} })
	all := list(ctx, t, scan, `SELECT id, first_row, last_row, rows FROM batches WHERE run_id = $1
		AND state = 'pending' AND id <> (SELECT filling FROM runs WHERE id = $1) ORDER BY id LIMIT $2`, run, n)
	for i := 0; i < len(all); i++ {
		if all[i].rows <= size {
			continue
		}
		pieces := t.splitBatch(ctx, all[i], run, max(0, n-i), size)
		all = slices.Replace(all, i, i+1, pieces...)
		i += len(pieces) - 1
	}
	return all[:min(n, len(all))]
}

// splitBatch moves up to n*size rows of a batch into new ones. It returns these, and the batch itself if no more than
// size rows are left in it.
func (t *tx) splitBatch(ctx context.Context, b batch, run int64, n int, size int64) []batch {
	rows := t.rowsInBatchState(ctx, b)
	if int64(len(rows)) <= size {
		return []batch{b}
	}
	g := t.newRebatcher(run, size)
	moved := size * min(int64(n), (int64(len(rows))-1)/size)
	g.move(ctx, b, rows[:moved]...)
	g.finish(ctx)
	ids := g.added
	if int64(len(rows))-moved <= size {
		ids = append(ids, b.id)
	}
	pieces := make([]batch, len(ids))
	for i, id := range ids {
		pieces[i] = t.readBatch(ctx, id)
	}
	return pieces
}

// Recover makes the rows that dead processes were sending unknown, see [ledger.Queue].
func (d *DB) Recover(ctx context.Context) (int64, error) {
	r := d.reader()
	owners := list(ctx, r, scanOne[string], "SELECT DISTINCT owner FROM batches WHERE state = 'sending'")
	if r.err != nil {
		return 0, r.err
	}
	var total int64
	for _, o := range owners {
		alive, err := d.engine.Owners.Await(ctx, o)
		if err != nil {
			return total, d.fail("lock", err)
		}
		if alive {
			continue
		}
		rows, err := runFor(ctx, d, func(ctx context.Context, t *tx) int64 {
			if !t.fence(ctx, o) {
				return 0
			}
			return t.markOwnerRowsUnknown(ctx, o)
		})
		if err != nil {
			return total, err
		}
		total += rows
	}
	return total, nil
}

// countInBatchState counts the rows of batches b that have no state of their own.
const countInBatchState = `SELECT COALESCE(SUM(b.rows -
	(SELECT COUNT(*) FROM rows r WHERE r.batch_id = b.id AND r.state IS NOT NULL)), 0) `

// markOwnerRowsUnknown returns the number of rows. Each batch counts as a request, since it may have been sent.
func (t *tx) markOwnerRowsUnknown(ctx context.Context, owner string) int64 {
	const sending = "FROM batches b WHERE b.state = 'sending' AND b.owner = $1"
	rows := value[int64](ctx, t, countInBatchState+sending, owner)
	t.exec(ctx, `UPDATE runs SET requests = requests + (SELECT COUNT(*) `+sending+` AND b.run_id = runs.id),
			last_sent = (SELECT COALESCE(MAX(s), 0) FROM (SELECT last_sent AS s UNION ALL
				SELECT b.claimed `+sending+` AND b.run_id = runs.id) AS times)
		WHERE id IN (SELECT run_id FROM batches WHERE state = 'sending' AND owner = $1)`, owner)
	t.exec(ctx, `UPDATE batches SET state = 'unknown', owner = NULL,
		began = claimed, took = 0, http_status = 0, reason = $1 WHERE state = 'sending' AND owner = $2`, reasonDied, owner)
	return rows
}

// RecordOutcomes records the outcomes of claimed batches, see [ledger.Queue].
func (d *DB) RecordOutcomes(ctx context.Context, outcomes []ledger.BatchOutcome) error {
	answers := make([]any, len(outcomes)) // compressed before others have to wait; nil if none
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
	return d.run(ctx, func(ctx context.Context, t *tx) {
		me := t.owner()
		runs := make([]int64, len(outcomes))
		for i, s := range outcomes {
			if runs[i] = t.recordOutcome(ctx, s, answers[i], me); t.err != nil {
				t.err = fmt.Errorf("record batch %d: %w", s.Batch, t.err)
				return
			}
		}
		t.closing = !slices.ContainsFunc(outcomes, rearranges)
		t.countRequests(ctx, outcomes, runs)
		for i, s := range outcomes {
			switch { // the answer is stored by now
			case s.Halve:
				t.halve(ctx, s.Batch, runs[i])
			case rearranges(s): // perhaps no row is left in the batch
				t.cleanUpBatch(ctx, s.Batch)
			}
		}
	})
}

// recordOutcome records the outcome of a batch. If answer is nil, an earlier one is kept.
func (t *tx) recordOutcome(ctx context.Context, s ledger.BatchOutcome, answer any, me string) (run int64) {
	ok := t.row(ctx, []any{&run}, `UPDATE batches SET state = $1, owner = NULL,
			began = $2, took = $3, http_status = $4, reason = $5, shape = $6,
			answer = COALESCE($9, answer), cut = CASE WHEN $9 IS NULL THEN cut ELSE $10 END
		WHERE id = $7 AND state = 'sending' AND owner = $8 RETURNING run_id`,
		string(s.State), millis(s.Began), s.Took.Microseconds(), s.HTTPStatus, clean(s.Reason), s.Shape, s.Batch, me,
		answer, flag(s.AnswerCut))
	t.require(ok, &Error{Kind: ErrTakenOver, Path: t.w.engine.Place, Op: "write"})
	t.recordRows(ctx, s, run)
	return run
}

func rearranges(s ledger.BatchOutcome) bool {
	return s.Halve || s.State == ledger.Pending && len(s.Rows) > 0
}

func (t *tx) countRequests(ctx context.Context, outcomes []ledger.BatchOutcome, runs []int64) {
	sent := map[int64][]time.Time{}
	for i, s := range outcomes {
		if s.WasSent() {
			sent[runs[i]] = append(sent[runs[i]], s.Began)
		}
	}
	for run, began := range sent {
		t.exec(ctx, `UPDATE runs SET requests = requests + $1,
			last_sent = CASE WHEN last_sent > $2 THEN last_sent ELSE $2 END WHERE id = $3`,
			len(began), millis(slices.MaxFunc(began, time.Time.Compare)), run)
	}
}

// halve moves the rows still to be sent into two new batches, and keeps the batch for its answer.
func (t *tx) halve(ctx context.Context, id, run int64) {
	b := t.readBatch(ctx, id)
	rows := t.rowsInBatchState(ctx, b)
	t.exec(ctx, "UPDATE batches SET state = 'rejected' WHERE id = $1", id)
	g := t.newRebatcher(run, (int64(len(rows))+1)/2)
	g.move(ctx, b, rows...)
	g.finish(ctx)
}

func (t *tx) readBatch(ctx context.Context, id int64) batch {
	b := batch{id: id}
	const columns = "SELECT first_row, last_row, rows FROM batches WHERE id = $1"
	t.row(ctx, []any{&b.first, &b.last, &b.rows}, columns, id)
	return b
}

// recordRows records the rows whose outcome differs from the batch's. If they become pending but the batch does not,
// they get a batch of their own.
func (t *tx) recordRows(ctx context.Context, s ledger.BatchOutcome, run int64) {
	var pending []int64
	for _, v := range s.Rows {
		if v.State == ledger.Pending && s.State != ledger.Pending {
			pending = append(pending, v.Row)
			continue
		}
		var state, reason any // NULL: as the batch
		if v.State != s.State || clean(v.Reason) != clean(s.Reason) {
			state, reason = string(v.State), clean(v.Reason)
		}
		if v.State == ledger.Pending {
			state, reason = nil, nil
		}
		n := t.exec(ctx, `UPDATE rows SET state = $1, reason = $2
			WHERE id = $3 AND batch_id = $4 AND state IS NULL`, state, reason, v.Row, s.Batch)
		t.require(n == 1, notInBatch(v.Row))
	}
	if len(pending) == 0 {
		return
	}
	for _, row := range pending {
		var one int
		ok := t.row(ctx, []any{&one}, "SELECT 1 FROM rows WHERE id = $1 AND batch_id = $2 AND state IS NULL", row, s.Batch)
		t.require(ok, notInBatch(row))
	}
	b := t.readBatch(ctx, s.Batch)
	g := t.newRebatcher(run, int64(len(pending)))
	g.move(ctx, b, pending...)
	g.finish(ctx)
}

func notInBatch(row int64) error {
	return fmt.Errorf("row %d is not one of it: %w", row, ledger.ErrNotClaimed)
}
