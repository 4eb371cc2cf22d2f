package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// chunkRows limits the records of one transaction, and so how long others wait to write. The higher it is, the fewer
// pages are written twice.
const chunkRows = 32768

// staging is a run being filled.
//
// Every record of the input takes the next number: a new row as its id, others as their pos. So a run's records are a
// range of numbers in input order, and its own rows are the rows with ids in that range.
type staging struct {
	d       *DB
	owner   string       // may stage; others may once this process has another owner
	release func() error // releases the lock of staging
	ended   bool
	run     ledger.Run
	first   int64 // number of the first record
	begun   bool  // see [ledger.Staging.Begin]
	full    []ledger.Batch

	progress
}

// progress is the state between two transactions, replaced when one is on disk.
type progress struct {
	next  int64             // number of the next record
	shown int64             // number of the next record to become visible
	batch batch             // being filled; its id is 0 if there is none
	rows  []ledger.BatchRow // of that batch, after Begin
	tally ledger.Tally

	// expectKnown makes add look records up before it inserts them. Inserting first is faster if all are new.
	expectKnown bool
}

// batch is the rows of one request, in a range of ids.
type batch struct {
	id          int64
	first, last int64
	rows        int64
}

// Stage begins a run that is still invisible, see [ledger.Stager].
func (d *DB) Stage(ctx context.Context, plan ledger.Plan) (ledger.Staging, error) {
	if plan.BatchSize < 1 {
		return nil, fmt.Errorf("stage: batches of %d rows", plan.BatchSize)
	}
	texts := []string{"mode", string(plan.Mode)}
	for _, f := range plan.Files {
		texts = append(texts, "file name", f)
	}
	if err := checkText(texts...); err != nil {
		return nil, err
	}
	owner, release, err := d.lockStaging(ctx)
	if err != nil {
		return nil, err
	}
	run := ledger.Run{Plan: plan, Created: instant(millis(time.Now()))}
	s := &staging{d: d, owner: owner, release: release, run: run}
	s.run.Plan.Files, s.tally.Skipped = slices.Clone(plan.Files), plan.Skipped
	s.expectKnown = d.engine.Load != nil // a duplicate key would be an error in the server's log
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.unlock())
	}
	return s, nil
}

// lockStaging waits for the lock that one staging process at a time holds.
func (d *DB) lockStaging(ctx context.Context) (owner string, release func() error, err error) {
	if err := ctx.Err(); err != nil {
		return "", nil, err
	}
	owner, release, err = d.engine.LockStaging(ctx)
	switch err = d.fail("lock", err); {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded):
		err = d.busyError(context.WithoutCancel(ctx))
	case errors.Is(ctx.Err(), context.Canceled) && err != nil:
		err = context.Cause(ctx)
	}
	return owner, release, err
}

// busyError names the run that another process is staging, if it exists yet and can be read.
func (d *DB) busyError(ctx context.Context) error {
	e := &ledger.BusyError{}
	dest := []any{&e.Run.ID, (*storedTime)(&e.Run.Created), storedJSON{&e.Run.Plan.Files}}
	const newest = "SELECT id, created, files FROM runs WHERE state = 'staged' ORDER BY id DESC LIMIT 1"
	if !d.reader().row(ctx, dest, newest) {
		return &ledger.BusyError{}
	}
	return e
}

// begin adds the run, and removes what dead processes had staged. The caller has the lock.
func (s *staging) begin(ctx context.Context) error {
	if err := s.removeStaged(ctx); err != nil {
		return err
	}
	plan, own := &s.run.Plan, any(nil)
	if len(plan.Own) > 0 {
		own = storedJSON{plan.Own}
	}
	return s.write(ctx, func(ctx context.Context, t *tx) {
		t.exec(ctx, "UPDATE runs SET filling = "+filledNoMore+" WHERE filling > 0")
		s.run.ID, s.first = t.counter(ctx, "run")+1, t.counter(ctx, "row")+1
		s.next, s.shown = s.first, s.first
		t.exec(ctx, `INSERT INTO runs (id, state, owner, created, files, mode, batch_size, first_row, last_row,
			new_rows, known_rows, known_pending, known_open, other_carrier, repeats, requests, last_sent, own)
			VALUES ($1, 'staged', $2, $3, $4, $5, $6, $7, $8, 0, 0, 0, 0, 0, 0, 0, 0, $9)`,
			s.run.ID, s.owner, millis(s.run.Created), storedJSON{plan.Files}, string(plan.Mode), plan.BatchSize,
			s.first, s.first-1, own)
	})
}

// counter returns the last number that was assigned.
func (t *tx) counter(ctx context.Context, name string) int64 {
	return value[int64](ctx, t, "SELECT value FROM counters WHERE name = $1", name)
}

var errEnded = errors.New("staging has ended")

// Add appends entries in input order, see [ledger.Staging].
func (s *staging) Add(ctx context.Context, entries []ledger.Entry) ([]ledger.Conflict, error) {
	if s.ended {
		return nil, errEnded
	}
	for _, e := range entries {
		item := &e.Item
		err := checkText("referId", item.ReferID, "rawTrackingNumber", item.Number, "carrierCode", item.CarrierCode)
		if err != nil {
			return nil, err
		}
		if e.File < 0 || e.File >= len(s.run.Plan.Files) {
			return nil, fmt.Errorf("stage: there is no file %d", e.File)
		}
	}
	var conflicts []ledger.Conflict
	for part := range slices.Chunk(entries, chunkRows) {
		found, err := s.addChunk(ctx, part)
		if err != nil {
			return nil, err
		}
		conflicts = append(conflicts, found...)
	}
	return conflicts, nil
}

// addChunk starts over if an entry is unexpectedly known.
func (s *staging) addChunk(ctx context.Context, entries []ledger.Entry) ([]ledger.Conflict, error) {
	now := s.progress
	for {
		var c *chunk
		err := s.write(ctx, func(ctx context.Context, t *tx) {
			c = &chunk{s: s, entries: entries, base: now.next, progress: now}
			c.add(ctx, t)
		})
		switch {
		case err == nil:
			s.progress, s.full = c.progress, append(s.full, c.full...)
			return c.conflicts, nil
		case errors.Is(err, errNotNew):
			now.expectKnown = true
		default:
			return nil, err
		}
	}
}

// Begin lets the run be sent while it is staged, see [ledger.Staging].
func (s *staging) Begin() ledger.Run {
	s.begun = true
	return s.run
}

// Full returns the batches that became full, see [ledger.Staging].
func (s *staging) Full() []ledger.Batch {
	full := s.full
	s.full = nil
	return full
}

// write is [DB.run] while this process may stage. Once others declared it dead, they may have removed what it staged,
// and stage themselves.
func (s *staging) write(ctx context.Context, do work) error {
	return s.d.run(ctx, func(ctx context.Context, t *tx) {
		t.require(t.owner() == s.owner, &Error{Kind: ErrTakenOver, Path: s.d.engine.Place, Op: "write"})
		do(ctx, t)
	})
}

// publish makes the records up to p visible, except for the batch being filled.
func (s *staging) publish(ctx context.Context, t *tx, u unlinked, p progress, filling int64) {
	n := &p.tally
	t.exec(ctx, `UPDATE runs SET state = 'open', filling = $1, last_row = $2, new_rows = $3, known_rows = $4,
		known_pending = $5, known_open = $6, other_carrier = $7, repeats = $8, skipped = $9, erased = $10 WHERE id = $11`,
		filling, p.next-1, n.New, n.Known,
		n.KnownPending, n.KnownOpen, n.OtherCarrier, n.Repeats, n.Skipped, n.Erased, s.run.ID)
	t.exec(ctx, `UPDATE counters SET value = CASE name WHEN 'run' THEN CAST($1 AS BIGINT) ELSE $2 END
		WHERE name IN ('run', 'row')`, s.run.ID, p.next-1)
	t.link(ctx, u, s.run.ID, p.shown, p.next-1)
}

// Open makes the run durable and visible, see [ledger.Staging].
func (s *staging) Open(ctx context.Context) (ledger.Run, error) {
	if s.ended {
		return ledger.Run{}, errEnded
	}
	whole := s.progress
	err := s.write(ctx, func(ctx context.Context, t *tx) {
		earlier := countRows(ctx, t, s.run.ID)[s.run.ID].elsewhere
		whole.tally.KnownPending, whole.tally.KnownOpen = earlier.Pending, earlier.Sending+earlier.Unknown
		s.publish(ctx, t, t.unlinked(ctx), whole, 0)
		s.completeEarlier(ctx, t)
	})
	if err != nil {
		return ledger.Run{}, err
	}
	s.run.Tally = whole.tally
	return s.run, s.unlock()
}

// completeEarlier makes partial runs of the same files complete if this input, which was staged to its end, is no
// shorter and has each of their new rows.
func (s *staging) completeEarlier(ctx context.Context, t *tx) {
	t.exec(ctx, `UPDATE runs SET filling = 0 WHERE filling <> 0 AND id < $1
		AND files = (SELECT files FROM runs WHERE id = $1) AND last_row - first_row < $2
		AND new_rows = (SELECT COALESCE(SUM(
				CASE WHEN k.row_id + k.rows <= runs.last_row THEN k.row_id + k.rows ELSE runs.last_row + 1 END
				- CASE WHEN k.row_id > runs.first_row THEN k.row_id ELSE runs.first_row END), 0)
			FROM run_known_rows k WHERE k.run_id = $1 AND k.row_id <= runs.last_row AND k.row_id + k.rows > runs.first_row)`,
		s.run.ID, s.next-s.first)
}

// Discard removes everything that was staged, see [ledger.Staging]. What it can't remove is removed when the next run
// is staged.
func (s *staging) Discard(ctx context.Context) error {
	if s.ended {
		return nil
	}
	err := s.removeStaged(ctx)
	if s.begun && err == nil {
		err = s.write(ctx, func(ctx context.Context, t *tx) {
			t.exec(ctx, "UPDATE runs SET filling = "+filledNoMore+" WHERE id = $1", s.run.ID)
		})
	}
	if errors.Is(err, ErrTakenOver) {
		err = nil // others removed it
	}
	return errors.Join(err, s.unlock())
}

func (s *staging) unlock() error {
	s.ended = true
	return s.d.fail("lock", s.release())
}

// removeStaged removes the runs being staged, each from its end, in short transactions.
func (s *staging) removeStaged(ctx context.Context) error {
	r := s.d.reader()
	for _, run := range list(ctx, r, scanOne[int64], "SELECT id FROM runs WHERE state = 'staged'") {
		for done := false; !done && r.err == nil; {
			r.err = s.write(ctx, func(ctx context.Context, t *tx) { done = t.removeLastRecords(ctx, run) })
		}
	}
	return r.err
}

// removeLastRecords removes the last chunk of a run's records. It returns true once the run is removed too.
func (t *tx) removeLastRecords(ctx context.Context, run int64) bool {
	from := value[int64](ctx, t, "SELECT first_row FROM runs WHERE id = $1", run)
	last := value[int64](ctx, t, `SELECT MAX(pos) FROM (SELECT COALESCE(MAX(id), 0) AS pos FROM rows
		UNION ALL SELECT COALESCE(MAX(pos), 0) FROM run_known_rows WHERE run_id = $1) AS ends`, run)
	complete := last-from < chunkRows
	if !complete {
		from = last - chunkRows + 1
	}
	t.exec(ctx, "DELETE FROM rows WHERE id >= $1", from)
	t.exec(ctx, "DELETE FROM run_known_rows WHERE run_id = $1 AND pos >= $2", run, from)
	if !complete {
		return false
	}
	t.execAll(ctx, []string{
		"DELETE FROM batches WHERE run_id = $1",
		"DELETE FROM run_batches WHERE run_id = $1",
		"DELETE FROM tracking_counts WHERE run_id = $1",
		"DELETE FROM runs WHERE id = $1",
	}, run)
	return true
}
