package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
)

var sendTests = map[string]func(*world){
	"ClaimsInOrderUntilNoneIsLeft":       claimsInOrderUntilNoneIsLeft,
	"RecordsEachState":                   recordsEachState,
	"RowsMayDiffer":                      rowsMayDiffer,
	"AllOrNothing":                       allOrNothing,
	"RefusesWhatDoesNotFollow":           refusesWhatDoesNotFollow,
	"OnlyTheClaimerRecords":              onlyTheClaimerRecords,
	"ClaimsBelongToTheirOwnerUntilDeath": claimsBelongToTheirOwnerUntilDeath,
	"DeadSendersBatchesAreUnknown":       deadSendersBatchesAreUnknown,
	"LivingSendersBatchesAreLeft":        livingSendersBatchesAreLeft,
	"AnswersAreKeptAsTheyCame":           answersAreKeptAsTheyCame,
	"ReasonsAreMadeFit":                  reasonsAreMadeFit,
	"ContextEndedBeforeClaim":            contextEndedBeforeClaim,
	"RecordsManyFromManyGoroutines":      recordsManyFromManyGoroutines,
}

// Whoever claimed knows that it is still its own; whoever comes after its death has
// another name.
func claimsBelongToTheirOwnerUntilDeath(w *world) {
	run := w.run(plan(), entries(1, 6)...)
	b := w.claim(run.ID, 2)
	sink := w.sink(&inbox.StartPosition{})
	w.deliver("N1")
	w.advance(sink, all)
	claimed, _, err := w.ClaimEntries(w.Context(), sink, 1, time.Now())
	w.must(err)
	w.same("entries", len(claimed), 1)
	owners := []string{b[0].Owner, b[1].Owner, claimed[0].Owner}
	for _, owner := range owners {
		w.must(w.CheckOwner(owner))
	}
	w.is("nobody's", w.CheckOwner(""), ledger.ErrNotClaimed)
	w.is("another process's", w.open().CheckOwner(owners[0]), ledger.ErrNotClaimed)
	w.kill()
	for _, owner := range owners {
		w.is("of a dead process", w.CheckOwner(owner), ledger.ErrNotClaimed)
		w.is("of a dead process", w.CheckOwner(owner), inbox.ErrNotClaimed)
	}
}

func claimsInOrderUntilNoneIsLeft(w *world) {
	run := w.run(plan(), entries(1, 8)...)
	first := w.claim(run.ID, 2)
	w.same("batches", len(first), 2)
	w.same("first", first[0].Items(), itemsOf(entries(1, 3)))
	w.same("second", first[1].Items(), itemsOf(entries(4, 6)))
	w.counts(run.ID, ledger.Counts{Sending: 6, Pending: 2})
	rest := w.claim(run.ID, 5)
	w.same("batches", len(rest), 1)
	w.same("third", rest[0].Items(), itemsOf(entries(7, 8)))
	w.same("none left", len(w.claim(run.ID, 5)), 0)
	_, err := w.Claim(w.Context(), 99, 1, 1000)
	w.is("no such run", err, ledger.ErrNoRun)
	rows := collect(w, w.Rows(w.Context(), run.ID))
	for i, r := range append(append(first[0].Rows, first[1].Rows...), rest[0].Rows...) {
		if r.ID != rows[i].ID {
			w.Errorf("claimed row %d has ID %d, the input's has %d", i, r.ID, rows[i].ID)
		}
	}
}

func recordsEachState(w *world) {
	run := w.run(plan(), entries(1, 12)...)
	b := w.claim(run.ID, 4)
	for i, state := range []ledger.State{ledger.Accepted, ledger.Rejected, ledger.Unknown, ledger.Pending} {
		w.record(state, b[i])
	}
	w.counts(run.ID, ledger.Counts{Accepted: 3, Rejected: 3, Unknown: 3, Pending: 3})
	for i, r := range collect(w, w.Rows(w.Context(), run.ID)) {
		want := ""
		if r.State == ledger.Rejected || r.State == ledger.Unknown {
			want = "because of the batch"
		}
		if r.Reason != want {
			w.Errorf("row %d: reason %q, want %q", i, r.Reason, want)
		}
	}
	again := w.claim(run.ID, 4)
	w.same("claimed again", len(again), 1)
	w.same("batch", again[0], b[3])
}

func rowsMayDiffer(w *world) {
	run := w.run(plan(), entries(1, 6)...)
	b := w.claim(run.ID, 2)
	first, second := outcome(b[0], ledger.Accepted), outcome(b[1], ledger.Unknown)
	first.Rows = []ledger.RowOutcome{{Row: b[0].Rows[1].ID, State: ledger.Rejected, Reason: "no such carrier"}}
	second.Rows = []ledger.RowOutcome{
		{Row: b[1].Rows[0].ID, State: ledger.Accepted},
		{Row: b[1].Rows[1].ID, State: ledger.Unknown, Reason: "another reason"},
		{Row: b[1].Rows[2].ID, State: ledger.Unknown, Reason: second.Reason},
	}
	w.must(w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{first, second}))
	w.counts(run.ID, ledger.Counts{Accepted: 3, Rejected: 1, Unknown: 2})
	got := each(w, w.Rows(w.Context(), run.ID), func(r ledger.Row) string { return string(r.State) + " " + r.Reason })
	w.same("rows", got, []string{
		"accepted ", "rejected no such carrier", "accepted ",
		"accepted ", "unknown another reason", "unknown because of the batch",
	})
	w.same("none left", len(w.claim(run.ID, 5)), 0)
	// Those who know the rows see the same.
	again := w.run(plan(), entries(2, 5)...)
	w.same("tally", again.Tally, ledger.Tally{Known: 4, KnownOpen: 1})
	w.counts(again.ID, ledger.Counts{Accepted: 2, Rejected: 1, Unknown: 1})
}

func allOrNothing(w *world) {
	run := w.run(plan(), entries(1, 6)...)
	b := w.claim(run.ID, 2)
	foreign := outcome(b[1], ledger.Accepted)
	foreign.Rows = []ledger.RowOutcome{{Row: b[0].Rows[0].ID, State: ledger.Rejected}}
	twice := outcome(b[1], ledger.Accepted)
	twice.Rows = []ledger.RowOutcome{{Row: b[1].Rows[0].ID, State: ledger.Rejected}, {Row: b[1].Rows[0].ID, State: ledger.Unknown}}
	for name, bad := range map[string]ledger.BatchOutcome{
		"no such batch":          {Batch: 999, State: ledger.Accepted},
		"a row of another batch": foreign,
		"a row twice":            twice,
		"the same batch":         outcome(b[0], ledger.Rejected),
	} {
		if err := w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{outcome(b[0], ledger.Accepted), bad}); !errors.Is(err, ledger.ErrNotClaimed) {
			w.Errorf("%s: recorded", name)
		}
		w.counts(run.ID, ledger.Counts{Sending: 6})
	}
	w.record(ledger.Accepted, b...)
	w.counts(run.ID, ledger.Counts{Accepted: 6})
}

func refusesWhatDoesNotFollow(w *world) {
	run := w.run(plan(), entries(1, 6)...)
	b := w.claim(run.ID, 1)
	for _, state := range []ledger.State{ledger.Sending, "", "lost"} {
		if err := w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{outcome(b[0], state)}); !errors.Is(err, ledger.ErrNotClaimed) {
			w.Errorf("from sending to %q: recorded", state)
		}
		o := outcome(b[0], ledger.Accepted)
		o.Rows = []ledger.RowOutcome{{Row: b[0].Rows[0].ID, State: state}}
		if err := w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{o}); !errors.Is(err, ledger.ErrNotClaimed) {
			w.Errorf("a row from sending to %q: recorded", state)
		}
	}
	w.counts(run.ID, ledger.Counts{Sending: 3, Pending: 3})
	for _, state := range []ledger.State{ledger.Accepted, ledger.Rejected, ledger.Unknown} {
		b := w.claim(w.run(plan(), entries(10, 12)...).ID, 0)
		w.same("none asked for", len(b), 0)
		run := w.run(plan(), entry(string(state)))
		b = w.claim(run.ID, 1)
		w.record(state, b...)
		for _, next := range []ledger.State{ledger.Accepted, ledger.Rejected, ledger.Unknown, ledger.Pending} {
			if err := w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{outcome(b[0], next)}); !errors.Is(err, ledger.ErrNotClaimed) {
				w.Errorf("from %s to %s: recorded, but nobody was sending it", state, next)
			}
		}
		w.same("states", w.states(run.ID), []ledger.State{state})
	}
}

func entry(referID string) ledger.Entry {
	e := ledger.Entry{Line: 2, Item: item(1)}
	e.Item.ReferID = referID
	return e
}

func onlyTheClaimerRecords(w *world) {
	run := w.run(plan(), entries(1, 3)...)
	b := w.claim(run.ID, 1)
	other := w.open()
	if err := other.RecordOutcomes(w.Context(), []ledger.BatchOutcome{outcome(b[0], ledger.Accepted)}); !errors.Is(err, ledger.ErrNotClaimed) {
		w.Error("another process recorded it")
	}
	w.counts(run.ID, ledger.Counts{Sending: 3})
	w.record(ledger.Accepted, b...)
}

func deadSendersBatchesAreUnknown(w *world) {
	run := w.run(plan(), entries(1, 9)...)
	w.record(ledger.Accepted, w.claim(run.ID, 1)...)
	b := w.claim(run.ID, 1)
	w.kill()
	w.counts(run.ID, ledger.Counts{Accepted: 3, Sending: 3, Pending: 3})
	n := have(w.Recover(w.Context()))(w)
	w.same("unknown", n, int64(3))
	w.counts(run.ID, ledger.Counts{Accepted: 3, Unknown: 3, Pending: 3})
	n = have(w.Recover(w.Context()))(w)
	w.same("unknown the second time", n, int64(0))
	for _, r := range collect(w, w.Rows(w.Context(), run.ID)) {
		if (r.Reason != "") != (r.State == ledger.Unknown) {
			w.Errorf("row %d is %s: reason %q", r.ID, r.State, r.Reason)
		}
	}
	if err := w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{outcome(b[0], ledger.Accepted)}); !errors.Is(err, ledger.ErrNotClaimed) {
		w.Error("a dead process's batch was recorded")
	}
	sum := have(w.Run(w.Context(), run.ID))(w)
	w.same("requests, one of which may have been sent", sum.Requests, int64(2))
	if sum.LastSent.IsZero() {
		w.Error("the last request has no time")
	}
	left := w.claim(run.ID, 5)
	w.same("left", len(left), 1)
	w.same("items", left[0].Items(), itemsOf(entries(7, 9)))
}

func livingSendersBatchesAreLeft(w *world) {
	run := w.run(plan(), entries(1, 3)...)
	b := w.claim(run.ID, 1)
	other := w.open()
	for _, s := range []Store{w.Store, other} {
		w.same("unknown", have(s.Recover(w.Context()))(w), int64(0))
	}
	w.counts(run.ID, ledger.Counts{Sending: 3})
	w.record(ledger.Accepted, b...)
	// A process that ends in good order leaves nothing to others either.
	w.same("batches", len(have(other.Claim(w.Context(), w.run(plan(), entries(4, 6)...).ID, 1, 1000))(w)), 1)
	w.must(other.Close())
	w.same("unknown", have(w.Recover(w.Context()))(w), int64(3))
}

func answersAreKeptAsTheyCame(w *world) {
	run := w.run(plan(), entries(1, 9)...)
	b := w.claim(run.ID, 3)
	raw := []byte("{\"a\":\x00\xff\r\n}")
	outcomes := []ledger.BatchOutcome{outcome(b[0], ledger.Accepted), outcome(b[1], ledger.Accepted), outcome(b[2], ledger.Unknown)}
	outcomes[0].Answer, outcomes[0].AnswerCut = raw, true
	outcomes[1].Answer = []byte{}
	outcomes[2].Answer, outcomes[2].HTTPStatus = nil, 0
	w.must(w.RecordOutcomes(w.Context(), outcomes))
	got := collect(w, w.Batches(w.Context(), run.ID))
	w.same("first", got[0].Answer, raw)
	if got[1].Answer == nil || len(got[1].Answer) != 0 {
		w.Errorf("empty answer: %v", got[1].Answer)
	}
	if got[2].Answer != nil {
		w.Errorf("no answer: %v", got[2].Answer)
	}
}

// reasonsAreMadeFit sees that an outcome is recorded whatever the service says.
func reasonsAreMadeFit(w *world) {
	run := w.run(plan(), entries(1, 2)...)
	b := w.claim(run.ID, 1)
	o := outcome(b[0], ledger.Rejected)
	o.Reason = "bad \xff\x00 batch"
	o.Rows = []ledger.RowOutcome{{Row: b[0].Rows[0].ID, State: ledger.Rejected, Reason: "bad \x00 row \xfe"}}
	w.must(w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{o}))
	rows := collect(w, w.Rows(w.Context(), run.ID))
	w.same("reason of a row", rows[0].Reason, "bad \ufffd row \ufffd")
	w.same("reason of the batch", rows[1].Reason, "bad \ufffd\ufffd batch")
}

func contextEndedBeforeClaim(w *world) {
	run := w.run(plan(), entries(1, 3)...)
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	_, err := w.Claim(ctx, run.ID, 1, 1000)
	w.is("claim", err, context.Canceled)
	_, err = w.Adopt(ctx, run.ID, 1<<20)
	w.is("adopt", err, context.Canceled)
	_, err = w.Recover(ctx)
	w.is("recover", err, context.Canceled)
	w.is("rows", end(w.Rows(ctx, run.ID)), context.Canceled)
	w.counts(run.ID, ledger.Counts{Pending: 3})
	b := w.claim(run.ID, 1)
	w.is("record", w.RecordOutcomes(ctx, []ledger.BatchOutcome{outcome(b[0], ledger.Accepted)}), context.Canceled)
	w.counts(run.ID, ledger.Counts{Sending: 3})
}

func recordsManyFromManyGoroutines(w *world) { //nolint:gocognit // one story
	const n = 240
	run := w.run(plan(), entries(1, n)...)
	stores := []Store{w.Store, w.open()}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := stores[i%2]
			for {
				batches, err := s.Claim(w.Context(), run.ID, 2, 1000)
				if err != nil || len(batches) == 0 {
					if err != nil {
						w.Errorf("claim: %v", err)
					}
					return
				}
				for _, b := range batches {
					// One that cannot be recorded does not take the others' with it.
					if err := s.RecordOutcomes(w.Context(), []ledger.BatchOutcome{{Batch: -1, State: ledger.Accepted}}); !errors.Is(err, ledger.ErrNotClaimed) {
						w.Error("a batch that is not there was recorded")
					}
					o := outcome(b, ledger.Accepted)
					o.Took = time.Duration(i) * time.Millisecond
					if err := s.RecordOutcomes(w.Context(), []ledger.BatchOutcome{o}); err != nil {
						w.Errorf("record: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	w.counts(run.ID, ledger.Counts{Accepted: n})
	w.same("requests", have(w.Run(w.Context(), run.ID))(w).Requests, int64(n/3))
}

// accepted returns outcomes that accept the batches, and batches with the further numbers.
func accepted(batches []ledger.Batch, more ...int64) []ledger.BatchOutcome {
	var all []ledger.BatchOutcome
	for _, b := range batches {
		all = append(all, outcome(b, ledger.Accepted))
	}
	for _, id := range more {
		all = append(all, ledger.BatchOutcome{Batch: id, State: ledger.Accepted})
	}
	return all
}

func sightings(n int) []ledger.Sighting { return []ledger.Sighting{sighting(n, sent)} }
