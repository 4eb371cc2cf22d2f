package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// tableCopy is one table being copied.
type tableCopy struct {
	table
	from, to *DB
	columns  []column
	keyAt    []int // of the key in columns
	add      func(int64)
	insert   multiInsert
	limit    int // of rows read at once: as many as copyBytes were the last time
}

// column is one of a table.
type column struct {
	name string
	kind columnKind
}

type columnKind uint8

const (
	kindNumber columnKind = iota
	kindText
	kindBytes
)

func newTableCopy(ctx context.Context, from, to *DB, t table, add func(int64)) (*tableCopy, error) {
	c := &tableCopy{table: t, from: from, to: to, add: add, limit: copyRows}
	var err error
	if c.columns, err = from.columnsOf(ctx, t.name); err != nil {
		return nil, err
	}
	others, err := to.columnsOf(ctx, t.name)
	if err != nil {
		return nil, err
	}
	byName := func(a, b column) int { return strings.Compare(a.name, b.name) }
	if a, b := slices.SortedFunc(slices.Values(c.columns), byName), slices.SortedFunc(slices.Values(others), byName); !slices.Equal(a, b) {
		return nil, fmt.Errorf("columns differ: %v and %v", a, b)
	}
	for _, k := range t.key {
		c.keyAt = append(c.keyAt, slices.IndexFunc(c.columns, func(col column) bool { return col.name == k }))
	}
	types := make([]byte, len(c.columns))
	for i, col := range c.columns {
		types[i] = "itb"[col.kind]
	}
	c.insert = newMultiInsert("INSERT INTO "+t.name+" ("+c.list()+")", string(types), "")
	return c, nil
}

// columnsOf returns the columns of a table.
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
			c := column{name: t.Name()}
			switch t.DatabaseTypeName() {
			case "TEXT":
				c.kind = kindText
			case "BLOB", "BYTEA":
				c.kind = kindBytes
			}
			columns = append(columns, c)
		}
		return true, errors.Join(err, rows.Err())
	})
	return columns, err
}

func (c *tableCopy) names() []string {
	names := make([]string, len(c.columns))
	for i, col := range c.columns {
		names[i] = col.name
	}
	return names
}

// list returns the columns as SQL names them.
func (c *tableCopy) list() string { return strings.Join(c.names(), ", ") }

// copy adds to to what from has more, and replaces what differs, chunk by chunk.
func (c *tableCopy) copy(ctx context.Context) error {
	ahead, err := c.read(ctx, c.to, span{}, 1, " DESC") // the last row that is there already
	if err != nil {
		return err
	}
	for at := (span{}); ; at.after = at.until {
		rows, err := c.read(ctx, c.from, at.open(), c.limit, "")
		if err != nil {
			return err
		}
		c.adapt(len(rows))
		if at.until = nil; len(rows) > 0 {
			at.until = c.keyOf(rows[len(rows)-1])
		}
		there := len(ahead) > 0 && (at.after == nil || compareValues(c.keyOf(ahead[0]), at.after) > 0)
		replace := false
		if there {
			if replace, err = c.differs(ctx, at, rows); err != nil {
				return err
			}
		}
		if replace || !there && len(rows) > 0 {
			err = c.write(ctx, at, rows, replace)
		}
		if err != nil || len(rows) == 0 {
			return err
		}
		c.add(int64(len(rows)))
	}
}

// adapt sets how many rows are read next, after so many were.
func (c *tableCopy) adapt(rows int) {
	if rows < c.limit {
		c.limit = max(rows, 16)
	} else {
		c.limit = min(2*c.limit, copyRows)
	}
}

// differs reports whether to has other rows in a span.
func (c *tableCopy) differs(ctx context.Context, at span, rows [][]any) (bool, error) {
	others, err := c.read(ctx, c.to, at, len(rows)+1, "")
	return !slices.EqualFunc(rows, others, equalRows), err
}

// write adds rows to a span, in place of those that are there.
func (c *tableCopy) write(ctx context.Context, at span, rows [][]any, replace bool) error {
	return c.to.run(ctx, func(ctx context.Context, t *tx) error {
		if replace {
			where, args := c.within(at)
			tables := c.to.engine.Upkeep.Tables[c.name]
			if tables == nil {
				tables = []string{c.name}
			}
			for _, name := range tables {
				if _, err := t.exec(ctx, "DELETE FROM "+name+where, args...); err != nil {
					return err
				}
			}
		}
		fill := func(args []any, i int) []any { return append(args, rows[i]...) }
		if load := c.to.engine.Load; load != nil && len(rows) > 0 {
			return load(ctx, t.direct(), c.name, c.names(), len(rows), fill)
		}
		return c.insert.exec(ctx, t, len(rows), fill)
	})
}

// verify returns an error unless both have the same rows.
func (c *tableCopy) verify(ctx context.Context) error {
	for at := (span{}); ; {
		var rows, others [][]any
		both, reading := errgroup.WithContext(ctx)
		both.Go(func() (err error) {
			rows, err = c.read(reading, c.from, at, c.limit, "")
			return err
		})
		both.Go(func() (err error) {
			others, err = c.read(reading, c.to, at, c.limit, "")
			return err
		})
		if err := both.Wait(); err != nil {
			return err
		}
		for i := range max(len(rows), len(others)) {
			if i >= len(rows) || i >= len(others) || !equalRows(rows[i], others[i]) {
				row := slices.Concat(rows[min(i, len(rows)):], others[min(i, len(others)):])[0]
				return &Error{Kind: ErrNotCopied, Path: c.to.engine.Place, Op: "read", Err: fmt.Errorf("%s %v", strings.Join(c.key, ", "), c.keyOf(row))}
			}
		}
		if len(rows) == 0 {
			return nil
		}
		c.adapt(len(rows))
		at.after = c.keyOf(rows[len(rows)-1])
		c.add(int64(len(rows)))
	}
}

// span is the rows after a key, up to and with another; nil for all.
type span struct{ after, until []any }

// open returns the span without its end.
func (s span) open() span { return span{after: s.after} }

// within returns the condition that rows are in a span, and its arguments.
func (c *tableCopy) within(s span) (text string, args []any) {
	word := " WHERE "
	if text = c.table.where(); text != "" {
		word = " AND "
	}
	for _, bound := range []struct {
		than string
		key  []any
	}{{" > ", s.after}, {" <= ", s.until}} {
		if bound.key != nil {
			text += word + "(" + strings.Join(c.key, ", ") + ")" + bound.than + tuples(1, len(c.key))
			args = append(args, bound.key...)
			word = " AND "
		}
	}
	return text, args
}

// errEnough ends a query.
var errEnough = errors.New("enough was read")

// read returns up to limit rows of a span in the order of their keys, and no more than
// copyBytes of them but for the last.
func (c *tableCopy) read(ctx context.Context, d *DB, s span, limit int, order string) ([][]any, error) {
	where, args := c.within(s)
	var rows [][]any
	bytes := 0
	dest := make([]any, len(c.columns))
	err := d.each(ctx, func(s scanner) error {
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
	}, "SELECT "+c.list()+" FROM "+c.name+where+" ORDER BY "+strings.Join(c.key, order+", ")+order+" LIMIT ?", append(args, limit)...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return rows, err
}

// normalize gives values the types of their columns, whatever the database returned,
// and returns how many bytes they are, about.
func (c *tableCopy) normalize(row []any) (size int, err error) {
	for i, col := range c.columns {
		size += 16
		switch v := row[i].(type) {
		case nil:
		case []byte:
			size += len(v)
			switch {
			case col.kind == kindText:
				row[i] = string(v)
			case v == nil:
				row[i] = []byte{} // empty, and not NULL
			}
		case string:
			size += len(v)
			if col.kind == kindBytes {
				row[i] = []byte(v)
			}
		case int64:
			if col.kind != kindNumber {
				err = fmt.Errorf("column %s holds a number", col.name)
			}
		default:
			err = fmt.Errorf("column %s holds a %T", col.name, v)
		}
	}
	return size, err
}

func (c *tableCopy) keyOf(row []any) []any {
	key := make([]any, len(c.keyAt))
	for i, at := range c.keyAt {
		key[i] = row[at]
	}
	return key
}

func equalRows(a, b []any) bool { return compareValues(a, b) == 0 }

// compareValues compares values of the same columns in the order in which databases
// sort them; NULL, which no key has, comes first.
func compareValues(a, b []any) int {
	for i := range a {
		if d := compareValue(a[i], b[i]); d != 0 {
			return d
		}
	}
	return 0
}

func compareValue(a, b any) int {
	switch x := a.(type) {
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y)
		}
	case string:
		if y, ok := b.(string); ok {
			return cmp.Compare(x, y)
		}
	case []byte:
		if y, ok := b.([]byte); ok {
			return bytes.Compare(x, y)
		}
	case nil:
		if b == nil {
			return 0
		}
		return -1
	}
	return 1
}
