package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/waybill-cli/waybill/internal/store"
)

//go:embed schema/*.sql
var schema embed.FS

// applicationID marks a SQLite file as ours: "wayb".
const applicationID = 0x77617962

// migrations returns the steps from each version to the next; the first makes
// version 1 of an empty file.
func migrations() ([]string, error) {
	names, err := fs.Glob(schema, "schema/*.sql")
	if err != nil {
		return nil, err
	}
	steps := make([]string, len(names))
	for i := range steps {
		text, err := schema.ReadFile(fmt.Sprintf("schema/%d.sql", i+1))
		if err != nil {
			return nil, err
		}
		steps[i] = string(text)
	}
	return steps, nil
}

// upgrade brings the file to the newest version. It reports whether it made the
// store, and where it put a copy of an older one.
func (c *connector) upgrade(ctx context.Context, steps []string) (made bool, backup string, err error) {
	path := c.identity.path
	err = store.Retry(ctx, c, func(ctx context.Context) error {
		conn, err := c.pool.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		version, err := storeVersion(ctx, conn, path, len(steps))
		if err != nil {
			return err
		}
		if err := enableWAL(ctx, conn, path); err != nil {
			return err
		}
		if version == len(steps) {
			return nil
		}
		if version > 0 && backup == "" {
			if backup, err = backUp(ctx, conn, path, version); err != nil {
				return err
			}
		}
		made, err = migrate(ctx, conn, path, steps)
		return err
	})
	if err == nil {
		err = c.identity.recordFile()
	}
	return made, backup, err
}

// rowQuerier is a connection, or a pool of them.
type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// storeVersion returns the version of the store, 0 if the file is empty. It writes
// nothing, so that a file that is not ours stays as it is.
func storeVersion(ctx context.Context, conn rowQuerier, path string, newest int) (int, error) {
	var id, version, tables int
	// One statement sees one state, also while another process makes the store.
	if err := conn.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version), (SELECT COUNT(*) FROM sqlite_master)`).Scan(&id, &version, &tables); err != nil {
		return 0, err
	}
	switch {
	case id == 0 && version == 0 && tables == 0:
		return 0, nil
	case id != applicationID:
		return 0, &store.Error{Kind: store.ErrNotStore, Path: path, Op: "open", Err: errors.New("database of another program")}
	case version > newest:
		return 0, &store.Error{Kind: store.ErrTooNew, Path: path, Op: "open", Err: fmt.Errorf("version %d, this waybill supports up to %d", version, newest)}
	}
	return version, nil
}

// enableWAL turns SQLite's write-ahead log on.
func enableWAL(ctx context.Context, conn *sql.Conn, path string) error {
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return &store.Error{Kind: store.ErrNetworkFS, Path: path, Op: "open", Err: fmt.Errorf("no write-ahead log (%s)", mode)}
	}
	return nil
}

// backUp writes a copy of the store beside it and returns its path.
func backUp(ctx context.Context, conn *sql.Conn, path string, version int) (string, error) {
	backup := fmt.Sprintf("%s.bak-v%d", path, version)
	part := backup + ".part"
	if err := removeIfExists(part); err != nil {
		return "", err
	}
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	if _, err := conn.ExecContext(ctx, "VACUUM INTO ?", part); err != nil {
		return "", errors.Join(err, os.Remove(part))
	}
	return backup, os.Rename(part, backup)
}

// migrate takes the missing steps in one transaction, and reports whether the
// file was empty.
func migrate(ctx context.Context, conn *sql.Conn, path string, steps []string) (bool, error) {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return false, err
	}
	version, err := storeVersion(ctx, conn, path, len(steps)) // another process may have been faster
	for i := version; i < len(steps) && err == nil; i++ {
		if _, err = conn.ExecContext(ctx, steps[i]); err != nil {
			err = fmt.Errorf("migrate to version %d: %w", i+1, err)
		}
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d", applicationID, len(steps)))
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
	return version == 0, nil
}
