package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed" // the schema
	"errors"
	"fmt"

	"github.com/waybill-cli/waybill/internal/store"
)

//go:embed schema.sql
var schema string

// applicationID marks a SQLite file as ours: "wayb".
const applicationID = 0x77617962

// prepare creates the store in an empty file, and reports whether it did.
func (c *connector) prepare(ctx context.Context) (made bool, err error) {
	path := c.identity.path
	err = store.Retry(ctx, c, func(ctx context.Context) error {
		conn, err := c.pool.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		there, err := isStore(ctx, conn, path)
		if err != nil {
			return err
		}
		if err := enableWAL(ctx, conn, path); err != nil || there {
			return err
		}
		made, err = makeStore(ctx, conn, path)
		return err
	})
	if err == nil {
		err = c.identity.recordFile()
	}
	return made, err
}

// isStore reports whether the file is a store. It returns false for an empty file, and an error for any other one. It
// writes nothing, so that a file that is not ours stays as it is.
func isStore(ctx context.Context, conn store.Queryer, path string) (bool, error) {
	var id, version, tables int
	// One statement sees one state, even while another process creates the store.
	const state = `SELECT (SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version), (SELECT COUNT(*) FROM sqlite_master)`
	if err := conn.QueryRowContext(ctx, state).Scan(&id, &version, &tables); err != nil {
		return false, err
	}
	switch {
	case id == 0 && version == 0 && tables == 0:
		return false, nil
	case id != applicationID:
		other := errors.New("database of another program")
		return false, &store.Error{Kind: store.ErrNotStore, Path: path, Op: "open", Err: other}
	}
	var digest int64
	const digestQuery = "SELECT COALESCE(MAX(value), 0) FROM counters WHERE name = 'schema'"
	if err := conn.QueryRowContext(ctx, digestQuery).Scan(&digest); err != nil {
		return false, err
	}
	err := store.CheckSchema(path, version, digest, schema)
	return err == nil, err
}

func enableWAL(ctx context.Context, conn *sql.Conn, path string) error {
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		err := fmt.Errorf("no write-ahead log (%s)", mode)
		return &store.Error{Kind: store.ErrNetworkFS, Path: path, Op: "open", Err: err}
	}
	return nil
}

// makeStore creates the tables in one transaction, and reports whether the file was empty.
func makeStore(ctx context.Context, conn *sql.Conn, path string) (made bool, err error) {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return false, err
	}
	there, err := isStore(ctx, conn, path) // another process may have been faster
	if err == nil && !there {
		_, err = conn.ExecContext(ctx, fmt.Sprintf(`%s; INSERT INTO counters (name, value) VALUES ('schema', %d);
			PRAGMA application_id=%d; PRAGMA user_version=%d`,
			schema, store.SchemaDigest(schema), applicationID, store.SchemaVersion))
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		if _, e := conn.ExecContext(ctx, "ROLLBACK"); e != nil {
			err = errors.Join(err, conn.Raw(func(any) error { return driver.ErrBadConn }))
		}
		return false, err
	}
	return !there, nil
}
