package storetest

import (
	"context"
	"slices"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// beginRun begins a run that is visible with the entries.
func (w *world) beginRun(p ledger.Plan, all ...ledger.Entry) (ledger.Staging, ledger.Run) {
	w.Helper()
	staging := have(w.Stage(w.Context(), p))(w)
	run := staging.Begin()
	w.add(staging, all...)
	return staging, run
}

func (w *world) add(staging ledger.Staging, all ...ledger.Entry) {
	w.Helper()
	have(staging.Add(w.Context(), all))(w)
}

// items returns the numbers of rows by batch.
func items(batches []ledger.Batch) (all [][]string) {
	for _, b := range batches {
		var refs []string
		for _, r := range b.Rows {
			refs = append(refs, r.Item.ReferID)
		}
		all = append(all, refs)
	}
	return all
}

func refs(numbers ...int) (all []string) {
	for _, n := range numbers {
		all = append(all, item(n).ReferID)
	}
	return all
}

// isSentWhileItIsStaged sees that a batch is handed out once it is full, whatever
// portions its rows came in, and that what was sent stays so.
func isSentWhileItIsStaged(w *world) {
	ctx := w.Context()
	earlier := w.run(plan(), entries(20, 21)...)
	staging := have(w.Stage(ctx, plan()))(w)
	run := staging.Begin()
	_, err := w.Run(ctx, run.ID)
	w.is("Run before the first rows", err, ledger.ErrNoRun)
	w.add(staging, entries(1, 2)...)
	w.same("full", len(staging.Full()), 0)
	w.counts(run.ID, ledger.Counts{Pending: 2})
	other := w.open()
	for _, s := range []Store{w.Store, other} {
		w.same("claimed before a batch is full", items(have(s.Claim(ctx, run.ID, 10, 1000))(w)), [][]string(nil))
	}
	w.add(staging, append(entries(20, 20), entries(3, 8)...)...)
	full := staging.Full()
	w.same("full", items(full), [][]string{refs(1, 2, 3), refs(4, 5, 6)})
	w.same("full again", len(staging.Full()), 0)
	claimed := have(w.ClaimFull(ctx, run.ID, full[:1]))(w)
	w.same("claimed", unowned(w, claimed), full[:1])
	w.counts(run.ID, ledger.Counts{Pending: 6, Sending: 3})
	w.record(ledger.Accepted, claimed[0])
	sum := have(other.Run(ctx, run.ID))(w)
	w.same("partial", sum.Partial, true)
	w.same("tally", sum.Tally, ledger.Tally{New: 8, Known: 1})
	w.add(staging, append(entries(1, 1), entries(9, 10)...)...)
	w.same("full", items(staging.Full()), [][]string{refs(7, 8, 9)})
	run = have(staging.Open(ctx))(w)
	w.same("tally", run.Tally, ledger.Tally{New: 10, Known: 1, KnownPending: 1, Repeats: 1})
	sum = have(w.Run(ctx, run.ID))(w)
	w.same("run", sum.Run, run)
	w.same("partial", sum.Partial, false)
	w.same("left", items(w.claim(run.ID, 10)), [][]string{refs(4, 5, 6), refs(7, 8, 9), refs(10)})
	w.counts(run.ID, ledger.Counts{Accepted: 3, Sending: 7, Pending: 1})
	w.counts(earlier.ID, ledger.Counts{Pending: 2})
	w.same("records", len(collect(w, w.Rows(ctx, run.ID))), 12)
}

// begunLate sees that rows which were added before their run was begun take what was known of them.
func begunLate(w *world) {
	w.learn(sighting(1, sent), sighting(3, sent))
	w.follow(eventSighting(1, item(2).Number, ""))
	staging := have(w.Stage(w.Context(), plan()))(w)
	w.add(staging, entries(1, 2)...)
	staging.Begin()
	w.add(staging, entries(3, 4)...)
	have(staging.Open(w.Context()))(w)
	w.same("delivered", w.list(ledger.Filter{Statuses: []string{"delivered"}}), ids(1, 2, 3))
	w.same("all", w.list(ledger.Filter{}), ids(1, 2, 3, 4))
}

// begunRunOutlivesItsStaging sees that a run whose staging ended early keeps what
// it got, and that the same input adds the rest.
func begunRunOutlivesItsStaging(w *world) {
	for name, end := range map[string]func(ledger.Staging){
		"killed":    func(ledger.Staging) { w.kill() },
		"discarded": func(s ledger.Staging) { w.must(s.Discard(w.Context())) },
	} {
		first := map[string]int{"killed": 1, "discarded": 101}[name]
		staging, run := w.beginRun(plan(), entries(first, first+4)...)
		full := staging.Full()
		have(w.ClaimFull(w.Context(), run.ID, full))(w)
		w.record(ledger.Accepted, full...)
		end(staging)
		sum := have(w.Run(w.Context(), run.ID))(w)
		w.same(name+": partial", sum.Partial, true)
		w.same(name+": tally", sum.Tally, ledger.Tally{New: 5})
		if name == "discarded" { // it can be continued as it is
			w.same(name+": left", items(w.claim(run.ID, 10)), [][]string{refs(first+3, first+4)})
			continue
		}
		again := w.run(plan(), entries(first, first+9)...)
		w.same(name+": tally of the same input", again.Tally, ledger.Tally{New: 5, Known: 5, KnownPending: 2})
		sum = have(w.Run(w.Context(), run.ID))(w)
		w.same(name+": partial after the same input", sum.Partial, false)
		w.same(name+": adopted", have(w.Adopt(w.Context(), again.ID, 1<<20))(w), int64(2))
		w.counts(again.ID, ledger.Counts{Accepted: 3, Pending: 7})
	}
}

// partialRunIsCompleted sees that a run stays partial until an input of the same
// files has each of its rows.
func partialRunIsCompleted(w *world) {
	ctx := w.Context()
	staging, run := w.beginRun(plan(), append(entries(1, 4), entries(4, 5)...)...)
	w.must(staging.Discard(ctx))
	expect := func(what string, id int64, partial bool) {
		w.Helper()
		w.same(what, have(w.Run(ctx, id))(w).Partial, partial)
	}
	otherFiles := plan()
	otherFiles.Files = append(otherFiles.Files, "more.csv")
	w.run(plan(), entries(2, 9)...)
	w.run(otherFiles, entries(1, 9)...)
	staging, known := w.beginRun(plan(), entries(1, 9)...)
	w.must(staging.Discard(ctx))
	expect("partial", run.ID, true)
	w.run(plan(), append(entries(1, 3), entries(3, 5)...)...)
	expect("partial after its rows came again", run.ID, false)
	expect("partial after a shorter input", known.ID, true)
	w.run(plan(), append(entries(5, 9), append(entries(1, 4), entries(1, 2)...)...)...)
	expect("partial after a longer input", known.ID, false)
}

// fullBatchIsClaimedOnce sees that a batch which somebody else claimed, or whose
// rows were moved, is not sent from memory.
func fullBatchIsClaimedOnce(w *world) {
	ctx := w.Context()
	staging, run := w.beginRun(plan(), entries(1, 9)...)
	full := staging.Full()
	w.same("full", len(full), 3)
	other := w.open()
	taken, err := other.Claim(ctx, run.ID, 1, 1) // cut out of the first batch
	w.must(err)
	w.same("taken", items(taken), [][]string{refs(1)})
	_, err = other.Claim(ctx, run.ID, 1, 2) // the rest of it
	w.must(err)
	w.must(other.RecordOutcomes(ctx, []ledger.BatchOutcome{{Batch: taken[0].ID, State: ledger.Pending}}))
	claimed := have(w.ClaimFull(ctx, run.ID, full))(w)
	w.same("claimed", unowned(w, claimed), full[1:])
	claimed = have(w.ClaimFull(ctx, run.ID, full))(w)
	w.same("claimed twice", len(claimed), 0)
	w.must(w.RecordOutcomes(ctx, []ledger.BatchOutcome{{Batch: full[1].ID, State: ledger.Pending}}))
	claimed = have(w.ClaimFull(ctx, run.ID, full))(w)
	w.same("claimed after it was sent once", len(claimed), 0)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = w.ClaimFull(ended, run.ID, full)
	w.is("claiming", err, context.Canceled)
}

// unowned returns claimed batches as they were before they were claimed.
func unowned(w *world, claimed []ledger.Batch) []ledger.Batch {
	w.Helper()
	before := slices.Clone(claimed)
	for i := range before {
		w.must(w.CheckOwner(before[i].Owner))
		before[i].Owner = ""
	}
	return before
}
