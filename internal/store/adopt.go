package store

import (
	"context"
	"fmt"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// adoptAtOnce is how many batches one transaction takes rows out of.
const adoptAtOnce = 16

// inInput says that a row r is in the input of a run n.
const inInput = "(r.id BETWEEN n.first_row AND n.last_row OR EXISTS (SELECT 1 FROM known k WHERE k.run_id = n.id AND k.row_id = r.id))"

// adoption is the taking over of pending rows by a run.
type adoption struct {
	run    int64
	size   int64           // of a full batch
	me     string          // the owner of this process
	alive  map[string]bool // what is known of other owners
	after  int64           // the last batch that was looked at
	into   batch           // the batch being filled, its id 0 if there is none
	number int64           // of rows taken over
}

// Adopt takes over pending rows of other runs, see [ledger.Store].
func (d *DB) Adopt(ctx context.Context, run int64) (int64, error) {
	me, err := d.owner.get()
	if err != nil {
		return 0, d.fail("lock", err)
	}
	a := adoption{run: run, me: me, alive: map[string]bool{}}
	ok, err := d.row(ctx, []any{&a.size}, "SELECT batch_size FROM runs WHERE id = $1 AND state = 'open'", run)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %d", ledger.ErrNoRun, run)
	}
	for more := true; more && err == nil; {
		next := a
		err = d.run(ctx, func(ctx context.Context, t *tx) error {
			next = a // the attempt before, if there was one, was taken back
			var err error
			more, err = next.step(ctx, d, t)
			return err
		})
		if err == nil {
			a = next
		}
	}
	return a.number, err
}

// source is a batch that holds rows of the run's input and can be sent.
type source struct {
	batch
	owner string // of its run
}

// step takes over the rows of the next batches, and reports whether there may
// be more.
func (a *adoption) step(ctx context.Context, d *DB, t *tx) (bool, error) {
	var sources []source
	if err := t.each(ctx, func(s scanner) error {
		var b source
		err := s.Scan(&b.id, &b.first, &b.last, &b.rows, &b.owner)
		sources = append(sources, b)
		return err
	}, `SELECT b.id, b.first_row, b.last_row, b.rows, n.owner FROM parts p
		JOIN batches b ON b.id = p.batch_id JOIN runs n ON n.id = b.run_id
		WHERE p.run_id = $1 AND p.batch_id > $2 AND b.run_id <> $1 AND b.state = 'pending' AND n.state = 'open'
		ORDER BY p.batch_id LIMIT $3`, a.run, a.after, adoptAtOnce); err != nil {
		return false, err
	}
	for _, from := range sources {
		a.after = from.id
		others, err := a.othersWork(d, from.owner)
		if err == nil && !others {
			err = a.take(ctx, t, from)
		}
		if err != nil {
			return false, err
		}
	}
	return len(sources) == adoptAtOnce, nil
}

// othersWork reports whether another living process has that name.
func (a *adoption) othersWork(d *DB, owner string) (bool, error) {
	if owner == a.me {
		return false, nil
	}
	alive, ok := a.alive[owner]
	if !ok {
		var err error
		if alive, err = d.owner.lives(owner); err != nil {
			return false, err
		}
		a.alive[owner] = alive
	}
	return alive, nil
}

// take moves the rows of the run's input out of a batch.
func (a *adoption) take(ctx context.Context, t *tx, from source) error {
	const which = ` FROM rows r JOIN runs n ON n.id = $4 WHERE r.id BETWEEN $1 AND $2 AND r.batch_id = $3 AND r.state IS NULL AND ` + inInput
	for low := from.first; low <= from.last; {
		if a.into.rows >= a.size || a.into.last >= low {
			a.into = batch{}
		}
		var n, first, last int64
		if _, err := t.row(ctx, []any{&n, &first, &last}, "SELECT COUNT(*), COALESCE(MIN(id), 0), COALESCE(MAX(id), 0) FROM (SELECT r.id AS id"+which+" ORDER BY r.id LIMIT $5) AS taken",
			low, from.last, from.id, a.run, a.size-a.into.rows); err != nil {
			return err
		}
		if n == 0 {
			break
		}
		if a.into.id == 0 {
			var err error
			if a.into, err = t.addBatch(ctx, a.run); err != nil {
				return err
			}
		}
		if _, err := t.exec(ctx, "UPDATE rows SET batch_id = $5 WHERE id IN (SELECT r.id"+which+")", first, last, from.id, a.run, a.into.id); err != nil {
			return err
		}
		a.into.grow(first, last, n)
		a.number += n
		if err := t.moved(ctx, from.id, a.into, first, last, n); err != nil {
			return err
		}
		low = last + 1
	}
	return t.retire(ctx, from.id)
}

// addBatch adds an empty batch to a run.
func (t *tx) addBatch(ctx context.Context, run int64) (batch, error) {
	id, err := t.nextBatch(ctx)
	if err != nil {
		return batch{}, err
	}
	_, err = t.exec(ctx, `INSERT INTO batches (id, run_id, state, rows, first_row, last_row, claimed, began, took, http_status, reason)
		VALUES ($1, $2, 'pending', 0, 0, 0, 0, 0, 0, 0, '')`, id, run)
	return batch{id: id}, err
}

// grow adds n rows between first and last.
func (b *batch) grow(first, last, n int64) {
	if b.rows == 0 || first < b.first {
		b.first = first
	}
	b.last = max(b.last, last)
	b.rows += n
}

// moved brings up to date what is kept of two batches after n rows went from
// one to the other, where they are the only ones with numbers from first to
// last.
func (t *tx) moved(ctx context.Context, from int64, to batch, first, last, n int64) error {
	for _, query := range []string{
		`INSERT INTO parts (run_id, batch_id, rows) SELECT p.run_id, $1,
			(SELECT COUNT(*) FROM rows r JOIN runs n ON n.id = p.run_id WHERE r.id BETWEEN $2 AND $3 AND r.batch_id = $1
				AND ` + inInput + `)
			FROM parts p WHERE p.batch_id = $4
			ON CONFLICT (run_id, batch_id) DO UPDATE SET rows = parts.rows + excluded.rows`,
		`UPDATE parts SET rows = rows - (SELECT COUNT(*) FROM rows r JOIN runs n ON n.id = parts.run_id WHERE r.id BETWEEN $2 AND $3 AND r.batch_id = $1
				AND ` + inInput + `)
			WHERE batch_id = $4`,
	} {
		if _, err := t.exec(ctx, query, to.id, first, last, from); err != nil {
			return err
		}
	}
	if _, err := t.exec(ctx, "DELETE FROM parts WHERE rows = 0 AND batch_id IN ($1, $2)", from, to.id); err != nil {
		return err
	}
	if _, err := t.exec(ctx, "UPDATE batches SET rows = $1, first_row = $2, last_row = $3 WHERE id = $4", to.rows, to.first, to.last, to.id); err != nil {
		return err
	}
	_, err := t.exec(ctx, "UPDATE batches SET rows = rows - $1 WHERE id = $2", n, from)
	return err
}

// retire removes a pending batch whose rows all went elsewhere, and sees to it
// that one whose rows all have states of their own is not taken for pending.
func (t *tx) retire(ctx context.Context, id int64) error {
	for _, query := range []string{
		"DELETE FROM batches WHERE id = $1 AND rows = 0 AND state = 'pending'",
		"DELETE FROM batch_answers WHERE batch_id = $1 AND NOT EXISTS (SELECT 1 FROM batches WHERE id = $1)",
	} {
		if _, err := t.exec(ctx, query, id); err != nil {
			return err
		}
	}
	_, err := t.exec(ctx, `UPDATE batches SET state = (SELECT MIN(r.state) FROM rows r WHERE r.batch_id = batches.id AND r.state IS NOT NULL)
		WHERE id = $1 AND state = 'pending' AND rows = (SELECT COUNT(*) FROM rows r WHERE r.batch_id = batches.id AND r.state IS NOT NULL)`, id)
	return err
}
