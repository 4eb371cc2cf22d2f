package postgres

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// The files of a server's tables hold nothing of what was erased, dead rows included.
// Where a role does not own them, it gets the commands for their owner.
func TestNothingOfWhatWasErasedIsLeft(t *testing.T) {
	t.Parallel()
	s, url, ok := started(t)
	if !ok {
		return
	}
	const ref, number = "ORD-ERASE-77", "1Z999AA10123456784"
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	d, err := openAt(t, url, Options{})
	must(err)
	defer d.Close()
	staging, err := d.Stage(ctx, ledger.Plan{Files: []string{"f"}, Mode: ledger.Async, BatchSize: 10})
	must(err)
	_, err = staging.Add(ctx, []ledger.Entry{{Line: 2, Item: tracking.Item{ReferID: ref, Number: number}}, {Line: 3, Item: tracking.Item{ReferID: "ORD-2", Number: "1ZOTHER"}}})
	must(err)
	_, err = staging.Open(ctx)
	must(err)
	for range 3 {
		seen := ledger.NewSighting(tracking.Tracking{Report: tracking.Report{Status: "1"}},
			ledger.Processed, tracking.Key{ReferID: ref, Number: number}, time.Now(), ledger.FromQuery)
		must(d.Record(ctx, []ledger.RecordedAnswer{{ReferID: ref, Asked: time.Now(), Seen: []ledger.Sighting{seen}, Raw: fmt.Appendf(nil, `{"trackingNumber":%q}`, number)}}))
	}
	put := inbox.Delivery{
		ReceivedAt: time.Now(), Path: "/" + number, Verified: inbox.Yes, Header: []webhook.Field{{Name: "X-Number", Value: number}},
		Body: fmt.Appendf(nil, `[{"eventId":"e1","data":{"trackingNumber":%q}},{"eventId":"e2","data":{"trackingNumber":"1ZOTHER"}}]`, number),
	}
	_, err = d.Put(ctx, put, inbox.Prepare(put, webhook.Decode(put.Body)))
	must(err)
	if !tablesHold(t, s, url, number) {
		t.Fatal("the number is not there before")
	}
	reader := pgtest.Connect(t, url)
	exec(t, reader, "SET application_name TO 'a report'")
	exec(t, reader, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	exec(t, reader, "SELECT 1")
	_, err = d.Erase(ctx, []tracking.Query{{ReferID: ref}}, ledger.EraseOptions{})
	must(err)
	left, err := d.Compact(ctx)
	must(err)
	words := []string{fmt.Sprintf(`session %d ("a report", user waybill, idle in transaction)`, reader.PgConn().PID()), `."rows"`, `."deliver`}
	if !containsAll(strings.Join(left, "\n"), words) {
		t.Errorf("left while another sees what was erased: %q; want %q", left, words)
	}
	exec(t, reader, "COMMIT")
	left, err = d.Compact(ctx)
	must(err)
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for _, name := range []string{ref, number} {
		if tablesHold(t, s, url, name) {
			t.Errorf("%s is still there", name)
		}
	}
	if !tablesHold(t, s, url, "1ZOTHER") {
		t.Error("the other is gone too")
	}
	must(d.Check(ctx))
	must(d.Close())

	schema := parsed(t, url).schema
	must(s.Ask(ctx, "CREATE ROLE app LOGIN", nil))
	owner := pgtest.Connect(t, url)
	for _, query := range []string{
		"GRANT USAGE ON SCHEMA " + schema + " TO app", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + schema + " TO app",
		"GRANT USAGE ON ALL SEQUENCES IN SCHEMA " + schema + " TO app",
	} {
		exec(t, owner, query)
	}
	app, err := openAt(t, strings.Replace(url, "://waybill@", "://app@", 1), Options{})
	must(err)
	defer func() { must(app.Close()) }()
	_, err = app.Erase(ctx, []tracking.Query{{ReferID: "ORD-2"}}, ledger.EraseOptions{})
	must(err)
	left, err = app.Compact(ctx)
	must(err)
	if want := fmt.Sprintf(`VACUUM (FULL, ANALYZE) %q."rows"`, schema); !strings.Contains(strings.Join(left, "\n"), want) {
		t.Errorf("left: %v; want %s among them", left, want)
	}
}

// The tables of a large store take longer to write anew than other statements may last.
// The server is the test's own: transactions of other tests would keep what was erased.
func TestCompactTakesItsTime(t *testing.T) {
	t.Parallel()
	_, url, ok := started(t)
	if !ok {
		return
	}
	conn := pgtest.Connect(t, url)
	exec(t, conn, `CREATE FUNCTION unlimited(id BIGINT) RETURNS BIGINT LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
		IF current_setting('statement_timeout') <> '0' THEN
			RAISE EXCEPTION 'statement_timeout is %', current_setting('statement_timeout');
		END IF;
		RETURN id;
	END $$`)
	exec(t, conn, "INSERT INTO outbox_numbers (sink, folded, entry) VALUES (1, '', 0)")
	exec(t, conn, "CREATE INDEX outbox_numbers_rebuilt ON outbox_numbers (unlimited(sink))")
	if left, err := newTestEngine(t, url).compact(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// tablesHold reports whether a text is in a file of a table of the schema.
func tablesHold(t *testing.T, s *pgtest.Server, url, text string) bool {
	t.Helper()
	if err := s.Ask(t.Context(), "CHECKPOINT", nil); err != nil {
		t.Fatal(err)
	}
	conn := pgtest.Connect(t, url)
	rows, _ := conn.Query(t.Context(), `SELECT pg_relation_filepath(f.oid) FROM pg_class c, LATERAL (SELECT c.oid UNION ALL SELECT c.reltoastrelid WHERE c.reltoastrelid <> 0) f
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'i')`)
	paths, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(filepath.Join(s.Folder, "data", path))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(text)) {
			return true
		}
	}
	return false
}
