package storetest

import (
	"fmt"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

var unknownTests = map[string]func(*world){
	"CutsToSize":                cutsToSize,
	"SendsInHalves":             sendsInHalves,
	"YieldsWhatIsUnknown":       yieldsWhatIsUnknown,
	"AcceptsWhatIsFound":        acceptsWhatIsFound,
	"FindingsThatNoLongerHold":  findingsThatNoLongerHold,
	"FindingsThatNeedNoSibling": findingsThatNeedNoSibling,
	"FirstAbsenceIsKept":        firstAbsenceIsKept,
	"ReopensRejected":           reopensRejected,
	"QuestionsAccepted":         questionsAccepted,
	"ChecksFirst":               checksFirst,
	"Controls":                  controls,
	"BatchLimits":               batchLimits,
}

func (w *world) unknown(run int64) []ledger.UnknownRow {
	w.Helper()
	return collect(w, w.Unknown(w.Context(), run))
}

// resolve makes rows end in that state and checks how many did.
func (w *world) resolve(run int64, state ledger.State, want int64, rows ...ledger.UnknownRow) {
	w.Helper()
	var all []ledger.Resolution
	for _, x := range rows {
		all = append(all, ledger.Resolution{Row: x.Row, Batch: x.Batch, State: state})
	}
	w.same("resolutions that applied", have(w.Resolve(w.Context(), run, all))(w), want)
}

func sizes(batches []ledger.Batch) []int {
	all := []int{}
	for _, b := range batches {
		all = append(all, len(b.Rows))
	}
	return all
}

func cutsToSize(w *world) {
	p := plan()
	p.BatchSize = 10
	run := w.run(p, entries(1, 23)...)
	b := have(w.Claim(w.Context(), run.ID, 1, 1))(w)
	w.same("one alone", sizes(b), []int{1})
	w.same("the first", b[0].Items(), itemsOf(entries(1, 1)))
	rest := have(w.Claim(w.Context(), run.ID, 9, 4))(w)
	w.same("the rest", sizes(rest), []int{4, 4, 1, 4, 4, 2, 3})
	seen := map[int64]bool{b[0].Rows[0].ID: true}
	for _, b := range rest {
		for _, r := range b.Rows {
			if seen[r.ID] {
				w.Errorf("row %d was claimed twice", r.ID)
			}
			seen[r.ID] = true
		}
	}
	w.same("rows", len(seen), 23)
	w.counts(run.ID, ledger.Counts{Sending: 23})
	_, err := w.Claim(w.Context(), run.ID, 1, 0)
	if err == nil {
		w.Error("claimed batches of no rows")
	}
}

func sendsInHalves(w *world) {
	p := plan()
	p.BatchSize = 5
	run := w.run(p, entries(1, 5)...)
	known := w.run(plan(), entries(2, 4)...)
	b := w.claim(run.ID, 1)
	o := outcome(b[0], ledger.Pending)
	o.Halve, o.HTTPStatus, o.Reason, o.Answer = true, 422, "one is bad", []byte("which?")
	w.must(w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{o}))
	w.counts(run.ID, ledger.Counts{Pending: 5})
	w.counts(known.ID, ledger.Counts{Pending: 3})
	halves := w.claim(run.ID, 9)
	w.same("halves", sizes(halves), []int{3, 2})
	w.record(ledger.Accepted, halves[0])
	w.record(ledger.Rejected, halves[1])
	w.counts(known.ID, ledger.Counts{Accepted: 2, Rejected: 1})
	all := collect(w, w.Batches(w.Context(), run.ID))
	w.same("batches", len(all), 3)
	w.same("the refused one keeps its answer", string(all[0].Answer), "which?")
	w.same("and has no rows", all[0].Rows, int64(0))
	if err := w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{o}); err == nil {
		w.Error("recorded a batch that was halved")
	}
	o.State = ledger.Accepted
	if err := w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{o}); err == nil {
		w.Error("accepted in halves")
	}
}

func yieldsWhatIsUnknown(w *world) {
	all := entries(1, 7)
	all[6].Item.ReferID = all[3].Item.ReferID // a second parcel of one order
	run := w.run(plan(), all...)
	b := w.claim(run.ID, 3)
	o := outcome(b[0], ledger.Accepted)
	o.Rows = []ledger.RowOutcome{{Row: b[0].Rows[2].ID, State: ledger.Unknown, Reason: "not told"}}
	w.must(w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{o, outcome(b[1], ledger.Unknown), outcome(b[2], ledger.Accepted)}))
	ended := sent.Add(20 * time.Millisecond)
	var want []ledger.UnknownRow
	for i, r := range append(b[0].Rows[2:3:3], b[1].Rows...) {
		batch, others := b[1].ID, int64(0)
		if i == 0 {
			batch = b[0].ID
		}
		if i == 1 {
			others = 1
		}
		want = append(want, ledger.UnknownRow{Row: r.ID, Batch: batch, Run: run.ID, Item: r.Item, Siblings: others, Ended: ended})
	}
	w.same("rows", w.unknown(run.ID), want)
	w.same("of a later input", w.unknown(w.run(plan(), entries(5, 9)...).ID), want[2:])
	w.is("no such run", end(w.Unknown(w.Context(), 99)), ledger.ErrNoRun)
}

func acceptsWhatIsFound(w *world) {
	run := w.run(plan(), entries(1, 3)...)
	w.record(ledger.Unknown, w.claim(run.ID, 1)...)
	rows := w.unknown(run.ID)
	w.resolve(run.ID, ledger.Accepted, 2, rows[:2]...)
	w.counts(run.ID, ledger.Counts{Accepted: 2, Unknown: 1})
	w.same("left", w.unknown(run.ID), rows[2:])
	for _, r := range collect(w, w.Rows(w.Context(), run.ID)) {
		if (r.Reason != "") != (r.State == ledger.Unknown) {
			w.Errorf("row %d is %s: reason %q", r.ID, r.State, r.Reason)
		}
	}
	for _, bad := range []ledger.State{ledger.Sending, ledger.Rejected, ""} {
		if _, err := w.Resolve(w.Context(), run.ID, []ledger.Resolution{{Row: rows[2].Row, Batch: rows[2].Batch, State: bad}}); err == nil {
			w.Errorf("unknown became %q", bad)
		}
	}
}

func findingsThatNoLongerHold(w *world) {
	run := w.run(plan(), entries(1, 3)...)
	w.record(ledger.Unknown, w.claim(run.ID, 1)...)
	old := w.unknown(run.ID)
	w.resolve(run.ID, ledger.Pending, 3, old...)
	w.resolve(run.ID, ledger.Accepted, 0, old...)
	w.counts(run.ID, ledger.Counts{Pending: 3})
	w.record(ledger.Unknown, w.claim(run.ID, 1)...)
	w.resolve(run.ID, ledger.Pending, 0, old...) // they went out with another batch since
	w.counts(run.ID, ledger.Counts{Unknown: 3})
}

func findingsThatNeedNoSibling(w *world) {
	run := w.run(plan(), entries(1, 1)...)
	w.record(ledger.Unknown, w.claim(run.ID, 1)...)
	x := w.unknown(run.ID)[0]
	e := entry(x.Item.ReferID)
	e.Item.Number = "another parcel"
	w.run(plan(), e)
	f := ledger.Resolution{Row: x.Row, Batch: x.Batch, State: ledger.Accepted, IfNoSiblings: true}
	applied := have(w.Resolve(w.Context(), run.ID, []ledger.Resolution{f}))(w)
	w.same("applied", applied, int64(0))
	w.counts(run.ID, ledger.Counts{Unknown: 1})
	f.IfNoSiblings = false
	applied = have(w.Resolve(w.Context(), run.ID, []ledger.Resolution{f}))(w)
	w.same("applied", applied, int64(1))
	w.counts(run.ID, ledger.Counts{Accepted: 1})
}

func firstAbsenceIsKept(w *world) {
	run := w.run(plan(), entries(1, 2)...)
	w.record(ledger.Unknown, w.claim(run.ID, 1)...)
	x := w.unknown(run.ID)[0]
	f := ledger.Resolution{Row: x.Row, Batch: x.Batch, State: ledger.Unknown, Reason: "absent once", AbsentSince: sent.Add(time.Hour), Fingerprint: "404 no\x00ne"}
	have(w.Resolve(w.Context(), run.ID, []ledger.Resolution{f}))(w)
	w.kill()
	got := w.unknown(run.ID)
	w.same("absent", got[0].AbsentSince, f.AbsentSince)
	w.same("look", got[0].Fingerprint, "404 no\ufffdne")
	w.same("reason", collect(w, w.Rows(w.Context(), run.ID))[0].Reason, f.Reason)
	if !got[1].AbsentSince.IsZero() {
		w.Error("another row is absent too")
	}
	f.AbsentSince, f.Fingerprint = time.Time{}, ""
	have(w.Resolve(w.Context(), run.ID, []ledger.Resolution{f}))(w)
	if got := w.unknown(run.ID)[0]; !got.AbsentSince.IsZero() || got.Fingerprint != "" {
		w.Errorf("an absence that was forgotten is there: %v", got)
	}
}

func reopensRejected(w *world) {
	run := w.run(plan(), entries(1, 6)...)
	b := w.claim(run.ID, 2)
	o := outcome(b[0], ledger.Accepted)
	o.Rows = []ledger.RowOutcome{{Row: b[0].Rows[1].ID, State: ledger.Rejected, Reason: "bad"}}
	w.must(w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{o, outcome(b[1], ledger.Rejected)}))
	w.same("reopened", have(w.Reopen(w.Context(), run.ID, ledger.Rejected, ""))(w), int64(4))
	w.counts(run.ID, ledger.Counts{Accepted: 2, Pending: 4})
	w.record(ledger.Accepted, w.claim(run.ID, 9)...)
	w.counts(run.ID, ledger.Counts{Accepted: 6})
	for _, s := range []ledger.State{ledger.Accepted, ledger.Sending, ledger.Pending} {
		if _, err := w.Reopen(w.Context(), run.ID, s, ""); err == nil {
			w.Errorf("reopened %s rows", s)
		}
	}
	_, err := w.Reopen(w.Context(), 99, ledger.Rejected, "")
	w.is("no such run", err, ledger.ErrNoRun)
}

func questionsAccepted(w *world) {
	run := w.run(plan(), entries(1, 6)...)
	b := w.claim(run.ID, 2)
	o := outcome(b[1], ledger.Unknown)
	o.Rows = []ledger.RowOutcome{{Row: b[1].Rows[0].ID, State: ledger.Accepted}}
	w.must(w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{outcome(b[0], ledger.Accepted), o}))
	accepted := func(run int64) []ledger.UnknownRow { return collect(w, w.Accepted(w.Context(), run)) }
	all := accepted(run.ID)
	w.same("accepted", len(all), 4)
	w.same("run of the first", all[0].Run, run.ID)
	w.same("of another input", len(accepted(w.run(plan(), entries(2, 2)...).ID)), 1)
	n := have(w.MarkUnknown(w.Context(), []ledger.UnknownRow{all[0], all[3]}, "not\x00found"))(w)
	w.same("questioned", n, int64(2))
	w.counts(run.ID, ledger.Counts{Accepted: 2, Unknown: 4})
	w.same("reason", collect(w, w.Rows(w.Context(), run.ID))[0].Reason, "not\ufffdfound")
	n = have(w.MarkUnknown(w.Context(), all[:2], "again"))(w)
	w.same("that were accepted still", n, int64(1))
	w.same("controls", len(have(w.Controls(w.Context(), 9))(w)), 1)
	w.resolve(run.ID, ledger.Accepted, 1, w.unknown(run.ID)[0])
	w.resolve(run.ID, ledger.Pending, 4, w.unknown(run.ID)...)
	w.counts(run.ID, ledger.Counts{Accepted: 2, Pending: 4})
	w.is("no such run", end(w.Accepted(w.Context(), 99)), ledger.ErrNoRun)
}

func checksFirst(w *world) {
	w.record(ledger.Accepted, w.claim(w.run(plan(), entries(1, 2)...).ID, 1)...)
	p := plan()
	p.CheckFirst = true
	run := w.run(p, entries(1, 7)...)
	w.counts(run.ID, ledger.Counts{Accepted: 2, Unknown: 5})
	w.same("to be sent", len(w.claim(run.ID, 9)), 0)
	rows := w.unknown(run.ID)
	w.same("rows", len(rows), 5)
	for _, x := range rows {
		if !x.Unsent || !x.Ended.IsZero() {
			w.Errorf("%v was sent", x)
		}
	}
	w.resolve(run.ID, ledger.Pending, 5, rows...)
	w.record(ledger.Unknown, w.claim(run.ID, 1)...)
	if x := w.unknown(run.ID)[0]; x.Unsent || x.Ended.IsZero() {
		w.Errorf("%v was not sent", x)
	}
	w.same("requests", have(w.Run(w.Context(), run.ID))(w).Requests, int64(1))
}

func controls(w *world) {
	w.same("of no account", len(have(w.Controls(w.Context(), 3))(w)), 0)
	all := entries(1, 6)
	all[4].Item.ReferID = all[3].Item.ReferID
	run := w.run(plan(), all...)
	b := w.claim(run.ID, 2)
	w.record(ledger.Unknown, b[0])
	w.record(ledger.Accepted, b[1])
	got := have(w.Controls(w.Context(), 2))(w)
	w.same("controls", len(got), 2)
	w.same("the first, alone of its order", got[0].Item, all[5].Item)
	w.same("siblings of the second", got[1].Siblings, int64(1))
	w.resolve(run.ID, ledger.Accepted, 1, w.unknown(run.ID)[0])
	got = have(w.Controls(w.Context(), 9))(w)
	w.same("controls", len(got), 4)
}

// proofs are recorded only by rows that are still where they were queried.
func proofs(w *world) {
	ctx, at := w.Context(), time.UnixMilli(5000)
	run := w.run(plan(), entries(1, 4)...)
	b := w.claim(run.ID, 2)
	w.record(ledger.Unknown, b...)
	prove := func(shape string, state, in ledger.State, want bool, rows ...ledger.UnknownRow) {
		w.Helper()
		applied := have(w.Prove(ctx, ledger.Proof{Shape: shape, State: state, Proven: at, Run: run.ID}, in, rows))(w)
		w.same("proven "+shape, applied, want)
	}
	rows := w.unknown(run.ID)
	prove("refused", ledger.Pending, ledger.Unknown, true, rows...)
	prove("refused", ledger.Unknown, ledger.Unknown, true, rows...)
	prove("refused", ledger.Pending, ledger.Unknown, true, rows...) // what failed once stays so
	prove("taken", ledger.Accepted, ledger.Accepted, false, rows[0])
	w.resolve(run.ID, ledger.Accepted, 1, rows[0])
	prove("taken", ledger.Accepted, ledger.Accepted, true, rows[0])
	prove("of a row that was found", ledger.Pending, ledger.Unknown, false, rows...)
	w.resolve(run.ID, ledger.Pending, 1, rows[1])
	prove("of a row in another batch", ledger.Pending, ledger.Pending, false, rows[1])
	w.kill()
	refused := ledger.Proof{Shape: "refused", State: ledger.Unknown, Proven: at, Run: run.ID}
	w.same("proofs", have(w.Proofs(ctx))(w), []ledger.Proof{refused, {Shape: "taken", State: ledger.Accepted, Proven: at, Run: run.ID}})
	w.must(w.Disprove(ctx, "taken"))
	w.must(w.Disprove(ctx, "taken"))
	w.same("without the one that failed", have(w.Proofs(ctx))(w), []ledger.Proof{refused})
}

func rowsWaitForAProof(w *world) {
	run := w.run(plan(), entries(1, 2)...)
	b := w.claim(run.ID, 1)[0]
	w.must(w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{{Batch: b.ID, State: ledger.Unknown, Shape: "400", Began: time.UnixMilli(1)}}))
	for _, x := range w.unknown(run.ID) {
		w.same("shape", x.Shape, "400")
		w.resolve(run.ID, ledger.Unknown, 1, x)
	}
	for _, x := range w.unknown(run.ID) {
		w.same("once it was queried", x.Shape, "")
	}
	w.same("pending", w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{{Batch: b.ID, State: ledger.Pending, Shape: "400"}}) != nil, true)
}

func batchLimits(w *world) {
	for _, step := range []struct{ limit, want int }{{500, 500}, {800, 500}, {250, 250}, {0, 1}} {
		w.must(w.LowerBatchLimit(w.Context(), ledger.Async, step.limit))
		got := have(w.BatchLimit(w.Context(), ledger.Async))(w)
		w.same(fmt.Sprintf("after %d", step.limit), got, step.want)
	}
	w.same("of the other mode", have(w.BatchLimit(w.Context(), ledger.Sync))(w), 0)
}
