package sqlite

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
)

// filesOf returns the files of a folder with their sizes and times.
func filesOf(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Name()+" "+info.ModTime().String())
	}
	return all
}

// events counts the events of a store.
func events(t *testing.T, d *store.DB) (n int) {
	t.Helper()
	for _, err := range d.Events(t.Context(), inbox.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// Who only reads makes no store and changes none.
func TestOpenedForReadingNothingIsWritten(t *testing.T) {
	ctx := t.Context()
	folder := t.TempDir()
	path := filepath.Join(folder, "waybill.db")
	if d, err := Open(ctx, path, store.Options{ReadOnly: true}); err == nil {
		t.Error("a store that is not there was opened", d.Close())
	}
	d, err := Open(ctx, path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	before := filesOf(t, folder)
	if d, err = Open(ctx, path, store.Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	if n := events(t, d); n != 0 {
		t.Errorf("%d events in a new store", n)
	}
	if d.Writable() == nil {
		t.Error("a store that is only read says that it can be written")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if after := filesOf(t, folder); !slices.Equal(before, after) {
		t.Errorf("files before %q, after %q", before, after)
	}
}
