package main_test

import (
	"os"
	"path/filepath"
	"testing"
)

// A ledger that was lost: with --check-first the service is asked for every
// row before, and only what it lacks is sent.
func TestTortureLostLedger(t *testing.T) {
	t.Parallel()
	n := either(300, 5000)
	w := newWorld(t, "--processing", "0s")
	all := pairs(n, parcels)
	first := rowsFile(t, w.home, "first.csv", all[:n-n/10])
	store := filepath.Join(w.home, "lost.db")
	if code, r := w.create(first, "--store", store); code != 0 {
		t.Fatalf("ended with %d: %+v", code, r)
	}
	if err := os.Remove(store); err != nil {
		t.Fatal(err)
	}
	rows := append([]pair{w.control("--store", store)}, all...)
	asked := w.stats("?rows=0")
	file := rowsFile(t, w.home, "all.csv", all)
	w.finish(3, "create", file, "-o", "json", "--store", store, "--check-first", "--settle", "0s", "--concurrency", "8")
	w.whole(rows, 0, "--store", store)
	if now := w.stats("?rows=0"); now.Created-asked.Created != n/10 {
		t.Errorf("%d rows were created; want %d", now.Created-asked.Created, n/10)
	}
}
