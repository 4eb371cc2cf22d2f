package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/waybill-cli/waybill/internal/store"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// parts are the statements for the tables in partitions.
var parts = store.Parts{
	UnverifiedBytes: "SELECT COALESCE(SUM(bytes), 0) FROM delivery_records WHERE verified <> 'yes' AND bytes IS NOT NULL",
	DropBodies:      "SELECT first, last, dropped, items, bytes FROM drop_delivery_bytes($1, $2, $3)",
	DropVersions:    "SELECT first, last, dropped, items, bytes FROM drop_answer_versions($1, $2)",
	DropAnswers:     "SELECT first, last, dropped, items, bytes FROM drop_batch_answers($1)",
}

// migrations returns the steps from each version to the next; the first makes
// version 1 in an empty schema, which is the search path.
func migrations() ([]string, error) {
	steps := make([]string, newestVersion())
	for i := range steps {
		text, err := schemaFiles.ReadFile(fmt.Sprintf("schema/%d.sql", i+1))
		if err != nil {
			return nil, err
		}
		steps[i] = string(text)
	}
	return steps, nil
}

// newestVersion returns the version that the last migration leads to.
func newestVersion() int {
	names, _ := fs.Glob(schemaFiles, "schema/*.sql") // never fails: the pattern is well formed
	return len(names)
}

// lockKey is the advisory lock that everybody who writes to the schema holds for
// the transaction, and whoever migrates it.
func lockKey(schema string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("waybill." + schema)) // never fails
	return int64(h.Sum64())
}

// schemaState is what a database holds under the name of a schema.
type schemaState struct {
	exists   bool   // perhaps empty
	version  int    // 0: nothing
	writable bool   // the role may change the tables
	copyOf   string // identity of the store that it is a copy under way of, empty for none
}

// readSchema returns the state of the schema. It writes nothing, so that one that
// is not ours stays as it is.
func readSchema(ctx context.Context, conn *pgx.Conn, place, schema string, newest int) (schemaState, error) {
	var state schemaState
	var objects int
	var ours bool
	// The catalogs show what is there without any right to it.
	err := conn.QueryRow(ctx, `SELECT COUNT(n.oid) > 0, COUNT(c.oid), COALESCE(bool_or(c.relname = 'meta' AND c.relkind = 'r' AND 3 = (SELECT COUNT(*) FROM pg_attribute a
			WHERE a.attrelid = c.oid AND a.attname IN ('program', 'version', 'timeline') AND NOT a.attisdropped)), false)
		FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid WHERE n.nspname = $1`, pgx.QueryExecModeExec, schema).Scan(&state.exists, &objects, &ours)
	if err != nil || objects == 0 {
		return state, err
	}
	notOurs := &store.Error{Kind: store.ErrNotStore, Path: place, Op: "open", Err: fmt.Errorf("schema %s holds the tables of another program", schema)}
	if !ours {
		return state, notOurs
	}
	meta := pgx.Identifier{schema, "meta"}.Sanitize()
	var program string
	err = conn.QueryRow(ctx, "SELECT program, version, has_table_privilege($1, 'UPDATE') FROM "+meta, pgx.QueryExecModeExec, meta).Scan(&program, &state.version, &state.writable)
	switch {
	case err == nil && strings.HasPrefix(program, copyMark):
		state.copyOf = strings.TrimPrefix(program, copyMark)
	case errors.Is(err, pgx.ErrNoRows), err == nil && program != "waybill":
		return state, notOurs
	case err != nil:
		return state, err
	case state.version > newest:
		return state, &store.Error{Kind: store.ErrTooNew, Path: place, Op: "open", Err: beyondNewest(state.version, newest)}
	}
	return state, nil
}

// beyondNewest says that a newer program made the schema, perhaps while this one ran.
func beyondNewest(version, newest int) error {
	return fmt.Errorf("version %d, this waybill supports up to %d", version, newest)
}

// openSchema checks the schema for reading alone, or brings it to the newest version
// if the role may do that; it makes one where there is none, unless it must exist.
// It reports whether it made it, and whether the role may write.
func openSchema(ctx context.Context, conn *pgx.Conn, place, schema string, mustExist, readOnly bool) (made, writable bool, err error) {
	steps, err := migrations()
	if err != nil {
		return false, false, err
	}
	state, err := readSchema(ctx, conn, place, schema, len(steps))
	switch {
	case err != nil:
		return false, false, err
	case state.copyOf != "":
		return false, state.writable, &store.Error{Kind: store.ErrUnfinished, Path: place, Op: "open", Err: unfinished{state.copyOf}}
	case state.version == len(steps):
		return false, state.writable, nil
	case state.version == 0 && (mustExist || readOnly):
		return false, false, &store.Error{Kind: store.ErrNotThere, Path: place, Op: "open"}
	case readOnly:
		return false, false, &store.Error{Kind: store.ErrReadOnly, Path: place, Op: "open", Err: &store.OlderError{Version: state.version, Reads: len(steps)}}
	}
	made, err = migrate(ctx, conn, place, schema, steps)
	return made, err == nil, err
}

// migrate takes the missing steps in one transaction, and reports whether there was
// no schema. Nobody else writes meanwhile.
func migrate(ctx context.Context, conn *pgx.Conn, place, schema string, steps []string) (made bool, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", lockKey(schema)); err != nil {
			return err
		}
		state, err := readSchema(ctx, conn, place, schema, len(steps)) // another process may have been faster
		if err != nil || state.version == len(steps) {
			return err
		}
		made = state.version == 0
		text := migrationText(schema, steps[state.version:], len(steps))
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

// migrationText returns the SQL of the steps that lead to a version.
func migrationText(schema string, steps []string, version int) string {
	return fmt.Sprintf("SET LOCAL search_path TO %s, pg_temp;\n\n%s;\nUPDATE meta SET version = %d;\n",
		pgx.Identifier{schema}.Sanitize(), strings.Join(steps, ";\n"), version)
}

// SchemaSQL returns the SQL that makes the store's tables in a schema, for whoever
// administers the database, and that lets role use them. An empty role gets no
// rights. The error for a schema that a target can't name is a [*TargetError].
func SchemaSQL(schema, role string) (string, error) {
	if !isSchemaName(schema) {
		return "", errSchemaName
	}
	steps, err := migrations()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "-- The store of waybill, version %d. Run it once, by psql or the like: where the schema\n-- exists it fails and changes nothing.\n\nBEGIN;\n%s%s", len(steps),
		createSchema(schema), migrationText(schema, steps, len(steps)))
	if role != "" {
		schema, role = pgx.Identifier{schema}.Sanitize(), pgx.Identifier{role}.Sanitize()
		fmt.Fprintf(&b, "\nGRANT USAGE ON SCHEMA %s TO %s;\n", schema, role)
		fmt.Fprintf(&b, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %s;\n", schema, role)
		fmt.Fprintf(&b, "GRANT SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA %s TO %s;\n", schema, role)
	}
	b.WriteString("COMMIT;\n")
	return b.String(), nil
}
