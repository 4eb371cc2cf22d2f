package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

const (
	maxReaders  = 8
	idleReaders = 2
	readerCache = 1000 // KiB each
)

const writerCache = 4000 // KiB

func readerSettings() []string {
	return []string{"busy_timeout(5000)", "query_only(1)", fmt.Sprintf("cache_size(-%d)", readerCache)}
}

// connect returns a pool of connections to path with these settings. It opens none yet.
func connect(path string, settings ...string) *sql.DB {
	name := uri(path, "mode=rw", settings...)
	return sql.OpenDB(dialer(func() (string, error) { return name, nil }))
}

// dialer returns the name of the database that a new connection opens.
type dialer func() (string, error)

// Connect is for [sql.OpenDB].
func (d dialer) Connect(context.Context) (driver.Conn, error) {
	name, err := d()
	if err != nil {
		return nil, err
	}
	return sqliteDriver().Open(name)
}

// Driver is for [sql.OpenDB].
func (d dialer) Driver() driver.Driver { return sqliteDriver() }

// sqliteDriver has our functions. No index or view may use them, or other programs could not read the file.
var sqliteDriver = sync.OnceValue(func() *sqlite.Driver {
	d := &sqlite.Driver{}
	d.MustRegisterDeterministicScalarFunction("fold_number", 1, foldNumber)
	return d
})

func foldNumber(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	number, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("fold_number: %T is no text", args[0])
	}
	return tracking.FoldNumber(number), nil
}

// uri returns the name by which SQLite opens path. It creates no file.
func uri(path, mode string, settings ...string) string {
	path = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path))
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive
	}
	return "file://" + path + "?" + mode + "&_pragma=" + strings.Join(settings, "&_pragma=")
}

type connector struct {
	pool     *sql.DB
	readers  *sql.DB // reopened with the connection after the disk failed
	identity identity
}

// Connect opens the connection.
func (c *connector) Connect(ctx context.Context) (*sql.Conn, error) {
	if err := c.identity.check(); err != nil {
		return nil, err
	}
	conn, err := c.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c.identity.log = nil
	return conn, nil
}

// Drop closes the connection and the idle connections of readers.
func (c *connector) Drop(conn *sql.Conn) {
	c.identity.log = nil
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
	c.readers.SetMaxIdleConns(0)
	c.readers.SetMaxIdleConns(idleReaders)
}

// Begin begins a transaction. The first one of a connection checks that the file is still the opened one.
func (c *connector) Begin(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil || c.identity.log != nil {
		return err
	}
	err := c.identity.checkConnection(ctx, conn)
	if err != nil {
		_, rollback := conn.ExecContext(ctx, "ROLLBACK")
		err = wrongFileError{errors.Join(err, rollback)}
	}
	return err
}

// Commit commits. A commit to a file that no longer exists is a failure too.
func (c *connector) Commit(ctx context.Context, conn *sql.Conn, last []store.Statement) error {
	err := c.identity.checkLog()
	for _, s := range last {
		if err == nil {
			_, err = conn.ExecContext(ctx, s.Text, s.Args...)
		}
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err == nil {
		err = c.identity.checkLog()
	}
	return err
}

// Classify allows a retry after a failure to get a lock, see [store.Connector].
func (c *connector) Classify(err error) (again, drop bool) {
	_, isWrongFile := errors.AsType[wrongFileError](err)
	code := sqliteCode(err) & primary
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED, breaksConnection(err) || isWrongFile
}

// wrongFileError says that a new connection does not lead to the file that was opened. A connection whose file
// disappears stays: another one would create a new log.
type wrongFileError struct{ error }

func (e wrongFileError) Unwrap() error { return e.error }
