package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybill-cli/waybill/internal/store"
)

// turn is how long a transaction waits for others before its caller decides whether to wait on.
const turn = 500 * time.Millisecond

// writeTimeout is how long one statement may block other writers.
const writeTimeout = 5 * time.Minute

// forgotten is how long a dead owner's row stays visible; forgetAtOnce limits how many are removed at once.
const (
	forgotten    = time.Hour
	forgetAtOnce = 100
)

var (
	// errNotCommitted says that a commit whose answer was lost did not happen.
	errNotCommitted = errors.New("connection was lost before the commit")
	// errUnknown says that nobody can tell whether a commit happened.
	errUnknown    = errors.New("it is not known whether the last change was stored")
	errRolledBack = errors.New("the server rolled the transaction back")
)

// writer is for [store.Connector]. All writing transactions hold one lock of the schema, and are numbered in table
// counters, which also has the number of each process's last one. A process that loses its connection during a commit
// reconnects, takes the lock, by when the lost transaction has ended, and compares.
type writer struct {
	engine *engine

	isFirst     bool // the next transaction is the first one of its connection
	predecessor string
	identity    string // of the store; empty until read
	owner       string // of the current transaction
	number      int64  // of the current transaction
	committed   int64  // the last number that is known to be committed
	lastOwner   string // owner of that transaction
	lost        error  // why this process can't continue with the server
}

// Connect is for [store.Connector].
func (w *writer) Connect(ctx context.Context) (*sql.Conn, error) {
	conn, err := w.engine.pool.Conn(ctx)
	if err != nil {
		w.engine.outage.wait(ctx)
		return nil, err
	}
	w.isFirst = true
	return conn, nil
}

// Drop is for [store.Connector].
func (w *writer) Drop(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}

// Begin is for [store.Connector].
func (w *writer) Begin(ctx context.Context, conn *sql.Conn) error {
	if err := cmp.Or(w.lost, w.pooled()); err != nil {
		return err
	}
	return native(conn, func(on *pgx.Conn) error {
		err := w.begin(ctx, on)
		if errors.Is(err, errFenced) {
			err = w.begin(ctx, on) // as another owner
		}
		w.engine.endStopped(ctx, err)
		return err
	})
}

func (w *writer) pooled() error {
	if w.engine.backends.arePooled() {
		return w.engine.trouble(store.ErrPooled, nil)
	}
	return nil
}

// begin begins a transaction. The error is errFenced if this process has lost its row.
func (w *writer) begin(ctx context.Context, on *pgx.Conn) error {
	name, err := w.engine.owners.register(ctx, on)
	if err != nil {
		return err
	}
	if w.isFirst {
		err = w.checkServer(ctx, on.PgConn(), name)
	}
	if err == nil {
		err = w.count(ctx, on, name)
	}
	if err == nil || on.IsClosed() || on.PgConn().TxStatus() == 'I' {
		return err
	}
	_, e := on.PgConn().Exec(ctx, "ROLLBACK").ReadAll()
	return errors.Join(err, e)
}

// count begins a transaction of that owner and assigns its number, in one round trip.
func (w *writer) count(ctx context.Context, on *pgx.Conn, name string) error {
	var batch pgx.Batch
	batch.Queue("BEGIN")
	batch.Queue(w.engine.writeLock())
	if name != w.lastOwner {
		batch.Queue("UPDATE meta SET timeline = " + timeline + " WHERE timeline <> " + timeline)
		batch.Queue(fmt.Sprintf(`DELETE FROM owners WHERE name IN
			(SELECT o.name FROM owners o WHERE o.seen < clock_timestamp() - %s AND %s LIMIT %d)`,
			interval(forgotten), w.engine.owners.isDead(), forgetAtOnce))
		batch.Queue(`DELETE FROM counters c WHERE c.name LIKE 'commits %'
			AND NOT EXISTS (SELECT 1 FROM owners o WHERE c.name = 'commits ' || o.name)`)
	}
	const counted = `WITH count AS (UPDATE counters SET value = value + 1 WHERE name = 'commits' RETURNING value)
		UPDATE counters SET value = count.value FROM count
			WHERE name = (SELECT 'commits ' || o.name FROM owners o WHERE o.name = $1)
		RETURNING counters.value, ` + clockMillis + `, (SELECT version FROM meta)`
	batch.Queue(counted, name)
	sent := uptime()
	results := on.SendBatch(ctx, &batch)
	_, err := readTags(results, batch.Len()-1)
	var number, shown int64
	var version int
	if err == nil {
		err = results.QueryRow().Scan(&number, &shown, &version)
	}
	err = cmp.Or(err, results.Close())
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		w.engine.owners.fenced(name)
		return errFenced
	case err != nil:
		return err
	case version > store.SchemaVersion:
		return w.engine.trouble(store.ErrTooNew, store.BeyondNewest(version))
	case number <= w.committed:
		w.lost = w.engine.trouble(store.ErrLost, nil)
		return w.lost
	}
	w.engine.clock.observe(sent, uptime(), shown)
	w.owner, w.number = name, number
	return nil
}

// lastCommit returns the query for the number of an owner's last transaction, which finds nothing without the owner.
func lastCommit(owner string) string {
	return "SELECT c.value FROM owners o JOIN counters c ON c.name = 'commits ' || o.name WHERE o.name = '" + owner + "'"
}

const clockMillis = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"

func (e *engine) writeLock() string {
	return fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", lockKey(e.schema))
}

// ownerLock returns a statement that calls a server function on an owner's lock.
func (e *engine) ownerLock(function string, number int64) string {
	return fmt.Sprintf("SELECT %s(%d::bigint << 32 | %d)", function, ownerLocks(e.schema), number)
}

// endPredecessor returns SQL that ends the previous connection, which may hold the lock until its loss is noticed.
func (w *writer) endPredecessor() string {
	if w.predecessor == "" {
		return ""
	}
	return "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() " +
		"AND " + backendName + " = '" + w.predecessor + "'; "
}

// checkServer prepares a new connection, and compares its server with what this process knows. Before a server has
// counted the rows of a new store, it would read whole tables.
func (w *writer) checkServer(ctx context.Context, c *pgconn.PgConn, name string) error {
	query := fmt.Sprintf("BEGIN; SET lock_timeout TO %d; SET statement_timeout TO %d; SET enable_seqscan TO off; ",
		turn.Milliseconds(), writeTimeout.Milliseconds()) + w.endPredecessor() +
		"SELECT (SELECT value FROM counters WHERE name = 'identity'), " +
		"COALESCE((" + lastCommit(name) + "), -1), " + thisBackend + "; COMMIT"
	results, err := c.Exec(ctx, query).ReadAll()
	if err != nil {
		return err
	}
	rows := results[len(results)-2].Rows
	if len(rows) == 0 {
		return errors.New("the server does not list this connection")
	}
	identity, predecessor := string(rows[0][0]), string(rows[0][2])
	if w.identity != "" && w.identity != identity {
		w.lost = w.engine.trouble(store.ErrGone, errors.New("replaced by another store"))
		return w.lost
	}
	own, err := strconv.ParseInt(string(rows[0][1]), 10, 64)
	if err != nil {
		return err
	}
	if own >= 0 && own < w.committed && name == w.lastOwner {
		w.lost = w.engine.trouble(store.ErrLost, nil)
		return w.lost
	}
	w.identity, w.predecessor, w.isFirst = identity, predecessor, false
	w.engine.backends.setWriter(w.predecessor)
	return w.pooled()
}

// Commit is for [store.Connector].
func (w *writer) Commit(ctx context.Context, conn *sql.Conn, last []store.Statement) error {
	var alive bool
	err := native(conn, func(on *pgx.Conn) error {
		tag, err := commitAfter(ctx, on, last)
		if err == nil && tag.String() != "COMMIT" {
			err = errRolledBack
		}
		alive = !on.IsClosed()
		return err
	})
	switch {
	case err == nil:
		w.committed, w.lastOwner = w.number, w.owner
		return nil
	case alive && !breaks(err): // the server says that it did not commit
		return err
	}
	return w.findOutcome(ctx, conn, err)
}

// commitAfter executes statements and commits, in one round trip. If one fails, nothing is committed.
func commitAfter(ctx context.Context, on *pgx.Conn, last []store.Statement) (pgconn.CommandTag, error) {
	if len(last) == 0 {
		return on.Exec(ctx, "COMMIT", pgx.QueryExecModeSimpleProtocol)
	}
	var batch pgx.Batch
	for _, s := range last {
		batch.Queue(s.Text, s.Args...)
	}
	batch.Queue("COMMIT")
	results := on.SendBatch(ctx, &batch)
	tag, err := readTags(results, batch.Len())
	return tag, errors.Join(err, results.Close())
}

// readTags reads the results of the next n statements, up to an error, and returns the last tag.
func readTags(results pgx.BatchResults, n int) (tag pgconn.CommandTag, err error) {
	for range n {
		if tag, err = results.Exec(); err != nil {
			break
		}
	}
	return tag, err
}

// findOutcome returns nil if the transaction whose connection was lost was committed.
func (w *writer) findOutcome(ctx context.Context, conn *sql.Conn, cause error) error {
	w.Drop(conn)
	query := w.endPredecessor() + "BEGIN; " + w.engine.writeLock() + "; " + lastCommit(w.owner) + "; ROLLBACK"
	for deadline := w.engine.deadline(); ; {
		number, found, err := w.askOutcome(ctx, query)
		switch {
		case err == nil && found && number > w.committed:
			w.committed, w.lastOwner = number, w.owner
			return nil
		case err == nil && found:
			return fmt.Errorf("%w: %w", errNotCommitted, cause)
		case err == nil: // others declared this process dead and removed its row
			return w.engine.trouble(store.ErrTakenOver, fmt.Errorf("%w: %w", errUnknown, shortCause(cause)))
		case time.Now().After(deadline), !w.engine.isTemporary(err), !w.engine.outage.wait(ctx):
			return w.engine.trouble(store.ErrUnreachable, fmt.Errorf("%w: %w", errUnknown, shortCause(err)))
		}
	}
}

// askOutcome returns this process's last committed transaction; found is false if it has lost its row.
func (w *writer) askOutcome(ctx context.Context, query string) (number int64, found bool, err error) {
	conn, err := w.engine.pool.Conn(ctx)
	if err != nil {
		return 0, false, err
	}
	defer conn.Close() //nolint:errcheck // goes back to the pool
	err = native(conn, func(on *pgx.Conn) error {
		results, err := on.PgConn().Exec(ctx, query).ReadAll()
		if err != nil {
			return err
		}
		rows := results[len(results)-2].Rows
		if found = len(rows) > 0; found {
			number, err = strconv.ParseInt(string(rows[0][0]), 10, 64)
		}
		return err
	})
	if err != nil {
		w.Drop(conn)
	}
	return number, found, err
}

// Classify is for [store.Connector].
func (w *writer) Classify(err error) (again, drop bool) {
	switch {
	case errors.Is(err, errUnknown), errors.Is(err, store.ErrLost),
		errors.Is(err, store.ErrGone), errors.Is(err, store.ErrPooled):
		return false, true
	case errors.Is(err, errNotCommitted), errors.Is(err, sql.ErrConnDone):
		return true, true
	}
	return w.engine.isTemporary(err), breaks(err)
}
