package store

import (
	"context"
	"database/sql"
	"strings"
)

// tx is the transaction that a job runs in. It keeps its first error: from then on it executes no statement, finds
// nothing, and is never committed. So a job need not check the error of each statement.
type tx struct {
	firstError
	w    *writer
	last *lastNumbers // with those that this transaction gave; nil until they are read

	changed bool // it did more than read

	putsOnly bool        // it only stores arrivals
	closing  bool        // the job reads no more: statements that can be sent together are deferred
	deferred []Statement // to the end, or the next job

	statuses map[statusKey]int64 // ids that were read
	sums     bool                // the sums of refused deliveries match the table
	run      rowRun              // the last result of [tx.runOf]
	erased   *erasedNames        // see [tx.erasedNames]
}

// runInSavepoint runs a job, and rolls back only that job if it fails, unless all jobs may be run again. The first
// error is the job's, the second is the transaction's.
func (t *tx) runInSavepoint(ctx context.Context, do work) (failed, lost error) {
	t.exec(ctx, "SAVEPOINT job")
	if t.err != nil {
		return nil, t.err
	}
	do(ctx, t)
	t.flush(ctx)
	if failed = t.err; failed != nil {
		if again, drop := t.w.engine.Connector.Classify(failed); again || drop {
			return failed, failed
		}
		t.err = nil
		t.exec(ctx, "ROLLBACK TO SAVEPOINT job")
	}
	t.exec(ctx, "RELEASE SAVEPOINT job")
	return failed, t.err
}

// flush executes the deferred statements.
func (t *tx) flush(ctx context.Context) {
	deferred := t.deferred
	t.closing, t.deferred = false, nil
	for _, s := range deferred {
		if t.err == nil {
			_, t.err = t.w.conn.ExecContext(ctx, s.Text, s.Args...)
		}
	}
}

// direct writes on the connection of the transaction, for what tx has no method for.
func (t *tx) direct(write func(*sql.Conn) error) {
	if t.err == nil {
		t.changed = true
		t.err = write(t.w.conn)
	}
}

func (t *tx) owner() string { return askOwners(&t.firstError, t.w.engine.Fail, t.w.engine.Owners.Name) }

func (t *tx) isAlive(ctx context.Context, name string) bool {
	isAlive := func() (bool, error) { return t.w.engine.Owners.IsAlive(ctx, t.w.conn, name) }
	return askOwners(&t.firstError, t.w.engine.Fail, isAlive)
}

// fence reports whether an owner is dead. If so, it stays dead.
func (t *tx) fence(ctx context.Context, name string) bool {
	fence := func() (bool, error) { return t.w.engine.Owners.Fence(ctx, t.w.conn, name) }
	dead := askOwners(&t.firstError, t.w.engine.Fail, fence)
	t.changed = t.changed || dead
	return dead
}

// lastNumbers are the last numbers assigned to deliveries and events.
type lastNumbers struct{ delivery, event int64 }

// readLast reads the last numbers, and whether anything was erased, once per transaction.
func (t *tx) readLast(ctx context.Context) {
	if t.last != nil {
		return
	}
	var last lastNumbers
	var erased bool
	t.row(ctx, []any{&last.delivery, &last.event, &erased}, `SELECT
		(SELECT COALESCE(MAX(seq), 0) FROM deliveries), (SELECT COALESCE(MAX(seq), 0) FROM events),
		EXISTS (SELECT 1 FROM erased)`)
	if t.last = &last; !erased && t.erased == nil {
		t.erased = &erasedNames{}
	}
}

// compiled is a text in the database's dialect. statement is nil if the connection compiles each text by itself.
type compiled struct {
	text      string
	statement *sql.Stmt
}

func (t *tx) compile(ctx context.Context, query string) (c compiled) {
	if t.err != nil {
		return c
	}
	t.changed = t.changed || !strings.HasPrefix(query, "SELECT")
	if c, ok := t.w.compiled[query]; ok {
		return c
	}
	c.text = t.w.engine.Rewrite(query)
	if !t.w.engine.Remote {
		c.statement, t.err = t.w.conn.PrepareContext(ctx, c.text)
	}
	if t.err == nil {
		t.w.compiled[query] = c
	}
	return c
}

// exec executes a statement and returns how many rows it changed, 0 if it is deferred.
func (t *tx) exec(ctx context.Context, query string, args ...any) (n int64) {
	c := t.compile(ctx, query)
	var res sql.Result
	switch {
	case t.err != nil:
		return 0
	case c.statement != nil:
		res, t.err = c.statement.ExecContext(ctx, args...)
	case t.closing:
		t.deferred = append(t.deferred, Statement{c.text, args})
		return 0
	default:
		res, t.err = t.w.conn.ExecContext(ctx, c.text, args...)
	}
	if t.err == nil {
		n, t.err = res.RowsAffected()
	}
	return n
}

func (t *tx) execAll(ctx context.Context, queries []string, args ...any) {
	for _, query := range queries {
		t.exec(ctx, query, args...)
	}
}

func (t *tx) row(ctx context.Context, dest []any, query string, args ...any) (found bool) {
	t.each(ctx, func(s scanner) error {
		found = true
		return s.Scan(dest...)
	}, query, args...)
	return found
}

// each is for [querier]. It runs the deferred statements first.
func (t *tx) each(ctx context.Context, f func(scanner) error, query string, args ...any) {
	t.flush(ctx)
	c := t.compile(ctx, query)
	if t.err != nil {
		return
	}
	var rows *sql.Rows
	if c.statement != nil {
		rows, t.err = c.statement.QueryContext(ctx, args...)
	} else {
		rows, t.err = t.w.conn.QueryContext(ctx, c.text, args...)
	}
	if t.err == nil {
		t.err = scanRows(rows, f)
	}
}
