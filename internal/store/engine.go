package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"time"
)

// Engine is the database of a store, with everything that differs between databases. The packages sqlite and postgres
// each make one.
type Engine struct {
	Place  string // name of the store for its users, without secrets
	New    bool   // the store was created when it was opened
	Shared string // who may change the store besides the user, in words; empty if nobody

	ReadOnly error // why the store can't be written, nil if it can

	Connector Connector
	Readers   *sql.DB // connections that read
	Owners    Owners
	Clock     Clock

	// Rewrite converts the text of a query to the database's dialect.
	Rewrite func(query string) string

	// Remote says that each statement takes a round trip. Then one statement takes any number of rows, as arrays; the
	// writing connection prepares each text once by itself; and the last statements of a transaction are sent with its
	// commit.
	Remote bool

	// Load adds n new rows to a table in the transaction of conn; fill appends the values of one row. The error is
	// [ErrDuplicate] if a key already exists; the transaction is then rolled back. Nil if INSERT is as fast.
	Load func(
		ctx context.Context, conn *sql.Conn, table string, columns []string,
		n int, fill func(args []any, row int) []any,
	) error

	// Read calls ask, which reads, and returns its error. If ask returns again, it may be called again.
	Read func(ctx context.Context, ask func() (again bool, err error)) error

	// LockStaging waits until nobody else stages, and keeps others from staging until unlock is called, while this
	// store's owner has the returned name. Past ctx's deadline the error matches [context.DeadlineExceeded].
	LockStaging func(ctx context.Context) (owner string, unlock func() error, err error)

	// Watch signals changes by others, see [inbox.Changes]; nil if the database sends no signals.
	Watch func(ctx context.Context) <-chan struct{}

	// Revision is the revision for [inbox.Changes].
	Revision func(ctx context.Context) (string, error)

	// Until is [Options.Until].
	Until time.Time

	// Present returns an error that matches [ErrGone] if the store is no longer the one that was opened. Nil if the
	// database has no such check.
	Present func() error

	// Check reads the whole store and returns an error that matches [ErrCorrupt] if it is damaged.
	Check func(ctx context.Context) error

	Upkeep Upkeep // for commands about the store itself

	// Fail returns err, of op, in the form for callers: nil for nil, an [*Error] if the database is the cause.
	Fail func(op string, err error) error

	Close func() error // closes everything, including the readers; called after the last use
}

// Connector makes the connection that writes, and its transactions. It is used by one goroutine at a time.
type Connector interface {
	// Connect opens the connection.
	Connect(ctx context.Context) (*sql.Conn, error)

	// Drop closes the connection without returning it to the pool.
	Drop(conn *sql.Conn)

	// Begin begins a transaction. Until it ends, no other process can write.
	Begin(ctx context.Context, conn *sql.Conn) error

	// Commit executes the remaining statements of the transaction, if any, and commits, in one step where the database
	// can. It returns nil if the transaction is on disk. If nobody can tell whether it is on disk, the error says so, and
	// Classify does not allow a retry.
	Commit(ctx context.Context, conn *sql.Conn, last []Statement) error

	// Classify reports whether a transaction that failed with err may be run again from its beginning, since none of it
	// was written, and whether its connection must be dropped.
	Classify(err error) (again, drop bool)
}

// Statement is a statement in the database's dialect, with its arguments.
type Statement struct {
	Text string
	Args []any
}

// Queryer is a connection, or a pool of them.
type Queryer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Owners distinguishes living from dead processes. The store marks the work of a process with its owner's name.
type Owners interface {
	// Name returns the name of this store's owner. The name is new to everybody else. It changes only after others
	// declared this process dead.
	Name() (string, error)

	// IsAlive reports whether the owner's process is alive. It does not wait: in doubt it returns true.
	IsAlive(ctx context.Context, on Queryer, name string) (bool, error)

	// Await is like IsAlive but waits until the answer is certain. It is called outside of transactions.
	Await(ctx context.Context, name string) (bool, error)

	// Fence reports whether the owner is dead, in the transaction of on. If so, it stays dead: a process that comes back
	// gets another name.
	Fence(ctx context.Context, on Queryer, name string) (bool, error)

	// CheckOwner returns nil if nobody else can have taken over what this process's owner claimed under that name; else
	// [ErrTakenOver] or [ErrCutOff].
	CheckOwner(name string) error
}

// Clock is a monotonic clock, for ages that are compared across commands. Times of different clocks can't be compared.
type Clock struct {
	ID  func() string // identifies the clock; "" if there is none
	Now func() time.Duration
}

// Upkeep is what commands about the store itself need from a database.
type Upkeep struct {
	// Backup writes a consistent copy of the store over the empty file at path, and checks the copy. Nil for a database
	// that has its own backup programs.
	Backup func(ctx context.Context, path string) error

	// FreeBytes is a query for the unused bytes in the store's file; empty if the store is not a file.
	FreeBytes string

	// Compact removes deleted data from unused space. It returns where such data may remain: files of the store, or
	// commands to run.
	Compact func(ctx context.Context) (left []string, err error)

	// TableBytes is a query for the name of each table and its size in bytes, including indexes.
	TableBytes string

	// Settings returns the database settings that affect the store.
	Settings func(ctx context.Context) ([]Setting, error)

	// Processes returns the processes that have the store open for writing, perhaps dead ones too, without their work.
	Processes func(ctx context.Context) ([]Process, error)

	// Freeze waits until nobody writes. Nobody can write until release is called.
	Freeze func(ctx context.Context) (release func() error, err error)

	// LastNumber returns the last number that the database assigned to a column, 0 if unknown.
	LastNumber func(ctx context.Context, table, column string) (int64, error)

	// BeginCopy marks the store as an unfinished copy, which nobody can open. FinishCopy makes it a normal store whose
	// next numbers follow last. Both work in the transaction of on. BeginCopy is nil if nobody else can find the store
	// meanwhile.
	BeginCopy  func(ctx context.Context, on Queryer) error
	FinishCopy func(ctx context.Context, on Queryer, last []LastNumber) error
}

// LastNumber is the last number that a database assigned to a column.
type LastNumber struct {
	Table, Column string
	Last          int64
}

// WriteBackup writes a consistent copy of the store over the empty file at path, and checks the copy. Other processes
// can write meanwhile. The copy has no unused space. After an error the file is not a valid copy.
func (d *DB) WriteBackup(ctx context.Context, path string) error {
	return d.fail("read", d.engine.Upkeep.Backup(ctx, path))
}

// FreeBytes returns the unused bytes in the store's file; nil if the store is not a file.
func (d *DB) FreeBytes(ctx context.Context) (*int64, error) {
	if d.engine.Upkeep.FreeBytes == "" {
		return nil, nil //nolint:nilnil // it has none
	}
	r := d.reader()
	n := value[int64](ctx, r, d.engine.Upkeep.FreeBytes)
	return &n, r.err
}

// Compact removes what was erased from unused space, see [ledger.Eraser].
func (d *DB) Compact(ctx context.Context) ([]string, error) {
	left, err := d.engine.Upkeep.Compact(ctx)
	return left, d.fail("write", err)
}

// SchemaVersion is the version of the tables that this program uses.
const SchemaVersion = 1

// SchemaDigest returns a number that identifies the text of a schema. A store keeps it as the counter 'schema', since
// builds between releases change the tables without a new version.
func SchemaDigest(text string) int64 {
	sum := sha256.Sum256([]byte(text))
	return int64(binary.BigEndian.Uint64(sum[:]) >> 1)
}

// CheckSchema returns nil if a store of that version and digest (0 if it has none) has the tables of this program's
// schema; else [ErrTooNew] or [ErrDevelopment] in an [*Error].
func CheckSchema(place string, version int, digest int64, schema string) error {
	switch {
	case digest != 0 && version > SchemaVersion:
		return &Error{Kind: ErrTooNew, Path: place, Op: "open", Err: BeyondNewest(version)}
	case digest != SchemaDigest(schema):
		return &Error{Kind: ErrDevelopment, Path: place, Op: "open"}
	}
	return nil
}

// BeyondNewest returns the error for a store that a newer program created or changed.
func BeyondNewest(version int) error {
	return fmt.Errorf("version %d, this waybill supports up to %d", version, SchemaVersion)
}
