//go:build !windows

package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/waybill-cli/waybill/internal/store"
)

// readOnly opens the store as one that the user can't write, whoever runs the
// tests.
func readOnly(t *testing.T, path string) (*store.DB, error) {
	t.Helper()
	f, err := openReadOnly(t.Context(), path)
	if err != nil {
		return nil, err
	}
	d := store.New(f.engine(""))
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, nil
}

// A store that the user can't write shows what others write to it, with a log or
// after its end, and takes nothing.
func TestReadOnlyStoreShowsWhatOthersWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waybill.db")
	first := opened(t, path)
	reader, err := readOnly(t, path)
	if err != nil {
		t.Fatal(err)
	}
	if n := events(t, reader); n != 0 {
		t.Errorf("%d events in a new store", n)
	}
	if err := putOne(t, first); err != nil {
		t.Fatal(err)
	}
	if n := events(t, reader); n != 1 {
		t.Errorf("%d events while another process has the log open; want 1", n)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if n := events(t, reader); n != 1 {
		t.Errorf("%d events without a log; want 1", n)
	}
	var refused *store.Error
	if err := putOne(t, reader); !errors.Is(err, store.ErrReadOnly) || !errors.As(err, &refused) || refused.Hint() == "" {
		t.Errorf("a delivery is taken: %v; want %v", err, store.ErrReadOnly)
	}
	if err := reader.Writable(); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("writable: %v; want %v", err, store.ErrReadOnly)
	}
	for _, beside := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + beside); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a reader left %s: %v", beside, err)
		}
	}
}

// What is read while the file is written without a log that readers see is not
// taken for one state.
func TestReadOnlyStoreWrittenMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waybill.db")
	if err := opened(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	reader, err := readOnly(t, path)
	if err != nil {
		t.Fatal(err)
	}
	err = readUnchanged(path, func() error {
		writer := opened(t, path)
		return errors.Join(putOne(t, writer), writer.Close())
	})
	if !errors.Is(err, store.ErrChanged) {
		t.Errorf("%v; want %v", err, store.ErrChanged)
	}
	if n := events(t, reader); n != 1 {
		t.Errorf("%d events when it is read again; want 1", n)
	}
}

// What could be read only after something was written is refused, with what to
// do.
func TestReadOnlyStoreThatCannotBeRead(t *testing.T) {
	for _, tt := range []struct {
		name string
		lay  func(path string) error
		want error
	}{
		{"an empty file", func(path string) error { return os.WriteFile(path, nil, 0o600) }, store.ErrNotThere},
		{"of another program", func(path string) error { return os.WriteFile(path, []byte("text, and no database"), 0o600) }, store.ErrNotStore},
		{"of a newer version", func(path string) error { return makeAltered(t.Context(), path, "PRAGMA user_version = 9") }, store.ErrTooNew},
		{"a log without its index", func(path string) error {
			return errors.Join(makeAltered(t.Context(), path, ""), os.WriteFile(path+"-wal", []byte("x"), 0o600))
		}, store.ErrNoPlace},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "waybill.db")
			if err := tt.lay(path); err != nil {
				t.Fatal(err)
			}
			_, err := readOnly(t, path)
			var refused *store.Error
			if !errors.Is(err, tt.want) || !errors.As(err, &refused) || refused.Hint() == "" {
				t.Errorf("%v; want %v, with a hint", err, tt.want)
			}
		})
	}
}
