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
	w.settleEntry(entries[0], inbox.Sent)
	w.same("one number is still under way", firstOf(w.claimEntries(sink)), []int64(nil))
	w.settleEntry(entries[1], inbox.Retry)
	of, entries = w.claimEntries(sink)
	w.same("tried again", of, []int64{b1})
	w.settleEntry(entries[0], inbox.Sent)
	of, entries = w.claimEntries(sink)
	w.same("free by both", of, []int64{ab})
	w.settleEntry(entries[0], inbox.Returned)
	of, entries = w.claimEntries(sink)
	w.same("returned", of, []int64{ab})
	w.settleEntry(entries[0], inbox.Sent)
	w.same("the last", firstOf(w.claimEntries(sink)), []int64{a2})
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
	w.must(w.SettleEntry(w.Context(), entries[0].ID, inbox.Settlement{Disposition: inbox.Retry, Now: now, Due: now.Add(time.Minute), Status: 503, Problem: "busy"}))
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
	w.must(w.SettleEntry(w.Context(), entries[0].ID, inbox.Settlement{Disposition: inbox.Retry, Now: year, Due: year.Add(time.Minute)}))
	entries, _, err = w.ClaimEntries(w.Context(), sink, 9, now)
	w.must(err)
	if len(entries) != 1 || entries[0].Delivery != a || entries[0].Attempt != 2 {
		w.Fatalf("the clock was set back: %+v", entries)
	}
	w.settleEntry(entries[0], inbox.Sent)
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

func entriesAreFound(w *world) {
	sink := w.sink(nil)
	a, b := w.deliver("A"), w.deliver("B")
	found := func(delivery int64) (l inbox.OutboxEntry, there, done bool) {
		w.Helper()
		p, done, err := w.EntryOf(w.Context(), sink, delivery)
		w.must(err)
		if p != nil {
			l = *p
		}
		return l, p != nil, done
	}
	state := func(what string, delivery int64, there, done bool) inbox.OutboxEntry {
		w.Helper()
		l, isThere, isDone := found(delivery)
		w.same(what, []bool{isThere, isDone}, []bool{there, done})
		return l
	}
	state("not looked at", a, false, false)
	w.advance(sink, func(rows []inbox.Event) bool { return rows[0].TrackingNumber == "A" })
	state("not wanted", b, false, true)
	w.same("waiting", state("waiting", a, true, false).Attempt, 0)
	_, entries := w.claimEntries(sink)
	w.same("claimed", state("claimed", a, true, false), entries[0])
	w.settleEntry(entries[0], inbox.Retry)
	l := state("failed", a, true, false)
	w.same("failures", []int{l.Failures, l.Status}, []int{1, 500})
	_, entries = w.claimEntries(sink)
	w.settleEntry(entries[0], inbox.GivenUp)
	w.same("dead", state("dead", a, true, false).GivenUpAt, sent)
	w.settleEntry(entries[0], inbox.Sent)
	state("sent", a, false, true)
	_, _, err := w.EntryOf(w.Context(), 99, a)
	w.is("no such sink", err, inbox.ErrNoSink)
}
