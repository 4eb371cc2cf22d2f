package postgres

import (
	"context"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
)

// openAt opens the store at a URL, and closes it with the test.
func openAt(t *testing.T, url string, o Options) (*store.DB, error) {
	t.Helper()
	target, err := Parse(url, ParseOptions{Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	db, err := Open(t.Context(), target, o)
	if err == nil {
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return db, err
}

// Whoever waits for a server that does not answer is told so.
func TestOpenSaysThatItWaits(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	target, err := Parse("postgres://ops@"+silent.Addr().String()+"/d", ParseOptions{Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var notes []string
	_, err = Open(ctx, target, Options{Note: func(text string) {
		notes = append(notes, text)
		cancel()
	}})
	if err == nil || len(notes) != 1 || notes[0] != "Waiting for the server of the store: "+target.Place() {
		t.Errorf("notes %q, %v", notes, err)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	s, ok := pgtest.Start(t)
	if !ok {
		return
	}
	url := s.NewURL(t)
	for _, o := range []store.Options{{MustExist: true}, {ReadOnly: true}} {
		_, err := openAt(t, url, Options{Options: o})
		wantKind(t, err, store.ErrNotThere)
	}
	for _, isNew := range []bool{true, false} {
		db, err := openAt(t, url, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if db.New() != isNew || db.Writable() != nil || !strings.HasPrefix(url, "postgres://waybill@") || db.Place() == "" {
			t.Errorf("new %v, writable %v, place %s", db.New(), db.Writable(), db.Place())
		}
		if err := db.LowerBatchLimit(t.Context(), ledger.Async, 7); err != nil {
			t.Error(err)
		}
		if rows, err := db.BatchLimit(t.Context(), ledger.Async); err != nil || rows != 7 {
			t.Errorf("what was written: %v, %v", rows, err)
		}
		if err := db.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
	readOnly := func(name string, o Options) {
		t.Helper()
		db, err := openAt(t, url, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wantKind(t, db.Writable(), store.ErrReadOnly)
		wantKind(t, db.LowerBatchLimit(t.Context(), ledger.Async, 7), store.ErrReadOnly)
		if _, err := db.Account(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	readOnly("for reading", Options{Options: store.Options{ReadOnly: true}})
	asAdmin(t, s, "ALTER ROLE waybill SET default_transaction_read_only TO on")
	readOnly("a session that reads", Options{})
	asAdmin(t, s, "ALTER ROLE waybill RESET ALL")

	asAdmin(t, s, "REVOKE CREATE ON DATABASE waybill FROM PUBLIC")
	asAdmin(t, s, "ALTER DATABASE waybill OWNER TO postgres")
	_, err := openAt(t, s.NewURL(t), Options{})
	wantKind(t, err, store.ErrNoRight, "permission denied for database waybill")
}

// TestOpenWaitsForTheServer opens while the server is away for a moment, but not to read.
func TestOpenWaitsForTheServer(t *testing.T) {
	t.Parallel()
	s, ok := pgtest.Start(t)
	if !ok {
		return
	}
	url := s.NewURL(t)
	if err := s.Stop(t.Context(), "fast"); err != nil {
		t.Fatal(err)
	}
	_, err := openAt(t, url, Options{Options: store.Options{ReadOnly: true}})
	wantKind(t, err, store.ErrUnreachable)
	opened := make(chan error, 1)
	go func() {
		_, err := openAt(t, url, Options{Options: store.Options{Until: time.Now().Add(time.Minute)}})
		opened <- err
	}()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// Open gives up on a server that is away after some seconds, at once to read, and with its context.
func TestOpenGivesUp(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options     store.Options
		limit       time.Duration // of the context
		least, most time.Duration
	}{
		"after its patience": {store.Options{}, time.Hour, usualSpans.patience, usualSpans.patience + lastPause},
		"at once, to read":   {store.Options{ReadOnly: true}, time.Hour, 0, 0},
		"with its context":   {store.Options{}, time.Second, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := parsed(t, "postgres://ops@127.0.0.1:1/d")
				target.config.LookupFunc = func(context.Context, string) ([]string, error) {
					return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
				}
				ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
				defer cancel()
				began := time.Now()
				_, err := Open(ctx, target, Options{Options: tt.options})
				wantKind(t, err, store.ErrUnreachable)
				if took := time.Since(began); took < tt.least || took > tt.most {
					t.Errorf("it tried for %s; want %s to %s", took, tt.least, tt.most)
				}
			})
		})
	}
}
