package sqlite

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/waybill-cli/waybill/internal/store"
)

// A store that another process is just making is no other program's, at any
// moment.
func TestVersionWhileTheStoreIsMade(t *testing.T) {
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		path := filepath.Join(t.TempDir(), "new.db")
		if _, err := resolvePath(path, false); err != nil {
			t.Fatal(err)
		}
		var looking sync.WaitGroup
		for range 4 {
			looking.Go(func() {
				pool, err := connect(path, "busy_timeout(5)")
				if err != nil {
					t.Error(err)
					return
				}
				defer pool.Close()
				for version := 0; version < len(steps); {
					err := store.Retry(t.Context(), &connector{}, func(ctx context.Context) (err error) {
						version, err = storeVersion(ctx, pool, path, len(steps))
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
