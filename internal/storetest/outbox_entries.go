package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

func entriesWaitForTheirNumbers(w *world) {
	sink := w.sink(nil)
	a1, b1 := w.deliver("A"), w.deliver("B")
	ab := w.deliver("a", "b-")
	a2, none, c := w.deliver(" A"), w.deliver(""), w.deliver("C")
	w.advance(sink, all)
	of, entries := w.claimEntries(sink)
	w.same("the first of each number", of, []int64{a1, b1, none, c})
	w.recordAttempt(entries[0], inbox.Sent)
	w.same("one number is still under way", firstOf(w.claimEntries(sink)), []int64(nil))
	w.recordAttempt(entries[1], inbox.Retry)
	of, entries = w.claimEntries(sink)
	w.same("tried again", of, []int64{b1})
	w.recordAttempt(entries[0], inbox.Sent)
	of, entries = w.claimEntries(sink)
	w.same("free by both", of, []int64{ab})
	w.recordAttempt(entries[0], inbox.Returned)
	of, entries = w.claimEntries(sink)
	w.same("returned", of, []int64{ab})
	w.recordAttempt(entries[0], inbox.Sent)
	w.same("the last", firstOf(w.claimEntries(sink)), []int64{a2})
}

// What is recorded at once frees what waits for several of them, and no more.
func outcomesAreRecordedTogether(w *world) {
	sink := w.sink(nil)
	const n = 24
	var first, pairs []int64
	for i := range n {
		first = append(first, w.deliver(fmt.Sprint("N", i)))
	}
	for i := range n / 2 {
		pairs = append(pairs, w.deliver(fmt.Sprint("N", 2*i), fmt.Sprint("N", 2*i+1)))
	}
	last := w.deliver("N0", "N2", "N3", "N5")
	w.advance(sink, all)
	of, entries := w.claimEntries(sink)
	w.same("the first of each number", of, first)
	record := func(entries []inbox.OutboxEntry, of func(i int) inbox.Disposition) {
		var recording sync.WaitGroup
		for i, e := range entries {
			recording.Go(func() { w.recordAttempt(e, of(i)) })
		}
		recording.Wait()
	}
	record(entries, func(i int) inbox.Disposition {
		return []inbox.Disposition{inbox.Sent, inbox.GivenUp, inbox.Sent, inbox.Sent, inbox.Sent, inbox.Retry, inbox.Unbegun, inbox.Returned}[i%8]
	})
	of, entries = w.claimEntries(sink)
	var want []int64
	for i := range n / 8 {
		want = append(want, first[8*i+5], first[8*i+6], first[8*i+7], pairs[4*i], pairs[4*i+1])
	}
	slices.Sort(of)
	slices.Sort(want)
	w.same("what failed, and what is free by both of its numbers", of, want)
	entries = append(entries, entries...) // a second result of what is gone says nothing
	record(entries, func(int) inbox.Disposition { return inbox.Sent })
	of, entries = w.claimEntries(sink)
	slices.Sort(of)
	w.same("the other pairs", of, slices.Concat(pairs[2:4], pairs[6:8], pairs[10:12]))
	record(entries, func(int) inbox.Disposition { return inbox.Sent })
	of, entries = w.claimEntries(sink)
	w.same("what waited for three", of, []int64{last})
	record(entries, func(int) inbox.Disposition { return inbox.Sent })
	w.same("left", w.onlySink().Waiting, int64(0))
	w.same("given up", w.onlySink().Dead, int64(n/8))
}

func unbegunEntriesCountNoAttempt(w *world) {
	sink := w.sink(nil)
	w.deliver("A")
	w.advance(sink, all)
	_, entries := w.claimEntries(sink)
	w.recordAttempt(entries[0], inbox.Unbegun)
	_, entries = w.claimEntries(sink)
	w.same("attempt", entries[0].Attempt, 1)
	w.recordAttempt(entries[0], inbox.Returned)
	_, entries = w.claimEntries(sink)
	w.same("attempt after one that was cut short", entries[0].Attempt, 2)
}

func entriesWaitUntilDue(w *world) {
	sink := w.sink(nil)
	w.deliver("A")
	w.advance(sink, all)
	now := time.Now().Add(time.Minute).Truncate(time.Millisecond).UTC()
	entries, next, err := w.ClaimEntries(w.Context(), sink, 1, now)
	w.must(err)
	if len(entries) != 1 || !next.IsZero() || entries[0].Attempt != 1 || entries[0].Failures != 0 || !entries[0].FirstFailure.IsZero() {
		w.Fatalf("%+v, next %v", entries, next)
	}
	w.must(w.RecordAttempt(w.Context(), entries[0].ID, inbox.AttemptOutcome{Disposition: inbox.Retry, Now: now, Due: now.Add(time.Minute), Status: 503, Problem: "busy"}))
	entries, next, err = w.ClaimEntries(w.Context(), sink, 1, now.Add(59*time.Second))
	w.must(err)
	if len(entries) != 0 || !next.Equal(now.Add(time.Minute)) {
		w.Errorf("%+v, next %v", entries, next)
	}
	entries, _, err = w.ClaimEntries(w.Context(), sink, 1, now.Add(time.Minute))
	w.must(err)
	if len(entries) != 1 || entries[0].Attempt != 2 || entries[0].Failures != 1 || !entries[0].FirstFailure.Equal(now) || entries[0].Status != 503 || entries[0].Problem != "busy" {
		w.Errorf("%+v", entries)
	}
}

func entriesIgnoreWrongClock(w *world) {
	sink := w.sink(nil)
	a, a2 := w.deliver("A"), w.deliver("A")
	w.advance(sink, all)
	now := time.Now()
	entries, _, err := w.ClaimEntries(w.Context(), sink, 9, now)
	w.must(err)
	w.same("claimed", len(entries), 1)
	year := now.Add(365 * 24 * time.Hour)
	w.must(w.RecordAttempt(w.Context(), entries[0].ID, inbox.AttemptOutcome{Disposition: inbox.Retry, Now: year, Due: year.Add(time.Minute)}))
	entries, _, err = w.ClaimEntries(w.Context(), sink, 9, now)
	w.must(err)
	if len(entries) != 1 || entries[0].Delivery != a || entries[0].Attempt != 2 {
		w.Fatalf("the clock was set back: %+v", entries)
	}
	w.recordAttempt(entries[0], inbox.Sent)
	w.same("the next", firstOf(w.claimEntries(sink)), []int64{a2})
}

func entriesOfDeadProcessesAreFree(w *world) {
	sink := w.sink(nil)
	a := w.deliver("A")
	w.deliver("A")
	w.advance(sink, all)
	other := w.open()
	w.claimEntries(sink)
	w.h.Kill(w, w.Store)
	w.Store = other
	of, entries := w.claimEntries(sink)
	w.same("claimed again", of, []int64{a})
	if len(entries) == 1 && (entries[0].Attempt != 2 || entries[0].Failures != 0) {
		w.Errorf("%+v", entries[0])
	}
}

func entriesOfLivingProcessesAreClaimed(w *world) {
	sink := w.sink(nil)
	for i := range 30 {
		w.deliver(fmt.Sprint(i))
	}
	w.advance(sink, all)
	stores := []Store{w.Store, w.open(), w.open()}
	var mu sync.Mutex
	var got []int64
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for range 5 {
				entries, _, err := stores[i%3].ClaimEntries(w.Context(), sink, 3, time.Now().Add(time.Hour))
				if err != nil {
					w.Errorf("claim: %v", err)
				}
				mu.Lock()
				for _, l := range entries {
					got = append(got, l.Delivery)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(got)
	w.same("claimed", len(got), 30)
	w.same("each once", len(slices.Compact(got)), 30)
}
