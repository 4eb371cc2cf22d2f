package sqlite

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
)

// stageAll opens a run of an input.
func stageAll(t *testing.T, d *store.DB, size int, entries []ledger.Entry) ledger.Run {
	t.Helper()
	s, err := d.Stage(t.Context(), ledger.Plan{Account: "a", Files: []string{"f.csv"}, Mode: ledger.Async, BatchSize: size})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	run, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// bytesOf is the size of a store's file with all that is in its log.
func bytesOf(t *testing.T, d *store.DB) int64 {
	t.Helper()
	direct(t, d, "PRAGMA wal_checkpoint(TRUNCATE)")
	info, err := os.Stat(d.Place())
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A file that is sent again every day, with the same rows, does not make the
// store grow by its size.
func TestKnownRowsTakeNoRoom(t *testing.T) {
	const rows, reruns, most = 12_000, 10, 20_000
	for name, size := range map[string]int{"batches of 1000": 1000, "batches of 40": 40} {
		t.Run(name, func(t *testing.T) {
			d := opened(t, filepath.Join(t.TempDir(), "waybill.db"))
			input := inputOf(rows)
			stageAll(t, d, size, input)
			before := bytesOf(t, d)
			var last ledger.Run
			for range reruns {
				last = stageAll(t, d, size, input)
				if last.Tally != (ledger.Tally{Known: rows, KnownPending: rows}) {
					t.Fatalf("%+v", last.Tally)
				}
			}
			if each := (bytesOf(t, d) - before) / reruns; each >= most {
				t.Errorf("a run of known rows takes %d bytes; want less than %d", each, most)
			}
			n := 0
			for row, err := range d.Rows(t.Context(), last.ID) {
				if err != nil {
					t.Fatal(err)
				}
				if row.Item != input[n].Item || row.Line != input[n].Line || row.File != "f.csv" || !row.Known || row.Repeat {
					t.Fatalf("record %d: %+v", n, row)
				}
				n++
			}
			if n != rows {
				t.Errorf("%d records; want %d", n, rows)
			}
		})
	}
}

// Known rows that an older store holds one by one are shown as they were.
func TestKnownRowsOfAnOlderStore(t *testing.T) {
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "waybill.db")
	makeOlder(t, path, steps[:4])
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `
INSERT INTO runs VALUES (2, 1, 'open', '', 2000, '["a.csv","b.csv"]', 'v2', 1000, 3, 10, 6, 2, 0, 0, 1, 0, 0, 0);
UPDATE counters SET value = 2 WHERE name = 'run'; UPDATE counters SET value = 30 WHERE name = 'row';
INSERT INTO batches VALUES (3, 2, 'accepted', 6, 4, 9, NULL, 0, 0, 0, 0, '');
INSERT INTO rows VALUES (4, 1, 'R4', 'N4', '', 3, 0, 2, NULL, NULL), (5, 1, 'R5', 'N5', '', 3, 0, 3, NULL, NULL), (6, 1, 'R6', 'N6', '', 3, 0, 4, NULL, NULL),
	(7, 1, 'R7', 'N7', '', 3, 0, 5, NULL, NULL), (8, 1, 'R8', 'N8', '', 3, 0, 6, NULL, NULL), (9, 1, 'R9', 'N9', '', 3, 0, 7, NULL, NULL);
INSERT INTO runs VALUES (3, 1, 'open', '', 3000, '["a.csv","b.csv"]', 'v2', 1000, 11, 18, 0, 8, 0, 0, 1, 0, 0, 0);
UPDATE counters SET value = 3 WHERE name = 'run';
INSERT INTO known VALUES (3, 11, 4, 0, 2, NULL), (3, 12, 5, 0, 3, NULL), (3, 13, 6, 0, 5, NULL), (3, 14, 7, 0, 6, 'dhl'),
	(3, 15, 9, 1, 2, NULL), (3, 16, 8, 1, 3, NULL), (3, 17, 1, 1, 4, NULL), (3, 18, 2, 1, 5, NULL);
INSERT INTO parts VALUES (3, 1, 1), (3, 2, 1), (3, 3, 6);`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	d := opened(t, path)
	var got []string
	for r, err := range d.Rows(t.Context(), 3) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(r.File, ":", r.Line, " ", r.Item.ReferID, " ", r.Known))
	}
	want := []string{
		"a.csv:2 R4 true", "a.csv:3 R5 true", "a.csv:5 R6 true", "a.csv:6 R7 true",
		"b.csv:2 R9 true", "b.csv:3 R8 true", "b.csv:4 R1 true", "b.csv:5 R2 true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
	var ranges int
	ask(t, d, []any{&ranges}, "SELECT COUNT(*) FROM run_known_rows")
	if ranges != 6 {
		t.Errorf("%d ranges, %v; want 6", ranges, err)
	}
	if c, err := d.CountRows(t.Context(), 3); err != nil || c != (ledger.Counts{Accepted: 7, Pending: 1}) {
		t.Errorf("%+v, %v", c, err)
	}
}
