package storetest

import (
	"slices"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// manyAtOnce goes beyond whatever a store does in one portion.
func manyAtOnce(w *world) {
	const n = 70_000
	all := make([]ledger.Entry, n)
	for i := range all {
		all[i] = ledger.Entry{Line: i + 2, Item: item((i * 7919) % n)} // in no order, each once
	}
	p := plan()
	p.BatchSize = 1000
	run := w.run(p, all...)
	w.same("tally", run.Tally, ledger.Tally{New: n})
	i := 0
	for r, err := range w.Rows(w.Context(), run.ID) {
		w.must(err)
		if r.Line != i+2 || r.Item != all[i].Item || r.State != ledger.Pending || r.Known || r.Repeat {
			w.Fatalf("record %d: %v", i, r)
		}
		i++
	}
	w.same("records", i, n)
	again := w.run(p, slices.Concat(all, all[:10])...)
	w.same("tally of the second", again.Tally, ledger.Tally{Known: n, KnownPending: n, Repeats: 10})
	w.counts(again.ID, ledger.Counts{Pending: n})
	staging := w.begin(w.Store, p, entries(n, n+69_999)...)
	w.must(staging.Discard(w.Context()))
	w.same("adopted", have(w.Adopt(w.Context(), again.ID, 1<<20))(w), int64(n))
	batches := w.claim(again.ID, 100)
	w.same("batches", len(batches), n/1000)
	w.same("first batch", batches[0].Items()[0], all[0].Item)
}

// manyInOrder sees that rows which follow each other are kept each as it is.
func manyInOrder(w *world) {
	all := make([]ledger.Entry, 5000)
	for i := range all {
		e := ledger.Entry{Line: i + 2, Item: item(i)}
		if i >= 1234 {
			e.Line += 7
		}
		if i >= 3000 {
			e.File, e.Line = 1, i-2998
		}
		if i%3 == 0 {
			e.Item.CarrierCode = "dhl"
		}
		all[i] = e
	}
	p := plan()
	p.BatchSize = 300
	run := w.run(p, all...)
	files, i := []string{"orders.csv", "-"}, 0
	for r, err := range w.Rows(w.Context(), run.ID) {
		w.must(err)
		if e := all[i]; r.File != files[e.File] || r.Line != e.Line || r.Item != e.Item {
			w.Fatalf("record %d: %+v; want %+v", i, r, e)
		}
		i++
	}
	w.same("records", i, len(all))
	n := 0
	for _, b := range w.claim(run.ID, 100) {
		for _, it := range b.Items() {
			w.same("item", it, all[n].Item)
			n++
		}
	}
	w.same("claimed", n, len(all))
}
