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
	}
	if failed != nil {
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
	_, err := t.row(ctx, []any{&last.delivery, &last.event, &erased}, `SELECT (SELECT COALESCE(MAX(seq), 0) FROM deliveries),
		(SELECT COALESCE(MAX(seq), 0) FROM events), EXISTS (SELECT 1 FROM erased)`)
	if t.last = &last; !erased && err == nil && t.erased == nil {
		t.erased = &erasedNames{}
	}
	return err
}

func (t *tx) prepare(ctx context.Context, query string) (statement, error) {
	t.changed = t.changed || !strings.HasPrefix(query, "SELECT")
	if s, ok := t.w.stmts[query]; ok {
		return s, nil
	}
	text := t.w.engine.Rewrite(query)
	if t.w.engine.Remote {
		t.w.stmts[query] = keptText{t.w.conn, text}
		return t.w.stmts[query], nil
	}
	s, err := t.w.conn.PrepareContext(ctx, text)
	if err == nil {
		t.w.stmts[query] = s
	}
	return s, err
}

// exec runs a statement and returns how many rows it changed; 0 of one that is deferred.
func (t *tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	s, err := t.prepare(ctx, query)
	if err != nil {
		return 0, err
	}
	if kept, ok := s.(keptText); ok && t.closing {
		t.deferred = append(t.deferred, Statement{kept.text, args})
		return 0, nil
	}
	res, err := s.ExecContext(ctx, args...)
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

// prepareRead is prepare for a query that returns rows, which may read what was deferred.
func (t *tx) prepareRead(ctx context.Context, query string) (statement, error) {
	if err := t.flush(ctx); err != nil {
		return nil, err
	}
	return t.prepare(ctx, query)
}

// row runs a query for one row and scans it into dest. It returns false if there is none.
func (t *tx) row(ctx context.Context, dest []any, query string, args ...any) (bool, error) {
	s, err := t.prepareRead(ctx, query)
	if err != nil {
		return false, err
	}
	return found(s.QueryRowContext(ctx, args...).Scan(dest...))
}

// each runs a query and calls f for each of its rows. f may not use t.
func (t *tx) each(ctx context.Context, f func(scanner) error, query string, args ...any) error {
	s, err := t.prepareRead(ctx, query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return scanRows(rows, f)
}

// statement is a text in the connection that writes, compiled once.
type statement interface {
	ExecContext(ctx context.Context, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, args ...any) *sql.Row
	Close() error
}

// keptText is a statement that the connection compiles by itself.
type keptText struct {
	conn *sql.Conn
	text string
}

// ExecContext is for [statement], as are the next ones.
func (s keptText) ExecContext(ctx context.Context, args ...any) (sql.Result, error) {
	return s.conn.ExecContext(ctx, s.text, args...)
}

// QueryContext runs a query for several rows.
func (s keptText) QueryContext(ctx context.Context, args ...any) (*sql.Rows, error) {
	return s.conn.QueryContext(ctx, s.text, args...)
}

// QueryRowContext runs a query for one row.
func (s keptText) QueryRowContext(ctx context.Context, args ...any) *sql.Row {
	return s.conn.QueryRowContext(ctx, s.text, args...)
}

// Close does nothing: the text goes with its connection.
func (keptText) Close() error { return nil }
