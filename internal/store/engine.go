package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"time"
)

// Engine is the database below a store: what databases do in ways of their own.
// The packages sqlite and postgres make one each.
type Engine struct {
	Place  string // of the store, as its users name it, without secrets
	New    bool   // the store was made when it was opened
	Shared string // who may change the store besides the user, in words; empty for nobody

	ReadOnly error // why nothing can be written, nil if it can

	Connector Connector
	Readers   *sql.DB // connections that read
	Owners    Owners
	Clock     Clock

	// Rewrite returns the text of a query as the database takes it.
	Rewrite func(query string) string

	// Remote says that each statement takes a round trip. So one takes any number of rows, as arrays; the connection that
	// writes prepares each text once without being asked to; and the last statements of a transaction go with its commit.
	Remote bool

	// Load adds n new rows to a table in the transaction of conn; fill appends the values of one of them. The error is
	// [ErrDuplicate] if a key is there already: the transaction is then rolled back. Nil where INSERT is as fast.
	Load func(
		ctx context.Context, conn *sql.Conn, table string, columns []string,
		n int, fill func(args []any, row int) []any,
	) error

	// Read calls ask, which reads, and returns its error. Where ask says so, it may be called again.
	Read func(ctx context.Context, ask func() (again bool, err error)) error

	// LockStaging waits until nobody else stages, and keeps others from it until unlock is called, while
	// this store's owner has that name. Past ctx's deadline the error matches [context.DeadlineExceeded].
	LockStaging func(ctx context.Context) (owner string, unlock func() error, err error)

	// Watch hints at what others store, see [inbox.Changes]; nil where there are no hints.
	Watch func(ctx context.Context) <-chan struct{}

	// Revision is for [inbox.Changes].
	Revision func(ctx context.Context) (string, error)

	// Until is [Options.Until].
	Until time.Time

	// Present returns an error that matches [ErrGone] if the store is not the one that was
	// opened any more. Nil for a database that has no such thing.
	Present func() error

	// Check reads the whole store and returns an error that matches [ErrCorrupt] if it is damaged.
	Check func(ctx context.Context) error

	Upkeep Upkeep // for the commands about the store itself

	// Fail returns err, of op, as callers are to see it: nil for nil, an [*Error] if the database is the cause.
	Fail func(op string, err error) error

	Close func() error // after the last use; it closes the readers too
}

// Connector makes the connection that writes, and its transactions. One goroutine uses it at a time.
type Connector interface {
	// Connect opens the connection.
	Connect(ctx context.Context) (*sql.Conn, error)

	// Drop closes the connection for good, so that it is not used again.
	Drop(conn *sql.Conn)

	// Begin begins a transaction. From then on no other process writes until it ends.
	Begin(ctx context.Context, conn *sql.Conn) error

	// Commit does the last statements of the transaction, if it has some left, and commits: together where the database
	// can. It returns nil if the transaction is on disk. If it may be on disk, but nobody can tell, the error says so,
	// and Judge that it is not to be done again.
	Commit(ctx context.Context, conn *sql.Conn, last []Statement) error

	// Judge says whether a transaction that failed with err may be done again from its
	// beginning, since nothing of it was written; and whether its connection must be dropped.
	Judge(err error) (again, drop bool)
}

// Statement is a text as the database takes it, and its arguments.
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

// Owners tells processes that live from those that died. What a process works on has its owner's name in the store.
type Owners interface {
	// Name returns the name of this store's owner, in the transaction of on. Nobody else can have known it before. It
	// changes only after others took this process for dead.
	Name(ctx context.Context, on Queryer) (string, error)

	// IsAlive reports whether the owner's process is alive. It does not wait: while that is not certain, it is.
	IsAlive(ctx context.Context, on Queryer, name string) (bool, error)

	// Await is IsAlive that waits until it is certain. It is called outside of transactions.
	Await(ctx context.Context, name string) (bool, error)

	// Fence reports whether the owner is dead, in the transaction of on. If so, it stays
	// so: a process that comes back gets another name.
	Fence(ctx context.Context, on Queryer, name string) (bool, error)

	// Held returns nil if nobody else can have taken what was claimed by that name of
	// this process's owner; else [ErrTakenOver] or [ErrCutOff].
	Held(name string) error
}

// Clock is one that nobody sets, for ages that must hold between commands. Times of different clocks can't be compared.
type Clock struct {
	ID  func() string // of the clock; empty if there is none
	Now func() time.Duration
}

// Upkeep is what the commands about the store itself need of a database.
type Upkeep struct {
	// Backup writes a copy of the store, as it is at one moment, over the empty file at
	// path, and checks it. Nil for a database with programs of its own for that.
	Backup func(ctx context.Context, path string) error

	// FreeBytes is a query for how much of the store's file is unused; empty for a store that is no file.
	FreeBytes string

	// Compact removes what was deleted from the unused space. It returns where it may be
	// left: files of the store, or commands to run.
	Compact func(ctx context.Context) (left []string, err error)

	// TableBytes is a query for the name of each table and its size in bytes, indexes included.
	TableBytes string

	// Settings returns those of the database that matter to the store.
	Settings func(ctx context.Context) ([]Setting, error)

	// Processes returns those that have the store open to write, and perhaps dead ones, without what they are doing.
	Processes func(ctx context.Context) ([]Process, error)

	// Freeze waits until nobody writes. Nobody can write until release is called.
	Freeze func(ctx context.Context) (release func() error, err error)

	// LastNumber returns the last number that the database gave a column, 0 if it does not remember it.
	LastNumber func(ctx context.Context, table, column string) (int64, error)

	// BeginCopy marks the store as a copy under way, which nobody can open. FinishCopy
	// makes it a store like others, whose next numbers follow those; both in the
	// transaction of on. BeginCopy is nil for a store that nobody else finds meanwhile.
	BeginCopy  func(ctx context.Context, on Queryer) error
	FinishCopy func(ctx context.Context, on Queryer, last []LastNumber) error
}

// LastNumber is the last number that a database gave to a column.
type LastNumber struct {
	Table, Column string
	Last          int64
}

// WriteBackup writes a copy of the store, as it is at one moment, over the empty file at path, and checks the copy.
// Other processes continue to write meanwhile. The copy has no unused space. After an error the file is no copy.
func (d *DB) WriteBackup(ctx context.Context, path string) error {
	return d.fail("read", d.engine.Upkeep.Backup(ctx, path))
}

// FreeBytes returns how much of the store's file is unused; nil for a store that is no file.
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

// SchemaVersion is the version of the tables that this program works with.
const SchemaVersion = 1

// SchemaDigest returns a number that tells the text of a schema from others. A store keeps it as the counter
// 'schema': builds between releases change the tables without giving them a version.
func SchemaDigest(text string) int64 {
	sum := sha256.Sum256([]byte(text))
	return int64(binary.BigEndian.Uint64(sum[:]) >> 1)
}

// CheckSchema returns nil if a store of that version and digest, 0 for none, has the tables
// of this program's schema; else [ErrTooNew] or [ErrDevelopment] in an [*Error].
func CheckSchema(place string, version int, digest int64, schema string) error {
	switch {
	case digest != 0 && version > SchemaVersion:
		return &Error{Kind: ErrTooNew, Path: place, Op: "open", Err: BeyondNewest(version)}
	case digest != SchemaDigest(schema):
		return &Error{Kind: ErrDevelopment, Path: place, Op: "open"}
	}
	return nil
}

// BeyondNewest says that a newer program made the store, or has changed it.
func BeyondNewest(version int) error {
	return fmt.Errorf("version %d, this waybill supports up to %d", version, SchemaVersion)
}
