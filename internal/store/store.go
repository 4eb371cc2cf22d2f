// Package store keeps the ledger and the inbox in an SQL database. It holds the logic of both in texts that every
// database takes; an [Engine] below it is the database.
//
// All writes go through one connection; what several callers wait to write is committed
// together. A commit returns when it is on disk. Readers have connections of their own and
// never wait for writers. No connection is held while an iterator waits for its caller.
//
// Several processes may use the store: what they decide, they decide inside transactions, of which one at a time
// writes. [Owners] shows which of the processes are alive, see [DB.Recover].
package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Options says how a store is opened. The zero value opens it, or makes it where there is none.
type Options struct {
	MustExist bool // make nothing; the error then matches [ErrNotThere]
	ReadOnly  bool // likewise, and read it as one that the user can't write: nothing is written

	// Until is when calls cease to try again while the server is away; before that they try for some seconds in any case.
	Until time.Time
}

// DB is an open store: every contract of the ledger and the inbox. It is safe for concurrent use. Close it.
//
// A call that writes waits until its context ends, and then has written nothing.
// Once its transaction has begun, the end of the context does not stop it.
type DB struct {
	engine Engine
	writer *writer
	pack   packer

	mu     sync.Mutex
	claims map[int64]*entryClaims

	settling atomic.Int64 // results of entries that are being recorded
}

// New returns the store of a database that has its tables.
func New(e Engine) *DB {
	w := &writer{engine: &e, token: make(chan struct{}, 1)}
	return &DB{engine: e, writer: w, claims: map[int64]*entryClaims{}}
}

// New reports whether opening made this store.
func (d *DB) New() bool { return d.engine.New }

// Shared says who may change the store besides the user, such as "group ops may write it"; the empty string for nobody.
func (d *DB) Shared() string { return d.engine.Shared }

// Place returns where the store is: the absolute path of a file without symbolic
// links, or the URL of a server's without secrets.
func (d *DB) Place() string { return d.engine.Place }

// Writable returns nil, or an error that matches [ErrReadOnly] if the user can't
// write the store: then every call that writes returns that error.
func (d *DB) Writable() error { return d.engine.ReadOnly }

// Close waits for what is being written and closes the store. Batches that were claimed and not settled are as if
// their process had died. Calling it again does nothing.
func (d *DB) Close() error {
	return errors.Join(d.fail("close", d.writer.close()), d.engine.Close())
}

// present returns an error if the store is not the one that was opened any more.
func (d *DB) present() error {
	if d.engine.Present == nil {
		return nil
	}
	return d.engine.Present()
}

// fail returns err as callers are to see it. Errors of the context and of the contracts stay what they are.
func (d *DB) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, done := errors.AsType[*Error](err); !done {
		err = d.engine.Fail(op, err) // which knows whether time that ran out was the caller's
	}
	if _, ok := errors.AsType[*Error](err); ok && !errors.Is(err, ErrGone) {
		if gone := d.present(); gone != nil {
			return gone // whatever else is wrong comes from that
		}
	}
	return err
}

// Held returns nil while owner is this store's name, see [ledger.Queue] and [inbox.Claims].
func (d *DB) Held(owner string) error {
	if kind := d.engine.Owners.Held(owner); kind != nil {
		return &Error{Kind: kind, Path: d.engine.Place, Op: "write"}
	}
	return nil
}

// Watch hints at what others store, see [inbox.Changes].
func (d *DB) Watch(ctx context.Context) <-chan struct{} {
	if d.engine.Watch == nil {
		return nil
	}
	return d.engine.Watch(ctx)
}

// Revision differs after every commit, see [inbox.Changes].
func (d *DB) Revision(ctx context.Context) (string, error) {
	text, err := d.engine.Revision(ctx)
	return text, d.fail("read", err)
}

// Probe writes what changes nothing, and returns why nothing can be stored now.
func (d *DB) Probe(ctx context.Context) error {
	_, err := d.exec(ctx, "UPDATE counters SET value = value WHERE name = 'identity'")
	return err
}
