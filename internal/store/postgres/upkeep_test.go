package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// A check shows sizes, settings and who works on the store.
func TestInspect(t *testing.T) {
	url, ok := pgtest.URL(t)
	if !ok {
		return
	}
	db, err := openAt(t, url, Options{Version: "1.2", Command: "listen"})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.AddListener(t.Context(), inbox.Listener{URL: "http://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	d := inbox.Delivery{ReceivedAt: time.Now(), Verified: inbox.Yes, Body: []byte(`[{"eventId":"e1","data":{"trackingNumber":"N"}}]`)}
	if _, err := db.Put(t.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body))); err != nil {
		t.Fatal(err)
	}
	staging, err := db.Stage(t.Context(), ledger.Plan{Files: []string{"f"}, Mode: ledger.Async, BatchSize: 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := staging.Add(t.Context(), []ledger.Entry{{Line: 2, Item: tracking.Item{ReferID: "R", Number: "N"}}}); err != nil {
		t.Fatal(err)
	}
	other, err := openAt(t, url, Options{Command: "store check"})
	if err != nil {
		t.Fatal(err)
	}
	found, err := other.Inspect(t.Context())
	if err != nil || len(found.Problems) > 0 || found.FreeBytes != nil {
		t.Fatalf("%+v, %v", found, err)
	}
	if len(found.Processes) != 1 {
		t.Fatalf("%d processes; want 1", len(found.Processes))
	}
	if p := found.Processes[0]; !p.Alive || p.Command != "listen" || p.Version != "1.2" || p.PID == 0 || p.Host == "" || time.Since(p.Started) > time.Minute ||
		!slices.Equal(p.URLs, []string{"http://127.0.0.1:1"}) || p.Staging == 0 {
		t.Errorf("%+v", p)
	}
	for _, name := range []string{"deliveries", "rows"} {
		i := slices.IndexFunc(found.Tables, func(s store.TableSize) bool { return s.Name == name })
		if s := found.Tables[i]; s.Rows != 1 || s.Bytes < 8192 {
			t.Errorf("%+v; want one row and its page", s)
		}
	}
	for _, s := range found.Settings {
		if s.Value == "" || s.Warning != "" && s.Name != "fsync" && s.Name != "full_page_writes" { // tests run without
			t.Errorf("%+v", s)
		}
	}
	if err := staging.Discard(t.Context()); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if found, err = other.Inspect(t.Context()); err != nil || len(found.Problems) > 0 || len(found.Processes) > 0 && found.Processes[0].Alive {
		t.Errorf("%+v, %v; want nobody alive", found, err)
	}
}

// A check says of a server, or a role, that only reads that nothing can be sent.
func TestInspectWhereNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	s, url, ok := started(t)
	if !ok {
		return
	}
	standby := newStandby(t, s)
	asAdmin(t, s, "ALTER ROLE waybill SET default_transaction_read_only TO on")
	for at, name := range map[string]string{url: "default_transaction_read_only", sameSchema(t, standby, url): "Standby"} {
		db, err := openAt(t, at, Options{Options: store.Options{ReadOnly: true}})
		if err != nil {
			t.Fatal(err)
		}
		found, err := db.Inspect(t.Context())
		if i := slices.IndexFunc(found.Settings, func(s store.Setting) bool { return s.Name == name }); err != nil || i < 0 || !strings.HasPrefix(found.Settings[i].Warning, "nothing can be sent") {
			t.Errorf("%+v, %v; want a warning of %s", found.Settings, err, name)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A check shows the locks of other programs, and names who keeps it from reading.
func TestLocksOfOtherProgramsAreShown(t *testing.T) {
	t.Parallel()
	url, ok := pgtest.URL(t)
	if !ok {
		return
	}
	db, err := openAt(t, url, Options{Command: "store check"})
	if err != nil {
		t.Fatal(err)
	}
	e := newTestEngine(t, url)
	e.pool.SetMaxOpenConns(1)
	if _, err := e.pool.ExecContext(t.Context(), "SET lock_timeout TO '50ms'"); err != nil {
		t.Fatal(err)
	}
	locks := func() (all []store.Setting) {
		settings, err := db.Settings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(settings, func(s store.Setting) bool { return s.Name != "Lock holder" })
	}
	other := pgtest.Connect(t, url)
	exec(t, other, "SET application_name TO 'report'")
	pid := fmt.Sprint(other.PgConn().PID())
	exec(t, other, "BEGIN")
	exec(t, other, "LOCK TABLE rows IN ACCESS SHARE MODE")
	if all := locks(); len(all) != 1 || all[0].Warning != "" || !strings.Contains(all[0].Value, "AccessShareLock on rows") {
		t.Errorf("%+v; want the lock of a reader, without a warning", all)
	}
	if err := e.check(t.Context()); err != nil {
		t.Error(err)
	}
	exec(t, other, "LOCK TABLE rows, batches IN ACCESS EXCLUSIVE MODE")
	words := []string{`"report", pid ` + pid, "user ", "idle in transaction since 20", "AccessExclusiveLock on batches and 1 more"}
	if all := locks(); len(all) != 2 || !strings.Contains(all[0].Warning, "pg_terminate_backend("+pid+")") || !containsAll(all[0].Value, words) {
		t.Errorf("%+v; want a warning with %q first", all, words)
	}
	var locked *store.Error
	if err := e.check(t.Context()); !errors.As(err, &locked) || !errors.Is(err, store.ErrLocked) ||
		!containsAll(err.Error(), words) || !strings.Contains(locked.Advice, "pg_terminate_backend("+pid+")") {
		t.Errorf("%v; want ErrLocked with %q", err, words)
	}
	exec(t, other, "ROLLBACK")
	if all := locks(); len(all) != 0 {
		t.Errorf("%+v after the end of the transaction", all)
	}
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}
