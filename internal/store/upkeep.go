package store

import (
	"context"
	"database/sql"
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
	// not remember it; SetLastNumber lets the next one follow n.
	LastNumber    func(ctx context.Context, table, column string) (int64, error)
	SetLastNumber func(ctx context.Context, on Queryer, table, column string, n int64) error

	// Load adds rows to a table in the transaction of conn. Nil where INSERT is as fast.
	Load func(ctx context.Context, conn *sql.Conn, table string, columns []string, rows [][]any) error
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
