package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/storetest"
)

// suiteSpans let the suite's processes die soon.
var suiteSpans = spans{patience: 5 * time.Second, beat: 100 * time.Millisecond, silence: 10 * time.Second, grace: time.Second, margin: 200 * time.Millisecond, lease: 15 * time.Second}

// killable is a store whose process a test can end.
type killable struct {
	*store.DB
	engine *engine
}

// open opens the store at url as a process of its own.
func open(t testing.TB, url string) *killable {
	t.Helper()
	target, err := Parse(url, true)
	if err != nil {
		t.Fatal(err)
	}
	a := &access{target: target}
	e := newEngine(target.Place(), target.schema, a.config(), 4, process{Host: "here", PID: 1, Version: "1", Command: "test"})
	e.spans = suiteSpans
	d, err := e.store(context.WithoutCancel(t.Context()), a, store.Options{}) // also once the test ended
	if err != nil {
		t.Fatal(err)
	}
	return &killable{d, e}
}

// kill ends the connections and the heartbeats, as the death of the process would, and
// makes the last heartbeat old.
func (k *killable) kill(t testing.TB, url string) {
	t.Helper()
	name, _ := k.engine.owners.own()
	wait := k.engine.session.stop()
	k.engine.links.close()
	wait()
	k.engine.outage.mu.Lock()
	k.engine.outage.began, k.engine.outage.last = time.Now().Add(-time.Hour), time.Now() // nobody waits for the server
	k.engine.outage.mu.Unlock()
	conn := pgtest.Connect(t, url)
	if _, err := conn.Exec(t.Context(), "UPDATE owners SET seen = seen - interval '5 seconds' WHERE name = $1", name); err != nil {
		t.Fatal(err)
	}
	for dead := false; !dead; {
		if err := conn.QueryRow(t.Context(), "SELECT NOT EXISTS (SELECT 1 FROM owners o WHERE o.name = $1 AND NOT "+k.engine.owners.isDead()+") FROM pg_sleep(0.01)", name).Scan(&dead); err != nil {
			t.Fatal(err)
		}
	}
}

// harness is that of stores on the server of all tests.
func harness() storetest.Harness {
	places := map[*killable]string{}
	return storetest.Harness{
		Place: func(t testing.TB) string {
			t.Helper()
			url, _ := pgtest.URL(t)
			return url
		},
		Open: func(t testing.TB, url string) storetest.Store {
			t.Helper()
			d := open(t, url)
			places[d] = url
			return storetest.Store{
				Trackings:  storetest.Trackings{Stager: d, Queue: d, UnknownRows: d, History: d, Keys: d, Accounts: d, Trackings: d, Statistics: d, Versions: d, Sweeps: d, EventFollower: d},
				Deliveries: storetest.Deliveries{Store: d, Verdicts: d, Retention: d, Outbox: d, Forwardings: d, Listeners: d, Changes: d},
				Close:      d.Close,
			}
		},
		Kill: func(t testing.TB, s storetest.Store) {
			t.Helper()
			d, ok := s.Trackings.Queue.(*killable)
			if !ok {
				t.Fatalf("%T is not ours", s.Trackings.Queue)
			}
			d.kill(t, places[d])
		},
		Check: func(t testing.TB, url string) {
			t.Helper()
			ctx := context.WithoutCancel(t.Context())
			d := open(t, url)
			if err := errors.Join(d.Check(ctx), d.Close()); err != nil {
				t.Error(err)
			}
		},
	}
}

func TestLedger(t *testing.T) { onServer(t, storetest.Ledger) }

func TestInbox(t *testing.T) { onServer(t, storetest.Inbox) }

func TestOutbox(t *testing.T) { onServer(t, storetest.Outbox) }

// onServer runs a suite if there is a server.
func onServer(t *testing.T, suite func(*testing.T, storetest.Harness)) {
	t.Helper()
	if _, ok := pgtest.URL(t); ok {
		suite(t, harness())
	}
}
