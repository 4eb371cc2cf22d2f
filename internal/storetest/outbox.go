package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// Outbox tests a store against the contract of [inbox.Outbox].
func Outbox(t *testing.T, h Harness) {
	t.Helper()
	suite(t, h, outboxTests)
}

var outboxTests = map[string]func(*world){
	"SinksStartWhereAsked":               sinksStartWhereAsked,
	"SinksAreFoundByKey":                 sinksAreFoundByKey,
	"AdvanceQueuesAccepted":              advanceQueuesAccepted,
	"AdvanceConcurrently":                advanceConcurrently,
	"EntriesWaitForTheirNumbers":         entriesWaitForTheirNumbers,
	"EntriesWaitUntilDue":                entriesWaitUntilDue,
	"OutcomesAreRecordedTogether":        outcomesAreRecordedTogether,
	"UnbegunEntriesCountNoAttempt":       unbegunEntriesCountNoAttempt,
	"EntriesIgnoreWrongClock":            entriesIgnoreWrongClock,
	"EntriesOfDeadProcessesAreFree":      entriesOfDeadProcessesAreFree,
	"EntriesOfLivingProcessesAreClaimed": entriesOfLivingProcessesAreClaimed,
	"DeadEntriesAreKept":                 deadEntriesAreKept,
	"DeadEntriesBlockNone":               deadEntriesBlockNone,
	"SkippingKeepsClaimed":               skippingKeepsClaimed,
	"SkippingRemovesDeadClaims":          skippingRemovesDeadClaims,
	"LateOutcomesDoNothing":              lateOutcomesDoNothing,
	"AllIsSentInOrderAfterKills":         allIsSentInOrderAfterKills,
	"EntryWithManyNumbers":               entryWithManyNumbers,
	"ContextEndedBeforeOutboxChange":     contextEndedBeforeOutboxChange,
	"ReleasedAreReadOnce":                releasedAreReadOnce,
	"ReleasesSurviveKill":                releasesSurviveKill,
	"ManyReleasedAreReadOnce":            manyReleasedAreReadOnce,
	"ReleasedWhileRead":                  releasedWhileRead,
	"SentBeforeItVerified":               sentBeforeItVerified,
	"SetBackBeforeItVerified":            setBackBeforeItVerified,
	"EachIsSentOnceWheneverItVerifies":   eachIsSentOnceWheneverItVerifies,
	"PruningWaitsForCursorsForADay":      pruningWaitsForCursorsForADay,
	"ShowsWhatWaits":                     showsWhatWaits,
	"ShowsWhatWasForwarded":              showsWhatWasForwarded,
	"AttemptsAreBounded":                 attemptsAreBounded,
	"SinksAreForgotten":                  sinksAreForgotten,
	"PruningKeepsWaiting":                pruningKeepsWaiting,
}

// deliver puts a delivery with one event of each of the numbers, and returns its
// number.
func (w *world) deliver(numbers ...string) int64 {
	w.Helper()
	var events []string
	for i, n := range numbers {
		events = append(events, fmt.Sprintf(`{"eventId":"%d-%d-%s","event":"x","data":{"trackingNumber":%q}}`, rand.Uint64(), i, n, n)) //nolint:gosec // not a secret
	}
	return w.put("["+strings.Join(events, ",")+"]", inbox.Yes).Delivery
}

func (w *world) sink(from *inbox.StartPosition) int64 {
	w.Helper()
	s := have(w.OpenSink(w.Context(), inbox.SinkKey{Name: "forward", URL: "http://127.0.0.1:1/"}, from))(w)
	return s.ID
}

func all([]inbox.Event) bool { return true }

// advance moves a sink's cursor to the end and returns what was queued.
func (w *world) advance(sink int64, wants func([]inbox.Event) bool) []int64 {
	w.Helper()
	var taken []int64
	for {
		p := have(w.Advance(w.Context(), sink, 3, wants))(w)
		if p.Read == 0 {
			return taken
		}
		taken = append(taken, p.Queued...)
	}
}

// claimEntries claims the entries that are due within an hour. It returns their
// deliveries, and the entries.
func (w *world) claimEntries(sink int64) ([]int64, []inbox.OutboxEntry) {
	w.Helper()
	entries, _, err := w.ClaimEntries(w.Context(), sink, 100, time.Now().Add(time.Hour))
	w.must(err)
	var of []int64
	for _, l := range entries {
		of = append(of, l.Delivery)
	}
	return of, entries
}

func (w *world) recordAttempt(l inbox.OutboxEntry, d inbox.Disposition) {
	w.Helper()
	w.must(w.RecordAttempt(w.Context(), l.ID, inbox.AttemptOutcome{Disposition: d, Now: sent, Due: time.Now(), Status: 500, Problem: "said no", Reply: []byte("no\x00\xff")}))
}

// onlySink returns the one sink there is.
func (w *world) onlySink() inbox.Sink {
	w.Helper()
	sinks := have(w.Sinks(w.Context()))(w)
	if len(sinks) != 1 {
		w.Fatalf("%d sinks", len(sinks))
	}
	return sinks[0]
}

func sinksStartWhereAsked(w *world) {
	for range 4 {
		w.deliver("1Z1")
	}
	for i, c := range []struct {
		from   *inbox.StartPosition
		cursor int64
	}{
		{nil, 4},
		{&inbox.StartPosition{}, 0},
		{&inbox.StartPosition{Delivery: 1}, 0},
		{&inbox.StartPosition{Delivery: 3}, 2},
		{&inbox.StartPosition{Delivery: 99}, 4},
		{&inbox.StartPosition{Since: sent}, 0},
		{&inbox.StartPosition{Since: sent.Add(time.Second)}, 4},
	} {
		key := inbox.SinkKey{Name: "forward", URL: fmt.Sprint("http://", i)}
		s := have(w.OpenSink(w.Context(), key, c.from))(w)
		if s.SinkKey != key || !s.New || s.Cursor != c.cursor || s.Unread != 4-c.cursor {
			w.Errorf("from %v: %+v; want the cursor at %d", c.from, s, c.cursor)
		}
	}
	w.same("sinks", len(have(w.Sinks(w.Context()))(w)), 7)
	_, err := w.Advance(w.Context(), 99, 1, all)
	w.is("no such sink", err, inbox.ErrNoSink)
	_, err = w.SkipBacklog(w.Context(), 99)
	w.is("no such sink", err, inbox.ErrNoSink)
}

func sinksAreFoundByKey(w *world) {
	w.deliver("1Z1")
	base := inbox.SinkKey{Name: "forward", URL: "http://a", Filter: "event=x"}
	seen := map[int64]bool{}
	for _, k := range []inbox.SinkKey{base, {Name: "follow", URL: base.URL, Filter: base.Filter}, {Name: base.Name, URL: "http://b", Filter: base.Filter}, {Name: base.Name, URL: base.URL}} {
		s := have(w.OpenSink(w.Context(), k, &inbox.StartPosition{}))(w)
		seen[s.ID] = true
		w.advance(s.ID, all)
	}
	w.same("sinks of their own", len(seen), 4)
	w.kill()
	w.deliver("1Z2")
	s := have(w.OpenSink(w.Context(), base, nil))(w)
	if s.New || s.Cursor != 1 || s.Unread != 1 || s.Waiting != 1 || s.Oldest.IsZero() {
		w.Errorf("resumed at %+v", s)
	}
	s = have(w.OpenSink(w.Context(), base, &inbox.StartPosition{}))(w)
	if s.New || s.Cursor != 0 || s.Unread != 2 || s.Waiting != 1 {
		w.Errorf("set back to %+v", s)
	}
	w.same("taken, one waits already", w.advance(s.ID, all), []int64{1, 2})
	w.same("waiting", len(firstOf(w.claimEntries(s.ID))), 2)
}

func advanceQueuesAccepted(w *world) {
	sink := w.sink(nil)
	var want []int64
	for i := range 7 {
		d := w.deliver(fmt.Sprint("1Z", i))
		if i%2 == 0 {
			want = append(want, d)
		}
	}
	w.put("[]", inbox.Yes)
	var shown []string
	taken := w.advance(sink, func(rows []inbox.Event) bool {
		if len(rows) != 1 || len(rows[0].Raw) == 0 {
			w.Errorf("shown %v", rows)
		}
		n := rows[0].TrackingNumber
		shown = append(shown, n)
		return n != "" && n[2]%2 == 0
	})
	w.same("taken", taken, want)
	w.same("shown", shown, []string{"1Z0", "1Z1", "1Z2", "1Z3", "1Z4", "1Z5", "1Z6", ""})
	s := w.onlySink()
	if s.Cursor != 8 || s.Unread != 0 || s.Waiting != 4 {
		w.Errorf("sink %+v", s)
	}
	w.same("nothing more", w.advance(sink, all), []int64(nil))
	w.same("claimed", firstOf(w.claimEntries(sink)), want)
	w.same("not twice", firstOf(w.claimEntries(sink)), []int64(nil))
}

func advanceConcurrently(w *world) {
	sink := w.sink(nil)
	for i := range 40 {
		w.deliver(fmt.Sprint("1Z", i))
	}
	stores := []Store{w.Store, w.open()}
	var mu sync.Mutex
	var taken []int64
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for {
				p, err := stores[i%2].Advance(w.Context(), sink, 4, all)
				if err != nil {
					w.Errorf("advance: %v", err)
				}
				if err != nil || p.Read == 0 {
					return
				}
				mu.Lock()
				taken = append(taken, p.Queued...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(taken)
	w.same("taken once", len(slices.Compact(taken)), 40)
	w.same("waiting", w.onlySink().Waiting, int64(40))
}

func deadEntriesAreKept(w *world) {
	sink := w.sink(nil)
	a := w.deliver("A")
	w.advance(sink, all)
	_, entries := w.claimEntries(sink)
	w.recordAttempt(entries[0], inbox.GivenUp)
	w.kill()
	w.same("not due any more", firstOf(w.claimEntries(sink)), []int64(nil))
	dead := collect(w, w.DeadEntries(w.Context()))
	want := inbox.OutboxEntry{
		ID: entries[0].ID, Sink: sink, Delivery: a, Added: entries[0].Added, Attempt: 1, Failures: 1, FirstFailure: sent, GivenUpAt: sent,
		Status: 500, Problem: "said no", Reply: []byte("no\x00\xff"),
	}
	w.same("dead", dead, []inbox.OutboxEntry{want})
	if s := w.onlySink(); s.Dead != 1 || s.Waiting != 0 || !s.Oldest.IsZero() {
		w.Errorf("%+v", s)
	}
	w.recordAttempt(dead[0], inbox.Retry)
	dead = collect(w, w.DeadEntries(w.Context()))
	w.same("failed once more", dead[0].Failures, 2)
	w.same("skipped", have(w.SkipBacklog(w.Context(), sink))(w), int64(0))
	w.recordAttempt(dead[0], inbox.Sent)
	w.same("sent after all", len(collect(w, w.DeadEntries(w.Context()))), 0)
}

func deadEntriesBlockNone(w *world) {
	sink := w.sink(nil)
	w.deliver("A")
	second := w.deliver("A")
	w.advance(sink, all)
	_, entries := w.claimEntries(sink)
	w.recordAttempt(entries[0], inbox.GivenUp)
	of, _ := w.claimEntries(sink)
	w.same("the next", of, []int64{second})
	// Sent again from the beginning, it is alive again, behind the other.
	w.sink(&inbox.StartPosition{})
	w.advance(sink, all)
	w.same("dead", len(collect(w, w.DeadEntries(w.Context()))), 0)
	w.same("it waits", len(firstOf(w.claimEntries(sink))), 0)
	w.same("waiting", w.onlySink().Waiting, int64(2))
}

func firstOf[A, B any](a A, _ B) A { return a }

func skippingKeepsClaimed(w *world) {
	sink := w.sink(nil)
	w.deliver("A")
	w.advance(sink, all)
	_, entries := w.claimEntries(sink)
	w.deliver("A")
	w.deliver("B")
	w.advance(sink, all)
	w.deliver("C")
	w.same("skipped", have(w.SkipBacklog(w.Context(), sink))(w), int64(2))
	if s := w.onlySink(); s.Unread != 0 || s.Waiting != 1 {
		w.Errorf("%+v", s)
	}
	last := w.deliver("A")
	w.same("taken", w.advance(sink, all), []int64{last})
	w.same("it waits for the one under way", firstOf(w.claimEntries(sink)), []int64(nil))
	w.recordAttempt(entries[0], inbox.Sent)
	w.same("then not", firstOf(w.claimEntries(sink)), []int64{last})
}

func skippingRemovesDeadClaims(w *world) {
	sink := w.sink(nil)
	w.deliver("A")
	w.deliver("A")
	w.advance(sink, all)
	other := w.open()
	w.claimEntries(sink)
	w.h.Kill(w, w.Store)
	w.Store = other
	w.same("skipped", have(w.SkipBacklog(w.Context(), sink))(w), int64(2))
	last := w.deliver("A")
	w.advance(sink, all)
	w.same("nothing is before it", firstOf(w.claimEntries(sink)), []int64{last})
}

func lateOutcomesDoNothing(w *world) {
	sink := w.sink(nil)
	w.deliver("A")
	w.advance(sink, all)
	_, mine := w.claimEntries(sink)
	w.must(w.RecordAttempt(w.Context(), 99, inbox.AttemptOutcome{Disposition: inbox.Sent}))
	w.recordAttempt(mine[0], inbox.Retry)
	_, again := w.claimEntries(sink)
	w.must(w.RecordAttempt(w.Context(), mine[0].ID, inbox.AttemptOutcome{Disposition: inbox.Sent, Attempt: mine[0].Attempt}))
	w.same("claimed again", w.onlySink().Waiting, int64(1))
	w.recordAttempt(again[0], inbox.Retry)
	other := w.open()
	entries, _, err := other.ClaimEntries(w.Context(), sink, 1, time.Now().Add(time.Hour))
	w.must(err)
	w.same("the other's", len(entries), 1)
	w.recordAttempt(mine[0], inbox.Sent)
	w.same("still there", w.onlySink().Waiting, int64(1))
	w.must(other.RecordAttempt(w.Context(), entries[0].ID, inbox.AttemptOutcome{Disposition: inbox.Sent}))
	w.same("gone", w.onlySink().Waiting, int64(0))
}

func entryWithManyNumbers(w *world) {
	sink := w.sink(nil)
	var numbers []string
	for i := range 300 {
		numbers = append(numbers, fmt.Sprint("N", i))
	}
	a, b := w.deliver(numbers...), w.deliver(numbers...)
	w.advance(sink, all)
	of, entries := w.claimEntries(sink)
	w.same("first", of, []int64{a})
	w.recordAttempt(entries[0], inbox.Sent)
	w.same("second", firstOf(w.claimEntries(sink)), []int64{b})
}

func contextEndedBeforeOutboxChange(w *world) {
	sink := w.sink(nil)
	w.deliver("A")
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	_, err := w.Advance(ctx, sink, 1, all)
	w.is("advance", err, context.Canceled)
	_, _, err = w.ClaimEntries(ctx, sink, 1, time.Now())
	w.is("claim", err, context.Canceled)
	w.is("record", w.RecordAttempt(ctx, 1, inbox.AttemptOutcome{Disposition: inbox.Sent}), context.Canceled)
	_, err = w.OpenSink(ctx, inbox.SinkKey{Name: "x"}, nil)
	w.is("open", err, context.Canceled)
	w.is("dead", end(w.DeadEntries(ctx)), context.Canceled)
	w.same("sinks", w.onlySink().Cursor, int64(0))
}
