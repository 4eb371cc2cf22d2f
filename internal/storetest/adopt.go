package storetest

import (
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

var adoptTests = map[string]func(*world){
	"TakesWhatIsPending":       takesWhatIsPending,
	"LeavesWhatIsNotItsOwn":    leavesWhatIsNotItsOwn,
	"SharesWithTheLiving":      sharesWithTheLiving,
	"FillsBatchesOfItsOwnSize": fillsBatchesOfItsOwnSize,
	"GoesPastRejectedRows":     goesPastRejectedRows,
}

func itemsOf(all []ledger.Entry) []tracking.Item {
	var items []tracking.Item
	for _, e := range all {
		items = append(items, e.Item)
	}
	return items
}

// adopt adopts for a run and checks how many rows that were.
func (w *world) adopt(run, want int64) {
	w.Helper()
	w.same("adopted", have(w.Adopt(w.Context(), run, 1<<20))(w), want)
}

// pending checks how many rows are pending that are not in the run's input.
func (w *world) pending(except, want int64) {
	w.Helper()
	w.same("pending elsewhere", have(w.Pending(w.Context(), except))(w), want)
}

func takesWhatIsPending(w *world) {
	first := w.run(plan(), entries(1, 12)...)
	b := w.claim(first.ID, 3)
	w.record(ledger.Accepted, b[0])
	w.record(ledger.Unknown, b[1])
	w.record(ledger.Rejected, b[2])
	second := w.run(plan(), entries(1, 13)...)
	w.same("tally", second.Tally, ledger.Tally{New: 1, Known: 12, KnownPending: 3, KnownOpen: 3})
	w.adopt(second.ID, 3)
	w.adopt(second.ID, 0)
	want := ledger.Counts{Accepted: 3, Unknown: 3, Rejected: 3, Pending: 3}
	w.counts(first.ID, want)
	want.Pending++
	w.counts(second.ID, want)
	w.same("nothing left in the first", len(w.claim(first.ID, 9)), 0)
	b = w.claim(second.ID, 9)
	var items []tracking.Item
	for _, b := range b {
		items = append(items, b.Items()...)
	}
	w.same("items", items, itemsOf(entries(10, 13)))
	w.record(ledger.Accepted, b...)
	w.counts(first.ID, ledger.Counts{Accepted: 6, Unknown: 3, Rejected: 3})
	sent := map[int64]int64{} // by each run, of what was accepted
	for s, err := range w.Runs(w.Context(), 0) {
		w.must(err)
		sent[s.ID] = s.Accepted()
	}
	w.same("accepted rows", sent, map[int64]int64{first.ID: 3, second.ID: 4})
	w.same("input of the first", len(collect(w, w.Rows(w.Context(), first.ID))), 12)
	st := collect(w, w.Statuses(w.Context(), ledger.Filter{}))
	w.same("run that brought it in", st[11].Run, first.ID)
}

func leavesWhatIsNotItsOwn(w *world) {
	first := w.run(plan(), entries(1, 9)...)
	second := w.run(plan(), entries(5, 7)...)
	w.pending(second.ID, 6)
	w.adopt(second.ID, 3)
	w.pending(second.ID, 6)
	w.pending(first.ID, 0)
	w.pending(0, 9)
	w.counts(first.ID, ledger.Counts{Pending: 9})
	b := w.claim(first.ID, 9)
	w.same("batches", len(b), 3)
	var items []tracking.Item
	for _, b := range b {
		items = append(items, b.Items()...)
	}
	w.same("items", items, append(itemsOf(entries(1, 4)), itemsOf(entries(8, 9))...))
	w.same("own", w.claim(second.ID, 9)[0].Items(), itemsOf(entries(5, 7)))
	w.pending(0, 0)
	none := w.run(plan(), entries(1, 9)...)
	w.adopt(none.ID, 0)
	_, err := w.Adopt(w.Context(), 99, 1)
	w.is("no such run", err, ledger.ErrNoRun)
}

func sharesWithTheLiving(w *world) {
	first := w.run(plan(), entries(1, 9)...)
	sending := w.claim(first.ID, 1)
	other := w.open()
	run := have(w.begin(other, plan(), entries(1, 9)...).Open(w.Context()))(w)
	for _, want := range []int64{3, 3, 0} { // what is being sent stays where it is
		w.same("adopted", have(other.Adopt(w.Context(), run.ID, 3))(w), want)
	}
	w.same("left", len(w.claim(first.ID, 9)), 0)
	mine := have(other.Claim(w.Context(), run.ID, 9, 3))(w)
	w.same("batches", len(mine), 2)
	w.record(ledger.Accepted, sending...)
	w.must(other.RecordOutcomes(w.Context(), accepted(mine)))
	w.counts(first.ID, ledger.Counts{Accepted: 9})
	w.counts(run.ID, ledger.Counts{Accepted: 9})
}

func fillsBatchesOfItsOwnSize(w *world) {
	first := w.run(plan(), entries(1, 9)...)
	p := plan()
	p.BatchSize = 4
	run := w.run(p, entries(1, 9)...)
	w.adopt(run.ID, 9)
	sizes := []int{}
	for _, b := range w.claim(run.ID, 9) {
		sizes = append(sizes, len(b.Rows))
	}
	w.same("batches, taken as they are", sizes, []int{3, 3, 3})
	w.same("batches left in the first", len(collect(w, w.Batches(w.Context(), first.ID))), 0)
	w.counts(first.ID, ledger.Counts{Sending: 9})
	p.BatchSize = 2
	w.record(ledger.Pending, ledger.Batch{ID: collect(w, w.Batches(w.Context(), run.ID))[0].ID})
	small := w.run(p, entries(1, 9)...)
	w.adopt(small.ID, 3)
	for _, b := range w.claim(small.ID, 9) {
		if len(b.Rows) > 2 {
			w.Errorf("%d rows in a batch of two", len(b.Rows))
		}
	}
	w.counts(first.ID, ledger.Counts{Sending: 9})
}

func goesPastRejectedRows(w *world) {
	const batches = 40
	first := w.run(plan(), entries(1, 3*batches+1)...)
	var named []ledger.Entry
	for i, b := range w.claim(first.ID, batches) {
		o := outcome(b, ledger.Pending)
		o.Rows = []ledger.RowOutcome{{Row: b.Rows[0].ID, State: ledger.Rejected, Reason: "no"}}
		w.must(w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{o}))
		named = append(named, entries(3*i+1, 3*i+1)...)
	}
	run := w.run(plan(), append(named, entries(3*batches+1, 3*batches+1)...)...)
	w.counts(run.ID, ledger.Counts{Rejected: batches, Pending: 1})
	w.adopt(run.ID, 1)
	w.same("claimed", len(w.claim(run.ID, 9)), 1)
	w.adopt(run.ID, 0)
}
