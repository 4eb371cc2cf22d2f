package store

import (
	"context"
	"database/sql"
	"strings"
)

// tx is the transaction that a job is done in.
type tx struct {
	w    *writer
	last *lastNumbers // with those that this transaction gave; nil until they are read

	changed bool // it did more than read

	putsOnly bool        // all that it does is to store arrivals
	closing  bool        // the job reads nothing any more: what the database can take together is deferred
	deferred []Statement // to its end, or the next job

	statuses map[statusKey]int64 // numbers that were read
	sums     bool                // those of what was refused are those of the table
	run      rowRun              // that [tx.runOf] read last
	erased   *erasedNames        // see [tx.erasedNames]
}

// runInSavepoint does a job, and rolls it alone back if it fails, unless all jobs may be done
// again. The first error is the job's, the second that of the transaction.
func (t *tx) runInSavepoint(ctx context.Context, do work) (failed, lost error) {
	if _, err := t.exec(ctx, "SAVEPOINT job"); err != nil {
		return nil, err
	}
	failed = do(ctx, t)
	if failed == nil {
		failed = t.flush(ctx)
	}
	if failed != nil {
		if again, drop := t.w.engine.Connector.Judge(failed); again || drop {
			return failed, failed
		}
		if _, err := t.exec(ctx, "ROLLBACK TO SAVEPOINT job"); err != nil {
			return failed, err
		}
	}
	_, lost = t.exec(ctx, "RELEASE SAVEPOINT job")
	return failed, lost
}

func (t *tx) flush(ctx context.Context) error {
	deferred := t.deferred
	t.closing, t.deferred = false, nil
	for _, s := range deferred {
		if _, err := t.w.conn.ExecContext(ctx, s.Text, s.Args...); err != nil {
			return err
		}
	}
	return nil
}

// direct returns the connection of the transaction, to write what tx has no way for.
func (t *tx) direct() *sql.Conn {
	t.changed = true
	return t.w.conn
}

func (t *tx) owner(ctx context.Context) (string, error) {
	name, err := t.w.engine.Owners.Name(ctx, t.w.conn)
	return name, t.w.engine.Fail("lock", err)
}

func (t *tx) isAlive(ctx context.Context, name string) (bool, error) {
	alive, err := t.w.engine.Owners.IsAlive(ctx, t.w.conn, name)
	return alive, t.w.engine.Fail("lock", err)
}

// fence reports whether an owner is dead, and then it stays so.
func (t *tx) fence(ctx context.Context, name string) (bool, error) {
	dead, err := t.w.engine.Owners.Fence(ctx, t.w.conn, name)
	if err != nil {
		return false, t.w.engine.Fail("lock", err)
	}
	t.changed = t.changed || dead
	return dead, nil
}

// lastNumbers are the last numbers that were given to deliveries and events.
type lastNumbers struct{ delivery, event int64 }

// readLast reads the last numbers, and whether anything was erased, once a transaction.
func (t *tx) readLast(ctx context.Context) error {
	if t.last != nil {
		return nil
	}
	var last lastNumbers
	var erased bool
	_, err := t.row(ctx, []any{&last.delivery, &last.event, &erased}, `SELECT
		(SELECT COALESCE(MAX(seq), 0) FROM deliveries), (SELECT COALESCE(MAX(seq), 0) FROM events),
		EXISTS (SELECT 1 FROM erased)`)
	if t.last = &last; !erased && err == nil && t.erased == nil {
		t.erased = &erasedNames{}
	}
	return err
}

// compiled is a text as the database takes it. Its statement is nil if the connection compiles each text by itself.
type compiled struct {
	text      string
	statement *sql.Stmt
}

func (t *tx) compile(ctx context.Context, query string) (c compiled, err error) {
	t.changed = t.changed || !strings.HasPrefix(query, "SELECT")
	if c, ok := t.w.compiled[query]; ok {
		return c, nil
	}
	c.text = t.w.engine.Rewrite(query)
	if !t.w.engine.Remote {
		c.statement, err = t.w.conn.PrepareContext(ctx, c.text)
	}
	if err == nil {
		t.w.compiled[query] = c
	}
	return c, err
}

// exec runs a statement and returns how many rows it changed; 0 of one that is deferred.
func (t *tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	c, err := t.compile(ctx, query)
	if err != nil {
		return 0, err
	}
	var res sql.Result
	switch {
	case c.statement != nil:
		res, err = c.statement.ExecContext(ctx, args...)
	case t.closing:
		t.deferred = append(t.deferred, Statement{c.text, args})
		return 0, nil
	default:
		res, err = t.w.conn.ExecContext(ctx, c.text, args...)
	}
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (t *tx) execAll(ctx context.Context, queries []string, args ...any) error {
	for _, query := range queries {
		if _, err := t.exec(ctx, query, args...); err != nil {
			return err
		}
	}
	return nil
}

// row runs a query for one row and scans it into dest. It returns false if there is none.
func (t *tx) row(ctx context.Context, dest []any, query string, args ...any) (found bool, err error) {
	err = t.each(ctx, func(s scanner) error {
		found = true
		return s.Scan(dest...)
	}, query, args...)
	return found, err
}

// each runs a query, which may read what was deferred, and calls f for each of its rows. f may not use t.
func (t *tx) each(ctx context.Context, f func(scanner) error, query string, args ...any) error {
	if err := t.flush(ctx); err != nil {
		return err
	}
	c, err := t.compile(ctx, query)
	if err != nil {
		return err
	}
	var rows *sql.Rows
	if c.statement != nil {
		rows, err = c.statement.QueryContext(ctx, args...)
	} else {
		rows, err = t.w.conn.QueryContext(ctx, c.text, args...)
	}
	if err != nil {
		return err
	}
	return scanRows(rows, f)
}
