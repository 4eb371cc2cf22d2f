package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/waybill-cli/waybill/internal/store"
)

// A store that another process is just making is no other program's, at any
// moment.
func TestStoreWhileItIsMade(t *testing.T) {
	for range 10 {
		path := filepath.Join(t.TempDir(), "new.db")
		if _, err := resolvePath(path, false); err != nil {
			t.Fatal(err)
		}
		var looking sync.WaitGroup
		for range 4 {
			looking.Go(func() {
				pool := connect(path, "busy_timeout(5)")
				defer pool.Close()
				for there := false; !there; {
					err := store.Retry(t.Context(), &connector{}, func(ctx context.Context) (err error) {
						there, err = isStore(ctx, pool, path)
						return err
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		d, err := Open(t.Context(), path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		looking.Wait()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// makeAltered makes a store and changes it as another build would have left it.
func makeAltered(ctx context.Context, path, alter string) error {
	d, err := Open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	if err := d.Close(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, alter)
	return errors.Join(err, db.Close())
}

// A store with other tables, of a newer waybill, of a development build or of another
// program, is left as it is, whoever opens it.
func TestStoresWithOtherTablesAreLeftAlone(t *testing.T) {
	for _, tt := range []struct {
		name, alter string
		want        error
	}{
		{"newer", "PRAGMA user_version = 2; UPDATE counters SET value = 7 WHERE name = 'schema'", store.ErrTooNew},
		{"of an earlier development build", "PRAGMA user_version = 8; DELETE FROM counters WHERE name = 'schema'", store.ErrDevelopment},
		{"of the first one", "DELETE FROM counters WHERE name = 'schema'", store.ErrDevelopment},
		{"of another build before the release", "UPDATE counters SET value = value - 1 WHERE name = 'schema'", store.ErrDevelopment},
		{"of another program, with tables", "PRAGMA application_id = 0; PRAGMA user_version = 0", store.ErrNotStore},
		{"of another program, with a version", "PRAGMA application_id = 0", store.ErrNotStore},
		{"of another program, with a name", "PRAGMA application_id = 7; PRAGMA user_version = 0", store.ErrNotStore},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "waybill.db")
			if err := makeAltered(t.Context(), path, tt.alter); err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range []store.Options{{}, {MustExist: true}, {ReadOnly: true}} {
				_, err := Open(t.Context(), path, o)
				if failed, ok := errors.AsType[*store.Error](err); !ok || !errors.Is(failed.Kind, tt.want) || failed.Hint() == "" {
					t.Errorf("%+v: %v; want %v, with a hint", o, err, tt.want)
				}
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
				t.Errorf("the file has changed (%v)", err)
			}
		})
	}
}

// What a reader of the store has to hold in the head. The number only goes down.
func TestStoreHasFewTables(t *testing.T) {
	const most = 24
	if n := strings.Count(schema, "\nCREATE TABLE "); n == 0 || n > most {
		t.Errorf("the store has %d tables; want at most %d", n, most)
	}
}
