package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Kinds of [Error]: what is wrong with the store's file, its disk or its server. The first four come from the inbox's
// contract.
var (
	ErrFull        = inbox.ErrFull
	ErrLocked      = inbox.ErrLocked
	ErrReadOnly    = inbox.ErrReadOnly
	ErrUnreachable = inbox.ErrUnreachable

	// Both match [ledger.ErrNotClaimed] and [inbox.ErrNotClaimed].
	ErrTakenOver error = claimError("another waybill took over what this one was sending")
	ErrCutOff    error = claimError("no contact for too long: " +
		"another waybill may have taken over what this one was sending")

	ErrNotThere = newKind("there is no store",
		"use an existing store with --store, or create one with `waybill create`")
	ErrNoPlace = newKind("store can't be read in a folder without write access",
		"make the file and its folder writable; or "+
			"copy the file with its -wal and -shm files to a writable folder and use that with --store")
	ErrChanged     = newKind("store was changed while it was read", "re-run the same command")
	ErrTooNew      = newKind("store was written by a newer waybill", "upgrade waybill, or use another store with --store")
	ErrDevelopment = newKind("store was made by a development build of waybill",
		"move it away, or use another store with --store")
	ErrNotStore = newKind("not a waybill store", "use another file with --store")
	ErrCorrupt  = newKind("store is damaged",
		"keep a copy of the file and its -wal and -shm files, then restore a backup")
	ErrPermission = newKind("no access to the store",
		"make the file and its folder readable and writable for you, or use another store with --store")
	ErrNetworkFS = newKind("store is on a network file system", "use a store on a local disk with --store")
	ErrLinked    = newKind("store has several hard links",
		"log and lock files exist for one name only: keep one name and remove the others; "+
			"`find FOLDER -samefile FILE` lists them")
	ErrMounted = newKind("store is mounted as a single file",
		"mount its folder, which also contains its log and lock files, and use the file in it with --store")
	ErrGone = newKind("store was deleted, renamed or replaced while it was in use",
		"restore the store or a backup; if it is lost, "+
			"`waybill create --check-first` checks every row with the service before it is sent")
	ErrExposed = newKind("other users can change the store",
		"restrict access with chown and chmod 600, share it with a group with chmod 660, or use another store with --store")
	ErrInUse = newKind("commands that send or receive use the store",
		"wait for them or stop them; `waybill store check` lists them")
	ErrNotEmpty   = newKind("the target store is not empty", "remove what is there, or copy to another place")
	ErrUnfinished = newKind("the store is a copy that has not finished",
		"wait for `waybill store copy`; if it has ended, drop the schema and copy again")
	ErrNotCopied     = newKind("the copy differs from the store", "remove the copy and copy again")
	ErrIO            = newKind("disk error", "check the disk, then re-run the same command")
	ErrNoConnections = newKind("server has no connection left",
		"end other programs, or raise max_connections of the server or "+
			"CONNECTION LIMIT of the role; then re-run the same command")
	ErrServerTooOld = newKind("server is older than PostgreSQL 13",
		"upgrade the server, or use another store with --store")
	ErrEncoding = newKind("database is not in UTF8", "create a database with ENCODING 'UTF8', and use it with --store")
	ErrUnsynced = newKind("server does not put commits on disk at once",
		"turn it on, such as with ALTER ROLE NAME SET synchronous_commit = on")
	ErrLost = newKind("server lost commits",
		"check what the server was restored from; `waybill create --check-first` "+
			"checks every row with the service before it is sent")
	ErrPooled = newKind("a proxy changes the connection to the server between transactions",
		"connect to the server itself, or set pool_mode = session in pgbouncer")
	ErrNoTLS = newKind("no verified TLS connection",
		"trust the server's authority with ?sslrootcert=FILE or PGSSLROOTCERT, and use the "+
			"host name of its certificate; --insecure-store connects unverified")
	ErrLogin = newKind("server refused the login",
		"check the user in --store and its password: store_password_file, PGPASSWORD or PGPASSFILE (default ~/.pgpass)")
	ErrNoDatabase = newKind("there is no such database",
		"create the database with createdb, or use another one with --store")
	ErrNoRight = newKind("permission denied in the database",
		"`waybill store schema --role NAME` prints the SQL for the administrator of the "+
			"database; where the schema exists, the GRANT lines are enough")
	ErrTimedOut = newKind("server took too long",
		"check the load and the locks of the server, then re-run the same command")
	ErrLimit = newKind("a limit of the server was reached",
		"raise the limit in the settings of the server or the role, then re-run the same command")
	ErrServer = newKind("server reports an error",
		"look the error up in the log of the server, and run `waybill store check`; then re-run the same command")
)

type kind struct{ text, hint string }

func newKind(text, hint string) error { return &kind{text, hint} }

func (k *kind) Error() string { return k.text }

// claimError is a kind that says that this process lost what it had claimed.
type claimError string

func (k claimError) Error() string { return string(k) }

// Is reports whether target is one of the contracts' errors for this.
func (claimError) Is(target error) bool {
	return target == ledger.ErrNotClaimed || target == inbox.ErrNotClaimed
}

// ErrDuplicate is the error of [Engine.Load] for a key that already exists.
var ErrDuplicate = errors.New("a row with the same key is there")

var errClosed = errors.New("store is closed")

// Error is a failure caused by the store's file, disk or server. It matches its Kind and its cause.
type Error struct {
	Kind error  // one of the kinds
	Path string // name of the store, such as its file
	Op   string // what was being done: open, read, write, lock
	Err  error  // the cause, nil if there is none beyond Kind

	Advice string // what the user can do about it, empty for the kind's hint
}

// Failure says that every other use of the store would fail in the same way.
func (e *Error) Failure() tracking.Failure { return tracking.Failure{Systemic: true} }

// IsTemporary adds kinds that no error of the contract matches to [inbox.IsTemporary].
func (e *Error) IsTemporary() bool {
	return slices.Contains([]error{ErrNoConnections, ErrTimedOut}, e.Kind)
}

// Final reports whether this process can't use the store any more although another one may, since the store is not the
// one that it opened.
func (e *Error) Final() bool {
	return slices.Contains([]error{ErrLost, ErrGone, ErrTooNew}, e.Kind)
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Kind)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the kind and, if there is one, the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

var hints = map[error]string{
	ErrFull:        "free space on that disk, then re-run the same command",
	ErrLocked:      "another program has locked the store; wait for it or stop it, then re-run the same command",
	ErrReadOnly:    "make the file and its folder writable, or use another store with --store",
	ErrTakenOver:   "re-run the same command to continue",
	ErrCutOff:      "check the server and the network, then re-run the same command to continue",
	ErrUnreachable: "check that the server runs and can be reached from here, then re-run the same command",
}

// Hint returns what the user can do about it, in one line.
func (e *Error) Hint() string {
	if k, ok := errors.AsType[*kind](e.Kind); ok && e.Advice == "" {
		return k.hint
	}
	return cmp.Or(e.Advice, hints[e.Kind])
}
