package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// opened opens a store and closes it with the test.
func opened(t *testing.T, path string) *store.DB {
	t.Helper()
	d, err := Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// direct runs a statement on the file of a store, beside the store.
func direct(t testing.TB, d *store.DB, query string, args ...any) {
	t.Helper()
	pool := connect(d.Place(), "busy_timeout(5000)")
	defer pool.Close()
	if _, err := pool.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

// ask scans what a query finds in the file of a store.
func ask(t testing.TB, d *store.DB, dest []any, query string) {
	t.Helper()
	pool := connect(d.Place(), "busy_timeout(5000)")
	defer pool.Close()
	if err := pool.QueryRowContext(t.Context(), query).Scan(dest...); err != nil {
		t.Fatal(err)
	}
}

// staged opens a run of n rows of one batch.
func staged(t *testing.T, d *store.DB, n int) ledger.Run {
	t.Helper()
	s, err := d.Stage(t.Context(), ledger.Plan{Files: []string{"f.csv"}, Mode: ledger.Async, BatchSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(t.Context(), inputOf(n)); err != nil {
		t.Fatal(err)
	}
	run, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// claimed claims the next batch of a run.
func claimed(t *testing.T, d *store.DB, run ledger.Run) ledger.Batch {
	t.Helper()
	batches, err := d.Claim(t.Context(), run.ID, 1, 1000)
	if err != nil || len(batches) != 1 {
		t.Fatalf("%d batches, %v; want 1", len(batches), err)
	}
	return batches[0]
}

// inputOf is an input of n records in lines that follow each other.
func inputOf(n int) []ledger.Entry {
	entries := make([]ledger.Entry, n)
	for i := range entries {
		entries[i] = ledger.Entry{Line: i + 2, Item: tracking.Item{ReferID: fmt.Sprintf("R%09d", i), Number: fmt.Sprintf("N%09d", i)}}
	}
	return entries
}

// Two processes that name one store by different paths know of each other.
func TestLinkToTheStoreIsTheStore(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "real", "waybill.db")
	d := opened(t, path)
	claimed(t, d, staged(t, d, 1))
	link := filepath.Join(folder, "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	other := opened(t, link)
	if n, err := other.Recover(t.Context()); err != nil || n != 0 {
		t.Errorf("%d rows of a living sender are unknown, %v", n, err)
	}
	if want, _ := filepath.EvalSymlinks(path); other.Place() != want {
		t.Errorf("path %s; want %s", other.Place(), want)
	}
}

// A link to a store that is not there yet makes it where the link leads.
func TestLinkToNoStore(t *testing.T) {
	folder := t.TempDir()
	link := filepath.Join(folder, "link.db")
	if err := os.Symlink(filepath.Join("real", "waybill.db"), link); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), link, store.Options{MustExist: true}); !errors.Is(err, store.ErrNotThere) {
		t.Errorf("%v; want %v", err, store.ErrNotThere)
	}
	d := opened(t, link)
	info, err := os.Stat(filepath.Join(folder, "real", "waybill.db"))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want a file for its user alone", info, err)
	}
	if filepath.Base(filepath.Dir(d.Place())) != "real" {
		t.Errorf("path %s", d.Place())
	}
}

// Links in a ring lead nowhere.
func TestLinksInARing(t *testing.T) {
	link := filepath.Join(t.TempDir(), "ring.db")
	if err := os.Symlink(link, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), link, store.Options{}); err == nil {
		t.Error("opened")
	}
}

// The names of a file that has several are in folders with logs and locks of
// their own.
func TestStoreWithSeveralNames(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "waybill.db")
	if err := opened(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, filepath.Join(folder, "second.db")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, filepath.Join(folder, "second.db")} {
		_, err := Open(t.Context(), name, store.Options{})
		var e *store.Error
		if !errors.As(err, &e) || !errors.Is(err, store.ErrLinked) || e.Hint() == "" {
			t.Errorf("%v; want %v with a hint", err, store.ErrLinked)
		}
	}
}
