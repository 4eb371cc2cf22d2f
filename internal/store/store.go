// Package store keeps the ledger and the inbox in an SQL database. It has the logic of both, in SQL that every
// database takes; an [Engine] is the database below it.
//
// All writes go through one connection; writes that are waiting are committed together. A commit returns when it is on
// disk. Readers have connections of their own and never wait for writers. No connection is held while an iterator
// waits for its caller.
//
// Several processes may use the store: they make their decisions inside transactions, only one of which writes at a
// time. [Owners] shows which of the processes are alive, see [DB.Recover].
package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Options control how a store is opened. The zero value opens it, or creates it if there is none.
type Options struct {
	MustExist bool // create nothing; the error then matches [ErrNotThere]
	ReadOnly  bool // create nothing either, and use it as a store that the user can't write

	// Until is when calls stop retrying while the server is unreachable. They retry for some seconds in any case.
	Until time.Time
}

// DB is an open store: every contract of the ledger and the inbox. It is safe for concurrent use. The caller closes
// it.
//
// A call that writes waits until its context ends, and has then written nothing. Once its transaction has begun, the
// end of the context does not stop it.
type DB struct {
	engine Engine
	writer *writer
	pack   packer

	mu     sync.Mutex
	claims map[int64]*entryClaims

	recording atomic.Int64 // attempts whose outcomes are being recorded
}

// New returns the store of a database that has its tables.
func New(e Engine) *DB {
	w := &writer{engine: &e, token: make(chan struct{}, 1)}
	return &DB{engine: e, writer: w, claims: map[int64]*entryClaims{}}
}

// New reports whether this store was created when it was opened.
func (d *DB) New() bool { return d.engine.New }

// Shared says who may change the store besides the user, such as "group ops may write it"; "" if nobody.
func (d *DB) Shared() string { return d.engine.Shared }

// Place returns where the store is: the absolute path of a file without symbolic links, or the URL of a server's
// without secrets.
func (d *DB) Place() string { return d.engine.Place }

// Writable returns nil, or an error that matches [ErrReadOnly] if the user can't
// write the store: then every call that writes returns that error.
func (d *DB) Writable() error { return d.engine.ReadOnly }

// Close waits for writes in progress and closes the store. Claimed batches without an outcome are treated as if
// their process had died. Calling it again does nothing.
func (d *DB) Close() error {
	return errors.Join(d.fail("close", d.writer.close()), d.engine.Close())
}

// present returns an error if the store is no longer the one that was opened.
func (d *DB) present() error {
	if d.engine.Present == nil {
		return nil
	}
	return d.engine.Present()
}

// fail returns err in the form for callers. Errors of the context and of the contracts stay as they are.
func (d *DB) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, done := errors.AsType[*Error](err); !done {
		err = d.engine.Fail(op, err) // it knows whether the time that ran out was the caller's
	}
	if _, ok := errors.AsType[*Error](err); ok && !errors.Is(err, ErrGone) {
		if gone := d.present(); gone != nil {
			return gone // the cause of whatever else is wrong
		}
	}
	return err
}

// CheckOwner returns nil while this process holds the claims of owner, see [ledger.Queue] and [inbox.Claims].
func (d *DB) CheckOwner(owner string) error {
	if kind := d.engine.Owners.CheckOwner(owner); kind != nil {
		return &Error{Kind: kind, Path: d.engine.Place, Op: "write"}
	}
	return nil
}

// Watch signals changes by others, see [inbox.Changes].
func (d *DB) Watch(ctx context.Context) <-chan struct{} {
	if d.engine.Watch == nil {
		return nil
	}
	return d.engine.Watch(ctx)
}

// Revision returns a text that changes with every commit, see [inbox.Changes].
func (d *DB) Revision(ctx context.Context) (string, error) {
	text, err := d.engine.Revision(ctx)
	return text, d.fail("read", err)
}

// Probe makes a write that changes nothing, and returns why nothing can be stored now.
func (d *DB) Probe(ctx context.Context) error {
	_, err := d.exec(ctx, "UPDATE counters SET value = value WHERE name = 'identity'")
	return err
}
