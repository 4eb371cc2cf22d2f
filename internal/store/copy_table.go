package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// tableCopy is one table being copied.
type tableCopy struct {
	table
	from, to *DB
	columns  []column
	keyAt    []int // of the key in columns
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

func newTableCopy(ctx context.Context, from, to *DB, t table) (*tableCopy, error) {
	c := &tableCopy{table: t, from: from, to: to, limit: copyRows}
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

// copyTable copies a table, chunk by chunk.
func copyTable(ctx context.Context, from, to *DB, t table, add func(int64)) error {
	c, err := newTableCopy(ctx, from, to, t)
	if err != nil {
		return err
	}
	for after := []any(nil); ; {
		rows, err := c.read(ctx, after)
		if err != nil || len(rows) == 0 {
			return err
		}
		c.adapt(len(rows))
		if err := c.write(ctx, rows); err != nil {
			return err
		}
		add(int64(len(rows)))
		after = c.keyOf(rows[len(rows)-1])
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

// write adds rows to the copy.
func (c *tableCopy) write(ctx context.Context, rows [][]any) error {
	return c.to.run(ctx, func(ctx context.Context, t *tx) error {
		fill := func(args []any, i int) []any { return append(args, rows[i]...) }
		if load := c.to.engine.Load; load != nil {
			return load(ctx, t.direct(), c.name, c.names(), len(rows), fill)
		}
		return c.insert.exec(ctx, t, len(rows), fill)
	})
}

// errEnough ends a query.
var errEnough = errors.New("enough was read")

// read returns some rows after a key in the order of their keys, and no more than
// copyBytes of them but for the last.
func (c *tableCopy) read(ctx context.Context, after []any) ([][]any, error) {
	where := c.table.where()
	if after != nil {
		word := " WHERE "
		if where != "" {
			word = " AND "
		}
		where += word + "(" + strings.Join(c.key, ", ") + ") > " + tuples(1, len(c.key))
	}
	var rows [][]any
	bytes := 0
	dest := make([]any, len(c.columns))
	err := c.from.each(ctx, func(s scanner) error {
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
	}, "SELECT "+c.list()+" FROM "+c.name+where+" ORDER BY "+strings.Join(c.key, ", ")+" LIMIT ?", append(slices.Clone(after), c.limit)...)
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
