package postgres

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
)

// newMark is what a new delivery stores: mark with its number.
const newMark = "INSERT INTO keyprints (account_id, print) SELECT $1 + CAST(current_setting('" + store.LastDeliverySetting + "') AS BIGINT), '' WHERE CAST(current_setting('" + store.StoresSetting + "') AS BOOLEAN)"

// newDelivery is the delivery.
const newDelivery = `INSERT INTO delivery_records (seq, received, method, path, raw_query, remote, verified, reason, scheme, secret_name, body_authenticated, single, anomaly)
	SELECT 1 + CAST(current_setting('` + store.LastDeliverySetting + `') AS BIGINT), 1, '', '', '', '', 'yes', '', '', '', 1, 0, '' WHERE CAST(current_setting('` + store.StoresSetting + `') AS BOOLEAN)`

// putMark stores the mark and a new delivery with an event of these keys.
func putMark(t *testing.T, e *engine, x transaction, mark int64, keys ...string) (before store.Last, stored bool, err error) {
	t.Helper()
	n := store.NewArrivals{Deliveries: 1, Statements: []store.Statement{{Text: newDelivery}, {Text: newMark, Args: []any{mark}}}}
	for _, key := range keys {
		n.Keys = append(n.Keys, []byte(key))
	}
	return e.writer.putNew(t.Context(), x.conn, n)
}

// connected is begun after its end: the connection is known to the server and prepared.
func connected(t *testing.T, e *engine) transaction {
	t.Helper()
	x := begun(t, e)
	if err := e.writer.Commit(t.Context(), x.conn, nil); err != nil {
		t.Fatal(err)
	}
	return x
}

const anEvent = `INSERT INTO events (seq, delivery, received, place, start, length, event_key, sum, event_id, kind, event_time, tracking_number, status, status_track,
	status_label, latest_event, router_id, verified, reason, body_authenticated, mark, anomaly) VALUES ($1, 1, 1, 0, 0, 0, $2, '', '', '', '', '', '', '', '', '', '', 'yes', '', 1, $3, '')`

func TestPutNewStoresOnlyWhatIsNew(t *testing.T) {
	s, ok := pgtest.Start(t)
	if !ok {
		return
	}
	for name, c := range map[string]struct {
		before string
		args   []any
		keys   []string
		stored bool
	}{
		"nothing is there":         {"SELECT 1", nil, []string{"k"}, true},
		"no events":                {"SELECT 1", nil, nil, true},
		"another event":            {anEvent, []any{7, "other", ""}, []string{"k"}, true},
		"a key that is known":      {anEvent, []any{7, "k", ""}, []string{"a", "k"}, false},
		"one that was superseded":  {anEvent, []any{7, "k", "superseded"}, []string{"k"}, true},
		"something was erased":     {"INSERT INTO erased (hash, account_id, at) VALUES ('x', 1, 1)", nil, []string{"k"}, false},
		"a schema of a later kind": {"UPDATE meta SET version = version + 1", nil, []string{"k"}, false},
		"the owner was fenced":     {"DELETE FROM owners", nil, []string{"k"}, false},
		"commits were lost":        {"UPDATE counters SET value = 0 WHERE name = 'commits'", nil, []string{"k"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			url := s.NewURL(t)
			migrated(t, url)
			e := newTestEngine(t, url)
			x := connected(t, e)
			defer x.conn.Close()
			conn := pgtest.Connect(t, url)
			if _, err := conn.Exec(t.Context(), c.before, c.args...); err != nil {
				t.Fatal(err)
			}
			before, stored, err := putMark(t, e, x, 1, c.keys...)
			if err != nil || stored != c.stored {
				t.Fatalf("stored %v, %v", stored, err)
			}
			if n := marks(t, url); (n == 1) != c.stored || n > 1 {
				t.Errorf("stored %d marks", n)
			}
			var seven int64
			if len(c.args) > 0 {
				seven = 7
			}
			if c.stored && before.Event != seven {
				t.Errorf("the last event before was %d, want %d", before.Event, seven)
			}
		})
	}
}

// A statement that fails, or a lock that others hold for long, is left to a transaction step
// by step, on the same connection.
func TestPutNewLeavesErrorsToOthers(t *testing.T) {
	url, ok := shared(t)
	if !ok {
		return
	}
	e := newTestEngine(t, url)
	x := connected(t, e)
	defer x.conn.Close()
	_, stored, err := e.writer.putNew(t.Context(), x.conn, store.NewArrivals{Statements: []store.Statement{{Text: "SELECT 1 / 0"}}})
	if stored || err != nil {
		t.Errorf("a statement that fails: stored %v, %v", stored, err)
	}
	other := newTestEngine(t, url)
	y := begun(t, other)
	if _, stored, err = putMark(t, e, x, 1); stored || err != nil {
		t.Errorf("while others write: stored %v, %v", stored, err)
	}
	if err := y.end(t); err != nil {
		t.Fatal(err)
	}
	if _, stored, err = putMark(t, e, x, 1); !stored || err != nil {
		t.Errorf("after that: stored %v, %v", stored, err)
	}
}

func TestPutNewWhoseConnectionIsLost(t *testing.T) {
	s, ok := pgtest.Start(t)
	if !ok {
		return
	}
	for name, c := range map[string]struct {
		cut       func(*pgtest.Proxy)
		meanwhile string // others do this before it is found out what happened
		marks     int
		stored    bool
		again     bool
	}{
		"before it arrives":                              {cut: func(p *pgtest.Proxy) { p.CutBefore(commits()...) }, marks: 0, again: true},
		"while its answer returns":                       {cut: func(p *pgtest.Proxy) { p.CutAfter(commits()...) }, marks: 1, stored: true},
		"while its answer returns, and others go on":     {cut: func(p *pgtest.Proxy) { p.CutAfter(commits()...) }, meanwhile: "SELECT 1", marks: 1, stored: true},
		"while its answer returns, and others change it": {cut: func(p *pgtest.Proxy) { p.CutAfter(commits()...) }, meanwhile: "UPDATE delivery_records SET single = 1 WHERE seq = 2", marks: 1},
		"before it arrives, and others have gone on":     {cut: func(p *pgtest.Proxy) { p.CutBefore(commits()...) }, meanwhile: "SELECT 1", marks: 0, again: true},
		"and nothing is wrong with it, for comparison":   {cut: func(*pgtest.Proxy) {}, marks: 1, stored: true},
	} {
		t.Run(name, func(t *testing.T) {
			url := s.NewURL(t)
			migrated(t, url)
			p := s.NewProxy(t)
			e, other := viaProxy(t, p, url), newTestEngine(t, url)
			x := connected(t, e)
			if _, stored, err := putMark(t, e, x, 1, "first"); !stored || err != nil { // the driver has prepared its statements then
				t.Fatal(stored, err)
			}
			c.cut(p)
			if c.meanwhile != "" {
				p.RefuseNew()
				time.AfterFunc(300*time.Millisecond, func() {
					y := begun(t, other)
					y.exec(t, c.meanwhile)
					if err := y.end(t); err != nil {
						t.Error(err)
					}
					p.Heal()
				})
			}
			_, stored, err := putMark(t, e, x, 2, "k")
			again, drop := e.writer.Judge(err)
			_ = x.conn.Close()
			if stored != c.stored || (err == nil) != c.stored || err != nil && (again != c.again || !drop) {
				t.Errorf("stored %v, %v; to be done again: %v, the connection is dropped: %v", stored, err, again, drop)
			}
			if n := marks(t, url); n != c.marks+1 {
				t.Errorf("stored %d marks, want %d", n, c.marks+1)
			}
			if err := begun(t, e).end(t); err != nil {
				t.Error(err)
			}
		})
	}
}

// New deliveries take one round trip; the numbers are those of the server, also while other
// processes store some.
func TestNewDeliveriesTakeOneRoundTrip(t *testing.T) {
	p, d, other, ok := twoProcesses(t)
	if !ok {
		return
	}
	defer d.Close()
	defer other.Close()
	const oneWay = 200 * time.Millisecond
	best := time.Hour
	var last int64
	for i := range 8 {
		p.Heal()
		for k, at := range []*killable{d, other} {
			delivery, events := one(fmt.Sprint(i, " ", k))
			receipt, err := at.Put(t.Context(), delivery, events)
			if err != nil || receipt.Delivery != last+1 || receipt.Rows[0].Seq != last+1 || receipt.Rows[0].Mark != inbox.Current {
				t.Fatalf("delivery after %d: %+v, %v", last, receipt, err)
			}
			last++
		}
		if i == 0 || best <= 3*oneWay {
			continue // the statements are prepared at first
		}
		delivery, events := one(fmt.Sprint(i))
		p.Delay(oneWay)
		began := time.Now()
		receipt, err := d.Put(t.Context(), delivery, events)
		if err != nil || receipt.Delivery != last+1 {
			t.Fatal(receipt, err)
		}
		last++
		best = min(best, time.Since(began))
	}
	if best > 3*oneWay {
		t.Errorf("a delivery took %s on a network that takes %s each way", best, oneWay)
	}
}

// Who finds out that deliveries were stored finds their numbers too, whatever others stored
// and changed since.
func TestNumbersOfDeliveriesWhoseAnswerIsLost(t *testing.T) {
	p, d, other, ok := twoProcesses(t)
	if !ok {
		return
	}
	defer d.Close()
	defer other.Close()
	put := func(at *killable, verified inbox.Verified, ids ...string) inbox.Receipt {
		t.Helper()
		delivery, events := many(verified, ids...)
		receipt, err := at.Put(t.Context(), delivery, events)
		if err != nil {
			t.Error(err)
		}
		return receipt
	}
	put(other, inbox.Yes, "1")
	put(d, inbox.Yes, "2", "3")
	put(other, inbox.Yes, "4")
	p.CutAfter(commits()...)
	p.RefuseNew()
	time.AfterFunc(300*time.Millisecond, func() {
		put(other, inbox.Yes, "5", "8") // 5 is superseded
		p.Heal()
	})
	receipt := put(d, inbox.No, "5", "6", "7")
	if receipt.Delivery != 4 || len(receipt.Rows) != 3 || receipt.Rows[0].Seq != 5 || receipt.Rows[2].Seq != 7 {
		t.Errorf("got %+v", receipt)
	}
	if receipt = put(d, inbox.No); receipt.Delivery != 6 || receipt.Rows[0].Seq != 10 {
		t.Errorf("after that: %+v", receipt)
	}
}

// twoProcesses returns two that have one store: the network of the first is a proxy's. ok is
// false without PostgreSQL.
func twoProcesses(t *testing.T) (p *pgtest.Proxy, d, other *killable, ok bool) {
	t.Helper()
	s, ok := pgtest.Start(t)
	if !ok {
		return nil, nil, nil, false
	}
	url := s.NewURL(t)
	p = s.NewProxy(t)
	behind, err := p.URL(url)
	if err != nil {
		t.Fatal(err)
	}
	return p, open(t, behind), open(t, url), true
}

// one is many for one verified event.
func one(id string) (inbox.Delivery, []inbox.Event) { return many(inbox.Yes, id) }

// many returns the arguments of a Put of events with those ids.
func many(verified inbox.Verified, ids ...string) (inbox.Delivery, []inbox.Event) {
	all := make([]map[string]string, len(ids))
	for i, id := range ids {
		all[i] = map[string]string{"eventId": id}
	}
	body, _ := json.Marshal(all)
	return inbox.Decode(inbox.Delivery{ReceivedAt: time.Now(), Method: "POST", Path: "/", Verified: verified, Body: body})
}
