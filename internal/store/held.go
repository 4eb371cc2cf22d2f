package store

import "context"

// Held returns nil while owner is this store's name, see [ledger.Queue] and
// [inbox.Claims].
func (d *DB) Held(owner string) error {
	if d.owner.isOwn(owner) {
		return nil
	}
	return &Error{Kind: ErrTakenOver, Path: d.path, Op: "write"}
}

// Watch returns nil: nobody says when a file changes, see [inbox.Changes].
func (d *DB) Watch(context.Context) <-chan struct{} { return nil }
