// Package sqlite keeps a store in one SQLite file: it is the engine below package
// store. Locks on files beside the store show which processes are alive.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/store"
)

type file struct {
	path      string
	readers   *sql.DB
	revisions *sql.DB // one connection, which counts the commits of all others
	writer    connector
	owner     owner
	readOnly  error
	made      bool
}

// Open opens the store at path, and makes it with its folder if there is none.
// A store with other tables, of a newer version or of a development build, is refused and
// left alone. One that the user can't write is opened for reading, see
// [store.DB.Writable]. Symbolic links are followed; a file that has several names, or is
// mounted without its folder, is refused: its log and its locks would not be
// those of others who use it.
func Open(ctx context.Context, path string, o store.Options) (*store.DB, error) {
	f, shared, err := openFile(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return store.New(f.engine(shared)), nil
}

// openFile is Open for the file alone. It returns who shares it, too.
func openFile(ctx context.Context, path string, o store.Options) (*file, string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, "", fail(path, "open", err)
	}
	path, err = resolvePath(path, o.MustExist || o.ReadOnly)
	if err != nil {
		return nil, "", fail(path, "open", err)
	}
	readOnly := !disk.Writable(path) || !disk.Writable(filepath.Dir(path))
	shared, err := whoShares(path, readOnly)
	if err != nil {
		return nil, "", fail(path, "open", err)
	}
	opener := openWritable
	if readOnly || o.ReadOnly {
		opener = openReadOnly
	}
	f, err := opener(ctx, path)
	return f, shared, err
}

func openWritable(ctx context.Context, path string) (*file, error) {
	readers, err := newReaders(path)
	if err != nil {
		return nil, fail(path, "open", err)
	}
	f, err := newFile(path, readers)
	if err != nil {
		return nil, err
	}
	if f.made, err = f.writer.prepare(ctx); err != nil {
		return nil, errors.Join(fail(path, "open", err), f.close())
	}
	return f, nil
}

func newFile(path string, readers *sql.DB) (*file, error) {
	pool, err := connect(path, "busy_timeout(5)", "synchronous(FULL)", fmt.Sprintf("cache_size(-%d)", writerCache))
	if err != nil {
		return nil, fail(path, "open", err)
	}
	pool.SetMaxOpenConns(1)
	revisions, err := connect(path, readerSettings()...)
	if err != nil {
		return nil, fail(path, "open", err)
	}
	revisions.SetMaxOpenConns(1)
	return &file{
		path: path, readers: readers, revisions: revisions, owner: owner{folder: path + ".owners"},
		writer: connector{pool: pool, readers: readers, identity: identity{path: path}},
	}, nil
}

func (f *file) close() error {
	err := errors.Join(f.readers.Close(), f.revisions.Close(), f.writer.pool.Close())
	return errors.Join(fail(f.path, "close", err), f.owner.release())
}

func (f *file) engine(shared string) store.Engine {
	boot := bootID()
	return store.Engine{
		Place: f.path, New: f.made, Shared: shared,
		ReadOnly:  f.readOnly,
		Connector: &f.writer, Readers: f.readers, Owners: &f.owner,
		Clock:       store.Clock{ID: func() string { return boot }, Now: store.Uptime},
		Rewrite:     func(query string) string { return query },
		Read:        f.read,
		Revision:    f.revision,
		LockStaging: f.lockStaging,
		Present:     f.writer.identity.check,
		Check:       f.check,
		Upkeep:      f.upkeep(),
		Fail:        func(op string, err error) error { return fail(f.path, op, err) },
		Close:       f.close,
	}
}

func (f *file) read(_ context.Context, ask func() (again bool, err error)) error {
	if f.readOnly != nil {
		return readUnchanged(f.path, func() error { _, err := ask(); return err })
	}
	_, err := ask()
	return err
}

// revision is for [store.Engine]. Of a file that can't be locked only the time and size tell.
func (f *file) revision(ctx context.Context) (text string, err error) {
	if f.readOnly == nil {
		err = f.revisions.QueryRowContext(ctx, "PRAGMA data_version").Scan(&text)
		return text, err
	}
	for _, path := range []string{f.path, f.path + "-wal"} {
		info, err := os.Stat(path)
		if err == nil {
			text += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), " ")
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return text, nil
}

// check reads the whole file, see [store.Engine].
func (f *file) check(ctx context.Context) error {
	var found []string
	err := store.EachRow(ctx, f.read, f.readers, func(rows *sql.Rows) error {
		var line string
		err := rows.Scan(&line)
		if err == nil && line != "ok" {
			found = append(found, line)
		}
		return err
	}, "PRAGMA integrity_check(20)")
	if err == nil && len(found) > 0 {
		err = &store.Error{Kind: store.ErrCorrupt, Path: f.path, Op: "read", Err: errors.New(strings.Join(found, "; "))}
	}
	return fail(f.path, "read", err)
}
