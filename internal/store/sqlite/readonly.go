package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/waybill-cli/waybill/internal/store"
)

// A store whose file or folder the user can't write is read without a lock or a log of its own. Nothing then shows
// that another process begins to write, so each read opens the file anew.

func openReadOnly(ctx context.Context, path string) (*file, error) {
	readers := sql.OpenDB(dialer(func() (string, error) { return readOnlyName(path) }))
	readers.SetMaxIdleConns(-1)
	f := newFile(path, readers)
	f.readOnly = &store.Error{Kind: store.ErrReadOnly, Path: path, Op: "write"}
	var there bool
	err := f.read(ctx, func() (again bool, err error) {
		there, err = isStore(ctx, readers, path)
		return true, err
	})
	switch {
	case err != nil:
	case !there:
		err = &store.Error{Kind: store.ErrNotThere, Path: path, Op: "open"}
	default:
		err = f.writer.identity.recordFile()
	}
	if err != nil {
		return nil, errors.Join(fail(path, "open", err), f.close())
	}
	return f, nil
}

// readOnlyName returns the name by which SQLite opens a file that it can't write. Without a log, the file counts as
// immutable, since no log can be created; with a log, the index beside it must exist.
func readOnlyName(path string) (string, error) {
	logged, err := hasLog(path)
	if err != nil {
		return "", err
	}
	mode := "mode=ro"
	if !logged {
		mode += "&immutable=1"
	} else if _, err := os.Stat(path + "-shm"); err != nil {
		why := fmt.Errorf("%s-wal contains changes that are not in it yet", path)
		return "", &store.Error{Kind: store.ErrNoPlace, Path: path, Op: "open", Err: why}
	}
	return uri(path, mode, readerSettings()...), nil
}

func hasLog(path string) (bool, error) {
	info, err := os.Stat(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Size() > 0, err
}

// readUnchanged calls ask, which reads a file that it can't lock. The error matches [store.ErrChanged] if somebody
// wrote to the file meanwhile: ask may then have read a mix of two states.
func readUnchanged(path string, ask func() error) error {
	logged, err := hasLog(path)
	if err != nil {
		return err
	}
	if logged {
		return ask() // writers do not disturb readers of a log
	}
	before, err := os.Stat(path)
	if err != nil {
		return err
	}
	err = ask()
	after, e := os.Stat(path)
	if e == nil && (!after.ModTime().Equal(before.ModTime()) || after.Size() != before.Size()) {
		return &store.Error{Kind: store.ErrChanged, Path: path, Op: "read", Err: err}
	}
	return err
}
