package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	copyRows  = 16384
	copyBytes = 8 << 20
)

// CopyProgress receives the progress of a copy.
type CopyProgress struct {
	Begin func(rows int64) // before the first row
	Add   func(rows int64) // copied since the last call
}

// Identity returns a value that is unique to this store.
func (d *DB) Identity(ctx context.Context) (string, error) {
	r := d.reader()
	id := value[int64](ctx, r, "SELECT value FROM counters WHERE name = 'identity'")
	return strconv.FormatInt(id, 16), r.err
}

// Copy copies the tables of from into to, which must be empty, and returns how many rows they have. At the end it
// compares the row counts. The error matches [ErrInUse] while living processes work on from, and [ErrNotEmpty] if to
// is not empty. Until Copy returns, nobody can write to from or open to; after an error, to is unusable.
func Copy(ctx context.Context, from, to *DB, progress CopyProgress) (rows int64, err error) {
	if from.Writable() == nil { // else this user can't lock out writers
		release, err := from.engine.Upkeep.Freeze(ctx)
		if err != nil {
			return 0, from.fail("lock", err)
		}
		defer func() { err = errors.Join(err, from.fail("lock", release())) }()
	}
	if err := from.RequireUnused(ctx); err != nil {
		return 0, err
	}
	if err := to.beginCopy(ctx); err != nil {
		return 0, err
	}
	r := from.reader()
	for _, t := range copied {
		rows += t.count(ctx, r)
	}
	if r.err != nil {
		return 0, r.err
	}
	progress.Begin(rows)
	for _, t := range copied {
		if err := copyTable(ctx, from, to, t, progress.Add); err != nil {
			return 0, fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	return rows, to.finishCopy(ctx, from)
}

func (t table) count(ctx context.Context, r *reader) int64 {
	query := "SELECT COUNT(*) FROM " + t.name
	if t.part != "" {
		query += " WHERE " + t.part
	}
	return value[int64](ctx, r, query)
}

// beginCopy marks d, which must be empty, as an unfinished copy.
func (d *DB) beginCopy(ctx context.Context) error {
	return d.run(ctx, func(ctx context.Context, t *tx) {
		for _, c := range copied {
			query := "SELECT EXISTS (SELECT 1 FROM " + c.name + ")"
			if c.name == "counters" {
				query = "SELECT EXISTS (SELECT 1 FROM counters WHERE value > 0 AND " + c.part + ")"
			}
			if value[bool](ctx, t, query) {
				t.fail(&Error{Kind: ErrNotEmpty, Path: d.engine.Place, Op: "copy into"})
			}
		}
		t.exec(ctx, "DELETE FROM counters WHERE "+countersCopied)
		if d.engine.Upkeep.BeginCopy != nil {
			t.direct(func(c *sql.Conn) error { return d.engine.Upkeep.BeginCopy(ctx, c) })
		}
	})
}

// identities lists the columns that the database numbers by itself.
var identities = []LastNumber{
	{Table: "statuses", Column: "id"},
	{Table: "refused", Column: "seq"},
	{Table: "sinks", Column: "id"},
	{Table: "outbox", Column: "seq"},
}

// finishCopy makes d a normal store if it has as many rows as from. Numbers that its database assigns continue after
// those of from.
func (d *DB) finishCopy(ctx context.Context, from *DB) error {
	source, target := from.reader(), d.reader()
	for _, t := range copied {
		want, n := t.count(ctx, source), t.count(ctx, target)
		if source.err != nil {
			return source.err
		}
		if target.err != nil || n != want {
			differs := fmt.Errorf("%d of %d rows of table %s", n, want, t.name)
			return errors.Join(target.err, &Error{Kind: ErrNotCopied, Path: d.engine.Place, Op: "read", Err: differs})
		}
	}
	last := slices.Clone(identities)
	for i, id := range last {
		n, err := from.engine.Upkeep.LastNumber(ctx, id.Table, id.Column)
		source.fail(from.fail("read", err))
		last[i].Last = max(n, value[int64](ctx, source, "SELECT COALESCE(MAX("+id.Column+"), 0) FROM "+id.Table))
	}
	if source.err != nil {
		return source.err
	}
	return d.run(ctx, func(ctx context.Context, t *tx) {
		t.direct(func(c *sql.Conn) error { return d.engine.Upkeep.FinishCopy(ctx, c, last) })
	})
}

// RequireUnused returns an error that matches [ErrInUse] while living processes stage or send runs, or take or forward
// deliveries.
func (d *DB) RequireUnused(ctx context.Context) error {
	r := d.reader()
	owners := list(ctx, r, scanOne[string], `SELECT owner FROM runs WHERE state <> 'pruned'
		UNION SELECT owner FROM batches WHERE state = 'sending'
		UNION SELECT owner FROM outbox UNION SELECT owner FROM listeners`)
	for _, name := range owners {
		r.require(!r.isAlive(ctx, name), &Error{Kind: ErrInUse, Path: d.engine.Place, Op: "copy"})
	}
	return r.err
}

// table is a table to copy. Tables about the users of the store are not copied.
type table struct {
	name string
	key  []string // columns that order its rows; unique together
	part string   // condition for the rows to copy, empty for all
}

// countersCopied excludes the counters that belong to one store.
const countersCopied = "name NOT IN ('schema', 'identity') AND name NOT LIKE 'commits%'"

var copied = []table{
	{name: "account", key: []string{"id"}},
	{name: "proofs", key: []string{"shape"}},
	{name: "observed", key: []string{"origin", "kind", "name"}},
	{name: "erased", key: []string{"hash"}},
	{name: "counters", key: []string{"name"}, part: countersCopied},
	{name: "runs", key: []string{"id"}},
	{name: "batches", key: []string{"id"}},
	{name: "rows", key: []string{"id"}},
	{name: "run_known_rows", key: []string{"run_id", "pos"}},
	{name: "run_batches", key: []string{"run_id", "batch_id"}},
	{name: "absences", key: []string{"row_id"}},
	{name: "numbers", key: []string{"folded", "row_id"}},
	{name: "statuses", key: []string{"id"}},
	{name: "sightings", key: []string{"id"}},
	{name: "tracking_counts", key: []string{"run_id", "status_id", "carrier", "transit_days"}},
	{name: "answers", key: []string{"refer_id"}},
	{name: "deliveries", key: []string{"seq"}},
	{name: "events", key: []string{"seq"}},
	{name: "refused", key: []string{"seq"}},
	{name: "sinks", key: []string{"id"}},
	{name: "outbox", key: []string{"seq"}},
	{name: "outbox_numbers", key: []string{"sink", "folded", "entry"}},
	{name: "attempts", key: []string{"delivery", "sink", "at", "attempt"}},
}

type tableCopy struct {
	table
	from, to *DB
	columns  []column
	names    []string // of the columns
	insert   multiInsert
	limit    int // of rows read at once, adapted to copyBytes
}

type column struct {
	name string
	kind rune // as in [multiInsert]
}

func (d *DB) columnsOf(ctx context.Context, name string) (columns []column, err error) {
	err = d.read(ctx, func() (bool, error) {
		rows, err := d.engine.Readers.QueryContext(ctx, "SELECT * FROM "+name+" LIMIT 0") //nolint:gosec // a table of ours
		if err != nil {
			return true, err
		}
		defer rows.Close() //nolint:errcheck // its errors are those of Err
		types, err := rows.ColumnTypes()
		columns = nil
		for _, t := range types {
			kind := 'i'
			switch t.DatabaseTypeName() {
			case "TEXT":
				kind = 't'
			case "BLOB", "BYTEA":
				kind = 'b'
			}
			columns = append(columns, column{t.Name(), kind})
		}
		return true, errors.Join(err, rows.Err())
	})
	return columns, err
}

func copyTable(ctx context.Context, from, to *DB, t table, add func(int64)) (err error) {
	c := &tableCopy{table: t, from: from, to: to, limit: copyRows}
	if c.columns, err = from.columnsOf(ctx, t.name); err != nil {
		return err
	}
	others, err := to.columnsOf(ctx, t.name)
	if err != nil {
		return err
	}
	byName := func(all []column) []column {
		return slices.SortedFunc(slices.Values(all), func(a, b column) int { return strings.Compare(a.name, b.name) })
	}
	if a, b := byName(c.columns), byName(others); !slices.Equal(a, b) {
		return fmt.Errorf("columns differ: %v and %v", a, b)
	}
	types := ""
	for _, col := range c.columns {
		c.names, types = append(c.names, col.name), types+string(col.kind)
	}
	c.insert = newMultiInsert("INSERT INTO "+t.name+" ("+strings.Join(c.names, ", ")+")", types, "")
	for after := []any(nil); ; {
		rows, err := c.read(ctx, after)
		if err != nil || len(rows) == 0 {
			return err
		}
		if len(rows) < c.limit {
			c.limit = max(len(rows), 16)
		} else {
			c.limit = min(2*c.limit, copyRows)
		}
		if err := c.write(ctx, rows); err != nil {
			return err
		}
		add(int64(len(rows)))
		after = nil
		for _, k := range t.key {
			after = append(after, rows[len(rows)-1][slices.Index(c.names, k)])
		}
	}
}

func (c *tableCopy) write(ctx context.Context, rows [][]any) error {
	return c.to.run(ctx, func(ctx context.Context, t *tx) {
		fill := func(args []any, i int) []any { return append(args, rows[i]...) }
		if load := c.to.engine.Load; load != nil {
			t.direct(func(conn *sql.Conn) error { return load(ctx, conn, c.name, c.names, len(rows), fill) })
		} else {
			c.insert.exec(ctx, t, len(rows), fill)
		}
	})
}

var errEnough = errors.New("enough was read")

// read returns the rows after a key, in key order, up to copyBytes.
func (c *tableCopy) read(ctx context.Context, after []any) ([][]any, error) {
	where, key := " WHERE "+cmp.Or(c.part, "1 = 1"), strings.Join(c.key, ", ")
	if after != nil {
		where += " AND (" + key + ") > " + tuples(1, len(c.key))
	}
	var rows [][]any
	bytes := 0
	dest := make([]any, len(c.columns))
	r := c.from.reader()
	r.each(ctx, func(s scanner) error {
		row := make([]any, len(c.columns))
		for i := range row {
			dest[i] = &row[i]
		}
		if err := s.Scan(dest...); err != nil {
			return err
		}
		size, err := c.normalize(row)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		if bytes += size; bytes >= copyBytes {
			return errEnough
		}
		return nil
	}, "SELECT "+strings.Join(c.names, ", ")+" FROM "+c.name+where+" ORDER BY "+key+" LIMIT ?",
		append(slices.Clone(after), c.limit)...)
	if errors.Is(r.err, errEnough) {
		return rows, nil
	}
	return rows, r.err
}

// normalize converts values to the types of their columns, and returns their approximate size in bytes.
func (c *tableCopy) normalize(row []any) (size int, err error) {
	for i, col := range c.columns {
		size += 16
		switch v := row[i].(type) {
		case nil:
		case []byte:
			size += len(v)
			switch {
			case col.kind == 't':
				row[i] = string(v)
			case v == nil:
				row[i] = []byte{} // empty, not NULL
			}
		case string:
			size += len(v)
			if col.kind == 'b' {
				row[i] = []byte(v)
			}
		case int64:
			if col.kind != 'i' {
				err = fmt.Errorf("column %s holds a number", col.name)
			}
		default:
			err = fmt.Errorf("column %s holds a %T", col.name, v)
		}
	}
	return size, err
}
