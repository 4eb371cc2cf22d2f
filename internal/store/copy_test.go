package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/postgres"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// rowsOfEach is how many rows fillAll puts into each table.
const rowsOfEach = 100

// opened opens the store in a file, which it fills with rows that no command would
// write, but that have every kind of value.
func opened(t *testing.T, path string) *store.DB {
	t.Helper()
	d, err := sqlite.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// direct gives the file of a store to use.
func direct(t *testing.T, path string, use func(*sql.DB)) {
	t.Helper()
	pool, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	use(pool)
}

func exec(t *testing.T, on *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := on.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// fillAll puts rows into each table of a file.
func fillAll(t *testing.T, path string) {
	t.Helper()
	direct(t, path, func(on *sql.DB) {
		exec(t, on, "DELETE FROM counters WHERE name NOT IN ('schema', 'identity')")
		for _, table := range store.CopiedTables() {
			columns, types := columnsOf(t, on, table)
			tx, err := on.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for n := range rowsOfEach {
				args := make([]any, len(columns))
				for i := range columns {
					args[i] = valueFor(table, columns[i], types[i], n)
				}
				if _, err := tx.ExecContext(t.Context(), "INSERT INTO "+table+" VALUES (?"+strings.Repeat(",?", len(columns)-1)+")", args...); err != nil {
					t.Fatalf("%s: %v", table, err)
				}
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		exec(t, on, "UPDATE sqlite_sequence SET seq = 999999 WHERE name = 'outbox'")
	})
}

func columnsOf(t *testing.T, on *sql.DB, table string) (names, types []string) {
	t.Helper()
	rows, err := on.QueryContext(t.Context(), "SELECT name, type FROM pragma_table_info(?)", table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			t.Fatal(err)
		}
		names, types = append(names, name), append(types, kind)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names, types
}

// valueFor returns a value for the n-th row of a table. Numbers have gaps.
func valueFor(table, column, kind string, n int) any {
	text := fmt.Sprintf("%s %d é\u202e🚚", column, n)
	long := strings.Repeat(text, 1+n%7*100)
	switch {
	case table == "deliveries" && n%3 == 0 && column == "header":
		return []byte{}
	case table == "deliveries" && n%3 == 0 && column == "body", slices.Contains([]string{"reason", "state", "owner", "event_key"}, column) && table != "runs" && n%5 == 0 && nullable(table, column):
		return nil
	case kind == "TEXT" && n%4 == 0 && !slices.Contains([]string{"name", "refer_id", "shape"}, column) &&
		!slices.Contains([]string{"numbers", "outbox_numbers", "tracking_counts", "statuses"}, table):
		return ""
	case kind == "TEXT":
		return text
	case kind == "BLOB" && column != "print" && column != "hash" && n%4 == 1:
		return []byte{}
	case kind == "BLOB":
		return append([]byte{0, 0xff, byte(n), byte(n >> 8)}, long...)
	case slices.Contains([]string{"id", "seq", "batch_id", "pos", "row_id", "delivery", "refused", "entry"}, column):
		return 1 + int64(n)*3000
	case slices.Contains([]string{"run_id", "sink"}, column) && n%2 == 0:
		return -int64(n) << 40
	}
	return int64(n)
}

func nullable(table, column string) bool {
	return slices.Contains([]string{"rows.reason", "rows.state", "batches.owner", "events.event_key"}, table+"."+column)
}

// dump returns all rows of a file, as texts.
func dump(t *testing.T, path string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	direct(t, path, func(on *sql.DB) {
		for _, table := range append(store.CopiedTables(), "sqlite_sequence") {
			names, _ := columnsOf(t, on, table)
			where := ""
			switch table {
			case "sqlite_sequence":
				names = []string{"name", "seq"}
			case "counters":
				where = " WHERE name <> 'identity'" // each store has its own
			}
			rows, err := on.QueryContext(t.Context(), "SELECT quote("+strings.Join(names, ") || ',' || quote(")+") FROM "+table+where)
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
				var line string
				if err := rows.Scan(&line); err != nil {
					t.Fatal(err)
				}
				all[table] = append(all[table], line)
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil { //nolint:sqlclosecheck // in a loop
				t.Fatal(err)
			}
			slices.Sort(all[table])
		}
	})
	return all
}

// wantSame compares two files.
func wantSame(t *testing.T, a, b string) {
	t.Helper()
	one, two := dump(t, a), dump(t, b)
	for table, rows := range one {
		if !slices.Equal(rows, two[table]) {
			t.Errorf("table %s: %d rows and %d differ: %.200s, %.200s", table, len(rows), len(two[table]), fmt.Sprint(rows), fmt.Sprint(two[table]))
		}
	}
}

// copyAll copies, and ends it after so many steps if steps is not negative.
func copyAll(t *testing.T, from, to *store.DB, steps int) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := store.Copy(ctx, from, to, store.CopyProgress{Begin: func(int64) {}, Add: func(int64) {
		if steps--; steps == 0 {
			cancel()
		}
	}})
	return err
}

// into copies a store to a file.
func into(t *testing.T, from *store.DB, path string) {
	t.Helper()
	to, finish, err := sqlite.OpenCopy(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(copyAll(t, from, to, -1), finish()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := sqlite.OpenCopy(t.Context(), path); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("once more: %v; want %v", err, store.ErrNotEmpty)
	}
	if left, err := filepath.Glob(path + "?*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A copy that ended before it was complete has no store's name, and starts anew once it was
// removed.
func TestCopyOfAFile(t *testing.T) {
	folder := t.TempDir()
	path, target := filepath.Join(folder, "from.db"), filepath.Join(folder, "to.db")
	from := opened(t, path)
	fillAll(t, path)
	before := dump(t, path)
	to, _, err := sqlite.OpenCopy(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	if err := copyAll(t, from, to, 20); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a copy is there: %v", err)
	}
	if _, _, err := sqlite.OpenCopy(t.Context(), target); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("beside half a copy: %v; want %v", err, store.ErrNotEmpty)
	}
	left, err := filepath.Glob(target + ".copying*")
	if err != nil || len(left) == 0 {
		t.Fatal(left, err)
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	into(t, from, target)
	wantSame(t, path, target)
	if after := dump(t, path); len(after) != len(before) || !slices.Equal(after["rows"], before["rows"]) {
		t.Error("the source was changed")
	}
}

// Every table is copied, or is the one that says who uses the store.
func TestEveryTableIsCopied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waybill.db")
	opened(t, path)
	direct(t, path, func(on *sql.DB) {
		var names string
		if err := on.QueryRowContext(t.Context(), `SELECT group_concat(name) FROM (SELECT name FROM sqlite_master
			WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'listeners' ORDER BY name)`).Scan(&names); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.Sorted(slices.Values(store.CopiedTables())), ","); got != names {
			t.Errorf("copied: %s\nthere are: %s", got, names)
		}
	})
}

// Nobody writes to the source meanwhile, and it is not copied while it is used.
func TestCopyOfAStoreInUse(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "from.db")
	from, other := opened(t, path), opened(t, path)
	staging, err := other.Stage(t.Context(), ledger.Plan{Files: []string{"f"}, Mode: ledger.Async, BatchSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	to, _, err := sqlite.OpenCopy(t.Context(), filepath.Join(folder, "to.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if err := copyAll(t, from, to, -1); !errors.Is(err, store.ErrInUse) {
		t.Errorf("%v; want %v", err, store.ErrInUse)
	}
	if err := errors.Join(staging.Discard(t.Context()), other.Close()); err != nil {
		t.Fatal(err)
	}
	if err := copyAll(t, from, to, -1); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "there.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := sqlite.OpenCopy(t.Context(), filepath.Join(folder, "there.db")); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("%v; want %v", err, store.ErrNotEmpty)
	}
}

// serverAt opens the store at a URL.
func serverAt(t *testing.T, url string) (*store.DB, error) {
	t.Helper()
	target, err := postgres.Parse(url, postgres.ParseOptions{Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	d, err := postgres.Open(t.Context(), target, postgres.Options{})
	if err == nil {
		t.Cleanup(func() { _ = d.Close() })
	}
	return d, err
}

// There and back, all is the same. A schema that a copy did not fill is opened by nobody.
func TestCopyToAServerAndBack(t *testing.T) {
	url, ok := pgtest.URL(t)
	if !ok {
		return
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "from.db")
	from := opened(t, path)
	fillAll(t, path)
	for _, steps := range []int{9, -1} {
		to, err := serverAt(t, url)
		if err != nil {
			t.Fatal(err)
		}
		if err := copyAll(t, from, to, steps); (err == nil) != (steps < 0) || err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("%d steps: %v", steps, err)
		}
		if err := to.Close(); err != nil {
			t.Fatal(err)
		}
		if steps < 0 {
			break
		}
		if _, err := serverAt(t, url); !errors.Is(err, store.ErrUnfinished) {
			t.Errorf("half a copy: %v; want %v", err, store.ErrUnfinished)
		}
		conn := pgtest.Connect(t, url)
		if _, err := conn.Exec(t.Context(), "DO $$ BEGIN EXECUTE format('DROP SCHEMA %I CASCADE', current_setting('search_path')); END $$"); err != nil {
			t.Fatal(err)
		}
	}
	to, err := serverAt(t, url)
	if err != nil {
		t.Fatal(err)
	}
	if err := copyAll(t, from, to, -1); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("once more: %v; want %v", err, store.ErrNotEmpty)
	}
	back := filepath.Join(folder, "back.db")
	into(t, to, back)
	wantSame(t, path, back)

	// The server counts on from there.
	conn := pgtest.Connect(t, url)
	var seq int64
	if err := conn.QueryRow(t.Context(), "INSERT INTO outbox SELECT nextval(pg_get_serial_sequence('outbox', 'seq')), -1, 0, 0, 0, '', 0, 0, 0, 0, 0, 0, '', '' RETURNING seq").Scan(&seq); err != nil {
		t.Fatal(err)
	}
	if seq != 1_000_000 {
		t.Errorf("next number %d; want 1000000", seq)
	}
}
