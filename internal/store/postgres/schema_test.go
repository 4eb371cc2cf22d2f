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
	made, writable, err := openSchema(t.Context(), conn, "place", schema, false, false)
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
			one, writable, err := openSchema(t.Context(), conn, "place", schema, false, false)
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
		_, _, err := openSchema(t.Context(), conn, "place", schema, tt.mustExist, tt.readOnly)
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
	if _, _, err := openSchema(t.Context(), conn, "place", other, false, false); !errors.Is(kindOf(err), store.ErrNoRight) {
		t.Errorf("without the right to create: %v", err)
	}
	text, err := SchemaSQL(schema, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.PgConn().Exec(t.Context(), text).ReadAll(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openSchema(t.Context(), conn, "place", schema, false, false); !errors.Is(kindOf(err), store.ErrNoRight) {
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
	made, writable, err := openSchema(t.Context(), conn, "place", schema, false, false)
	if made || !writable || err != nil {
		t.Fatalf("made %v, writable %v, %v", made, writable, err)
	}
	exec(t, conn, "SET search_path TO "+schema)
	testPartitions(t, conn)
	if _, err := conn.Exec(t.Context(), "CREATE TABLE mine ()"); sqlState(err) != "42501" {
		t.Errorf("the role makes tables: %v", err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT drop_partition('delivery_bytes_0')"); sqlState(err) != "42501" {
		t.Errorf("the role drops any partition: %v", err)
	}
	exec(t, admin, "REVOKE UPDATE ON "+schema+".meta FROM app")
	if _, writable, err = openSchema(t.Context(), conn, "place", schema, false, false); writable || err != nil {
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
	if err := finishCopy(t.Context(), d.engine.readers, []store.LastNumber{{Table: "sinks", Column: "id", Last: 7}}); err != nil {
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
	_, _, err := d.Lookup(t.Context(), "a", tracking.Key{ReferID: "R", Number: "N"})
	wantKind(t, err, store.ErrNoRight, "row-level security policy")
	if failed, ok := errors.AsType[*store.Error](err); ok && !strings.Contains(failed.Hint(), "BYPASSRLS") {
		t.Errorf("hint %q", failed.Hint())
	}
	if _, err := d.Problems(t.Context()); !errors.Is(err, store.ErrNoRight) {
		t.Errorf("check: %v; want %v", err, store.ErrNoRight)
	}
}

// addDeliveries adds deliveries with 6 bytes each; those with an odd number did not verify.
func addDeliveries(t *testing.T, conn *pgx.Conn, seqs ...int64) {
	t.Helper()
	exec(t, conn, `INSERT INTO deliveries (seq, received, method, path, raw_query, remote, verified, reason, scheme, secret_name, body_authenticated, single, anomaly, header, body)
		SELECT n, n, 'POST', '', '', '', CASE WHEN n % 2 = 0 THEN 'yes' ELSE 'no' END, '', '', '', 1, 0, '', 'ab', 'body' FROM unnest($1::BIGINT[]) AS n`, seqs)
}

// dropped is what drop_delivery_bytes returns.
type dropped struct {
	First, Last  int64
	Dropped      bool
	Items, Bytes int64
}

// dropBytes drops what it may, and returns what it said of each partition.
func dropBytes(t *testing.T, conn *pgx.Conn, before, since int64) []dropped {
	t.Helper()
	var all []dropped
	for after := int64(-1); ; after = all[len(all)-1].Last {
		rows, err := conn.Query(t.Context(), "SELECT * FROM drop_delivery_bytes($1, $2, $3)", after, before, since)
		if err != nil {
			t.Fatal(err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[dropped])
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			return all
		}
		all = append(all, found...)
	}
}

func TestPartitions(t *testing.T) {
	if conn := newSchema(t); conn != nil {
		testPartitions(t, conn)
	}
}

// testPartitions adds deliveries and answers, so that partitions follow, and drops them.
func testPartitions(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	const size = 65536
	addDeliveries(t, conn, 1, 2, 3, size-1)
	addDeliveries(t, conn, size, size+1, 2*size, 2*size+8192) // one statement, three partitions
	exec(t, conn, "INSERT INTO sinks (name, url, filter, passed, released) VALUES ('s', 'u', '', 0, 0)")
	exec(t, conn, `INSERT INTO outbox (sink, delivery, added, blocked, owner, due, attempts, failures, first_fail, dead, status, problem, reply)
		VALUES (1, $1, 0, 0, '', 0, 0, 0, 0, 0, 0, '', '')`, size+1)
	all := dropBytes(t, conn, 2*size, 3*size)
	if len(all) != 4 || all[0] != (dropped{0, size - 1, true, 4, 24}) || all[1] != (dropped{size, 2*size - 1, false, 2, 12}) || all[2].Dropped || all[3].Dropped {
		t.Errorf("dropped %+v", all)
	}
	if n := number(t, conn, "SELECT COUNT(*) FROM deliveries WHERE seq < $1 AND body IS NULL AND length(header) = 0", size); n != 4 {
		t.Errorf("%d deliveries have no body", n)
	}
	if n := number(t, conn, parts.UnverifiedBytes); n != 6 {
		t.Errorf("%d bytes are unverified", n)
	}
	exec(t, conn, "UPDATE deliveries SET body = NULL, header = '' WHERE seq = $1", size+1)
	exec(t, conn, "UPDATE deliveries SET verified = 'yes' WHERE seq = 3")
	if n := number(t, conn, parts.UnverifiedBytes) + 10*number(t, conn, "SELECT COUNT(*) FROM released"); n != 10 {
		t.Errorf("%d", n)
	}
	exec(t, conn, "DELETE FROM outbox")
	if all := dropBytes(t, conn, 2*size, size); all[0].Dropped {
		t.Errorf("what a sink may have to read was dropped: %+v", all)
	}
	if all := dropBytes(t, conn, 3*size, 3*size); len(all) != 3 || all[0] != (dropped{size, 2*size - 1, true, 1, 6}) || all[1].Dropped {
		t.Errorf("dropped %+v", all)
	}

	exec(t, conn, `INSERT INTO batches (id, run_id, state, rows, first_row, last_row, claimed, began, took, http_status, reason)
		SELECT n, 1 + n / 8192, 'accepted', 1, n, n, 0, 0, 0, 200, '' FROM unnest(ARRAY[1, 4095, 4096, 8192, 12288]) AS n`)
	exec(t, conn, `INSERT INTO runs (id, account_id, state, owner, created, files, mode, batch_size, first_row, last_row, new_rows, known_rows, known_pending, known_open, other_carrier, repeats, requests, last_sent)
		SELECT n, 1, 'open', '', 0, '[]', 'v2', 1, n, n, 1, 0, 0, 0, 0, 0, 0, 0 FROM generate_series(1, 2) AS n`)
	exec(t, conn, "INSERT INTO batch_answers (batch_id, cut, raw) SELECT id, 0, 'raw' FROM batches")
	dropAnswers := func() (parts int64) {
		for after := int64(-1); ; parts++ {
			if conn.QueryRow(t.Context(), "SELECT last FROM drop_batch_answers($1)", after).Scan(&after) != nil {
				return parts
			}
		}
	}
	const answers = "SELECT COUNT(*) FROM batch_answers"
	if parts, n := dropAnswers(), number(t, conn, answers); parts != 5 || n != 5 {
		t.Errorf("%d partitions, %d answers", parts, n)
	}
	exec(t, conn, "UPDATE runs SET state = 'pruned' WHERE id = 1")
	if parts, n := dropAnswers(), number(t, conn, answers); parts != 5 || n != 2 {
		t.Errorf("%d partitions, %d answers", parts, n)
	}
	if n := number(t, conn, "SELECT COUNT(*) FROM pg_inherits WHERE inhparent = 'batch_answers'::regclass"); n != 3 {
		t.Errorf("%d partitions are left", n)
	}
}

// A query looks at each partition: there must not be too many.
func TestPartitionsGrow(t *testing.T) {
	conn := newSchema(t)
	if conn == nil {
		return
	}
	parts := func() (n, largest int64) {
		scan(t, conn, []any{&n, &largest}, "SELECT COUNT(*), MAX(last + 1 - first) FROM partitions('batch_answers')")
		return n, largest
	}
	for last := int64(0); last < 10_000_000; {
		scan(t, conn, []any{&last}, "SELECT MAX(last) FROM partitions('batch_answers')")
		exec(t, conn, "SELECT add_partitions('batch_answers', $1)", last)
	}
	if n, largest := parts(); n < 48 || n > 64 || largest < 2_000_000 {
		t.Errorf("%d partitions, the largest with %d numbers", n, largest)
	}
	if gaps := number(t, conn, "SELECT COUNT(*) FROM (SELECT first - lag(last) OVER (ORDER BY first) AS step FROM partitions('batch_answers')) AS p WHERE step <> 1"); gaps != 0 {
		t.Errorf("%d gaps", gaps)
	}
}

// What is copied has its numbers already.
func TestCopiedRows(t *testing.T) {
	conn := newSchema(t)
	if conn == nil {
		return
	}
	exec(t, conn, "SELECT add_partitions('batch_answers', 10000)")
	exec(t, conn, "INSERT INTO batch_answers (batch_id, cut, raw) VALUES (10000, 0, '')")
	columns := []string{"seq", "received", "method", "path", "raw_query", "remote", "verified", "reason", "scheme", "secret_name", "body_authenticated", "single", "anomaly", "header", "body"}
	delivery := func(seq int64, body any) []any {
		return []any{seq, int64(1), "POST", []byte("/"), []byte{}, "", "no", "", "", "", int64(1), int64(0), "", []byte("ab"), body}
	}
	if _, err := conn.CopyFrom(t.Context(), pgx.Identifier{"deliveries"}, columns, pgx.CopyFromRows([][]any{delivery(1, []byte("body")), delivery(2, []byte{}), delivery(3, nil)})); err != nil {
		t.Fatal(err)
	}
	exec(t, conn, "DELETE FROM deliveries WHERE seq = 1")
	if n, bytes, records := number(t, conn, "SELECT COUNT(*) FROM deliveries WHERE body IS NOT NULL"), number(t, conn, parts.UnverifiedBytes), number(t, conn, "SELECT COUNT(*) FROM delivery_bytes"); n != 1 || bytes != 3 || records != 1 { // header and path
		t.Errorf("%d bodies of %d bytes, %d records of them", n, bytes, records)
	}
}

// pg_dump and others that read the tables for long do not keep partitions from being
// added, nor rows from being dropped.
func TestPartitionsWhileTablesAreRead(t *testing.T) {
	of, ok := pgtest.URL(t)
	if !ok {
		return
	}
	conn, schema := connectSchema(t, of)
	if _, _, err := openSchema(t.Context(), conn, "place", schema, false, false); err != nil {
		t.Fatal(err)
	}
	reader, _ := connectSchema(t, of)
	exec(t, reader, "BEGIN")
	exec(t, reader, "LOCK TABLE delivery_bytes IN ACCESS SHARE MODE")
	addDeliveries(t, conn, 1, 65536, 131072, 131073)
	const parts = "SELECT COUNT(*) FROM pg_inherits WHERE inhparent = 'delivery_bytes'::regclass"
	if n := number(t, conn, parts); n != 4 {
		t.Errorf("%d partitions", n)
	}
	if all := dropBytes(t, conn, 100000, 100000); !all[0].Dropped || !all[1].Dropped || all[2].Dropped {
		t.Errorf("dropped %+v", all)
	}
	if n, left := number(t, conn, parts), number(t, conn, "SELECT COUNT(*) FROM delivery_bytes"); n != 4 || left != 2 {
		t.Errorf("%d partitions, %d deliveries with bodies", n, left)
	}
	exec(t, reader, "ROLLBACK")
	if all := dropBytes(t, conn, 100000, 100000); !all[0].Dropped || all[0].Items != 0 {
		t.Errorf("dropped %+v", all)
	}
	if n := number(t, conn, parts); n != 2 {
		t.Errorf("%d partitions", n)
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
	// The others stay, so that many of them can be compared at once.
	var many strings.Builder
	for r := rune(1); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) {
			many.WriteRune(r)
		}
		if r%4096 == 0 || r == utf8.MaxRune {
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
