package sqlite

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
)

// stageAll opens a run of an input.
func stageAll(t *testing.T, d *store.DB, size int, entries []ledger.Entry) ledger.Run {
	t.Helper()
	s, err := d.Stage(t.Context(), ledger.Plan{Files: []string{"f.csv"}, Mode: ledger.Async, BatchSize: size})
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

// Whoever prunes has a store that a file which is sent again every day makes no larger,
// whatever the order of its rows.
func TestPrunedRerunsTakeNoRoom(t *testing.T) {
	const rows, reruns = 2000, 5
	path := filepath.Join(t.TempDir(), "waybill.db")
	d := opened(t, path)
	input := inputOf(rows)
	stageAll(t, d, 1000, input)
	if err := acceptAll(t, d, 1); err != nil {
		t.Fatal(err)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(rows, func(i, j int) { input[i], input[j] = input[j], input[i] })
	var sizes []int64
	for range 3 {
		for range reruns {
			stageAll(t, d, 1000, input)
		}
		sizes = append(sizes, bytesOf(t, d))
		if err := d.Close(); err != nil { // its runs are another process's from here on
			t.Fatal(err)
		}
		d = opened(t, path)
		p, err := d.PruneRuns(t.Context(), time.Now().Add(time.Hour))
		if err != nil || p.Unfinished > 0 {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	if grown := sizes[2] - sizes[1]; grown > 0 {
		t.Errorf("%v bytes: %d runs after a prune make the file grow by %d; want 0", sizes, reruns, grown)
	}
	for _, table := range []string{"run_known_rows", "run_batches", "batches WHERE answer IS NOT NULL"} {
		var n int
		if ask(t, d, []any{&n}, "SELECT COUNT(*) FROM "+table); n > 0 {
			t.Errorf("%d lines in %s are left; want none", n, table)
		}
	}
	var runs int
	if ask(t, d, []any{&runs}, "SELECT COUNT(*) FROM runs"); runs != 1 {
		t.Errorf("%d runs; want the one that has the rows", runs)
	}
}

// acceptAll accepts all batches of a run.
func acceptAll(t *testing.T, d *store.DB, run int64) error {
	t.Helper()
	for {
		batch, err := d.Claim(t.Context(), run, 1000, 1)
		if err != nil || len(batch) == 0 {
			return err
		}
		for _, b := range batch {
			if err := d.RecordOutcomes(t.Context(), []ledger.BatchOutcome{{Batch: b.ID, State: ledger.Accepted, HTTPStatus: 200, Answer: []byte("{}"), Began: time.Now()}}); err != nil {
				return err
			}
		}
	}
}
