package postgres

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// connectSchema connects to the schema of a URL and returns its name.
func connectSchema(t *testing.T, of string) (*pgx.Conn, string) {
	t.Helper()
	conn := pgtest.Connect(t, of)
	var schema string
	scan(t, conn, []any{&schema}, "SHOW search_path")
	return conn, schema
}

// newSchema connects to a schema that was just made; nil where PostgreSQL is missing.
func newSchema(t *testing.T) *pgx.Conn {
	t.Helper()
	of, ok := pgtest.URL(t)
	if !ok {
		return nil
	}
	conn, schema := connectSchema(t, of)
	made, writable, err := openSchema(t.Context(), conn, "place", schema, store.Options{})
	if !made || !writable || err != nil {
		t.Fatalf("made %v, writable %v, %v", made, writable, err)
	}
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, query string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func scan(t *testing.T, conn *pgx.Conn, into []any, query string, args ...any) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query, args...).Scan(into...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// number returns the one number that a query finds.
func number(t *testing.T, conn *pgx.Conn, query string, args ...any) (n int64) {
	t.Helper()
	scan(t, conn, []any{&n}, query, args...)
	return n
}

func TestProcessesThatOpenAtOnceMakeOneSchema(t *testing.T) {
	of, ok := pgtest.URL(t)
	if !ok {
		return
	}
	var wg sync.WaitGroup
	made := make(chan bool, 4)
	for range cap(made) {
		conn, schema := connectSchema(t, of)
		wg.Go(func() {
			one, writable, err := openSchema(t.Context(), conn, "place", schema, store.Options{})
			if !writable || err != nil {
				t.Errorf("writable %v, %v", writable, err)
			}
			made <- one
		})
	}
	wg.Wait()
	close(made)
	n := 0
	for one := range made {
		if one {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d of them made it", n)
	}
}

func TestSchemaIsRefused(t *testing.T) {
	of, ok := pgtest.URL(t)
	if !ok {
		return
	}
	conn, schema := connectSchema(t, of)
	name := pgx.Identifier{schema}.Sanitize()
	for _, tt := range []struct {
		name                string
		before, after       string // SQL
		mustExist, readOnly bool
		want                error
	}{
		{"none, and one must exist", "", "", true, false, store.ErrNotThere},
		{"none, to read", "", "", false, true, store.ErrNotThere},
		{"empty, to read", "CREATE SCHEMA " + name, "", false, true, store.ErrNotThere},
		{"tables of another program", "CREATE TABLE " + name + ".meta (version INT)", "DROP TABLE " + name + ".meta", false, false, store.ErrNotStore},
		{"the same names, of another program", "CREATE TABLE " + name + ".meta (program TEXT, version INT, timeline INT)", "DROP TABLE " + name + ".meta", false, false, store.ErrNotStore},
		{"made of an empty one", "", "", false, false, nil},
		{"ours", "", "", true, true, nil},
		{"newer", "UPDATE " + name + ".meta SET version = 99", "", false, false, store.ErrTooNew},
		{"newer, to read", "", "UPDATE " + name + ".meta SET version = 1", false, true, store.ErrTooNew},
		{"of another development build", "UPDATE " + name + ".counters SET value = value - 1 WHERE name = 'schema'", "", false, false, store.ErrDevelopment},
		{"of an earlier one, to read", "DELETE FROM " + name + ".counters WHERE name = 'schema'", "", true, true, store.ErrDevelopment},
	} {
		if tt.before != "" {
			exec(t, conn, tt.before)
		}
		const all = "SELECT COUNT(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1"
		before := number(t, conn, all, schema)
		o := store.Options{MustExist: tt.mustExist, ReadOnly: tt.readOnly}
		_, _, err := openSchema(t.Context(), conn, "place", schema, o)
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if after := number(t, conn, all, schema); tt.want != nil && after != before {
			t.Errorf("%s: it had %d objects and has %d", tt.name, before, after)
		}
		if tt.after != "" {
			exec(t, conn, tt.after)
		}
	}
}

func TestSchemaThatFailsChangesNothing(t *testing.T) {
	of, ok := pgtest.URL(t)
	if !ok {
		return
	}
	conn, schema := connectSchema(t, of)
	if made, err := makeTables(t.Context(), conn, "place", schema, schemaText+";\nSELECT no_such_function()"); made || sqlState(err) != "42883" {
		t.Errorf("made %v, %v", made, err)
	}
	state, err := readSchema(t.Context(), conn, "place", schema)
	if state.exists || err != nil {
		t.Errorf("%+v, %v", state, err)
	}
	if made, err := makeTables(t.Context(), conn, "place", schema, schemaText); !made || err != nil {
		t.Fatalf("made %v, %v", made, err)
	}
}

// A role without the right to change tables works with those that an administrator made.
func TestSchemaSQLForARole(t *testing.T) {
	server, ok := pgtest.Start(t)
	if !ok {
		return
	}
	admin, schema := connectSchema(t, server.NewURL(t))
	conn, other := connectSchema(t, server.NewURL(t))
	if err := server.Ask(t.Context(), "CREATE ROLE app", nil); err != nil {
		t.Fatal(err)
	}
	if err := server.Ask(t.Context(), "GRANT app TO waybill", nil); err != nil {
		t.Fatal(err)
	}
	exec(t, conn, "SET ROLE app")
	_, _, err := openSchema(t.Context(), conn, "place", other, store.Options{})
	if !errors.Is(kindOf(err), store.ErrNoRight) {
		t.Errorf("without the right to create: %v", err)
	}
	text, err := SchemaSQL(schema, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.PgConn().Exec(t.Context(), text).ReadAll(); err != nil {
		t.Fatal(err)
	}
	_, _, err = openSchema(t.Context(), conn, "place", schema, store.Options{})
	if !errors.Is(kindOf(err), store.ErrNoRight) {
		t.Errorf("without rights to the schema: %v", err)
	}
	exec(t, admin, "DROP SCHEMA "+schema+" CASCADE")
	if text, err = SchemaSQL(schema, "app"); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		_, err := admin.PgConn().Exec(t.Context(), text).ReadAll()
		if (err != nil) != (n == 1) {
			t.Fatalf("run %d times: %v", n+1, err)
		}
		exec(t, admin, "ROLLBACK")
	}
	made, writable, err := openSchema(t.Context(), conn, "place", schema, store.Options{})
	if made || !writable || err != nil {
		t.Fatalf("made %v, writable %v, %v", made, writable, err)
	}
	exec(t, conn, "SET search_path TO "+schema)
	exec(t, conn, `INSERT INTO deliveries (seq, received, method, path, raw_query, remote, verified, reason, scheme, secret_name, body_authenticated, single, anomaly, header, body)
		VALUES (1, 1, 'POST', '', '', '', 'no', '', '', '', 1, 0, '', 'ab', 'body')`)
	exec(t, conn, "UPDATE deliveries SET verified = 'yes', body = NULL")
	exec(t, conn, "DELETE FROM deliveries")
	if _, err := conn.Exec(t.Context(), "CREATE TABLE mine ()"); sqlState(err) != "42501" {
		t.Errorf("the role makes tables: %v", err)
	}
	exec(t, admin, "REVOKE UPDATE ON "+schema+".meta FROM app")
	if _, writable, err = openSchema(t.Context(), conn, "place", schema, store.Options{}); writable || err != nil {
		t.Errorf("a role that may not write: writable %v, %v", writable, err)
	}
}

// schemaForRole makes a schema for the role app, as a DBA does with the text of `store
// schema`. It returns the URL for that role, and a connection of the schema's owner.
func schemaForRole(t *testing.T, server *pgtest.Server) (at string, admin *pgx.Conn, schema string) {
	t.Helper()
	at = server.NewURL(t)
	admin, schema = connectSchema(t, at)
	if err := server.Ask(t.Context(), "CREATE ROLE app LOGIN", nil); err != nil {
		t.Fatal(err)
	}
	text, err := SchemaSQL(schema, "app")
	if err != nil {
		t.Fatal(err)
	}
	exec(t, admin, text)
	return strings.Replace(at, "waybill@", "app@", 1), admin, schema
}

// A store is copied with the last numbers that it gave, or not at all: a role that may
// not read them gets an error from every version.
func TestLastNumbersForARole(t *testing.T) {
	server, ok := pgtest.Start(t)
	if !ok {
		return
	}
	at, admin, schema := schemaForRole(t, server)
	d := open(t, at)
	defer d.Close()
	if err := finishCopy(t.Context(), d.engine.pool, []store.LastNumber{{Table: "sinks", Column: "id", Last: 7}}); err != nil {
		t.Error(err)
	}
	if n, err := d.engine.lastNumber(t.Context(), "sinks", "id"); n != 7 || err != nil {
		t.Errorf("last number %d, %v; want 7", n, err)
	}
	exec(t, admin, "REVOKE ALL ON ALL SEQUENCES IN SCHEMA "+schema+" FROM app")
	if n, err := d.engine.lastNumber(t.Context(), "sinks", "id"); !errors.Is(kindOf(err), store.ErrNoRight) {
		t.Errorf("last number %d, %v; want %v", n, err, store.ErrNoRight)
	}
	for revoke, want := range map[string]string{"": "", "DELETE ON " + schema + ".rows": "on rows", "INSERT ON " + schema + ".deliveries, " + schema + ".rows": "on deliveries and 1 more"} {
		if revoke != "" {
			exec(t, admin, "REVOKE "+revoke+" FROM app")
		}
		settings, err := d.Settings(t.Context())
		i := slices.IndexFunc(settings, func(s store.Setting) bool { return s.Name == "Rights" })
		if err != nil || (i >= 0) != (want != "") || i >= 0 && !strings.HasSuffix(settings[i].Warning, want) {
			t.Errorf("without %s: %+v, %v; want a warning of rights %s", revoke, settings, err, want)
		}
		exec(t, admin, "GRANT ALL ON ALL TABLES IN SCHEMA "+schema+" TO app")
	}
}

// Rows that a policy hides from the role are an error: without them a store would look
// empty, or damaged.
func TestRowSecurityIsRefused(t *testing.T) {
	server, ok := pgtest.Start(t)
	if !ok {
		return
	}
	at, admin, schema := schemaForRole(t, server)
	exec(t, admin, "ALTER TABLE "+schema+".rows ENABLE ROW LEVEL SECURITY")
	d := open(t, at)
	defer d.Close()
	_, _, err := d.Lookup(t.Context(), tracking.Key{ReferID: "R", Number: "N"})
	wantKind(t, err, store.ErrNoRight, "row-level security policy")
	if failed, ok := errors.AsType[*store.Error](err); ok && !strings.Contains(failed.Hint(), "BYPASSRLS") {
		t.Errorf("hint %q", failed.Hint())
	}
	if _, err := d.Problems(t.Context()); !errors.Is(err, store.ErrNoRight) {
		t.Errorf("check: %v; want %v", err, store.ErrNoRight)
	}
}

func TestFoldNumber(t *testing.T) {
	conn := newSchema(t)
	if conn == nil {
		return
	}
	fold := func(texts []string) []string {
		rows, err := conn.Query(t.Context(), "SELECT fold_number(one) FROM unnest($1::TEXT[]) WITH ORDINALITY AS t (one, n) ORDER BY n", texts)
		if err != nil {
			t.Fatal(err)
		}
		folded, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return folded
	}
	var texts []string
	var letters []rune // that fold to something else
	for r := rune(1); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		if one := string(r); tracking.FoldNumber(one) != one {
			letters = append(letters, r)
			texts = append(texts, one)
		}
	}
	// The others stay, so that many of them can be compared at once: all up to the last letter that does not.
	var many strings.Builder
	last := letters[len(letters)-1]
	for r := rune(1); r <= last; r++ {
		if utf8.ValidRune(r) {
			many.WriteRune(r)
		}
		if r%4096 == 0 || r == last {
			texts = append(texts, many.String())
			many.Reset()
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := make([]rune, random.IntN(24))
		for i := range text {
			switch random.IntN(3) {
			case 0:
				text[i] = letters[random.IntN(len(letters))]
			case 1:
				text[i] = 1 + random.Int32N(0x7f)
			default:
				text[i] = max(1, random.Int32N(utf8.MaxRune+1))
			}
		}
		texts = append(texts, strings.ToValidUTF8(string(text), ""))
	}
	for i, got := range fold(texts) {
		if want := tracking.FoldNumber(texts[i]); got != want {
			t.Errorf("%q folds to %q, want %q", texts[i], got, want)
		}
	}
	if got := number(t, conn, "SELECT COUNT(*) WHERE fold_number(NULL) IS NULL"); got != 1 {
		t.Error("NULL folds to something")
	}
}
