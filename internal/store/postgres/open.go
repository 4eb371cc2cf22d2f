// Package postgres keeps a store in a schema of a PostgreSQL database, which several
// machines use at once. It is the only package that knows PostgreSQL.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/store"
)

// noticed is how long the user waits before learning what for.
const noticed = 2 * time.Second

// Options control how a store on a server is opened.
type Options struct {
	store.Options

	Password string // replaces the environment's password; empty to use that

	// What others see of this process.
	Version, Command string

	// Note is called with messages for the user, one sentence each; nil for none.
	Note func(text string)
}

// Open opens the store at the target, and creates its schema if there is none and the role may. A store with other
// tables, of a newer version or of a development build, is refused and left unchanged. If the server or the role can
// only read, the store is opened for reading, see [store.DB.Writable]. While the server can't be reached, Open retries
// for some seconds, but not with ReadOnly. Errors are [*store.Error].
func Open(ctx context.Context, t Target, o Options) (*store.DB, error) {
	if o.Password != "" {
		t.config = t.config.Copy()
		t.config.Password = o.Password
	}
	a := &access{target: t, reads: o.ReadOnly}
	host, _ := os.Hostname() // only informs people
	process := store.Process{Host: host, PID: int64(os.Getpid()), Version: o.Version, Command: o.Command}
	e := newEngine(t.Place(), t.schema, a.config(), process)
	e.until, e.note, e.password = o.Until, o.Note, redact.New(t.config.Password)
	d, err := e.store(ctx, a, o.Options)
	if err != nil {
		return nil, errors.Join(e.fail("open", err), e.close()) //nolint:contextcheck // it ends on its own
	}
	if e.moved && o.Note != nil {
		o.Note("The server is not the one that the store was last written on, such as after a failover: " +
			"it may lack what was sent and received last")
	}
	return d, nil
}

func (e *engine) store(ctx context.Context, a *access, o store.Options) (*store.DB, error) {
	made, readOnly, err := e.open(ctx, a, o)
	if err != nil {
		return nil, err
	}
	return store.New(store.Engine{
		Place: e.place, New: made, ReadOnly: readOnly,
		Connector: e.writer, Readers: e.pool, Owners: e.owners,
		Clock:       store.Clock{ID: e.clock.ID, Now: e.clock.Now},
		Rewrite:     rewrite,
		Read:        e.read,
		LockStaging: e.lockStaging,
		Watch:       e.session.Watch,
		Revision:    e.revision,
		Until:       o.Until,
		Check:       e.check,
		Upkeep:      e.upkeep(),
		Fail:        e.fail,
		Close:       e.close,
		Remote:      true,
		Load:        load,
	}), nil
}

// revision is for [store.Engine]. Transactions in other databases of the server change it too.
func (e *engine) revision(ctx context.Context) (text string, err error) {
	err = e.queryRow(ctx, "SELECT CAST(pg_current_snapshot() AS TEXT)", nil, &text)
	return text, err
}

// fail is for [store.Engine]. Closing a lost connection is no failure.
func (e *engine) fail(op string, err error) error {
	if op == "close" && (isNetwork(err) || errors.Is(err, sql.ErrConnDone)) {
		return nil
	}
	err = fail(e.place, op, err)
	if locked, ok := errors.AsType[*store.Error](err); ok && sqlState(locked.Err) == "55P03" {
		e.nameHolder(locked)
	}
	return e.password.Error(err)
}

// open connects and opens the schema. It reports whether it created it, and returns why nothing can be written.
func (e *engine) open(ctx context.Context, a *access, o store.Options) (made bool, readOnly, err error) {
	if o.ReadOnly {
		readOnly = e.readOnly("it was opened for reading")
	}
	err = e.connect(ctx, func(err error) bool {
		return !o.ReadOnly && !isUnknownHost(err) && (!isReader(err) || isNetwork(err))
	})
	if isReader(err) {
		// All reachable servers were asked.
		a.reads, o.ReadOnly, readOnly = true, true, fail(e.place, "write", err)
		err = e.connect(ctx, func(error) bool { return true })
	}
	if err != nil {
		return false, nil, err
	}
	err = e.read(ctx, func() (bool, error) {
		conn, err := e.pool.Conn(ctx)
		if err != nil {
			return true, err
		}
		defer conn.Close() //nolint:errcheck // goes back to the pool
		if err := native(conn, func(on *pgx.Conn) error {
			var writable bool
			made, writable, err = openSchema(ctx, on, e.place, e.schema, o)
			if err == nil && !writable && readOnly == nil {
				readOnly = e.readOnly("the role has no right to write")
			}
			return err
		}); err != nil || a.reads {
			return true, err
		}
		// If this server took over and lagged behind, the last commits of the previous server are lost.
		return true, conn.QueryRowContext(ctx, "SELECT timeline NOT IN (0, "+timeline+") FROM meta").Scan(&e.moved)
	})
	return made, readOnly, err
}

// connect makes the first connection. It retries after a temporary error for which again returns true.
func (e *engine) connect(ctx context.Context, again func(error) bool) error {
	defer e.noteIfSlow("Waiting for the server of the store: " + e.place)()
	return e.read(ctx, func() (bool, error) {
		conn, err := e.pool.Conn(ctx)
		if err != nil {
			return again(err), err
		}
		return false, conn.Close()
	})
}

// noteIfSlow tells the user what is being waited for, unless stop is called soon.
func (e *engine) noteIfSlow(text string) (stop func() bool) {
	return time.AfterFunc(noticed, func() {
		if e.note != nil {
			e.note(text)
		}
	}).Stop
}

func isReader(err error) bool { return kindOf(err) == store.ErrReadOnly } //nolint:errorlint // kinds are not wrapped

// isUnknownHost reports whether the host does not exist: most often its name is misspelled.
func isUnknownHost(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}

func (e *engine) readOnly(why string) error {
	return fail(e.place, "write", refusal{store.ErrReadOnly, why})
}

// check reads everything that the tables hold, since the server notices a damaged page when it reads it.
func (e *engine) check(ctx context.Context) error {
	tx, err := e.pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return e.fail("read", err) //nolint:contextcheck // it ends on its own
	}
	var tables string
	err = tx.QueryRowContext(ctx, `SELECT COALESCE(
			string_agg(format('SELECT count(length(t::text)) AS n FROM %I.%I t', $1::text, c.relname), ' UNION ALL '),
			'SELECT 0 AS n')
		FROM pg_class c
		WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relkind = 'r'`,
		e.schema).Scan(&tables)
	if err == nil {
		var rows int64
		err = tx.QueryRowContext(ctx, "SELECT sum(n) FROM ("+tables+") counts").Scan(&rows)
	}
	_ = tx.Rollback()          // it only read
	return e.fail("read", err) //nolint:contextcheck // it ends on its own
}

// timeline is the number that a server takes when it becomes the primary: a server that was a standby, or was restored
// to an earlier time, takes a new one.
const timeline = "('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint"
