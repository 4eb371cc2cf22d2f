package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Bounds of the connection that writes.
const (
	lockWait    = 10 * time.Second // how long other processes may hold the file before that is an error
	lockPoll    = 3 * time.Millisecond
	writerCache = 4000 // KiB
)

// writer is the connection that writes, and its queue. The holder of the token
// uses the connection and does all jobs that were queued meanwhile in one
// transaction. So jobs share a commit, and none waits for others to come.
type writer struct {
	pool    *sql.DB
	readers *sql.DB       // reopened with the connection after the disk failed
	token   chan struct{} // full while a goroutine holds the token

	identity identity
	boot     string // see bootID
	readOnly error  // why nothing can be written; nil if it can

	mu    sync.Mutex
	queue []*job

	// The rest belongs to the holder of the token.
	conn    *sql.Conn
	stmts   map[string]*sql.Stmt
	refused refusedSums
	closed  bool
}

// work is one job of a transaction. Its context never ends. It may be called
// again after a rollback.
type work func(context.Context, *tx) error

type job struct {
	do   work
	err  error
	done chan struct{} // closed when err is final
}

func newWriter(path string, readers *sql.DB) (*writer, error) {
	pool, err := connect(path, "busy_timeout(5)", "synchronous(FULL)", fmt.Sprintf("cache_size(-%d)", writerCache))
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	return &writer{pool: pool, readers: readers, token: make(chan struct{}, 1), identity: identity{path: path}, boot: bootID()}, nil
}

// run does the work in a transaction, perhaps together with others', and
// returns when it is on disk. When it returns an error nothing of it is.
func (w *writer) run(ctx context.Context, do work) error {
	if err := cmp.Or(ctx.Err(), w.readOnly); err != nil {
		return err
	}
	j := &job{do: do, done: make(chan struct{})}
	w.mu.Lock()
	w.queue = append(w.queue, j)
	w.mu.Unlock()
	select {
	case w.token <- struct{}{}:
		w.runQueue(ctx, j)
		<-w.token
	case <-ctx.Done():
		if w.dequeue(j) {
			return ctx.Err()
		}
	case <-j.done:
	}
	<-j.done // the holder of the token has begun with it
	return j.err
}

// runQueue does all queued jobs, unless j was done meanwhile.
func (w *writer) runQueue(ctx context.Context, j *job) {
	select {
	case <-j.done:
		return
	default:
	}
	err := w.begin(ctx)
	if err != nil && ctx.Err() != nil && w.dequeue(j) {
		j.err = ctx.Err() // the others have contexts of their own
		close(j.done)
		return
	}
	w.mu.Lock()
	jobs := w.queue
	w.queue = nil
	w.mu.Unlock()
	if err == nil {
		w.runJobs(context.WithoutCancel(ctx), jobs)
	}
	for _, j := range jobs {
		if err != nil {
			j.err = err
		}
		close(j.done)
	}
}

// dequeue takes j out of the queue. It returns false if it was begun.
func (w *writer) dequeue(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.queue {
		if w.queue[i] == j {
			w.queue = append(w.queue[:i], w.queue[i+1:]...)
			return true
		}
	}
	return false
}

// begin begins a transaction, once other processes have ended theirs.
func (w *writer) begin(ctx context.Context) error {
	return w.retryWhileLocked(ctx, func(ctx context.Context) error {
		if err := w.connect(ctx); err != nil {
			return err
		}
		if _, err := (&tx{w: w}).exec(ctx, "BEGIN IMMEDIATE"); err != nil || w.identity.log != nil {
			return err
		}
		err := w.checkConnection(ctx)
		if err != nil {
			w.rollback(ctx)
			w.disconnect()
		}
		return err
	})
}

// retryWhileLocked calls f until another process does not hold the lock, for
// lockWait at most. f's context never ends.
func (w *writer) retryWhileLocked(ctx context.Context, f func(context.Context) error) error {
	deadline := time.Now().Add(lockWait)
	poll := time.NewTimer(0)
	defer poll.Stop()
	for {
		err := f(context.WithoutCancel(ctx))
		switch {
		case err == nil:
			return nil
		case !isBusy(err):
			w.disconnectIfBroken(err)
			return err
		case time.Now().After(deadline):
			return err
		}
		poll.Reset(lockPoll)
		select {
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// runJobs does the jobs in the transaction that was begun, and sets their errors.
func (w *writer) runJobs(ctx context.Context, jobs []*job) {
	t := &tx{w: w}
	if len(jobs) == 1 {
		jobs[0].err = jobs[0].do(ctx, t)
		w.commitOrRollback(ctx, jobs, jobs[0].err)
		return
	}
	for _, j := range jobs {
		if j.do(ctx, t) != nil {
			w.commitSeparately(ctx, jobs)
			return
		}
	}
	w.commitOrRollback(ctx, jobs, nil)
}

// commitSeparately does the jobs once more after one failed, each in a savepoint,
// so that only those that fail are rolled back. Savepoints from the start would
// cost all jobs a copy of every page they change.
func (w *writer) commitSeparately(ctx context.Context, jobs []*job) {
	w.rollback(ctx)
	err := w.begin(ctx)
	for _, j := range jobs {
		if err == nil {
			t := &tx{w: w}
			j.err, err = t.runInSavepoint(ctx, j.do)
		}
	}
	w.commitOrRollback(ctx, jobs, err)
}

// commitOrRollback commits, or rolls back if there is an error; then all jobs have failed.
// A commit to a file that is not there any more is a failure too.
func (w *writer) commitOrRollback(ctx context.Context, jobs []*job, err error) {
	if err == nil {
		err = w.identity.checkLog()
	}
	if err == nil {
		_, err = (&tx{w: w}).exec(ctx, "COMMIT")
	}
	if err == nil {
		err = w.identity.checkLog()
	}
	if err == nil {
		return
	}
	w.rollback(ctx)
	w.disconnectIfBroken(err)
	for _, j := range jobs {
		if j.err == nil {
			j.err = err
		}
	}
}

// rollback ends the transaction, which may have ended by itself.
func (w *writer) rollback(ctx context.Context) {
	if w.conn == nil {
		return
	}
	if _, err := w.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		w.disconnect()
	}
}

// disconnectIfBroken drops the connections if err says that the disk failed.
func (w *writer) disconnectIfBroken(err error) {
	if breaksConnection(err) {
		w.disconnect()
	}
}

// connect opens the connection if there is none.
func (w *writer) connect(ctx context.Context) error {
	if w.closed {
		return errClosed
	}
	if w.conn != nil {
		return nil
	}
	if err := w.identity.check(); err != nil {
		return err
	}
	conn, err := w.pool.Conn(ctx)
	if err != nil {
		return err
	}
	w.conn, w.stmts = conn, map[string]*sql.Stmt{}
	return nil
}

// disconnect closes the connection and the readers' idle ones; the next use opens
// new ones. Errors of closing are ignored: the failure that led here is returned.
func (w *writer) disconnect() {
	if w.conn == nil {
		return
	}
	for _, s := range w.stmts {
		_ = s.Close()
	}
	_ = w.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = w.conn.Close()
	w.conn, w.stmts, w.identity.log = nil, nil, nil
	w.readers.SetMaxIdleConns(0)
	w.readers.SetMaxIdleConns(idleReaders)
}

// close waits for the token and closes everything.
func (w *writer) close() error {
	w.token <- struct{}{}
	defer func() { <-w.token }()
	if w.closed {
		return nil
	}
	w.closed = true
	var errs []error
	if w.conn != nil {
		for _, s := range w.stmts {
			errs = append(errs, s.Close())
		}
		errs = append(errs, w.conn.Close())
		w.conn = nil
	}
	return errors.Join(append(errs, w.pool.Close())...)
}

// tx is the transaction that a job is done in.
type tx struct {
	w    *writer
	last map[string]int64 // the last number given away in this transaction, by table

	statuses map[statusKey]int64 // numbers that were read
	run      rowRun              // that [tx.runOf] read last
}

// runInSavepoint does a job, and rolls it alone back if it fails. The first error
// is the job's, the second that of the transaction.
func (t *tx) runInSavepoint(ctx context.Context, do work) (failed, lost error) {
	if _, err := t.exec(ctx, "SAVEPOINT job"); err != nil {
		return nil, err
	}
	failed = do(ctx, t)
	if failed != nil && breaksConnection(failed) {
		return failed, failed
	}
	if failed != nil {
		if _, err := t.exec(ctx, "ROLLBACK TO SAVEPOINT job"); err != nil {
			return failed, err
		}
	}
	_, lost = t.exec(ctx, "RELEASE SAVEPOINT job")
	return failed, lost
}

// next returns the next number of a table that counts its rows by seq.
func (t *tx) next(ctx context.Context, table string) (int64, error) {
	last, ok := t.last[table]
	if !ok {
		if _, err := t.row(ctx, []any{&last}, "SELECT COALESCE(MAX(seq), 0) FROM "+table); err != nil {
			return 0, err
		}
		if t.last == nil {
			t.last = map[string]int64{}
		}
	}
	t.last[table] = last + 1
	return last + 1, nil
}

// prepare returns the statement for a query. Each is compiled once.
func (t *tx) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if s, ok := t.w.stmts[query]; ok {
		return s, nil
	}
	s, err := t.w.conn.PrepareContext(ctx, query)
	if err == nil {
		t.w.stmts[query] = s
	}
	return s, err
}

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	s, err := t.prepare(ctx, query) //nolint:sqlclosecheck // kept for the next use, closed with its connection
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// execAll runs statements that have the same arguments.
func (t *tx) execAll(ctx context.Context, queries []string, args ...any) error {
	for _, query := range queries {
		if _, err := t.exec(ctx, query, args...); err != nil {
			return err
		}
	}
	return nil
}

// row runs a query for one row and scans it into dest. It returns false if
// there is none.
func (t *tx) row(ctx context.Context, dest []any, query string, args ...any) (bool, error) {
	s, err := t.prepare(ctx, query) //nolint:sqlclosecheck // kept for the next use, closed with its connection
	if err != nil {
		return false, err
	}
	return found(s.QueryRowContext(ctx, args...).Scan(dest...))
}

// each runs a query and calls f for each of its rows. f may not use t.
func (t *tx) each(ctx context.Context, f func(scanner) error, query string, args ...any) error {
	s, err := t.prepare(ctx, query) //nolint:sqlclosecheck // kept for the next use, closed with its connection
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return scanRows(rows, f)
}
