package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// Bounds of what is read and written at once.
const (
	copyRows  = 16384
	copyBytes = 8 << 20
)

// CopyProgress is told of a copy under way.
type CopyProgress struct {
	Begin func(rows int64) // before the first row
	Add   func(rows int64) // that were copied
}

// Identity returns what tells this store from every other.
func (d *DB) Identity(ctx context.Context) (string, error) {
	var id int64
	_, err := d.row(ctx, []any{&id}, "SELECT value FROM counters WHERE name = 'identity'")
	return strconv.FormatInt(id, 16), err
}

// Copy copies the tables of from into to, which must be empty, and returns how many rows
// they have. At the end it compares their number. The error matches [ErrInUse] while
// living processes work on from, and [ErrNotEmpty] if to has something. Until it returns
// nobody can write to from, nor open to; after an error to is of no use.
func Copy(ctx context.Context, from, to *DB, progress CopyProgress) (rows int64, err error) {
	release, err := from.engine.Upkeep.Freeze(ctx)
	if err != nil {
		return 0, from.fail("lock", err)
	}
	defer func() { err = errors.Join(err, from.fail("lock", release())) }()
	if err := from.RequireUnused(ctx); err != nil {
		return 0, err
	}
	if err := to.beginCopy(ctx); err != nil {
		return 0, err
	}
	for _, t := range copied {
		n, err := t.count(ctx, from)
		if err != nil {
			return 0, err
		}
		rows += n
	}
	progress.Begin(rows)
	for _, t := range copied {
		if err := copyTable(ctx, from, to, t, progress.Add); err != nil {
			return 0, fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	return rows, to.finishCopy(ctx, from)
}

// count returns how many rows of a table are copied.
func (t table) count(ctx context.Context, d *DB) (n int64, err error) {
	_, err = d.row(ctx, []any{&n}, "SELECT COUNT(*) FROM "+t.name+t.where())
	return n, err
}

// beginCopy marks d, which must be empty, as a copy under way.
func (d *DB) beginCopy(ctx context.Context) error {
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
		if _, err := t.exec(ctx, "DELETE FROM counters WHERE "+countersCopied); err != nil || d.engine.Upkeep.BeginCopy == nil {
			return err
		}
		return d.engine.Upkeep.BeginCopy(ctx, t.direct())
	})
}

// identities lists the columns that the database numbers.
var identities = []struct{ table, column string }{
	{"accounts", "id"}, {"statuses", "id"}, {"refused", "seq"}, {"sinks", "id"}, {"released", "seq"}, {"outbox", "seq"},
}

// finishCopy makes d a store like others, if it has as many rows as from. The numbers that
// its database gives follow those of from.
func (d *DB) finishCopy(ctx context.Context, from *DB) error {
	for _, t := range copied {
		want, err := t.count(ctx, from)
		if err != nil {
			return err
		}
		if n, err := t.count(ctx, d); err != nil || n != want {
			return errors.Join(err, &Error{Kind: ErrNotCopied, Path: d.engine.Place, Op: "read", Err: fmt.Errorf("%d of %d rows of table %s", n, want, t.name)})
		}
	}
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
