package store

import "context"

// Held returns nil while owner is this store's name, see [ledger.Queue] and
// [inbox.Claims].
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

// Away reports whether the store can't be reached, see [inbox.Changes].
func (d *DB) Away() bool { return d.engine.Away != nil && d.engine.Away() }
