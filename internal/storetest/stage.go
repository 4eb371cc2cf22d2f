package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

var stageTests = map[string]func(*world){
	"RunIsWhatWasPlanned":           runIsWhatWasPlanned,
	"EveryFieldOfRunsIsKept":        everyFieldOfRunsIsKept,
	"NobodySeesARunBeforeItIsOpen":  nobodySeesARunBeforeItIsOpen,
	"OneStagesAtATime":              oneStagesAtATime,
	"WaitsForTheOther":              waitsForTheOther,
	"ContextEndedBefore":            contextEndedBefore,
	"DeadOnesLeaveNothing":          deadOnesLeaveNothing,
	"DiscardLeavesNothing":          discardLeavesNothing,
	"EndsOnce":                      endsOnce,
	"TellsNewFromKnownFromRepeated": separatesNewKnownRepeated,
	"KnownInAnyOrder":               knownInAnyOrder,
	"ContradictionsInOneInput":      contradictionsInOneInput,
	"BatchesAreFull":                batchesAreFull,
	"RefusesWhatIsNoText":           refusesWhatIsNoText,
	"NoRecords":                     noRecords,
	"ManyAtOnce":                    manyAtOnce,
	"ManyInOrder":                   manyInOrder,
	"IsSentWhileItIsStaged":         isSentWhileItIsStaged,
	"BegunLate":                     begunLate,
	"BegunRunOutlivesItsStaging":    begunRunOutlivesItsStaging,
	"PartialRunIsCompleted":         partialRunIsCompleted,
	"FullBatchIsClaimedOnce":        fullBatchIsClaimedOnce,
}

func runIsWhatWasPlanned(w *world) {
	before := time.Now().Add(-time.Second)
	p := plan()
	run := w.run(p, entries(1, 2)...)
	p.Files[0] = "changed by the caller"
	if run.Created.Before(before) || run.Created.After(time.Now().Add(time.Second)) {
		w.Errorf("created %v", run.Created)
	}
	want := ledger.Run{ID: 1, Plan: plan(), Created: run.Created, Tally: ledger.Tally{New: 2}}
	w.same("run", run, want)
	w.kill()
	w.same("run as kept", have(w.Run(w.Context(), run.ID))(w).Run, want)
}

func nobodySeesARunBeforeItIsOpen(w *world) {
	ctx := w.Context()
	staging := w.begin(w.Store, plan(), entries(1, 5)...)
	other := w.open()
	for _, s := range []Store{w.Store, other} {
		_, err := s.Run(ctx, 1)
		w.is("Run", err, ledger.ErrNoRun)
		_, err = s.CountRows(ctx, 1)
		w.is("CountRows", err, ledger.ErrNoRun)
		_, err = s.Claim(ctx, 1, 1, 1000)
		w.is("Claim", err, ledger.ErrNoRun)
		_, err = s.Adopt(ctx, 1, 1<<20)
		w.is("Adopt", err, ledger.ErrNoRun)
		w.is("Rows", end(s.Rows(ctx, 1)), ledger.ErrNoRun)
		w.is("Batches", end(s.Batches(ctx, 1)), ledger.ErrNoRun)
		w.is("Statuses of the run", end(s.Statuses(ctx, ledger.Filter{Run: 1})), ledger.ErrNoRun)
		w.same("runs", collect(w, s.Runs(ctx, 0)), []ledger.RunSummary(nil))
		w.same("statuses", collect(w, s.Statuses(ctx, ledger.Filter{})), []ledger.TrackingStatus(nil))
		for _, by := range []tracking.Key{{ReferID: item(1).ReferID}, {Number: item(1).Number}} {
			w.same("found", have(s.Find(ctx, by.ReferID, by.Number))(w), []ledger.TrackingStatus(nil))
		}
		_, ok, err := s.Lookup(ctx, item(1).Key())
		w.must(err)
		w.same("looked up", ok, false)
		w.same("pending", have(s.Pending(ctx, 0))(w), int64(0))
		w.same("news", have(s.LookUpKey(ctx, "k"))(w), ledger.KeyStatus{})
	}
	// What was seen of a tracking does not show its row either.
	w.must(w.Record(ctx, []ledger.RecordedAnswer{{Seen: []ledger.Sighting{sighting(1, sent)}}}))
	w.same("statuses", len(collect(w, other.Statuses(ctx, ledger.Filter{}))), 1)
	w.same("state", collect(w, other.Statuses(ctx, ledger.Filter{}))[0].State, ledger.State(""))
	run := have(staging.Open(ctx))(w)
	w.counts(run.ID, ledger.Counts{Pending: 5})
	state, ok, err := other.Lookup(ctx, item(1).Key())
	if err != nil || !ok || state != ledger.Pending {
		w.Errorf("looked up: %v, %v, %v", state, ok, err)
	}
}

func oneStagesAtATime(w *world) {
	staging := w.begin(w.Store, plan(), entries(1, 1)...)
	other := w.open()
	for _, s := range []Store{other, w.Store} {
		ctx, cancel := context.WithTimeout(w.Context(), 50*time.Millisecond)
		_, err := s.Stage(ctx, plan())
		cancel()
		w.is("second staging", err, ledger.ErrBusy)
		var busy *ledger.BusyError
		if !errors.As(err, &busy) || busy.Run.ID != 1 || len(busy.Run.Plan.Files) == 0 || busy.Run.Created.IsZero() {
			w.Errorf("second staging: %+v, want the run that is being staged", err)
		}
		ctx, stop := context.WithCancelCause(w.Context())
		stopped := errors.New("stopped")
		time.AfterFunc(20*time.Millisecond, func() { stop(stopped) })
		_, err = s.Stage(ctx, plan())
		w.is("staging that was stopped", err, stopped)
		if errors.Is(err, ledger.ErrBusy) {
			w.Errorf("staging that was stopped: %v", err)
		}
	}
	run := have(staging.Open(w.Context()))(w)
	w.counts(run.ID, ledger.Counts{Pending: 1})
	w.must(w.begin(other, plan(), entries(2, 2)...).Discard(w.Context()))
}

func waitsForTheOther(w *world) {
	staging := w.begin(w.Store, plan(), entries(1, 3)...)
	other := w.open()
	type result struct {
		run ledger.Run
		err error
	}
	done := make(chan result)
	go func() {
		second, err := other.Stage(w.Context(), plan())
		if err != nil {
			done <- result{err: err}
			return
		}
		_, err = second.Add(w.Context(), entries(3, 4))
		if err != nil {
			done <- result{err: err}
			return
		}
		run, err := second.Open(w.Context())
		done <- result{run, err}
	}()
	have(staging.Open(w.Context()))(w)
	r := <-done
	w.must(r.err)
	w.same("tally", r.run.Tally, ledger.Tally{New: 1, Known: 1, KnownPending: 1})
}

func contextEndedBefore(w *world) {
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	_, err := w.Stage(ctx, plan())
	w.is("staging", err, context.Canceled)
	if errors.Is(err, ledger.ErrBusy) {
		w.Errorf("staging: %v, but nobody was in the way", err)
	}
	staging := w.begin(w.Store, plan())
	_, err = staging.Add(ctx, entries(1, 1))
	w.is("adding", err, context.Canceled)
	_, err = staging.Open(ctx)
	w.is("opening", err, context.Canceled)
	w.same("tally", have(staging.Open(w.Context()))(w).Tally, ledger.Tally{})
}

func deadOnesLeaveNothing(w *world) {
	w.run(plan(), entries(1, 4)...)
	w.begin(w.Store, plan(), append(entries(3, 12), ledger.Entry{Line: 20, Item: item(12)})...)
	w.kill()
	run := w.run(plan(), entries(1, 12)...)
	w.same("tally", run.Tally, ledger.Tally{New: 8, Known: 4, KnownPending: 4})
	w.same("number", run.ID, int64(2))
	w.same("records", len(collect(w, w.Rows(w.Context(), run.ID))), 12)
	w.counts(run.ID, ledger.Counts{Pending: 12})
	w.counts(1, ledger.Counts{Pending: 4})
}

func discardLeavesNothing(w *world) {
	ctx := w.Context()
	first := w.run(plan(), entries(1, 4)...)
	staging := w.begin(w.Store, plan(), append(entries(3, 9), ledger.Entry{Line: 20, Item: item(9)})...)
	w.must(staging.Discard(ctx))
	w.must(staging.Discard(ctx))
	w.same("runs", len(collect(w, w.Runs(ctx, 0))), 1)
	_, ok, err := w.Lookup(ctx, item(9).Key())
	w.must(err)
	w.same("looked up", ok, false)
	w.counts(first.ID, ledger.Counts{Pending: 4})
	run := w.run(plan(), entries(5, 9)...)
	w.same("tally", run.Tally, ledger.Tally{New: 5})
	w.same("number", run.ID, first.ID+1)
	w.same("pending", have(w.Pending(ctx, 0))(w), int64(9))
}

func endsOnce(w *world) {
	ctx := w.Context()
	opened := w.begin(w.Store, plan(), entries(1, 1)...)
	run := have(opened.Open(ctx))(w)
	w.must(opened.Discard(ctx))
	w.counts(run.ID, ledger.Counts{Pending: 1})
	discarded := w.begin(w.Store, plan(), entries(2, 2)...)
	w.must(discarded.Discard(ctx))
	for name, s := range map[string]ledger.Staging{"opened": opened, "discarded": discarded} {
		if _, err := s.Add(ctx, entries(3, 3)); err == nil {
			w.Errorf("%s: something was added", name)
		}
		if _, err := s.Open(ctx); err == nil {
			w.Errorf("%s: it was opened again", name)
		}
	}
	w.same("runs", len(collect(w, w.Runs(ctx, 0))), 1)
}

func separatesNewKnownRepeated(w *world) {
	first := w.run(plan(), entries(1, 6)...)
	w.same("first tally", first.Tally, ledger.Tally{New: 6})
	claimed := w.claim(first.ID, 2)
	w.record(ledger.Unknown, claimed[0])

	staging := w.begin(w.Store, plan())
	add := func(all ...ledger.Entry) {
		w.Helper()
		w.same("conflicts", have(staging.Add(w.Context(), all))(w), []ledger.Conflict(nil))
	}
	at := func(file, line, n int) ledger.Entry { return ledger.Entry{File: file, Line: line, Item: item(n)} }
	add(at(0, 2, 7), at(0, 3, 1), at(0, 4, 7), at(0, 5, 1), at(0, 6, 8))
	add(at(1, 2, 8), at(1, 3, 4), at(1, 4, 1), at(1, 5, 9))
	add()
	add(at(1, 6, 4), at(1, 7, 9))
	run := have(staging.Open(w.Context()))(w)
	// 1 is unknown, 4 is being sent.
	w.same("tally", run.Tally, ledger.Tally{New: 3, Known: 2, KnownOpen: 2, Repeats: 6})
	want := []ledger.Row{
		{File: "orders.csv", Line: 2, Item: item(7), State: ledger.Pending},
		{File: "orders.csv", Line: 3, Item: item(1), State: ledger.Unknown, Reason: "because of the batch", Known: true},
		{File: "orders.csv", Line: 4, Item: item(7), State: ledger.Pending, Repeat: true},
		{File: "orders.csv", Line: 5, Item: item(1), State: ledger.Unknown, Reason: "because of the batch", Known: true, Repeat: true},
		{File: "orders.csv", Line: 6, Item: item(8), State: ledger.Pending},
		{File: "-", Line: 2, Item: item(8), State: ledger.Pending, Repeat: true},
		{File: "-", Line: 3, Item: item(4), State: ledger.Sending, Known: true},
		{File: "-", Line: 4, Item: item(1), State: ledger.Unknown, Reason: "because of the batch", Known: true, Repeat: true},
		{File: "-", Line: 5, Item: item(9), State: ledger.Pending},
		{File: "-", Line: 6, Item: item(4), State: ledger.Sending, Known: true, Repeat: true},
		{File: "-", Line: 7, Item: item(9), State: ledger.Pending, Repeat: true},
	}
	got := collect(w, w.Rows(w.Context(), run.ID))
	ids := map[tracking.Key]int64{}
	for i := range got {
		key := got[i].Item.Key()
		if id, ok := ids[key]; ok && id != got[i].ID || got[i].ID == 0 {
			w.Errorf("record %d has row %d, before it was %d", i, got[i].ID, id)
		}
		ids[key] = got[i].ID
		got[i].ID = 0
	}
	w.same("rows", got, want)
	w.counts(run.ID, ledger.Counts{Pending: 3, Unknown: 1, Sending: 1})
	w.counts(first.ID, ledger.Counts{Unknown: 3, Sending: 3})
}

// knownInAnyOrder sees that known rows are shown where this input names them,
// whatever order, lines and carriers it has.
func knownInAnyOrder(w *world) {
	first := w.run(plan(), entries(1, 12)...)
	b := w.claim(first.ID, 4)
	w.record(ledger.Accepted, b[0], b[1], b[3])
	rejected := outcome(b[2], ledger.Accepted)
	rejected.Rows = []ledger.RowOutcome{{Row: b[2].Rows[1].ID, State: ledger.Rejected, Reason: "bad"}} // item 8
	w.must(w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{rejected}))
	at := func(file, line, n int, carrier string) ledger.Entry {
		e := ledger.Entry{File: file, Line: line, Item: item(n)}
		e.Item.CarrierCode = carrier
		return e
	}
	input := []ledger.Entry{
		at(0, 2, 5, "ups"), at(0, 4, 6, "ups"), at(0, 6, 7, "ups"), at(0, 7, 8, "ups"), // other steps between lines
		at(0, 8, 20, "ups"),                                            // a new one between them
		at(0, 9, 9, "ups"), at(0, 10, 10, "dhl"), at(0, 11, 11, "dhl"), // other carriers
		at(1, 12, 12, "ups"), at(1, 2, 3, "ups"), at(1, 3, 2, "ups"), at(1, 4, 1, "ups"), // another file, backwards
	}
	run := w.run(plan(), input...)
	w.same("tally", run.Tally, ledger.Tally{New: 1, Known: 11, OtherCarrier: 2})
	w.counts(run.ID, ledger.Counts{Pending: 1, Accepted: 10, Rejected: 1})
	var got []ledger.Entry
	for _, r := range collect(w, w.Rows(w.Context(), run.ID)) {
		file := map[string]int{"orders.csv": 0, "-": 1}[r.File]
		got = append(got, ledger.Entry{File: file, Line: r.Line, Item: r.Item})
		w.same("known "+r.Item.ReferID, r.Known, r.Item != item(20))
	}
	want := slices.Clone(input)
	want[6], want[7] = at(0, 10, 10, "ups"), at(0, 11, 11, "ups")
	w.same("records", got, want)
	listed := each(w, w.Statuses(w.Context(), ledger.Filter{Run: run.ID}), func(st ledger.TrackingStatus) string {
		return st.Item.ReferID
	})
	var all []string
	for _, n := range []int{1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 20} {
		all = append(all, item(n).ReferID)
	}
	w.same("listed", listed, all)
	w.same("reopened", have(w.Reopen(w.Context(), run.ID, ledger.Rejected, ""))(w), int64(1))
	w.counts(run.ID, ledger.Counts{Pending: 2, Accepted: 10})
}

func contradictionsInOneInput(w *world) {
	w.run(plan(), entries(1, 1)...)
	p := plan()
	p.Skipped = 3
	staging := w.begin(w.Store, p)
	with := func(line, n int, carrier string) ledger.Entry {
		e := ledger.Entry{Line: line, Item: item(n)}
		e.Item.CarrierCode = carrier
		return e
	}
	steps := []struct {
		add  []ledger.Entry
		want []ledger.Conflict
	}{
		{[]ledger.Entry{with(2, 5, "ups"), with(3, 5, "dhl"), with(4, 5, "ups"), with(5, 5, "")}, []ledger.Conflict{
			{Entry: with(3, 5, "dhl"), First: with(2, 5, "ups")},
			{Entry: with(5, 5, ""), First: with(2, 5, "ups")},
		}},
		// Against an earlier part of the input.
		{[]ledger.Entry{with(6, 6, ""), with(7, 5, "gls"), with(8, 5, "gls")}, []ledger.Conflict{
			{Entry: with(7, 5, "gls"), First: with(2, 5, "ups")},
			{Entry: with(8, 5, "gls"), First: with(2, 5, "ups")},
		}},
		// With a row of an earlier run: what this input said first counts.
		{[]ledger.Entry{with(9, 1, "fedex")}, nil},
		{[]ledger.Entry{with(10, 1, "ups"), with(11, 1, "fedex")}, []ledger.Conflict{
			{Entry: with(10, 1, "ups"), First: with(9, 1, "fedex")},
		}},
	}
	for i, step := range steps {
		got := have(staging.Add(w.Context(), step.add))(w)
		if !slices.Equal(got, step.want) {
			w.Errorf("step %d: conflicts %v, want %v", i, got, step.want)
		}
	}
	// Whoever leaves the contradicting records out can go on.
	run := have(staging.Open(w.Context()))(w)
	w.same("tally", run.Tally, ledger.Tally{New: 2, Known: 1, Repeats: 2, Skipped: 8, KnownPending: 1, OtherCarrier: 1})
	w.same("skipped", have(w.Run(w.Context(), run.ID))(w).Tally.Skipped, int64(8))
	lines := each(w, w.Rows(w.Context(), run.ID), func(r ledger.Row) int { return r.Line })
	w.same("lines", lines, []int{2, 4, 6, 9, 11})
}

func batchesAreFull(w *world) {
	w.run(plan(), entries(2, 2)...)
	staging := w.begin(w.Store, plan())
	for _, n := range [][]int{{1, 1}, {2, 1, 3}, {3, 4, 5, 1, 6}, {7, 8}, {}, {7, 9, 10}} {
		var all []ledger.Entry
		for _, i := range n {
			all = append(all, ledger.Entry{Line: i, Item: item(i)})
		}
		if _, err := staging.Add(w.Context(), all); err != nil {
			w.Fatal(err)
		}
	}
	run := have(staging.Open(w.Context()))(w)
	var got [][]tracking.Item
	last := int64(0)
	for _, b := range w.claim(run.ID, 10) {
		got = append(got, b.Items())
		for _, r := range b.Rows {
			if r.ID <= last {
				w.Errorf("row %d comes after %d", r.ID, last)
			}
			last = r.ID
		}
	}
	w.same("batches", got, [][]tracking.Item{{item(1), item(3), item(4)}, {item(5), item(6), item(7)}, {item(8), item(9), item(10)}})
}

func refusesWhatIsNoText(w *world) {
	staging := w.begin(w.Store, plan())
	for _, bad := range []string{"a\x00b", "a\xffb"} {
		for _, it := range []tracking.Item{
			{ReferID: bad, Number: "n"},
			{ReferID: "r", Number: bad},
			{ReferID: "r", Number: "n", CarrierCode: bad},
		} {
			if _, err := staging.Add(w.Context(), []ledger.Entry{{Item: item(1)}, {Item: it}}); err == nil {
				w.Errorf("%q was added", it)
			}
		}
	}
	if _, err := staging.Add(w.Context(), []ledger.Entry{{File: 2, Item: item(1)}}); err == nil {
		w.Error("a record of a file that is not in the plan was added")
	}
	w.same("tally", have(staging.Open(w.Context()))(w).Tally, ledger.Tally{})
	bad := plan()
	bad.BatchSize = 0
	if _, err := w.Stage(w.Context(), bad); err == nil {
		w.Error("batches without rows were taken")
	}
}

func noRecords(w *world) {
	run := w.run(plan())
	w.counts(run.ID, ledger.Counts{})
	w.same("rows", collect(w, w.Rows(w.Context(), run.ID)), []ledger.Row(nil))
	w.same("batches", len(w.claim(run.ID, 1)), 0)
	next := w.run(plan(), entries(1, 1)...)
	w.same("rows", len(collect(w, w.Rows(w.Context(), run.ID))), 0)
	got := collect(w, w.Statuses(w.Context(), ledger.Filter{}))
	w.same("run of the row", got[0].Run, next.ID)
}
