package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"
)

// scanner is the current row of an answer.
type scanner interface{ Scan(dest ...any) error }

// scanOne reads a row of one column.
func scanOne[T any](s scanner) (one T, err error) {
	err = s.Scan(&one)
	return one, err
}

// list runs a query and returns what read makes of each of its rows.
func list[T any](ctx context.Context, ask querier, read func(scanner) (T, error), query string, args ...any) ([]T, error) {
	var all []T
	err := ask(ctx, func(s scanner) error {
		one, err := read(s)
		all = append(all, one)
		return err
	}, query, args...)
	return all, err
}

// scanRows calls f for each row and closes rows.
func scanRows(rows *sql.Rows, f func(scanner) error) error {
	for rows.Next() {
		if err := f(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// found turns "no rows" into false.
func found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// run does the work in a transaction and returns when it is on disk.
func (d *DB) run(ctx context.Context, do work) error {
	return d.fail("write", d.writer.run(ctx, do))
}

// runFor is [DB.run] for work with a result, which is the zero value after an
// error.
func runFor[T any](ctx context.Context, d *DB, do func(context.Context, *tx) (T, error)) (T, error) {
	var result, none T
	if err := d.run(ctx, func(ctx context.Context, t *tx) (err error) {
		result, err = do(ctx, t)
		return err
	}); err != nil {
		return none, err
	}
	return result, nil
}

// each runs a query and calls f for each of its rows, in one go: f must not
// wait for anybody.
func (d *DB) each(ctx context.Context, f func(scanner) error, query string, args ...any) error {
	query = d.rewrite(query)
	return d.read(ctx, func() (again bool, err error) {
		rows, err := d.engine.Readers.QueryContext(ctx, query, args...)
		if err != nil {
			return true, err
		}
		again = true
		err = scanRows(rows, func(s scanner) error {
			again = false // f may have kept what it was given
			return f(s)
		})
		return again, err
	})
}

// row runs a query for one row and scans it into dest. It returns false if
// there is none.
func (d *DB) row(ctx context.Context, dest []any, query string, args ...any) (ok bool, err error) {
	query = d.rewrite(query)
	err = d.read(ctx, func() (again bool, err error) {
		ok, err = found(d.engine.Readers.QueryRowContext(ctx, query, args...).Scan(dest...))
		return true, err
	})
	return ok, err
}

// rewrite returns the text of a query as the database takes it.
func (d *DB) rewrite(query string) string {
	if d.engine.Rewrite == nil {
		return query
	}
	return d.engine.Rewrite(query)
}

// read calls ask, which reads, and returns its error as callers are to see it.
func (d *DB) read(ctx context.Context, ask func() (again bool, err error)) error {
	if d.engine.Read != nil {
		return d.fail("read", d.engine.Read(ctx, ask))
	}
	_, err := ask()
	return d.fail("read", err)
}

// isAlive reports whether an owner's process is alive.
func (d *DB) isAlive(ctx context.Context, name string) (bool, error) {
	alive, err := d.engine.Owners.IsAlive(ctx, d.engine.Readers, name)
	return alive, d.fail("lock", err)
}

// widths are the numbers of rows that one statement may take, largest first.
// Each is compiled once; any number of rows is made of few of them.
var widths = [...]int{128, 16, 1}

// inWidths calls run for n rows in portions that a statement can take: the rows
// from..to with the statement of widths[w]. The statements have anonymous
// parameters, as named ones are looked up one by one, which costs more than
// all the rest from some hundred of them on.
func inWidths(n int, run func(from, to, w int) error) error {
	from := 0
	for w, width := range widths {
		for ; n-from >= width; from += width {
			if err := run(from, from+width, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// tuples returns "(?,?),(?,?)": n times a list of so many parameters, and of
// the constants after them.
func tuples(n, params int, constants ...string) string {
	values := append(slices.Repeat([]string{"?"}, params), constants...)
	return strings.Join(slices.Repeat([]string{"(" + strings.Join(values, ",") + ")"}, n), ",")
}

// multiInsert is a statement that adds rows, in each of the widths.
type multiInsert struct {
	query  [len(widths)]string
	params int
}

// newMultiInsert returns the statement that begins and ends with those texts around
// a list of rows with so many values each, and the constants after them.
func newMultiInsert(begin string, params int, end string, constants ...string) multiInsert {
	in := multiInsert{params: params}
	for i, w := range widths {
		in.query[i] = begin + " VALUES " + tuples(w, params, constants...) + end
	}
	return in
}

// exec adds n rows. fill appends the values of one of them.
func (in *multiInsert) exec(ctx context.Context, t *tx, n int, fill func(args []any, row int) []any) error {
	args := make([]any, 0, min(n, widths[0])*in.params)
	return inWidths(n, func(from, to, w int) error {
		args = args[:0]
		for row := from; row < to; row++ {
			args = fill(args, row)
		}
		_, err := t.exec(ctx, in.query[w], args...)
		return err
	})
}

// millis is how times are kept: milliseconds since 1970, 0 for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// instant is the reverse of millis, in UTC.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// duration is how spans of time are read that are kept in milliseconds.
func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// flag is how truths are kept.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
