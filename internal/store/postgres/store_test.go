package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/storetest"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// suiteSpans let the suite's processes die soon.
var suiteSpans = spans{patience: 5 * time.Second, beat: 100 * time.Millisecond, silence: 10 * time.Second, grace: time.Second, margin: 200 * time.Millisecond, lease: 15 * time.Second, stopped: 30 * time.Second}

// killable is a store whose process a test can end.
type killable struct {
	*store.DB
	engine *engine
	url    string
}

// open opens the store at url as a process of its own.
func open(t testing.TB, url string) *killable {
	t.Helper()
	return openWith(t, url, store.Options{})
}

func openWith(t testing.TB, url string, o store.Options) *killable {
	t.Helper()
	target := parsed(t, url)
	a := &access{target: target, reads: o.ReadOnly}
	e := newEngine(target.Place(), target.schema, a.config(), store.Process{Host: "here", PID: 1, Version: "1", Command: "test"})
	e.spans = suiteSpans
	d, err := e.store(context.WithoutCancel(t.Context()), a, o) // also once the test ended
	if err != nil {
		t.Fatal(err)
	}
	return &killable{d, e, url}
}

// kill ends the connections and the heartbeats, as the death of the process would, and
// makes the last heartbeat old.
func (k *killable) kill(t testing.TB) {
	t.Helper()
	name, _ := k.engine.owners.own()
	wait := k.engine.session.stop()
	k.engine.links.close()
	wait()
	k.engine.outage.mu.Lock()
	k.engine.outage.began, k.engine.outage.last = time.Now().Add(-time.Hour), time.Now() // nobody waits for the server
	k.engine.outage.mu.Unlock()
	conn := pgtest.Connect(t, k.url)
	if _, err := conn.Exec(t.Context(), "UPDATE owners SET seen = seen - interval '5 seconds' WHERE name = $1", name); err != nil {
		t.Fatal(err)
	}
	for dead := false; !dead; {
		if err := conn.QueryRow(t.Context(), "SELECT NOT EXISTS (SELECT 1 FROM owners o WHERE o.name = $1 AND NOT "+k.engine.owners.isDead()+") FROM pg_sleep(0.01)", name).Scan(&dead); err != nil {
			t.Fatal(err)
		}
	}
}

// emptied is a schema that every test of a suite finds as new: to make one takes longer
// than most of them. What resets and checks it stays open, since connections take as long
// as tests.
type emptied struct {
	url    string
	conn   *pgx.Conn
	reader *killable
	seeds  map[string]string // the rows of a new one as JSON, by table
}

const tables = "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"

// newEmptied makes the schema.
func newEmptied(t testing.TB, url string) emptied {
	t.Helper()
	if err := open(t, url).Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), (&access{target: parsed(t, url)}).config())
	if err != nil {
		t.Fatal(err)
	}
	s := emptied{url, conn, openWith(t, url, store.Options{ReadOnly: true}), map[string]string{}}
	t.Cleanup(func() {
		if err := errors.Join(s.reader.Close(), conn.Close(context.WithoutCancel(t.Context()))); err != nil {
			t.Error(err)
		}
	})
	rows, _ := conn.Query(t.Context(), tables)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		var seeds *string
		if err == nil {
			err = conn.QueryRow(t.Context(), "SELECT json_agg(t)::text FROM "+name+" t").Scan(&seeds)
		}
		if seeds != nil {
			s.seeds[name] = *seeds
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reset takes all back that a test did.
func (s emptied) reset(t testing.TB) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DO $$ DECLARE name text; BEGIN
			FOR name IN `+tables+` LOOP EXECUTE format('DELETE FROM %I', name); END LOOP;
			PERFORM setval(c.oid, 1, false) FROM pg_class c WHERE relnamespace = current_schema()::regnamespace AND relkind = 'S';
		END $$`)
		for name, seeds := range s.seeds {
			if err == nil {
				_, err = tx.Exec(ctx, "INSERT INTO "+name+" SELECT * FROM json_populate_recordset(NULL::"+name+", $1)", seeds)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// harness is that of stores on the server of all tests.
func harness(schema emptied) storetest.Harness {
	return storetest.Harness{
		Place: func(t testing.TB) string {
			t.Helper()
			t.Cleanup(func() { schema.reset(t) })
			return schema.url
		},
		Open: func(t testing.TB, url string) storetest.Store {
			t.Helper()
			d := open(t, url)
			return storetest.Store{
				Trackings:  storetest.Trackings{Stager: d, Queue: d, UnknownRows: d, History: d, Keys: d, Accounts: d, Trackings: d, Statistics: d, Sweeps: d, Eraser: d, EventFollower: d},
				Deliveries: storetest.Deliveries{Store: d, Overviews: d, Verdicts: d, Retention: d, Outbox: d, Forwardings: d, Listeners: d, Changes: d},
				Observed:   d,
				Close:      d.Close,
			}
		},
		Kill: func(t testing.TB, s storetest.Store) {
			t.Helper()
			d, ok := s.Trackings.Queue.(*killable)
			if !ok {
				t.Fatalf("%T is not ours", s.Trackings.Queue)
			}
			d.kill(t)
		},
		Check: func(t testing.TB, _ string) {
			t.Helper()
			if err := schema.reader.Check(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		},
	}
}

func TestPostgresLedger(t *testing.T) { onServer(t, storetest.Ledger) }

func TestPostgresCounts(t *testing.T) { onServer(t, storetest.Counts) }

func TestPostgresInbox(t *testing.T) { onServer(t, storetest.Inbox) }

func TestPostgresObserved(t *testing.T) { onServer(t, storetest.Observed) }

func TestPostgresOutbox(t *testing.T) { onServer(t, storetest.Outbox) }

// onServer runs a suite if there is a server.
func onServer(t *testing.T, suite func(*testing.T, storetest.Harness)) {
	t.Helper()
	t.Parallel()
	if url, ok := pgtest.URL(t); ok {
		suite(t, harness(newEmptied(t, url)))
	}
}

// A server that takes connections and says nothing is unreachable, whichever call meets it:
// nobody is to take its time-out for the end of the call's own time.
func TestServerThatFallsSilent(t *testing.T) {
	t.Parallel()
	s, url, ok := started(t)
	if !ok {
		return
	}
	p := s.NewProxy(t)
	proxied, err := p.URL(url)
	if err != nil {
		t.Fatal(err)
	}
	k := open(t, proxied+"&connect_timeout=1")
	defer k.Close()
	d := inbox.Delivery{Body: []byte(`[{"eventId":"a"}]`), Verified: inbox.Yes}
	rows := inbox.Prepare(d, webhook.Decode(d.Body))
	if _, err := k.Put(t.Context(), d, rows); err != nil {
		t.Fatal(err)
	}
	p.Stall()
	for _, what := range []string{"write", "read", "write"} {
		var err error
		if what == "write" {
			_, err = k.Put(t.Context(), d, rows)
		} else {
			_, err = k.Readmitted(t.Context(), 1)
		}
		if !errors.Is(err, store.ErrUnreachable) || !inbox.IsTemporary(err) || errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %v in one line", what, err, store.ErrUnreachable)
		}
	}
	p.Heal()
}

// A newer program may bring the schema up to date while this one runs.
func TestSchemaIsUpgradedMeanwhile(t *testing.T) {
	url, ok := shared(t)
	if !ok {
		return
	}
	d := open(t, url)
	defer d.Close()
	conn := pgtest.Connect(t, url)
	add := func(name string) error {
		_, err := d.OpenSink(t.Context(), inbox.SinkKey{Name: name}, nil)
		return err
	}
	if err := add("before"); err != nil {
		t.Fatal(err)
	}
	exec(t, conn, "UPDATE meta SET version = version + 1")
	if err := add("after"); !errors.Is(err, store.ErrTooNew) {
		t.Errorf("%v; want %v", err, store.ErrTooNew)
	}
	exec(t, conn, "UPDATE meta SET version = version - 1") // a backup was restored
	if err := add("restored"); err != nil {
		t.Error(err)
	}
	if sinks, err := d.Sinks(t.Context()); err != nil || len(sinks) != 2 {
		t.Errorf("%d sinks, %v; want 2", len(sinks), err)
	}
}
