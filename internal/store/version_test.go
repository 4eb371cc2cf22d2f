package store

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
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
				w, err := newWriter(path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer w.pool.Close()
				for version := 0; version < len(steps); {
					err := w.retryWhileLocked(t.Context(), func(ctx context.Context) (err error) {
						if err = w.connect(ctx); err == nil {
							version, err = storeVersion(ctx, w.conn, path, len(steps))
						}
						return err
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		d, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		looking.Wait()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
