package store_test

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
)

// queued returns once so many jobs wait.
func queued(t *testing.T, d *store.DB, n int) {
	t.Helper()
	for d.Queued() < n {
		runtime.Gosched()
	}
}

// inEachStore runs a test with a store in a file, and with one on a server.
func inEachStore(t *testing.T, test func(*testing.T, *store.DB)) {
	t.Run("file", func(t *testing.T) { test(t, opened(t, filepath.Join(t.TempDir(), "s.db"))) })
	t.Run("server", func(t *testing.T) {
		if d, _ := serverStore(t); d != nil {
			test(t, d)
		}
	})
}

// serverStore returns an empty store on a server, and its URL. The store is nil where no server can run.
func serverStore(t *testing.T) (*store.DB, string) {
	t.Helper()
	url, ok := pgtest.URL(t)
	if !ok {
		return nil, ""
	}
	d, err := serverAt(t, url)
	if err != nil {
		t.Fatal(err)
	}
	return d, url
}

// After its first error a transaction does nothing, and is not committed, though its work goes on. Others are.
func TestATransactionKeepsItsFirstError(t *testing.T) {
	inEachStore(t, func(t *testing.T, d *store.DB) {
		began, goOn := make(chan struct{}), make(chan struct{})
		ended := make(chan error, 2)
		add := func(name string, more func() error) { ended <- d.AddProof(t.Context(), name, more) }
		go add("first", func() error { close(began); <-goOn; return nil })
		<-began
		go add("second", func() error { return nil })
		failed := make(chan error)
		go func() {
			changed, found, err := d.FailThenAddProof(t.Context(), "failed")
			if changed != 0 || found {
				t.Errorf("%d rows changed, found %t after an error", changed, found)
			}
			failed <- err
		}()
		queued(t, d, 2)
		close(goOn)
		if err := <-failed; err == nil || !strings.Contains(strings.ToLower(err.Error()), "null") {
			t.Errorf("got %v, want the error of the first statement", err)
		}
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
		for name, want := range map[string]bool{"first": true, "second": true, "failed": false} {
			if there, err := d.HasProof(t.Context(), name); err != nil || there != want {
				t.Errorf("%s: %v, %v", name, there, err)
			}
		}
	})
}

// A panic ends its transaction, from which an HTTP server recovers: others write on.
func TestPanicInATransaction(t *testing.T) {
	inEachStore(t, func(t *testing.T, d *store.DB) {
		nothing := func() error { return nil }
		if err := d.AddProof(t.Context(), "before", nothing); err != nil {
			t.Fatal(err)
		}
		began, goOn := make(chan struct{}), make(chan struct{})
		ended := make(chan error, 3)
		add := func(name string, more func() error) {
			defer func() {
				if r := recover(); r != nil {
					ended <- errors.New("panic")
				}
			}()
			ended <- d.AddProof(t.Context(), name, more)
		}
		go add("first", func() error { close(began); <-goOn; return nil })
		<-began
		go add("second", func() error { panic("second") })
		go add("third", nothing)
		queued(t, d, 2)
		close(goOn)
		var failed int
		for range 3 {
			if err := <-ended; err != nil {
				failed++
			}
		}
		if failed != 2 {
			t.Errorf("%d failed, want the one that panicked, and the one in its transaction", failed)
		}
		if err := d.AddProof(t.Context(), "after", nothing); err != nil {
			t.Error(err)
		}
		for name, want := range map[string]bool{"before": true, "first": true, "second": false, "third": false, "after": true} {
			if there, err := d.HasProof(t.Context(), name); err != nil || there != want {
				t.Errorf("%s: %v, %v", name, there, err)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Jobs that share a transaction wait for a lock of another program as long as one alone does.
func TestJobsOfATransactionWaitForALock(t *testing.T) {
	d, url := serverStore(t)
	if d == nil {
		return
	}
	began, goOn := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 3)
	add := func(name string, more func() error) { ended <- d.AddProof(t.Context(), name, more) }
	go add("first", func() error { close(began); <-goOn; return nil })
	<-began
	for _, name := range []string{"second", "third"} {
		go add(name, func() error { return nil })
	}
	queued(t, d, 2)
	other := pgtest.Connect(t, url)
	lock, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	locked := make(chan error)
	go func() {
		_, err := lock.Exec(t.Context(), "LOCK TABLE proofs IN SHARE MODE")
		locked <- err
	}()
	watcher := pgtest.Connect(t, url)
	for waits := false; !waits; { // behind the first, before the others
		if err := watcher.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE relation = 'proofs'::regclass AND NOT granted)").Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	if err := errors.Join(<-ended, <-locked); err != nil {
		t.Fatal(err)
	}
	// They wait together, then each for itself, and then again.
	for waits := map[time.Time]bool{}; len(waits) < 4; {
		var began time.Time
		err := watcher.QueryRow(t.Context(), `SELECT query_start
			FROM pg_locks JOIN pg_stat_activity USING (pid), pg_sleep(0.01)
			WHERE relation = 'proofs'::regclass AND NOT granted`).Scan(&began)
		if err == nil {
			waits[began] = true
		} else if !errors.Is(err, pgx.ErrNoRows) {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			t.Fatal("one ended while the table was locked:", err)
		default:
		}
	}
	if err := lock.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// What reads ahead is one step ahead of its reader, and ends with it: a goroutine that is left
// would fail the test's bubble.
func TestReadAheadEndsWithItsReader(t *testing.T) {
	failure := errors.New("it failed")
	for name, c := range map[string]struct {
		take, want int
		err        error
	}{
		"all":        {100, 5, failure},
		"the first":  {1, 2, nil},
		"and others": {3, 4, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				read, canceled := 0, false
				seq := func(yield func(int, error) bool) {
					for read = 1; read < 5; read++ {
						if !yield(read, nil) {
							return
						}
					}
					yield(0, failure)
				}
				n, last := 0, error(nil)
				for v, err := range store.ReadAhead(func() { canceled = true }, seq) {
					n++
					if synctest.Wait(); err == nil && v != n {
						t.Errorf("got %d, want %d", v, n)
					}
					if last = err; n == c.take {
						break
					}
				}
				if read != c.want || !errors.Is(last, c.err) || !canceled {
					t.Errorf("read %d, want %d; error %v; canceled %t", read, c.want, last, canceled)
				}
			})
		})
	}
}
