package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/store"
)

func (f *file) upkeep() store.Upkeep {
	return store.Upkeep{
		FreeBytes: "SELECT f.freelist_count * p.page_size FROM pragma_freelist_count f, pragma_page_size p",
		TableBytes: `SELECT m.tbl_name, SUM(s.pgsize) FROM dbstat s JOIN sqlite_master m ON m.name = s.name
			WHERE s.aggregate = TRUE GROUP BY m.tbl_name`,
		Backup: f.backUp, Compact: f.compact, Settings: f.settings, Processes: f.processes,
		Freeze: f.freeze, LastNumber: f.lastNumber, FinishCopy: finishCopy,
	}
}

func (f *file) backUp(ctx context.Context, path string) error {
	err := f.read(ctx, func() (bool, error) {
		err := f.vacuumInto(ctx, path)
		if k := kind(err); k != nil && !errors.Is(k, store.ErrCorrupt) && !errors.Is(k, store.ErrNotStore) {
			err = &store.Error{Kind: k, Path: path, Op: "write", Err: err} // everything else that can fail is the copy's disk
		}
		return false, err
	})
	if err != nil {
		return err
	}
	written, err := openReadOnly(ctx, path)
	if err != nil {
		return err
	}
	return errors.Join(store.New(written.engine("")).Check(ctx), written.close())
}

// vacuumInto writes the copy on its own connection, which may write other files.
func (f *file) vacuumInto(ctx context.Context, path string) error {
	conn, err := f.readers.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }() // closes it, so that no reader gets it
	if _, err := conn.ExecContext(ctx, "PRAGMA query_only=0"); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "VACUUM INTO ?", path)
	return err
}

// compact is for [store.Upkeep]. It rewrites the file and empties the log.
func (f *file) compact(ctx context.Context) ([]string, error) {
	pool := connect(f.path, "busy_timeout(10000)", "synchronous(FULL)", "secure_delete(1)")
	defer pool.Close() //nolint:errcheck // nothing is left to write
	pool.SetMaxOpenConns(1)
	if _, err := pool.ExecContext(ctx, "VACUUM"); err != nil {
		return nil, err
	}
	var busy, frames, moved int
	if err := pool.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved); err != nil {
		return nil, err
	}
	if busy != 0 {
		return nil, &store.Error{Kind: store.ErrLocked, Path: f.path, Op: "compact", Err: errors.New("its log is in use")}
	}
	return nil, nil
}

func (f *file) settings(ctx context.Context) ([]store.Setting, error) {
	var library, version string
	const query = "SELECT sqlite_version(), (SELECT user_version FROM pragma_user_version)"
	err := f.read(ctx, func() (bool, error) {
		return true, f.readers.QueryRowContext(ctx, query).Scan(&library, &version)
	})
	return []store.Setting{{Name: "SQLite", Value: library}, {Name: "Schema", Value: "version " + version}}, err
}

// processes is for [store.Upkeep]. A process is alive if its lock is held. It removes no lock.
func (f *file) processes(context.Context) ([]store.Process, error) {
	entries, err := os.ReadDir(f.owner.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []store.Process
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".lock")
		if !ok || f.owner.isOwn(name) {
			continue
		}
		lock := flock.New(f.owner.lockPath(name), flock.SetFlag(os.O_RDONLY))
		free, err := lock.TryRLock()
		if free {
			_ = lock.Close()
		}
		p := store.Process{Name: name, Alive: err == nil && !free}
		if info, err := e.Info(); err == nil {
			p.Started = info.ModTime()
		}
		all = append(all, p)
	}
	return all, err
}

func (f *file) freeze(ctx context.Context) (func() error, error) {
	pool := connect(f.path, "busy_timeout(10000)")
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	release := func() error { return errors.Join(conn.Close(), pool.Close()) }
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}

func (f *file) lastNumber(ctx context.Context, table, _ string) (n int64, err error) {
	const query = "SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = ?"
	err = f.read(ctx, func() (bool, error) {
		return true, f.readers.QueryRowContext(ctx, query, table).Scan(&n)
	})
	return n, err
}

// finishCopy is for [store.Upkeep]. Without AUTOINCREMENT, the next number follows the largest one anyway.
func finishCopy(ctx context.Context, on store.Queryer, last []store.LastNumber) error {
	for _, n := range last {
		if _, err := on.ExecContext(ctx, "DELETE FROM sqlite_sequence WHERE name = ?", n.Table); err != nil {
			return err
		}
		if _, err := on.ExecContext(ctx, `INSERT INTO sqlite_sequence (name, seq) SELECT ?1, ?2 FROM sqlite_master
			WHERE name = ?1 AND sql LIKE '%AUTOINCREMENT%'`, n.Table, n.Last); err != nil {
			return err
		}
	}
	return nil
}

// OpenCopy opens the store at path that is to become a copy. Until finish is called, it has another name. The error
// matches [store.ErrNotEmpty] if there is something at path, or a copy that did not finish.
func OpenCopy(ctx context.Context, path string) (db *store.DB, finish func() error, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, nil, err
	}
	part := path + ".copying"
	if err := errors.Join(requireFree(path), requireFree(part)); err != nil {
		return nil, nil, err
	}
	db, err = Open(ctx, part, store.Options{})
	if err != nil {
		return nil, nil, err
	}
	return db, func() error {
		if err := errors.Join(db.Close(), requireFree(path)); err != nil {
			return err
		}
		if err := os.Rename(db.Place(), path); err != nil {
			return fail(path, "write", err)
		}
		return errors.Join(removeIfExists(db.Place()+".staging.lock"), disk.RemoveAll(db.Place()+".owners"))
	}, nil
}

func requireFree(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if _, err := os.Lstat(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			return &store.Error{Kind: store.ErrNotEmpty, Path: path + suffix, Op: "copy into", Err: err}
		}
	}
	return nil
}
