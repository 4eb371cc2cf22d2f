package storetest

import (
	"fmt"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

var rejectedTests = map[string]func(*world){
	"SupersededByLaterInput": supersededByLaterInput,
	"SupersededAfterPrune":   supersededAfterPrune,
	"DismissesOpenRows":      dismissesOpenRows,
	"DismissesByName":        dismissesByName,
	"ReopensOpenRowsOnly":    reopensOpenRowsOnly,
	"ReopensByName":          reopensByName,
	"FirstPending":           firstPending,
	"ChecksPending":          checksPending,
}

// parcel returns an entry of an order with that number.
func parcel(line int, ref, number string) ledger.Entry {
	return ledger.Entry{Line: line, Item: tracking.Item{ReferID: ref, Number: number}}
}

// rejected stages entries one batch each, and records them as rejected, but those
// whose number begins with "ok", which are accepted.
func (w *world) rejected(all ...ledger.Entry) ledger.Run {
	w.Helper()
	p := plan()
	p.BatchSize = 1
	run := w.run(p, all...)
	for _, b := range w.claim(run.ID, len(all)) {
		state := ledger.Rejected
		if b.Rows[0].Item.Number[:2] == "ok" {
			state = ledger.Accepted
		}
		w.record(state, b)
	}
	return run
}

// rejections returns what the rows of a run's input are, in order.
func (w *world) rejections(run int64) []string {
	w.Helper()
	var all []string
	for _, r := range collect(w, w.Rows(w.Context(), run)) {
		mark := string(r.State)
		switch {
		case r.Superseded:
			mark = "superseded"
		case !r.Dismissed.IsZero():
			mark = "dismissed"
			if age := time.Since(r.Dismissed); age < -time.Second || age > time.Hour {
				w.Errorf("dismissed %v ago", age)
			}
		}
		if (r.Refine(r.State) == ledger.Rejected) != (mark == "rejected") ||
			mark != "accepted" && mark != "pending" && (r.State != ledger.Rejected || r.Reason == "") {
			w.Errorf("%s: %+v", mark, r)
		}
		all = append(all, mark)
	}
	sum := have(w.Run(w.Context(), run))(w)
	n := map[string]int64{}
	for _, mark := range all {
		n[mark]++
	}
	w.same("open, superseded, dismissed", []int64{sum.Rejected(), sum.Superseded, sum.Dismissed}, []int64{n["rejected"], n["superseded"], n["dismissed"]})
	return all
}

func (w *world) dismiss(run int64, ref string, want int64) {
	w.Helper()
	w.same("dismissed by "+fmt.Sprintf("%q", ref), have(w.Dismiss(w.Context(), run, ref))(w), want)
}

func supersededByLaterInput(w *world) {
	run := w.rejected(parcel(2, "A", "bad"), parcel(3, "A", "ok-second-parcel"), parcel(4, "B", "bad"), parcel(5, "C", "bad"))
	w.same("another parcel of the same input fixes nothing", w.rejections(run.ID), []string{"rejected", "accepted", "rejected", "rejected"})
	w.rejected(parcel(2, "B", "worse"), parcel(3, "C", "ok-c"))
	w.same("accepted later", w.rejections(run.ID), []string{"rejected", "accepted", "rejected", "superseded"})

	// An earlier number of an order does not supersede a later one.
	next := w.rejected(parcel(2, "C", "third"), parcel(3, "C", "bad"))
	w.same("of a later input", w.rejections(next.ID), []string{"rejected", "superseded"})

	// What the service does not have after all fixes nothing.
	for x, err := range w.Accepted(w.Context(), 2) {
		w.must(err)
		have(w.MarkUnknown(w.Context(), []ledger.UnknownRow{x}, "gone"))(w)
	}
	w.same("not accepted any more", w.rejections(run.ID)[3], "rejected")
}

func supersededAfterPrune(w *world) {
	w.rejected(parcel(2, "A", "bad"), parcel(3, "B", "bad"), parcel(4, "B", "ok-2"))
	w.rejected(parcel(2, "A", "ok-a"))
	w.kill()
	w.same("pruned", have(w.PruneRuns(w.Context(), time.Now().Add(time.Hour)))(w).Runs, int64(2))
	again := w.run(plan(), parcel(2, "A", "bad"), parcel(3, "B", "bad"))
	w.same("known from pruned runs", w.rejections(again.ID), []string{"superseded", "rejected"})
}

func dismissesOpenRows(w *world) {
	run := w.rejected(parcel(2, "A", "bad"), parcel(3, "B", "bad-b"), parcel(4, "C", "ok-c"))
	w.rejected(parcel(2, "B", "ok-b"), parcel(3, "D", "open"))
	w.dismiss(run.ID, "", 1)
	want := []string{"dismissed", "superseded", "accepted"}
	w.same("dismissed", w.rejections(run.ID), want)
	for number, want := range map[string][3]bool{"bad": {false, true, false}, "bad-b": {true, false, false}, "ok-b": {}, "ok-c": {}, "open": {false, false, true}} {
		found := have(w.Find(w.Context(), "", number))(w)
		st := found[0]
		isOpen := st.Refine(st.State) == ledger.Rejected
		w.same("what is known of "+number, [3]bool{st.Superseded, !st.Dismissed.IsZero(), isOpen}, want)
	}
	w.dismiss(run.ID, "", 0)
	w.kill()
	w.same("is on disk", w.rejections(run.ID), want)
	w.counts(run.ID, ledger.Counts{Accepted: 1, Rejected: 2})
	again := w.run(plan(), parcel(2, "A", "bad"), parcel(3, "D", "bad"))
	w.same("by another input", w.rejections(again.ID), []string{"dismissed", "pending"})
	_, err := w.Dismiss(w.Context(), 99, "")
	w.is("no such run", err, ledger.ErrNoRun)
}

func dismissesByName(w *world) {
	run := w.rejected(parcel(2, "A", "bad-1"), parcel(3, "A", "bad-2"), parcel(4, "B", "bad-3"), parcel(5, "C", "bad-4"), parcel(6, "D", "ok-d"))
	w.rejected(parcel(2, "C", "ok-c"))
	w.dismiss(run.ID, "BAD 3", 1)
	w.dismiss(run.ID, "A", 2)
	w.dismiss(run.ID, "A", 0)
	w.dismiss(run.ID, "C", 1)
	w.dismiss(run.ID, "D", 0)
	w.dismiss(run.ID, "nobody", 0)
	w.same("marks", w.rejections(run.ID), []string{"dismissed", "dismissed", "dismissed", "dismissed", "accepted"})
}

func reopensOpenRowsOnly(w *world) {
	run := w.rejected(parcel(2, "A", "bad-1"), parcel(3, "B", "bad-2"), parcel(4, "C", "bad-3"))
	w.rejected(parcel(2, "B", "ok-b"))
	w.dismiss(run.ID, "C", 1)
	w.same("reopened", have(w.Reopen(w.Context(), run.ID, ledger.Rejected, ""))(w), int64(1))
	w.same("marks", w.rejections(run.ID), []string{"pending", "superseded", "dismissed"})
}

func reopensByName(w *world) {
	run := w.rejected(parcel(2, "A", "bad-1"), parcel(3, "B", "bad-2"), parcel(4, "C", "bad-3"))
	w.rejected(parcel(2, "B", "ok-b"))
	w.dismiss(run.ID, "C", 1)
	for _, ref := range []string{"B", "Bad3"} {
		w.same("reopened "+ref, have(w.Reopen(w.Context(), run.ID, ledger.Rejected, ref))(w), int64(1))
	}
	w.same("marks", w.rejections(run.ID), []string{"rejected", "pending", "pending"})
	w.record(ledger.Rejected, w.claim(run.ID, 9)...)
	w.same("a dismissal ends when its row is sent again", w.rejections(run.ID)[2], "rejected")
}

// first checks the number of the row that goes first.
func (w *world) first(what string, run int64, want string) {
	w.Helper()
	row := have(w.FirstPending(w.Context(), run))(w)
	got := ""
	if row != nil {
		got = row.Item.Number
	}
	w.same("first row "+what, got, want)
}

func firstPending(w *world) {
	run := w.run(plan(), entries(5, 9)...)
	again := w.run(plan(), entries(7, 12)...)
	w.first("of a new store", run.ID, "1Z-0005")
	w.first("of another input", again.ID, "1Z-0007")
	w.record(ledger.Accepted, w.claim(run.ID, 1)...)
	w.first("that is not accepted", again.ID, "1Z-0008")
	w.record(ledger.Rejected, w.claim(run.ID, 9)...)
	w.first("when none is pending", run.ID, "")
	sibling := parcel(1, entries(12, 12)[0].Item.ReferID, "other")
	other := w.run(plan(), sibling)
	w.same("siblings", have(w.FirstPending(w.Context(), other.ID))(w).Siblings, int64(1))
}

func checksPending(w *world) {
	run := w.run(plan(), entries(1, 5)...)
	other := w.run(plan(), entries(8, 9)...)
	b := w.claim(run.ID, 1)
	w.must(w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{{Batch: b[0].ID, State: ledger.Pending, Began: sent}}))
	for _, want := range []int64{5, 0} {
		w.same("to be asked for", have(w.CheckPending(w.Context(), run.ID))(w), want)
	}
	w.counts(run.ID, ledger.Counts{Unknown: 5})
	w.counts(other.ID, ledger.Counts{Pending: 2})
	for _, x := range w.unknown(run.ID) {
		if !x.Unsent {
			w.Errorf("it counts as sent: %+v", x)
		}
	}
	w.resolve(run.ID, ledger.Pending, 5, w.unknown(run.ID)...)
	w.first("proven absent", run.ID, "1Z-0001")
}
