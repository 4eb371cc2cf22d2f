package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"
)

// Limits of waiting to write.
const (
	lockWait   = 10 * time.Second // how long other processes may keep this one from writing before that is an error
	lockPoll   = 3 * time.Millisecond
	maxGather  = 2 * time.Millisecond  // how long a transaction waits for other senders
	gatherPoll = 50 * time.Microsecond // between two checks for them
)

// writer is the connection that writes, and its queue. The holder of the token uses the connection and runs all jobs
// queued meanwhile in one transaction, so that they share a commit.
type writer struct {
	engine *Engine
	token  chan struct{} // full while a goroutine holds the token

	mu    sync.Mutex
	queue []*job

	// The rest belongs to the holder of the token.
	conn     *sql.Conn
	compiled map[string]compiled
	begun    []*job        // taken from the queue
	senders  int           // of deliveries: in the last transaction, and waiting at its end
	took     time.Duration // duration of the last transaction
	refused  refusedSums
	closed   bool
}

// work is one job of a transaction, which keeps its error. Its context never ends. It may be called again after a
// rollback.
type work func(context.Context, *tx)

type job struct {
	do      work
	put     *arrival      // what the job stores, if it does nothing else: many are stored at once
	attempt *entryOutcome // the same for the outcome of an attempt
	err     error
	done    chan struct{} // closed when err is final
}

// runJob returns when the work is on disk, perhaps together with other jobs. After an error, nothing of it is.
func (w *writer) runJob(ctx context.Context, j *job) error {
	if err := cmp.Or(ctx.Err(), w.engine.ReadOnly); err != nil {
		return err
	}
	j.done = make(chan struct{})
	w.mu.Lock()
	w.queue = append(w.queue, j)
	w.mu.Unlock()
	select {
	case w.token <- struct{}{}:
		w.runQueue(ctx, j)
	case <-ctx.Done():
		if w.dequeue(j) {
			return ctx.Err()
		}
		<-j.done // the holder of the token has begun it
	case <-j.done:
	}
	return j.err
}

var errPanicked = errors.New("the program panicked in the transaction")

// runQueue runs all queued jobs, unless j was done meanwhile, and gives the token back.
func (w *writer) runQueue(ctx context.Context, j *job) {
	panics := true
	defer func() {
		if panics { // an HTTP server recovers from it, and others continue to write
			w.dequeue(j)
			w.drop()
			w.end(errPanicked)
		}
		<-w.token
	}()
	w.runQueued(ctx, j)
	panics = false
}

// runQueued is runQueue without giving the token back.
func (w *writer) runQueued(ctx context.Context, j *job) {
	select {
	case <-j.done:
		return
	default:
	}
	w.gather()
	began := time.Now()
	defer func() { w.took = time.Since(began) }()
	err := w.begin(ctx)
	if err != nil && ctx.Err() != nil && w.dequeue(j) {
		j.err = ctx.Err() // the others have contexts of their own
		close(j.done)
		return
	}
	w.mu.Lock()
	w.begun, w.queue = w.queue, nil
	w.mu.Unlock()
	if err == nil {
		err = w.runJobs(context.WithoutCancel(ctx), w.begun)
	}
	w.end(err)
}

// gather waits until as many senders of deliveries are queued as there were around the last transaction, but no longer
// than that took. Senders that were just answered send their next deliveries at about the same time: without gather,
// half of them wait for the other half.
func (w *writer) gather() {
	for limit := time.Now().Add(min(w.took, maxGather)); w.awaitsDeliveries() && time.Now().Before(limit); {
		<-time.After(gatherPoll)
	}
}

// awaitsDeliveries reports whether only deliveries are queued, and fewer than there were senders.
func (w *writer) awaitsDeliveries() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) < w.senders && !slices.ContainsFunc(w.queue, func(j *job) bool { return j.put == nil })
}

// end ends the jobs that were begun with an error, except those that have an error of their own.
func (w *writer) end(err error) {
	for _, j := range w.begun {
		if j.err == nil {
			j.err = err
		}
		close(j.done)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.senders = 0
	for _, j := range slices.Concat(w.begun, w.queue) {
		if j.put != nil {
			w.senders++
		}
	}
	w.begun = nil
}

// dequeue removes j from the queue. It returns false if j was already begun.
func (w *writer) dequeue(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.queue, j)
	if i >= 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
	}
	return i >= 0
}

// begin begins a transaction, once other processes have ended theirs.
func (w *writer) begin(ctx context.Context) error {
	return retry(ctx, w.engine.Connector, w.deadline(), func(ctx context.Context) error {
		if err := w.connect(ctx); err != nil {
			return err
		}
		err := w.engine.Connector.Begin(ctx, w.conn)
		w.dropIfBroken(err)
		return err
	})
}

// Retry calls f until it succeeds or fails for good, for at most 10 seconds. f's context never ends.
func Retry(ctx context.Context, c Connector, f func(context.Context) error) error {
	return retry(ctx, c, time.Now().Add(lockWait), f)
}

// deadline returns until when a transaction that begins now is retried.
func (w *writer) deadline() time.Time { return Later(time.Now().Add(lockWait), w.engine.Until) }

// Later returns the later of two times.
func Later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// retry is [Retry] with a deadline.
func retry(ctx context.Context, c Connector, deadline time.Time, f func(context.Context) error) error {
	for {
		err := f(context.WithoutCancel(ctx))
		if err == nil {
			return nil
		}
		if again, _ := c.Classify(err); !again || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// runJobs runs the jobs in the transaction that was begun, and sets the errors of those that fail. It returns the
// error of all others. A transaction that the database rolled back as a whole is retried for a while.
func (w *writer) runJobs(ctx context.Context, jobs []*job) error {
	for deadline := w.deadline(); ; {
		err := w.runOnce(ctx, jobs)
		if err == nil {
			return nil
		}
		if again, _ := w.engine.Connector.Classify(err); !again || time.Now().After(deadline) {
			return err
		}
		for _, j := range jobs {
			j.err = nil
		}
		if err := w.begin(ctx); err != nil {
			return err
		}
	}
}

// runOnce is runJobs without retries, in one transaction or two.
func (w *writer) runOnce(ctx context.Context, jobs []*job) error {
	t := &tx{w: w, putsOnly: !slices.ContainsFunc(jobs, func(j *job) bool { return j.put == nil })}
	if len(jobs) == 1 {
		jobs[0].do(ctx, t)
		return t.end(ctx)
	}
	t.doAll(ctx, jobs)
	if t.err != nil {
		w.rollback(ctx)
		w.dropIfBroken(t.err)
		return w.commitSeparately(ctx, jobs)
	}
	err := t.end(ctx)
	if err != nil && len(t.deferred) > 0 {
		if again, drop := w.engine.Connector.Classify(err); !again && !drop { // a statement failed
			return w.commitSeparately(ctx, jobs)
		}
	}
	return err
}

// end ends the transaction. If it only read, it does not wait for the disk.
func (t *tx) end(ctx context.Context) error {
	if t.err == nil && !t.changed {
		t.w.rollback(ctx)
		return nil
	}
	return t.w.commitOrRollback(ctx, t.err, t.deferred...)
}

// doAll runs jobs: first all that store arrivals together, then all that record attempts together, then the
// others, which may claim entries that waited for these.
func (t *tx) doAll(ctx context.Context, jobs []*job) {
	var arrivals []*arrival
	var attempts []*entryOutcome
	var others []*job
	for _, j := range jobs {
		switch {
		case j.put != nil:
			arrivals = append(arrivals, j.put)
		case j.attempt != nil:
			attempts = append(attempts, j.attempt)
		default:
			others = append(others, j)
		}
	}
	t.putAll(ctx, arrivals)
	t.recordAttempts(ctx, attempts)
	for _, j := range others {
		t.flush(ctx)
		j.do(ctx, t)
	}
}

// commitSeparately runs the jobs again after one failed, each in a savepoint, so that only those that fail are rolled
// back. Savepoints from the start would make each job copy every page that it changes.
func (w *writer) commitSeparately(ctx context.Context, jobs []*job) error {
	err := w.begin(ctx)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if err == nil {
			t := &tx{w: w}
			j.err, err = t.runInSavepoint(ctx, j.do)
		}
	}
	return w.commitOrRollback(ctx, err)
}

// commitOrRollback returns why nothing was written.
func (w *writer) commitOrRollback(ctx context.Context, err error, last ...Statement) error {
	if err == nil {
		err = w.engine.Connector.Commit(ctx, w.conn, last)
	}
	if err != nil {
		w.rollback(ctx)
		w.dropIfBroken(err)
	}
	return err
}

// rollback ends the transaction, which the database may already have ended.
func (w *writer) rollback(ctx context.Context) {
	if w.conn == nil {
		return
	}
	if _, err := w.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		w.drop()
	}
}

// dropIfBroken drops the connection if err says that it can't be used any more.
func (w *writer) dropIfBroken(err error) {
	if err == nil {
		return
	}
	if _, drop := w.engine.Connector.Classify(err); drop {
		w.drop()
	}
}

func (w *writer) connect(ctx context.Context) error {
	if w.closed {
		return errClosed
	}
	if w.conn != nil {
		return nil
	}
	conn, err := w.engine.Connector.Connect(ctx)
	if err != nil {
		return err
	}
	w.conn, w.compiled = conn, map[string]compiled{}
	return nil
}

// drop closes the connection; the next use opens another. It ignores errors of closing, since the failure that led
// here is returned.
func (w *writer) drop() {
	if w.conn == nil {
		return
	}
	_ = w.closeStatements()
	w.engine.Connector.Drop(w.conn)
	w.conn, w.compiled = nil, nil
}

// close waits for the token and closes everything.
func (w *writer) close() error {
	w.token <- struct{}{}
	defer func() { <-w.token }()
	if w.closed {
		return nil
	}
	w.closed = true
	if w.conn == nil {
		return nil
	}
	err := errors.Join(w.closeStatements(), w.conn.Close())
	w.conn = nil
	return err
}

func (w *writer) closeStatements() error {
	var errs []error
	for _, c := range w.compiled {
		if c.statement != nil {
			errs = append(errs, c.statement.Close())
		}
	}
	return errors.Join(errs...)
}
