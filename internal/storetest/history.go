package storetest

import (
	"fmt"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

var historyTests = map[string]func(*world){
	"RunsNewestFirst":     runsNewestFirst,
	"RunTellsWhatBecame":  runReportsOutcomes,
	"LiveWhileWorkedOn":   liveWhileWorkedOn,
	"KnownOrders":         findsKnownOrders,
	"BatchesInOrder":      batchesInOrder,
	"LookupTellsState":    lookupFindsState,
	"BodyMayCallTheStore": bodyMayCallTheStore,
	"PrunesEndedRuns":     prunesEndedRuns,
}

// prunesEndedRuns sees that runs go, and nothing that tells what was sent.
func prunesEndedRuns(w *world) {
	first := w.run(plan(), entries(1, 6)...)
	again := w.run(plan(), entries(1, 6)...)
	b := w.claim(first.ID, 2)
	w.record(ledger.Accepted, b[0])
	w.record(ledger.Rejected, b[1])
	open := w.run(plan(), entries(1, 9)...)
	news := have(w.LookUpKey(w.Context(), "key"))(w)
	w.same("has runs", news.HasRuns, true)
	prune := func(before time.Time, want ledger.PrunedRuns) {
		w.Helper()
		w.same("pruned", have(w.PruneRuns(w.Context(), before))(w), want)
	}
	prune(time.Now().Add(time.Hour), ledger.PrunedRuns{Unfinished: 3}) // a living process works on them
	w.kill()
	prune(first.Created, ledger.PrunedRuns{})
	prune(time.Now().Add(time.Hour), ledger.PrunedRuns{Runs: 2, Unfinished: 1})
	for _, gone := range []int64{first.ID, again.ID} {
		_, err := w.Run(w.Context(), gone)
		w.is("pruned run", err, ledger.ErrNoRun)
		w.is("its rows", end(w.Rows(w.Context(), gone)), ledger.ErrNoRun)
		_, err = w.Claim(w.Context(), gone, 1, 3)
		w.is("its batches", err, ledger.ErrNoRun)
	}
	w.same("runs left", len(collect(w, w.Runs(w.Context(), 0))), 1)

	w.counts(open.ID, ledger.Counts{Accepted: 3, Rejected: 3, Pending: 3})
	listed := each(w, w.Statuses(w.Context(), ledger.Filter{}), func(st ledger.TrackingStatus) string {
		return fmt.Sprintf("%s %s run %d", st.Item.ReferID, st.State, st.Run)
	})
	w.same("trackings", listed, []string{
		"order-0001 accepted run 0", "order-0002 accepted run 0", "order-0003 accepted run 0",
		"order-0004 rejected run 0", "order-0005 rejected run 0", "order-0006 rejected run 0",
		"order-0007 pending run 3", "order-0008 pending run 3", "order-0009 pending run 3",
	})
	state, ok, err := w.Lookup(w.Context(), item(1).Key())
	w.must(err)
	w.same("a row", state, ledger.Accepted)
	w.same("is known", ok, true)
	w.same("controls", len(have(w.Controls(w.Context(), 5))(w)), 3)
	news = have(w.LookUpKey(w.Context(), "key"))(w)
	w.same("had runs", news.HasRuns, true)

	later := w.run(plan(), entries(1, 10)...)
	w.same("a later input", later.Tally, ledger.Tally{New: 1, Known: 9, KnownPending: 3})
	if later.ID <= open.ID {
		w.Errorf("run %d after run %d", later.ID, open.ID)
	}
	w.same("sent again", have(w.Reopen(w.Context(), later.ID, ledger.Rejected, ""))(w), int64(3))
	w.counts(later.ID, ledger.Counts{Accepted: 3, Pending: 7})
}

func runsNewestFirst(w *world) {
	var want []int64
	for n := range 120 {
		run := w.run(plan(), entries(n, n)...)
		want = append([]int64{run.ID}, want...)
	}
	ids := func(limit int) []int64 {
		var all []int64
		for _, sum := range collect(w, w.Runs(w.Context(), limit)) {
			all = append(all, sum.ID)
		}
		return all
	}
	w.same("all", ids(0), want)
	w.same("three", ids(3), want[:3])
	w.same("hundred and one", ids(101), want[:101])
	for sum, err := range w.Runs(w.Context(), 0) {
		w.must(err)
		w.same("first", sum.ID, want[0])
		break
	}
}

// findsKnownOrders sees that only new rows count whose order came in an earlier run,
// with another number or spelled otherwise.
func findsKnownOrders(w *world) {
	renumbered := func(line, n int, number string) ledger.Entry {
		e := ledger.Entry{File: 1, Line: line, Item: item(n)}
		e.Item.Number = number
		return e
	}
	first := w.run(plan(), append(entries(1, 3), renumbered(9, 2, "A second parcel"))...)
	second := w.run(plan(), entries(1, 4)[0], renumbered(7, 2, "X2"), renumbered(8, 3, "X3"), entries(4, 4)[0], renumbered(10, 4, "X4"))
	w.same("the first", have(w.KnownOrders(w.Context(), first.ID))(w), ledger.KnownOrders{})
	got := have(w.KnownOrders(w.Context(), second.ID))(w)
	got.First.ID = 0
	w.same("the second", got, ledger.KnownOrders{Rows: 2, First: ledger.Row{File: "-", Line: 7, Item: renumbered(7, 2, "X2").Item}, Before: item(2).Key()})
	spelled := func(n int, referID string) ledger.Entry {
		e := renumbered(n, n, "S")
		e.Item.ReferID = referID
		return e
	}
	w.run(plan(), spelled(11, "REF-A"))
	third := w.run(plan(), spelled(12, "ref-a"), spelled(13, " REF-A "), spelled(14, "xREF-A"))
	got = have(w.KnownOrders(w.Context(), third.ID))(w)
	w.same("spelled otherwise", []any{got.Rows, got.First.Item.ReferID, got.Before.ReferID}, []any{int64(2), "ref-a", "REF-A"})
	_, err := w.KnownOrders(w.Context(), 99)
	w.is("no such run", err, ledger.ErrNoRun)
}

func runReportsOutcomes(w *world) {
	run := w.run(plan(), entries(1, 12)...)
	get := func() ledger.RunSummary {
		w.Helper()
		sum := have(w.Run(w.Context(), run.ID))(w)
		return sum
	}
	want := ledger.RunSummary{Run: run, Live: true, Counts: ledger.Counts{Pending: 12}}
	w.same("before", get(), want)
	b := w.claim(run.ID, 4)
	accepted, unsent, refused := outcome(b[0], ledger.Accepted), outcome(b[1], ledger.Pending), outcome(b[2], ledger.Pending)
	accepted.Began = sent.Add(time.Hour)
	unsent.HTTPStatus, unsent.Began, unsent.Answer = 0, sent.Add(2*time.Hour), nil // nothing left
	refused.HTTPStatus, refused.Began = 401, sent.Add(30*time.Minute)
	w.must(w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{accepted, unsent, refused}))
	want.Counts = ledger.Counts{Accepted: 3, Pending: 6, Sending: 3}
	want.Requests, want.LastSent = 2, sent.Add(time.Hour)
	w.same("after", get(), want)
	_, err := w.Run(w.Context(), 99)
	w.is("no such run", err, ledger.ErrNoRun)
}

func liveWhileWorkedOn(w *world) {
	run := w.run(plan(), entries(1, 9)...)
	live := func(want bool) {
		w.Helper()
		w.same("live", have(w.Run(w.Context(), run.ID))(w).Live, want)
	}
	live(true)
	w.kill()
	live(false)
	b := w.claim(run.ID, 1) // resumed
	live(true)
	w.record(ledger.Accepted, b...)
	live(true)
	other := w.open()
	b = have(other.Claim(w.Context(), run.ID, 1, 1000))(w)
	w.kill()
	live(true)
	w.must(other.RecordOutcomes(w.Context(), []ledger.BatchOutcome{outcome(b[0], ledger.Accepted)}))
	w.must(other.Close())
	live(false)
}

func batchesInOrder(w *world) {
	run := w.run(plan(), entries(1, 8)...)
	b := w.claim(run.ID, 2)
	accepted, rejected := outcome(b[0], ledger.Accepted), outcome(b[1], ledger.Rejected)
	rejected.HTTPStatus, rejected.Answer = 422, []byte("no")
	accepted.Rows = []ledger.RowOutcome{{Row: b[0].Rows[1].ID, State: ledger.Rejected}}
	w.must(w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{rejected, accepted}))
	got := collect(w, w.Batches(w.Context(), run.ID))
	if len(got) != 3 || got[0].ID >= got[1].ID || got[1].ID >= got[2].ID {
		w.Fatalf("batches %v", got)
	}
	w.same("batches", got, []ledger.BatchSummary{
		{ID: b[0].ID, State: ledger.Accepted, Rows: 3, Counts: ledger.Counts{Accepted: 2, Rejected: 1}, HTTPStatus: 200, Began: sent, Took: 20 * time.Millisecond, Answer: []byte("{}\n")},
		{ID: b[1].ID, State: ledger.Rejected, Rows: 3, Counts: ledger.Counts{Rejected: 3}, HTTPStatus: 422, Reason: "because of the batch", Began: sent, Took: 20 * time.Millisecond, Answer: []byte("no")},
		{ID: got[2].ID, State: ledger.Pending, Rows: 2, Counts: ledger.Counts{Pending: 2}},
	})
	w.is("no such run", end(w.Batches(w.Context(), 99)), ledger.ErrNoRun)
	p := plan()
	p.BatchSize = 1
	many := w.run(p, entries(1001, 3100)...)
	w.same("many", len(collect(w, w.Batches(w.Context(), many.ID))), 2100)
}

func lookupFindsState(w *world) {
	run := w.run(plan(), entries(1, 6)...)
	b := w.claim(run.ID, 1)
	o := outcome(b[0], ledger.Accepted)
	o.Rows = []ledger.RowOutcome{{Row: b[0].Rows[1].ID, State: ledger.Rejected}}
	w.must(w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{o}))
	look := func(key tracking.Key, want ledger.State) {
		w.Helper()
		state, ok, err := w.Lookup(w.Context(), key)
		w.must(err)
		if state != want || ok != (want != "") {
			w.Errorf("%v: %q, %v; want %q", key, state, ok, want)
		}
	}
	look(item(1).Key(), ledger.Accepted)
	look(item(2).Key(), ledger.Rejected)
	look(item(4).Key(), ledger.Pending)
	look(item(7).Key(), "")
	look(tracking.Key{ReferID: item(1).ReferID, Number: item(2).Number}, "")
}

func bodyMayCallTheStore(w *world) {
	run := w.run(plan(), entries(1, 9)...)
	for sum, err := range w.Runs(w.Context(), 0) {
		w.must(err)
		for b, err := range w.Batches(w.Context(), sum.ID) {
			w.must(err)
			for r, err := range w.Rows(w.Context(), run.ID) {
				w.must(err)
				for st, err := range w.Statuses(w.Context(), ledger.Filter{}) {
					w.must(err)
					w.must(w.Record(w.Context(), []ledger.RecordedAnswer{{Seen: []ledger.Sighting{sighting(1, sent)}}}))
					if st.Item == r.Item {
						break
					}
				}
			}
			w.same("rows", b.Rows, int64(3))
		}
	}
}
