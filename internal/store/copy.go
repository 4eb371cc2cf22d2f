package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
)

// Bounds of what is read and written at once.
const (
	copyRows  = 16384
	copyBytes = 8 << 20
)

// CopyProgress is told of a copy under way.
type CopyProgress struct {
	Begin func(phase string, rows int64) // a phase begins: copying, verifying
	Add   func(rows int64)               // of the phase
}

// CopiedTable is a table that was copied.
type CopiedTable struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
}

// Identity returns what tells this store from every other.
func (d *DB) Identity(ctx context.Context) (string, error) {
	var id []byte
	_, err := d.row(ctx, []any{&id}, "SELECT id FROM identity")
	return hex.EncodeToString(id), err
}

// Copy makes the tables of to those of from, and then reads both again and compares
// them row by row. What to has already is compared and kept as far as it is the same:
// so a copy that ended anywhere continues. The error matches [ErrInUse] while living
// processes work on from, and [ErrNotEmpty] if to has something else. Until it returns
// nobody can write to from, nor open to.
func Copy(ctx context.Context, from, to *DB, progress CopyProgress) (copied []CopiedTable, err error) {
	_, unlock, err := to.engine.LockStaging(ctx) // one copy at a time
	if err != nil {
		return nil, to.fail("lock", err)
	}
	defer func() { err = errors.Join(err, to.fail("lock", unlock())) }()
	release, err := from.engine.Upkeep.Freeze(ctx)
	if err != nil {
		return nil, from.fail("lock", err)
	}
	defer func() { err = errors.Join(err, from.fail("lock", release())) }()
	if err := from.RequireUnused(ctx); err != nil {
		return nil, err
	}
	if err := to.beginCopy(ctx, from); err != nil {
		return nil, err
	}
	if copied, err = copyTables(ctx, from, to, progress); err != nil {
		return nil, err
	}
	return copied, to.finishCopy(ctx, from)
}

// beginCopy marks d, which must be empty or marked already, as a copy under way.
func (d *DB) beginCopy(ctx context.Context, from *DB) error {
	u := d.engine.Upkeep
	if u.BeginCopy == nil || u.Unfinished {
		return nil
	}
	source, err := from.Identity(ctx)
	if err != nil {
		return err
	}
	return d.run(ctx, func(ctx context.Context, t *tx) error {
		for _, c := range copied {
			var some bool
			query := "SELECT EXISTS (SELECT 1 FROM " + c.name + ")"
			if c.name == "counters" {
				query = "SELECT EXISTS (SELECT 1 FROM counters WHERE value > 0 AND " + c.part + ")"
			}
			if _, err := t.row(ctx, []any{&some}, query); err != nil {
				return err
			}
			if some {
				return &Error{Kind: ErrNotEmpty, Path: d.engine.Place, Op: "copy into"}
			}
		}
		return u.BeginCopy(ctx, t.direct(), source)
	})
}

func copyTables(ctx context.Context, from, to *DB, progress CopyProgress) ([]CopiedTable, error) {
	result := make([]CopiedTable, len(copied))
	total := int64(0)
	for i, t := range copied {
		result[i].Name = t.name
		if _, err := from.row(ctx, []any{&result[i].Rows}, "SELECT COUNT(*) FROM "+t.name+t.where()); err != nil {
			return nil, err
		}
		total += result[i].Rows
	}
	for _, phase := range []struct {
		name string
		do   func(*tableCopy, context.Context) error
	}{{"Copying", (*tableCopy).copy}, {"Verifying", (*tableCopy).verify}} {
		progress.Begin(phase.name, total)
		for _, t := range copied {
			c, err := newTableCopy(ctx, from, to, t, progress.Add)
			if err == nil {
				err = phase.do(c, ctx)
			}
			if err != nil {
				return nil, fmt.Errorf("table %s: %w", t.name, err)
			}
		}
	}
	return result, nil
}

// identities lists the columns that the database numbers.
var identities = []struct{ table, column string }{
	{"accounts", "id"}, {"statuses", "id"}, {"answer_versions", "id"}, {"refused", "seq"}, {"sinks", "id"}, {"released", "seq"}, {"outbox", "seq"},
}

// finishCopy makes d a store like others. The numbers that its database gives follow
// those of from.
func (d *DB) finishCopy(ctx context.Context, from *DB) error {
	last := make([]LastNumber, len(identities))
	for i, id := range identities {
		n, err := from.engine.Upkeep.LastNumber(ctx, id.table, id.column)
		if err != nil {
			return from.fail("read", err)
		}
		highest := n
		if _, err := from.row(ctx, []any{&highest}, "SELECT COALESCE(MAX("+id.column+"), 0) FROM "+id.table); err != nil {
			return err
		}
		last[i] = LastNumber{id.table, id.column, max(n, highest)}
	}
	return d.run(ctx, func(ctx context.Context, t *tx) error { return d.engine.Upkeep.FinishCopy(ctx, t.direct(), last) })
}

// RequireUnused returns an error that matches [ErrInUse] while living processes stage or
// send runs, take deliveries or forward them.
func (d *DB) RequireUnused(ctx context.Context) error {
	owners, err := list(ctx, d.each, scanOne[string], `SELECT owner FROM runs WHERE state <> 'pruned' UNION SELECT owner FROM batches WHERE state = 'sending'
		UNION SELECT owner FROM outbox UNION SELECT owner FROM listeners`)
	for _, name := range owners {
		if err != nil {
			break
		}
		var alive bool
		if alive, err = d.isAlive(ctx, name); alive {
			err = &Error{Kind: ErrInUse, Path: d.engine.Place, Op: "copy"}
		}
	}
	return err
}
