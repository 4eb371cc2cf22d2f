package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/waybill-cli/waybill/internal/store"
)

// identity recognizes the file that was opened, should another take its place. An
// open file keeps its number on the disk, so a stat is enough. Connections that
// are opened later compare the store's own id.
type identity struct {
	path string
	file atomic.Pointer[fs.FileInfo] // nil until the store was opened

	// The rest belongs to the connection that writes.
	log fs.FileInfo // that the connection writes to, nil if there is none
	id  int64       // 0 until it was read
}

func (i *identity) recordFile() error {
	info, err := statFile(i.path)
	if err == nil {
		i.file.Store(&info)
	}
	return err
}

func statFile(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil {
		os.SameFile(info, info) // makes Windows read the file's number now
	}
	return info, err
}

// check returns an error that matches [store.ErrGone] unless path leads to the opened file. It costs a stat.
func (i *identity) check() error {
	file := i.file.Load()
	if file == nil {
		return nil
	}
	return i.compare(i.path, *file)
}

func (i *identity) checkLog() error {
	err := i.check()
	if err == nil && i.log != nil {
		err = i.compare(i.path+"-wal", i.log)
	}
	return err
}

func (i *identity) compare(path string, was fs.FileInfo) error {
	gone := func(how string) error {
		return &store.Error{Kind: store.ErrGone, Path: i.path, Op: "use", Err: errors.New(path + how)}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gone(" no longer exists")
	case err == nil && !os.SameFile(was, info):
		return gone(" was replaced by another file")
	}
	return err
}

// checkConnection compares a new connection's store with the first one's. A transaction has begun.
func (i *identity) checkConnection(ctx context.Context, conn *sql.Conn) error {
	log, err := statFile(i.path + "-wal")
	if err != nil {
		return err
	}
	var id int64
	if err := conn.QueryRowContext(ctx, "SELECT value FROM counters WHERE name = 'identity'").Scan(&id); err != nil {
		return err
	}
	if i.id != 0 && id != i.id {
		return &store.Error{Kind: store.ErrGone, Path: i.path, Op: "use", Err: errors.New("replaced by another store")}
	}
	i.log, i.id = log, id
	return nil
}
