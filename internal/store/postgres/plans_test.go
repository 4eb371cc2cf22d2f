package postgres

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// recorder records queries. It is a [pgx.QueryTracer].
type recorder struct {
	mu  sync.Mutex
	all []pgx.TraceQueryStartData
}

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, q)
	return ctx
}

func (r *recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// take returns what was recorded since the last call.
func (r *recorder) take() []pgx.TraceQueryStartData {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

// plannedSQL makes 50,000 rows in 50 batches, of which 10 are pending and some rows
// rejected, with sightings of most of them and 1,000 of other numbers.
const plannedSQL = `
INSERT INTO runs (id, state, owner, created, files, mode, batch_size, first_row, last_row, new_rows, known_rows, known_pending, known_open, other_carrier, repeats, requests, last_sent)
	SELECT i, 'open', '', 1, '["a.csv"]', 'v2', 1000, i * 10000 - 9999, i * 10000, 10000, 0, 0, 0, 0, 0, 10, 1 FROM generate_series(1, 5) i;
INSERT INTO batches (id, run_id, state, rows, first_row, last_row, claimed, began, took, http_status, reason)
	SELECT i, (i + 9) / 10, CASE WHEN i <= 40 THEN 'accepted' ELSE 'pending' END, 1000, i * 1000 - 999, i * 1000, 0, 1, 1, 200, '' FROM generate_series(1, 50) i;
INSERT INTO run_batches (run_id, batch_id, rows) SELECT run_id, id, rows FROM batches;
INSERT INTO rows (id, refer_id, number, carrier, batch_id, file, line, state, reason)
	SELECT i, 'R' || lpad(i::text, 6, '0'), 'N' || i, '', (i + 999) / 1000, 0, i, CASE i % 500 WHEN 7 THEN 'rejected' END, CASE i % 500 WHEN 7 THEN 'bad' END FROM generate_series(1, 50000) i;
INSERT INTO numbers (folded, row_id) SELECT number, id FROM rows;
INSERT INTO statuses (id, phase, status, status_label, status_track) VALUES (1, 'processed', '1', 'A', 'a');
INSERT INTO sightings (id, refer_id, number, folded, status_id, phase, status, status_label, status_track, latest_event, latest_time, carrier, seen, source, router_id, as_of, event, shared, checkpoint, updated)
	SELECT i, CASE WHEN i > 0 THEN 'R' || lpad(i::text, 6, '0') ELSE '' END, 'N' || i, 'N' || i, 1, 'processed', '1', 'A', 'a', repeat('x', 200), '', 'ups', 50000 + i % 1000, 'event', 'r' || i, 1, 0, 0, 1, 1
	FROM generate_series(-1000, 40000) i WHERE i <> 0 AND i % 500 <> 7;
INSERT INTO tracking_counts (run_id, status_id, carrier, transit_days, trackings)
	SELECT i, CASE WHEN i < 5 THEN 1 ELSE 0 END, 'ups', -1, 10000 FROM generate_series(1, 5) i;
UPDATE counters SET value = CASE name WHEN 'run' THEN 5 ELSE 50000 END WHERE name IN ('run', 'row', 'indexed');`

// unindexedSQL makes the rows of plannedSQL as they are when only they were stored.
const unindexedSQL = plannedSQL + `
TRUNCATE numbers, sightings;
UPDATE tracking_counts SET status_id = 0, carrier = '';
UPDATE counters SET value = 0 WHERE name = 'indexed';`

// openPlanned opens a store after these statements, and returns what it asks from then on
// and a connection to explain that.
func openPlanned(t *testing.T, o Options, statements ...string) (*store.DB, *recorder, *pgx.Conn) {
	url, ok := pgtest.URL(t)
	if !ok {
		return nil, nil, nil
	}
	target, queries := parsed(t, url), &recorder{}
	d, err := Open(t.Context(), target, Options{}) // makes the tables
	if err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
	conn := pgtest.Connect(t, url)
	for _, query := range statements {
		if _, err := conn.PgConn().Exec(t.Context(), query).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	target.config.Tracer = queries
	if d, err = Open(t.Context(), target, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	queries.take()
	return d, queries, conn
}

// explain returns the plan that an EXPLAIN prints.
func explain(t *testing.T, conn *pgx.Conn, query string, args ...any) string {
	lines, err := conn.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatal(query, err)
	}
	all, err := pgx.CollectRows(lines, pgx.RowTo[string])
	if err != nil {
		t.Fatal(query, err)
	}
	return strings.Join(all, "\n")
}

// explainGeneric runs a query as a server does that has planned it for any arguments, and
// returns that plan with the numbers of rows.
func explainGeneric(t *testing.T, conn *pgx.Conn, q pgx.TraceQueryStartData) string {
	exec(t, conn, "SET plan_cache_mode = force_generic_plan")
	exec(t, conn, "PREPARE planned AS "+q.SQL)
	defer exec(t, conn, "DEALLOCATE planned")
	var args []string
	for _, arg := range q.Args {
		if _, ok := arg.(pgx.QueryResultFormatsByOID); !ok {
			args = append(args, fmt.Sprintf("'%v'", arg))
		}
	}
	execute := "EXECUTE planned"
	if args != nil {
		execute += "(" + strings.Join(args, ", ") + ")"
	}
	return explain(t, conn, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) "+execute)
}

// Nobody indexes rows for a role that may only read. A plan for any arguments takes the
// rows behind a page for few. TestPlansOfReads analyzes all tables, so this runs by itself.
func TestPlansOfUnindexedRows(t *testing.T) {
	d, queries, conn := openPlanned(t, Options{Options: store.Options{ReadOnly: true}}, unindexedSQL, "ANALYZE rows, batches")
	if d == nil {
		return
	}
	count := func() error {
		_, err := d.Count(t.Context(), ledger.Filter{})
		return err
	}
	page := func() error {
		for _, err := range d.Statuses(t.Context(), ledger.Filter{Limit: 20}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	scans := regexp.MustCompile(` on rows \w+ \(actual rows=([0-9.]+) loops=([0-9]+)\)`)
	for name, c := range map[string]struct {
		read func() error
		most float64 // rows
	}{"sums": {count, 50_000}, "a page": {page, 20}} {
		if err := c.read(); err != nil {
			t.Fatal(name, err)
		}
		read, last := 0.0, ""
		for _, q := range queries.take() {
			if !strings.HasPrefix(q.SQL, "SELECT") {
				continue
			}
			plan := explainGeneric(t, conn, q)
			for _, scan := range scans.FindAllStringSubmatch(plan, -1) {
				rows, _ := strconv.ParseFloat(scan[1], 64)
				loops, _ := strconv.ParseFloat(scan[2], 64)
				read, last = read+rows*loops, plan
			}
		}
		if read == 0 || read > c.most {
			t.Errorf("%s: read %.0f rows, want at most %.0f:\n%s", name, read, c.most, last)
		}
	}
}

// A file whose rows are known in another order names each alone. On a server that has found the table of them empty,
// and plans for that, a row is looked up there once, and not beside all others.
func TestKnownRowsAreLookedUpOnce(t *testing.T) {
	t.Parallel()
	const rows = 8000
	d, _, conn := openPlanned(t, Options{}, plannedSQL, "ANALYZE rows", "VACUUM run_known_rows")
	if d == nil {
		return
	}
	staging, err := d.Stage(t.Context(), ledger.Plan{Files: []string{"f"}, Mode: ledger.Async, BatchSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var all []ledger.Entry
	for n := range rows {
		id := n*7919%50_000 + 1
		all = append(all, ledger.Entry{Line: n + 2, Item: tracking.Item{ReferID: fmt.Sprintf("R%06d", id), Number: fmt.Sprint("N", id)}})
	}
	for part := range slices.Chunk(all, 500) {
		if _, err := staging.Add(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	run, err := staging.Open(t.Context())
	if err != nil || run.Tally.Known != rows {
		t.Fatalf("%d known rows, %v; want %d", run.Tally.Known, err, rows)
	}
	if err := d.Close(); err != nil { // the server counts what a session read when that ends
		t.Fatal(err)
	}
	read := int64(0)
	for end := time.Now().Add(time.Minute); read == 0 && time.Now().Before(end); {
		const query = "SELECT COALESCE(SUM(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE schemaname = current_schema AND relname = 'run_known_rows'"
		if err := conn.QueryRow(t.Context(), query).Scan(&read); err != nil {
			t.Fatal(err)
		}
	}
	if read == 0 || read > 4*rows {
		t.Errorf("%d entries read for %d rows, want some, and 4 a row at most", read, rows)
	}
}

func TestPlansOfReads(t *testing.T) {
	t.Parallel()
	d, queries, conn := openPlanned(t, Options{}, plannedSQL, "VACUUM ANALYZE")
	if d == nil {
		return
	}
	sort := func(o ledger.Order) func(*store.DB) error {
		return func(d *store.DB) error {
			for _, err := range d.Statuses(t.Context(), ledger.Filter{Order: o, Descending: true, Limit: 20}) {
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		read  func(*store.DB) error
		never []string // tables of which no query may read all
	}{
		"sums": {func(d *store.DB) error {
			_, err := d.Count(t.Context(), ledger.Filter{})
			return err
		}, []string{"rows"}},
		"known orders": {func(d *store.DB) error {
			_, err := d.KnownOrders(t.Context(), 5)
			return err
		}, []string{"rows"}},
		"by reference": {sort(ledger.ByReference), []string{"rows", "numbers", "sightings"}},
		"by number":    {sort(ledger.ByNumber), []string{"rows", "numbers", "sightings"}},
		"newest":       {sort(ledger.ByCreation), []string{"rows", "numbers", "sightings"}},
		"by update":    {sort(ledger.ByReceived), []string{"rows", "numbers"}},
		"by status":    {sort(ledger.ByStatus), []string{"rows", "numbers"}},
	} {
		queries.take()
		if err := c.read(d); err != nil {
			t.Fatal(name, err)
		}
		for _, q := range queries.take() {
			if !strings.HasPrefix(q.SQL, "SELECT") || strings.Contains(q.SQL, "FROM (VALUES") { // of so few rows, many by their ids take as long as all
				continue
			}
			plan := explain(t, conn, "EXPLAIN "+q.SQL, q.Args...)
			for _, table := range c.never {
				if strings.Contains(plan, "Seq Scan on "+table+" ") {
					t.Errorf("%s reads all of %s:\n%s\n%s", name, table, q.SQL, plan)
				}
			}
		}
	}
}

// A statement that was planned while its table was empty is planned anew once many rows were
// loaded: the first plan reads all of the table for a few rows.
func TestPlansOfAnEmptyTableDoNotLast(t *testing.T) {
	url, ok := shared(t)
	if !ok {
		return
	}
	x := begun(t, newTestEngine(t, url))
	values := "('', '')" + strings.Repeat(", ('', '')", 127)
	query := "SELECT r.id FROM (VALUES " + values + `) v (refer_id, number)
		JOIN rows r ON r.refer_id = v.refer_id AND r.number = v.number`
	for _, text := range []string{
		"SET LOCAL plan_cache_mode = force_generic_plan", "PREPARE lookup AS " + query, "EXECUTE lookup",
	} {
		if _, err := x.conn.ExecContext(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	const n = 20_000
	columns := []string{"id", "refer_id", "number", "carrier", "batch_id", "file", "line"}
	if err := load(t.Context(), x.conn, "rows", columns, n, func(args []any, i int) []any {
		return append(args, int64(i+1), strconv.Itoa(i), "", "", int64(1), int64(0), int64(0))
	}); err != nil {
		t.Fatal(err)
	}
	var plan string
	if err := native(x.conn, func(on *pgx.Conn) error {
		plan = explain(t, on, "EXPLAIN EXECUTE lookup", pgx.QueryExecModeSimpleProtocol)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(plan, "Nested Loop") || strings.Contains(plan, "Hash Join") {
		t.Errorf("128 of %d rows are looked up so:\n%s", n, plan)
	}
}
