package store

import (
	"context"
)

// Upkeep is what the commands about the store itself need of a database, in ways of
// its own.
type Upkeep struct {
	// Backup writes a copy of the store, as it is at one moment, over the empty file at
	// path, and checks it. Nil for a database with programs of its own for that.
	Backup func(ctx context.Context, path string) error

	// FreeBytes returns how much of the store's file is unused. Nil for a store that is
	// no file.
	FreeBytes func(ctx context.Context) (int64, error)

	// Compact removes what was deleted from the unused space. It returns where it may be
	// left: files of the store, or commands to run.
	Compact func(ctx context.Context) (left []string, err error)

	// TableBytes returns how many bytes each table takes, its indexes included.
	TableBytes func(ctx context.Context) (map[string]int64, error)

	// Settings returns those of the database that matter to the store.
	Settings func(ctx context.Context) ([]Setting, error)

	// Processes returns those that have the store open to write, and perhaps dead ones,
	// without what they are doing.
	Processes func(ctx context.Context) ([]Process, error)

	// Freeze waits until nobody writes. Nobody can write until release is called.
	Freeze func(ctx context.Context) (release func() error, err error)

	// LastNumber returns the last number that the database gave a column, 0 if it does
	// not remember it.
	LastNumber func(ctx context.Context, table, column string) (int64, error)

	// BeginCopy marks the store as a copy under way, which nobody can open. FinishCopy
	// makes it a store like others, whose next numbers follow those; both in the
	// transaction of on. BeginCopy is nil for a store that nobody else finds meanwhile.
	BeginCopy  func(ctx context.Context, on Queryer) error
	FinishCopy func(ctx context.Context, on Queryer, last []LastNumber) error
}

// LastNumber is the last number that a database gave to a column.
type LastNumber struct {
	Table, Column string
	Last          int64
}

// WriteBackup writes a copy of the store, as it is at one moment, over the empty file
// at path, and checks the copy. Other processes continue to write meanwhile. The copy
// has no unused space. After an error the file is no copy.
func (d *DB) WriteBackup(ctx context.Context, path string) error {
	return d.fail("read", d.engine.Upkeep.Backup(ctx, path))
}

// FreeBytes returns how much of the store's file is unused; nil for a store that is no
// file.
func (d *DB) FreeBytes(ctx context.Context) (*int64, error) {
	if d.engine.Upkeep.FreeBytes == nil {
		return nil, nil //nolint:nilnil // it has none
	}
	n, err := d.engine.Upkeep.FreeBytes(ctx)
	return &n, d.fail("read", err)
}

// Compact removes what was erased from unused space, see [ledger.Eraser].
func (d *DB) Compact(ctx context.Context) ([]string, error) {
	left, err := d.engine.Upkeep.Compact(ctx)
	return left, d.fail("write", err)
}
