package postgres

import (
	"context"
	_ "embed" // the schema
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

//go:embed schema.sql
var schemaText string

// lockKey returns the key of the advisory lock of every transaction that writes to the schema, or creates it.
func lockKey(schema string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("waybill." + schema)) // never fails
	return int64(h.Sum64())
}

type schemaState struct {
	exists   bool // may be empty
	made     bool // it has the tables of a store
	writable bool // the role may change the tables
	isCopy   bool // a copy that has not finished
}

// readSchema returns the state of the schema. It writes nothing, since the schema may be another program's.
func readSchema(ctx context.Context, conn *pgx.Conn, place, schema string) (schemaState, error) {
	var state schemaState
	var objects int
	var ours bool
	// The catalogs show what exists without any right to it.
	err := conn.QueryRow(ctx, `SELECT COUNT(n.oid) > 0, COUNT(c.oid),
			COALESCE(bool_or(c.relname = 'meta' AND c.relkind = 'r' AND 3 = (SELECT COUNT(*) FROM pg_attribute a
			WHERE a.attrelid = c.oid AND a.attname IN ('program', 'version', 'timeline') AND NOT a.attisdropped)), false)
		FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid WHERE n.nspname = $1`,
		pgx.QueryExecModeExec, schema).Scan(&state.exists, &objects, &ours)
	if err != nil || objects == 0 {
		return state, err
	}
	other := fmt.Errorf("schema %s holds the tables of another program", schema)
	notOurs := &store.Error{Kind: store.ErrNotStore, Path: place, Op: "open", Err: other}
	if !ours {
		return state, notOurs
	}
	meta := pgx.Identifier{schema, "meta"}.Sanitize()
	var program string
	var version int
	err = conn.QueryRow(ctx, "SELECT program, version, has_table_privilege($1, 'UPDATE') FROM "+meta,
		pgx.QueryExecModeExec, meta).Scan(&program, &version, &state.writable)
	switch {
	case err == nil && program == copyMark:
		state.isCopy = true
	case errors.Is(err, pgx.ErrNoRows), err == nil && program != "waybill":
		return state, notOurs
	case err != nil:
		return state, err
	}
	var digest int64
	counters := pgx.Identifier{schema, "counters"}.Sanitize()
	query := "SELECT COALESCE(MAX(value), 0) FROM " + counters + " WHERE name = 'schema'"
	if err := conn.QueryRow(ctx, query, pgx.QueryExecModeExec).Scan(&digest); err != nil {
		return state, err
	}
	err = store.CheckSchema(place, version, digest, schemaText)
	state.made = err == nil
	return state, err
}

// openSchema checks the schema, and creates one if there is none and the options allow it.
func openSchema(
	ctx context.Context, conn *pgx.Conn, place, schema string, o store.Options,
) (made, writable bool, err error) {
	state, err := readSchema(ctx, conn, place, schema)
	switch {
	case err != nil:
		return false, false, err
	case state.isCopy:
		return false, state.writable, &store.Error{Kind: store.ErrUnfinished, Path: place, Op: "open"}
	case state.made:
		return false, state.writable, nil
	case o.MustExist || o.ReadOnly:
		return false, false, &store.Error{Kind: store.ErrNotThere, Path: place, Op: "open"}
	}
	made, err = makeTables(ctx, conn, place, schema, schemaText)
	return made, err == nil, err
}

// makeTables creates the tables, and the schema if needed, in one transaction, and reports whether it did.
func makeTables(ctx context.Context, conn *pgx.Conn, place, schema, tables string) (made bool, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", lockKey(schema)); err != nil {
			return err
		}
		state, err := readSchema(ctx, conn, place, schema) // another process may have been faster
		if err != nil || state.made {
			return err
		}
		made = true
		text := tablesSQL(schema, tables)
		if !state.exists {
			text = createSchema(schema) + text
		}
		_, err = conn.PgConn().Exec(ctx, text).ReadAll()
		return err
	})
	return made && err == nil, err
}

func createSchema(schema string) string {
	return "CREATE SCHEMA " + pgx.Identifier{schema}.Sanitize() + ";\n"
}

func tablesSQL(schema, tables string) string {
	unfolded, folded := foldedCharacters()
	filled := strings.NewReplacer("{{unfolded}}", unfolded, "{{folded}}", folded).Replace(tables)
	return fmt.Sprintf("SET LOCAL search_path TO %s, pg_temp;\n\n%s;\nUPDATE meta SET version = %d;\n"+
		"INSERT INTO counters (name, value) VALUES ('schema', %d);\n",
		pgx.Identifier{schema}.Sanitize(), filled, store.SchemaVersion, store.SchemaDigest(tables))
}

// foldedCharacters returns the characters that [tracking.FoldNumber] changes and, in the same order, their
// replacements, as SQL texts. Characters without a replacement come last. Beyond U+1FFFF no character has a case or is
// a space.
func foldedCharacters() (unfolded, folded string) {
	var from, to, gone []rune
	for r := rune(1); r < 0x20000; r++ {
		switch one := []rune(tracking.FoldNumber(string(r))); {
		case len(one) == 0:
			gone = append(gone, r)
		case one[0] != r && utf8.ValidRune(r):
			from, to = append(from, r), append(to, one[0])
		}
	}
	return quoteRunes(append(from, gone...)), quoteRunes(to)
}

// quoteRunes returns an SQL text in ASCII, in lines of 16 characters.
func quoteRunes(text []rune) string {
	var lines []string
	for line := range slices.Chunk(text, 16) {
		var escapes strings.Builder
		for _, r := range line {
			fmt.Fprintf(&escapes, `\+%06X`, r)
		}
		lines = append(lines, "'"+escapes.String()+"'")
	}
	return "U&" + strings.Join(lines, "\n\t\t")
}

// SchemaSQL returns the SQL for the administrator of the database that creates the store's tables in a schema, and
// lets role use them. An empty role gets no rights. The error for a schema that a target can't name is a
// [*TargetError].
func SchemaSQL(schema, role string) (string, error) {
	if !isSchemaName(schema) {
		return "", errSchemaName
	}
	var b strings.Builder
	fmt.Fprintf(&b, "-- The store of waybill, version %d. Run it once, by psql or the like: where the schema\n"+
		"-- exists it fails and changes nothing.\n\nBEGIN;\n%s%s",
		store.SchemaVersion, createSchema(schema), tablesSQL(schema, schemaText))
	if role != "" {
		schema, role = pgx.Identifier{schema}.Sanitize(), pgx.Identifier{role}.Sanitize()
		fmt.Fprintf(&b, "\nGRANT USAGE ON SCHEMA %s TO %s;\n", schema, role)
		fmt.Fprintf(&b, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %s;\n", schema, role)
		fmt.Fprintf(&b, "GRANT SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA %s TO %s;\n", schema, role)
	}
	b.WriteString("COMMIT;\n")
	return b.String(), nil
}

// rewrite converts a text of package store to PostgreSQL's dialect. Its parameters are ?, ?N and $N, numbered as in
// SQLite: a ? has the number after the largest one before it. It removes a + right before a column, a hint to SQLite's
// planner. Texts contain no comments.
func rewrite(query string) string {
	var b strings.Builder
	b.Grow(len(query) + len(query)/8)
	last := 0 // the largest number so far
	for i := 0; i < len(query); {
		c, rest := query[i], query[i+1:]
		switch {
		case c == '\'' || c == '"':
			_, after, _ := strings.Cut(rest, query[i:i+1]) // a doubled quote makes two texts
			b.WriteString(query[i : len(query)-len(after)])
			i = len(query) - len(after)
		case c == '?' || c == '$':
			digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
			n, err := strconv.Atoi(rest[:digits])
			if err != nil {
				n = last + 1
			}
			last = max(last, n)
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
			i += 1 + digits
		case c == '+' && rest >= "a":
			i++
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}
