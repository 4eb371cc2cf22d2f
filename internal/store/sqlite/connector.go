package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/waybill-cli/waybill/internal/store"
)

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

// Drop closes the connection and the readers' idle ones.
func (c *connector) Drop(conn *sql.Conn) {
	c.identity.log = nil
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
	c.readers.SetMaxIdleConns(0)
	c.readers.SetMaxIdleConns(idleReaders)
}

// Begin begins a transaction. A connection's first one sees that the file is still the opened one.
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

// Commit commits. A commit to a file that is not there any more is a failure too.
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

// Judge says that what waits for a lock may be done again, see [store.Connector].
func (c *connector) Judge(err error) (again, drop bool) {
	_, isWrongFile := errors.AsType[wrongFileError](err)
	return isBusy(err), breaksConnection(err) || isWrongFile
}

// wrongFileError says that a new connection is not to the file that was opened. One whose
// file goes away stays: another connection would make a new log.
type wrongFileError struct{ error }

func (e wrongFileError) Unwrap() error { return e.error }
