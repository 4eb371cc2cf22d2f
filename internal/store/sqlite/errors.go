package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/waybill-cli/waybill/internal/store"
)

// primary masks the part of a SQLite result code that says what went wrong; the rest says where.
const primary = 0xff

// sqliteCode returns the extended result code in err, 0 if there is none.
func sqliteCode(err error) int {
	if se, ok := errors.AsType[*sqlite.Error](err); ok {
		return se.Code()
	}
	return 0
}

var kinds = map[int]error{
	sqlite3.SQLITE_FULL: store.ErrFull,
	sqlite3.SQLITE_BUSY: store.ErrLocked, sqlite3.SQLITE_LOCKED: store.ErrLocked, sqlite3.SQLITE_PROTOCOL: store.ErrLocked,
	sqlite3.SQLITE_READONLY: store.ErrReadOnly,
	sqlite3.SQLITE_NOTADB:   store.ErrNotStore,
	sqlite3.SQLITE_CORRUPT:  store.ErrCorrupt,
	sqlite3.SQLITE_CANTOPEN: store.ErrPermission, sqlite3.SQLITE_PERM: store.ErrPermission,
	sqlite3.SQLITE_AUTH: store.ErrPermission, sqlite3.SQLITE_IOERR: store.ErrIO, sqlite3.SQLITE_NOLFS: store.ErrIO,
}

// kind returns the kind of err, nil if it does not concern the file or the disk.
func kind(err error) error {
	code := sqliteCode(err)
	_, isPath := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return store.ErrFull
	case errors.Is(err, syscall.EROFS):
		return store.ErrReadOnly
	case errors.Is(err, syscall.EIO):
		return store.ErrIO
	case errors.Is(err, fs.ErrPermission), isPath:
		return store.ErrPermission
	case code == sqlite3.SQLITE_IOERR_SHMSIZE:
		return store.ErrFull // the shared-memory file could not grow
	}
	return kinds[code&primary]
}

// fail returns err, from op at path, in the form for callers.
func fail(path, op string, err error) error {
	var done *store.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &done), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	if k := kind(err); k != nil {
		return &store.Error{Kind: k, Path: path, Op: op, Err: err}
	}
	if sqliteCode(err) != 0 {
		return fmt.Errorf("%s %s: %w", op, path, err)
	}
	return err
}

// breaksConnection reports whether a connection must be closed after err: after a failed write or fsync, it is unknown
// what the system still holds.
func breaksConnection(err error) bool {
	codes := []int{
		sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOMEM,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_READONLY,
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		slices.Contains(codes, sqliteCode(err)&primary)
}
