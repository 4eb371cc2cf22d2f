// Package store keeps the ledger and the inbox in one SQLite file. It is the
// only package that knows a database.
//
// All writes go through one connection; what several callers wait to write is
// committed together. A commit returns when it is on disk. Readers have
// connections of their own and never wait for writers. No connection is held
// while an iterator waits for its caller.
//
// Several processes may use the file: what they decide, they decide inside
// transactions. Locks on files beside the store show which of them are alive,
// see [DB.Recover].
package store

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"

	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// DB keeps every contract of the ledger, and the inbox.
var (
	_ ledger.Stager        = (*DB)(nil)
	_ ledger.Queue         = (*DB)(nil)
	_ ledger.UnknownRows   = (*DB)(nil)
	_ ledger.History       = (*DB)(nil)
	_ ledger.Keys          = (*DB)(nil)
	_ ledger.Accounts      = (*DB)(nil)
	_ ledger.Trackings     = (*DB)(nil)
	_ ledger.Versions      = (*DB)(nil)
	_ ledger.Sweeps        = (*DB)(nil)
	_ ledger.EventFollower = (*DB)(nil)
	_ inbox.Store          = (*DB)(nil)
	_ inbox.Verdicts       = (*DB)(nil)
	_ inbox.Retention      = (*DB)(nil)
	_ inbox.Outbox         = (*DB)(nil)
	_ inbox.Forwardings    = (*DB)(nil)
	_ inbox.Claims         = (*DB)(nil)
	_ inbox.Listeners      = (*DB)(nil)
	_ inbox.Changes        = (*DB)(nil)
)

// Options says how a store is opened. The zero value opens it, or makes it
// where there is none.
type Options struct {
	MustExist bool // make nothing; Open then returns an error that matches [ErrNotThere]
	ReadOnly  bool // likewise, and read it as one that the user can't write: nothing is written, not even to update it
}

// DB is an open store. It is safe for concurrent use. Close it.
//
// A call that writes waits until its context ends, and then has written nothing.
// Once its transaction has begun, the end of the context does not stop it.
type DB struct {
	path   string
	isNew  bool
	backup string
	shared string

	writer       *writer
	readers      *sql.DB
	owner        owner
	stagingLocks stagingLocks
	readOnly     bool
	salvage      salvage
	pack         packer
	sql          *statements
}

// Open opens the store at path, and makes it with its folder if there is none.
// A store of an older version is brought up to date, after a copy of it was
// made beside it, see [DB.Backup]; one of a newer version is refused and left
// alone. One that the user can't write is opened for reading, see [DB.Writable],
// if it is of this version. Symbolic links are followed; a file that has several names, or is
// mounted without its folder, is refused: its log and its locks would not be
// those of others who use it.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fail(path, "open", err)
	}
	path, err = resolvePath(path, o.MustExist || o.ReadOnly)
	if err != nil {
		return nil, fail(path, "open", err)
	}
	steps, err := migrations()
	if err != nil {
		return nil, err
	}
	readOnly := !disk.Writable(path) || !disk.Writable(filepath.Dir(path))
	shared, err := whoShares(path, readOnly)
	if err != nil {
		return nil, fail(path, "open", err)
	}
	opener := open
	if readOnly || o.ReadOnly {
		opener = openReadOnly
	}
	d, err := opener(ctx, path, steps)
	if err != nil {
		return nil, err
	}
	d.shared = shared
	return d, nil
}

// open opens the store, brings it up to date or makes it.
func open(ctx context.Context, path string, steps []string) (*DB, error) {
	readers, err := newReaders(path)
	if err != nil {
		return nil, fail(path, "open", err)
	}
	d, err := newDB(path, readers)
	if err != nil {
		return nil, err
	}
	d.isNew, d.backup, err = d.writer.upgrade(ctx, path, steps)
	if err != nil {
		return nil, errors.Join(fail(path, "open", err), d.Close())
	}
	return d, nil
}

func newDB(path string, readers *sql.DB) (*DB, error) {
	write, err := newWriter(path, readers)
	if err != nil {
		return nil, fail(path, "open", err)
	}
	return &DB{path: path, writer: write, readers: readers, owner: owner{folder: path + ".owners"}, sql: newStatements()}, nil
}

// New reports whether Open made this store.
func (d *DB) New() bool { return d.isNew }

// Shared says who may change the store besides the user, such as "group ops may
// write it"; the empty string for nobody.
func (d *DB) Shared() string { return d.shared }

// Path returns the absolute path of the store's file, without symbolic links.
func (d *DB) Path() string { return d.path }

// Backup returns the path of the copy that was made of an older store before
// it was brought up to date, and the empty string if nothing had to be done.
// Whoever goes back to the copy forgets what was sent since.
func (d *DB) Backup() string { return d.backup }

// Check reads the whole store and returns an error that matches [ErrCorrupt]
// if it is damaged.
func (d *DB) Check(ctx context.Context) error {
	var found []string
	err := d.each(ctx, func(s scanner) error {
		var line string
		if err := s.Scan(&line); err != nil {
			return err
		}
		if line != "ok" {
			found = append(found, line)
		}
		return nil
	}, "PRAGMA integrity_check(20)")
	if err == nil && len(found) > 0 {
		err = &Error{Kind: ErrCorrupt, Path: d.path, Op: "read", Err: errors.New(strings.Join(found, "; "))}
	}
	return err
}

// Close waits for what is being written and closes the store. A staging that
// was not ended is as if its process had died, and so are batches that were
// claimed and not settled. Calling it again does nothing.
func (d *DB) Close() error {
	err := errors.Join(d.readers.Close(), d.writer.close())
	return errors.Join(fail(d.path, "close", err), d.owner.release(), d.stagingLocks.close())
}
