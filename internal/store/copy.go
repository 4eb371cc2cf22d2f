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

// table is one of those that a copy has: all but what says who uses the store.
type table struct {
	name string
	key  []string // columns that order its rows, no two of which are alike in them
	part string   // condition for the rows that are copied, empty for all
}

func (t table) where() string {
	if t.part == "" {
		return ""
	}
	return " WHERE " + t.part
}

// countersCopied leaves out what is of one store alone.
const countersCopied = "name NOT IN ('commits', 'schema', 'identity')"

// copied lists the tables of a store that are copied.
var copied = []table{
	{name: "accounts", key: []string{"id"}},
	{name: "keyprints", key: []string{"account_id", "print"}},
	{name: "proofs", key: []string{"account_id", "shape"}},
	{name: "sweeps", key: []string{"account_id", "name"}},
	{name: "observed", key: []string{"account_id", "kind", "name"}},
	{name: "erased", key: []string{"hash"}},
	{name: "counters", key: []string{"name"}, part: countersCopied},
	{name: "runs", key: []string{"id"}},
	{name: "batches", key: []string{"id"}},
	{name: "batch_answers", key: []string{"batch_id"}},
	{name: "rows", key: []string{"id"}},
	{name: "run_known_rows", key: []string{"run_id", "pos"}},
	{name: "repeats", key: []string{"run_id", "pos"}},
	{name: "run_batches", key: []string{"run_id", "batch_id"}},
	{name: "absences", key: []string{"row_id"}},
	{name: "dismissals", key: []string{"row_id"}},
	{name: "numbers", key: []string{"account_id", "folded", "row_id"}},
	{name: "statuses", key: []string{"id"}},
	{name: "sightings", key: []string{"id"}},
	{name: "tracking_counts", key: []string{"account_id", "run_id", "status_id", "carrier", "transit_days"}},
	{name: "answers", key: []string{"account_id", "refer_id"}},
	{name: "deliveries", key: []string{"seq"}},
	{name: "events", key: []string{"seq"}},
	{name: "refused", key: []string{"seq"}},
	{name: "readmitted", key: []string{"refused"}},
	{name: "sinks", key: []string{"id"}},
	{name: "released", key: []string{"seq"}},
	{name: "outbox", key: []string{"seq"}},
	{name: "outbox_numbers", key: []string{"sink", "folded", "letter"}},
	{name: "forwarded", key: []string{"delivery", "sink"}},
}
