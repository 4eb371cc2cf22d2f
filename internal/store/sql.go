package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// scanner is the current row of a result.
type scanner interface{ Scan(dest ...any) error }

func scanOne[T any](s scanner) (one T, err error) {
	err = s.Scan(&one)
	return one, err
}

// scanInto returns a function that scans a row into a T, into the destinations that dest returns.
func scanInto[T any](dest func(*T) []any) func(scanner) (T, error) {
	return func(s scanner) (one T, err error) {
		err = s.Scan(dest(&one)...)
		return one, err
	}
}

// querier runs queries, inside a transaction ([tx]) or outside ([reader]). Both keep their first error, and then run no
// query and find nothing, so that callers need not check the error of each query.
type querier interface {
	// each runs a query and calls f for each of its rows without a break: f must not use the querier or wait for
	// anything.
	each(ctx context.Context, f func(scanner) error, query string, args ...any)

	// row runs a query for one row and scans it into dest. It returns false if there is no row.
	row(ctx context.Context, dest []any, query string, args ...any) (found bool)

	require(found bool, missing error)
}

// firstError is the first error of several steps, or nil.
type firstError struct{ err error }

// fail keeps err unless there is an error already. A nil err does nothing.
func (e *firstError) fail(err error) { e.err = cmp.Or(e.err, err) }

// require fails with missing unless found.
func (e *firstError) require(found bool, missing error) {
	if !found {
		e.fail(missing)
	}
}

// askOwners returns the result of a method of [Owners], the zero value after an error.
func askOwners[T any](e *firstError, fail func(op string, err error) error, ask func() (T, error)) (answer T) {
	if e.err == nil {
		v, err := ask()
		if e.err = fail("lock", err); e.err == nil {
			return v
		}
	}
	return answer
}

// value returns the only column of a query for one row, the zero value if there is no row.
func value[T any](ctx context.Context, q querier, query string, args ...any) (one T) {
	q.row(ctx, []any{&one}, query, args...)
	return one
}

// list runs a query and returns what read returns for its rows.
func list[T any](ctx context.Context, q querier, read func(scanner) (T, error), query string, args ...any) (all []T) {
	q.each(ctx, func(s scanner) error {
		one, err := read(s)
		all = append(all, one)
		return err
	}, query, args...)
	return all
}

// inPages yields what read returns, page by page, up to limit entries if limit is positive. read returns up to size
// entries after last, the zero value at first.
func inPages[T any](d *DB, limit, size int, read func(r *reader, last T, size int) []T) iter.Seq2[T, error] {
	if limit > 0 {
		size = min(limit, size)
	}
	return func(yield func(T, error) bool) {
		var last, none T
		for left := limit; ; {
			r := d.reader()
			page := read(r, last, size)
			if r.err != nil {
				yield(none, r.err)
				return
			}
			for _, last = range page {
				if left--; !yield(last, nil) || left == 0 {
					return
				}
			}
			if len(page) < size {
				return
			}
		}
	}
}

// scanRows calls f for each row and closes rows, even if f panics.
func scanRows(rows *sql.Rows, f func(scanner) error) error {
	defer rows.Close() //nolint:errcheck // its error is returned already
	for rows.Next() {
		if err := f(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// run runs do in a transaction and returns when that is on disk.
func (d *DB) run(ctx context.Context, do work) error {
	return d.fail("write", d.writer.runJob(ctx, &job{do: do}))
}

// runFor is [DB.run] for work with a result. After an error it returns the zero value.
func runFor[T any](ctx context.Context, d *DB, do func(context.Context, *tx) T) (T, error) {
	var result, none T
	if err := d.run(ctx, func(ctx context.Context, t *tx) { result = do(ctx, t) }); err != nil {
		return none, err
	}
	return result, nil
}

// exec runs one statement in a transaction, and returns how many rows it changed.
func (d *DB) exec(ctx context.Context, query string, args ...any) (int64, error) {
	return runFor(ctx, d, func(ctx context.Context, t *tx) int64 { return t.exec(ctx, query, args...) })
}

// reader is a [querier] outside of transactions: each query reads its own snapshot.
type reader struct {
	firstError
	d *DB
}

func (d *DB) reader() *reader { return &reader{d: d} }

// readFor returns the result of do, or the zero value after an error.
func readFor[T any](d *DB, do func(*reader) T) (T, error) {
	var none T
	r := d.reader()
	result := do(r)
	if r.err != nil {
		return none, r.err
	}
	return result, nil
}

func (r *reader) each(ctx context.Context, f func(scanner) error, query string, args ...any) {
	if r.err != nil {
		return
	}
	scan := func(rows *sql.Rows) error { return f(rows) }
	query, args = r.d.engine.Rewrite(query), matchables(args)
	r.err = r.d.fail("read", EachRow(ctx, r.d.engine.Read, r.d.engine.Readers, scan, query, args...))
}

// EachRow is [reader.each] for engines; read is [Engine.Read].
func EachRow(
	ctx context.Context, read func(context.Context, func() (bool, error)) error, from *sql.DB,
	scan func(*sql.Rows) error, query string, args ...any,
) error {
	return read(ctx, func() (again bool, err error) {
		rows, err := from.QueryContext(ctx, query, args...)
		if err != nil {
			return true, err
		}
		again = true
		err = scanRows(rows, func(scanner) error {
			again = false // scan may have kept the row
			return scan(rows)
		})
		return again, err
	})
}

func (r *reader) row(ctx context.Context, dest []any, query string, args ...any) (found bool) {
	if r.err != nil {
		return false
	}
	query, args = r.d.engine.Rewrite(query), matchables(args)
	r.err = r.d.read(ctx, func() (again bool, err error) {
		err = r.d.engine.Readers.QueryRowContext(ctx, query, args...).Scan(dest...)
		if found = err == nil; errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return true, err
	})
	return found && r.err == nil
}

// read calls ask by [Engine.Read], and returns the error in the form for callers.
func (d *DB) read(ctx context.Context, ask func() (again bool, err error)) error {
	return d.fail("read", d.engine.Read(ctx, ask))
}

func (r *reader) isAlive(ctx context.Context, owner string) bool {
	isAlive := func() (bool, error) { return r.d.engine.Owners.IsAlive(ctx, r.d.engine.Readers, owner) }
	return askOwners(&r.firstError, r.d.fail, isAlive)
}

// owners returns a function that reports whether an owner is alive, and looks each one up once.
func (r *reader) owners(ctx context.Context) func(owner string) bool {
	alive := map[string]bool{"": false}
	return func(owner string) bool {
		if _, known := alive[owner]; !known {
			alive[owner] = r.isAlive(ctx, owner)
		}
		return alive[owner]
	}
}

// widths are the numbers of rows that one statement may take, largest first. Each statement is compiled once; a few of
// them cover any number of rows.
var widths = [...]int{128, 16, 1}

// inWidths splits n rows into portions that a statement can take, and calls run for rows from..to with the statement
// of widths[w]. Statements have anonymous parameters: named ones are looked up one by one, which costs more than
// everything else from a few hundred of them on.
func inWidths(n int, run func(from, to, w int)) {
	from := 0
	for w, width := range widths {
		for ; n-from >= width; from += width {
			run(from, from+width, w)
		}
	}
}

// inEachWidth returns a function that makes a statement's text in each of the widths, on first use.
func inEachWidth(text func(width int) string) func() [len(widths)]string {
	return sync.OnceValue(func() (texts [len(widths)]string) {
		for i, w := range widths {
			texts[i] = text(w)
		}
		return texts
	})
}

// joined returns n texts, separated by commas.
func joined(n int, text func(i int) string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = text(i)
	}
	return strings.Join(texts, ", ")
}

// tuples returns "(?,?),(?,?)": n lists of params parameters, each followed by the constants.
func tuples(n, params int, constants ...string) string {
	values := append(slices.Repeat([]string{"?"}, params), constants...)
	return strings.Join(slices.Repeat([]string{"(" + strings.Join(values, ",") + ")"}, n), ",")
}

// multiInsert inserts rows: a list of them in each of the widths, or any number as arrays, one per column.
type multiInsert struct {
	texts func() insertTexts // long texts, made once
	types string             // of the columns: i for BIGINT, t for TEXT, b for BYTEA
}

type insertTexts struct {
	query  [len(widths)]string
	arrays string
}

var arrayTypes = map[rune]string{'i': "BIGINT[]", 't': "TEXT[]", 'b': "BYTEA[]"}

// newMultiInsert puts the list of rows, with values of these types and the constants, between begin and end.
func newMultiInsert(begin, types, end string, constants ...string) multiInsert {
	return multiInsert{types: types, texts: sync.OnceValue(func() (in insertTexts) {
		for i, w := range widths {
			in.query[i] = begin + " VALUES " + tuples(w, len(types), constants...) + end
		}
		arrays := joined(len(types), func(i int) string { return "CAST(? AS " + arrayTypes[rune(types[i])] + ")" })
		columns := strings.Join(append([]string{"given.*"}, constants...), ", ")
		in.arrays = begin + " SELECT " + columns + " FROM unnest(" + arrays + ") given" + end
		return in
	})}
}

// exec inserts n rows. fill appends the values of one row.
func (in multiInsert) exec(ctx context.Context, t *tx, n int, fill func(args []any, row int) []any) {
	args := make([]any, 0, min(n, widths[0])*len(in.types))
	if t.w.engine.Remote && n > 0 {
		columns := make([][]any, len(in.types))
		for row := range n {
			args = fill(args[:0], row)
			for i, value := range args {
				columns[i] = append(columns[i], value)
			}
		}
		args = args[:0]
		for _, column := range columns {
			args = append(args, column)
		}
		t.exec(ctx, in.texts().arrays, args...)
		return
	}
	inWidths(n, func(from, to, w int) {
		args = args[:0]
		for row := from; row < to; row++ {
			args = fill(args, row)
		}
		t.exec(ctx, in.texts().query[w], args...)
	})
}

// keyStatement selects rows by keys: by a list in each of the widths, or by any number as an array.
type keyStatement[K any] struct {
	query func() [len(widths)]string
	array string
}

// newKeyStatement puts the list of keys between begin and end. kind is the key's type, as in [multiInsert].
func newKeyStatement[K any](kind rune, begin, end string) keyStatement[K] {
	return keyStatement[K]{
		query: inEachWidth(func(w int) string { return begin + " IN " + tuples(1, w) + end }),
		array: begin + " = ANY(CAST(? AS " + arrayTypes[kind] + "))" + end,
	}
}

// each calls f for each row of the result. before are the parameters before the keys.
func (in keyStatement[K]) each(ctx context.Context, t *tx, keys []K, f func(scanner) error, before ...any) {
	in.inPortions(t, keys, before, func(query string, args []any) { t.each(ctx, f, query, args...) })
}

// exec executes the statement for all keys. before are the parameters before the keys.
func (in keyStatement[K]) exec(ctx context.Context, t *tx, keys []K, before ...any) {
	in.inPortions(t, keys, before, func(query string, args []any) { t.exec(ctx, query, args...) })
}

func (in keyStatement[K]) inPortions(t *tx, keys []K, before []any, run func(query string, args []any)) {
	if t.w.engine.Remote && len(keys) > 0 {
		run(in.array, append(slices.Clip(before), keys))
		return
	}
	inWidths(len(keys), func(from, to, w int) {
		args := slices.Grow(slices.Clone(before), to-from)
		for _, key := range keys[from:to] {
			args = append(args, key)
		}
		run(in.query()[w], args)
	})
}

// conditions are the terms of a WHERE clause, all of which must hold, and the values of its statement's parameters.
type conditions struct {
	terms []string
	args  []any
}

// bind adds a value, and returns its parameter.
func (c *conditions) bind(value any) string {
	c.args = append(c.args, value)
	return "?" + strconv.Itoa(len(c.args))
}

// add adds a term in which each {} stands for the parameter of a value.
func (c *conditions) add(term string, values ...any) {
	for _, value := range values {
		term = strings.Replace(term, "{}", c.bind(value), 1)
	}
	c.terms = append(c.terms, term)
}

// addIf is add if the member of a query or a filter that asks for the term is set.
func (c *conditions) addIf(isSet bool, term string, values ...any) {
	if isSet {
		c.add(term, values...)
	}
}

// bindAll returns "(?1, ?2)", or "(NULL)", which matches nothing, for no texts.
func bindAll[T ~string](c *conditions, texts []T) string {
	return "(" + cmp.Or(joined(len(texts), func(i int) string { return c.bind(string(texts[i])) }), "NULL") + ")"
}

// any ORs the terms that fill adds.
func (c *conditions) any(fill func(*conditions)) {
	either := conditions{args: c.args}
	fill(&either)
	c.args = either.args
	c.terms = append(c.terms, "("+cmp.Or(strings.Join(either.terms, " OR "), "0 = 1")+")")
}

// String returns the condition for WHERE.
func (c *conditions) String() string { return cmp.Or(strings.Join(c.terms, " AND "), "1 = 1") }

// millis returns the stored form of a time: milliseconds since 1970, 0 for the zero time.
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

// flag returns the stored form of a bool.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
