package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// What was found out about many rows is recorded in few round trips: all other machines wait
// to write meanwhile.
func TestFindingsTakeFewRoundTrips(t *testing.T) {
	t.Parallel()
	const rows, most = 300, 50 // heartbeats, ten a second, count too
	d, p := openProxied(t)
	if d == nil {
		return
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	staging, err := d.Stage(t.Context(), ledger.Plan{Files: []string{"f"}, Mode: ledger.Async, BatchSize: rows})
	must(err)
	var all []ledger.Entry
	for n := range rows {
		all = append(all, ledger.Entry{Line: n + 2, Item: tracking.Item{ReferID: fmt.Sprint("R-", n), Number: fmt.Sprint("N", n)}})
	}
	_, err = staging.Add(t.Context(), all)
	must(err)
	run, err := staging.Open(t.Context())
	must(err)
	unknown := func() (found []ledger.UnknownRow) {
		t.Helper()
		batches, err := d.Claim(t.Context(), run.ID, 1, rows)
		must(err)
		must(d.RecordOutcomes(t.Context(), []ledger.BatchOutcome{{Batch: batches[0].ID, State: ledger.Unknown, Began: time.Now()}}))
		for x, err := range d.Unknown(t.Context(), run.ID) {
			must(err)
			found = append(found, x)
		}
		return found
	}
	count := func(what string, do func() (int64, error)) {
		t.Helper()
		before := p.Sent()
		held, err := do()
		must(err)
		n := p.Sent() - before
		t.Logf("%s: %d round trips for %d rows", what, n, held)
		if n > most || held != rows {
			t.Errorf("%s: %d round trips, %d rows; want %d at most, %d rows", what, n, held, most, rows)
		}
	}
	found := unknown()
	resolve := func(state ledger.State, change func(*ledger.Resolution)) func() (int64, error) {
		return func() (int64, error) {
			var all []ledger.Resolution
			for _, x := range found {
				f := ledger.Resolution{Row: x.Row, Batch: x.Batch, State: state}
				if change != nil {
					change(&f)
				}
				all = append(all, f)
			}
			return d.Resolve(t.Context(), run.ID, all)
		}
	}
	count("absent once", resolve(ledger.Unknown, func(f *ledger.Resolution) {
		f.Reason, f.AbsentSince, f.Fingerprint = fmt.Sprint("row ", f.Row), time.Now(), "404"
	}))
	count("pending", resolve(ledger.Pending, nil))
	found = unknown()
	count("accepted", resolve(ledger.Accepted, nil))
	count("unknown again", func() (int64, error) { return d.MarkUnknown(t.Context(), found, "shown absent") })
	count("reopened", func() (int64, error) { return d.Reopen(t.Context(), run.ID, ledger.Unknown, "") })
}

// A portion of an input that is sent while it is staged becomes visible in few round trips.
func TestPortionsTakeFewRoundTrips(t *testing.T) {
	t.Parallel()
	const portions, rows, most = 10, 200, 10
	d, p := openProxied(t)
	if d == nil {
		return
	}
	staging, err := d.Stage(t.Context(), ledger.Plan{Files: []string{"f"}, Mode: ledger.Async, BatchSize: rows})
	if err != nil {
		t.Fatal(err)
	}
	staging.Begin()
	before := 0
	for portion := range portions + 2 { // the first two prepare statements
		if portion == 2 {
			before = p.Sent()
		}
		var all []ledger.Entry
		for n := range rows {
			all = append(all, ledger.Entry{Line: portion*rows + n + 2, Item: tracking.Item{ReferID: fmt.Sprint("R-", portion, "-", n), Number: fmt.Sprint("N", portion, "-", n)}})
		}
		if _, err := staging.Add(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	if n := (p.Sent() - before) / portions; n > most {
		t.Errorf("a portion took %d messages; want at most %d", n, most)
	} else {
		t.Logf("a portion took %d messages", n)
	}
	if err := staging.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// openProxied opens a store on a server of its own, behind a proxy that counts messages; nil where no server can be had.
func openProxied(t *testing.T) (*killable, *pgtest.Proxy) {
	t.Helper()
	s, url, ok := started(t)
	if !ok {
		return nil, nil
	}
	p := s.NewProxy(t)
	proxied, err := p.URL(url)
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, proxied)
	t.Cleanup(func() { _ = d.Close() })
	return d, p
}
