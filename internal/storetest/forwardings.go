package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// waiting shows what waits, each in short.
func (w *world) waiting(s Store) []string {
	w.Helper()
	var all []string
	for _, e := range collect(w, s.WaitingEntries(w.Context())) {
		line := fmt.Sprintf("%d: attempt %d", e.Delivery, e.Attempt)
		if e.Sending {
			line += ", sending"
		}
		if e.HeldBy != 0 {
			line += fmt.Sprintf(", held by %d for %s", e.HeldBy, e.Number)
		}
		if e.Failures > 0 {
			line += fmt.Sprintf(", due %v, %d %s", e.Due.Sub(sent), e.Status, e.Problem)
		}
		all = append(all, line)
	}
	return all
}

func showsWhatWaits(w *world) {
	sink := w.sink(nil)
	a, b := w.deliver("A-1"), w.deliver("B")
	a2, ab := w.deliver("a1"), w.deliver("A1", "B")
	w.same("not read", w.waiting(w.Store), []string(nil))
	w.advance(sink, all)
	w.same("none is sent", w.waiting(w.Store), []string{
		fmt.Sprintf("%d: attempt 0", a), fmt.Sprintf("%d: attempt 0", b),
		fmt.Sprintf("%d: attempt 0, held by %d for A1", a2, a), fmt.Sprintf("%d: attempt 0, held by %d for A1", ab, a2),
	})
	_, entries := w.claimEntries(sink)
	w.must(w.RecordAttempt(w.Context(), entries[1].ID, inbox.AttemptOutcome{Disposition: inbox.Retry, Now: sent, Due: sent.Add(time.Minute), Status: 503, Problem: "busy"}))
	want := []string{
		fmt.Sprintf("%d: attempt 1, sending", a), fmt.Sprintf("%d: attempt 1, due 1m0s, 503 busy", b),
		fmt.Sprintf("%d: attempt 0, held by %d for A1", a2, a), fmt.Sprintf("%d: attempt 0, held by %d for A1", ab, a2),
	}
	w.same("one is being sent", w.waiting(w.Store), want)
	w.same("to another process", w.waiting(w.open()), want)
	w.recordAttempt(entries[0], inbox.GivenUp)
	w.same("one was given up", w.waiting(w.Store), []string{
		want[1], fmt.Sprintf("%d: attempt 0", a2), want[3],
	})
	_, entries = w.claimEntries(sink)
	w.same("claimed", len(entries), 2)
	w.kill()
	w.same("by a process that died", w.waiting(w.Store)[1], fmt.Sprintf("%d: attempt 1", a2))
}

// attempts returns the attempts to send a delivery to the first sink, as lines.
func (w *world) attempts(delivery int64) (lines []string) {
	w.Helper()
	for _, a := range have(w.ForwardingsOf(w.Context(), delivery))(w)[0].History {
		line := fmt.Sprintf("%d: %d at %v in %v", a.Number, a.Status, a.At.Sub(sent), a.Took)
		if a.Sent {
			line += ", sent"
		}
		lines = append(lines, line)
	}
	return lines
}

// Of a delivery that is tried again and again, or sent again from the beginning, the last attempts stay;
// once its bytes are pruned, that it was sent.
func attemptsAreBounded(w *world) {
	key := inbox.SinkKey{Name: "forward", URL: "http://127.0.0.1:1/"}
	delivery := w.deliver("A")
	at := sent
	for round := range 25 {
		sink := have(w.OpenSink(w.Context(), key, &inbox.StartPosition{}))(w)
		w.advance(sink.ID, all)
		_, entries := w.claimEntries(sink.ID)
		d := []inbox.Disposition{inbox.GivenUp, inbox.Sent}[min(round, 1)]
		for range 25 - 24*min(round, 1) {
			at = at.Add(time.Second)
			w.must(w.RecordAttempt(w.Context(), entries[0].ID, inbox.AttemptOutcome{Disposition: d, Now: at, Status: 500}))
		}
		if n := len(w.attempts(delivery)); n > 22 {
			w.Fatalf("round %d: %d attempts", round, n)
		}
	}
	lines := w.attempts(delivery)
	w.same("last", lines[len(lines)-1], fmt.Sprintf("1: 500 at %v in 0s, sent", at.Sub(sent)))
	if _, err := w.Prune(w.Context(), time.Now().Add(time.Hour)); err != nil {
		w.Fatal(err)
	}
	for _, line := range w.attempts(delivery) {
		if !strings.HasSuffix(line, ", sent") {
			w.Errorf("kept of a pruned delivery: %s", line)
		}
	}
}

// A sink that is forgotten takes along what waits for it, and nothing of others.
func sinksAreForgotten(w *world) {
	w.deliver("A")
	gone, stays := w.sink(&inbox.StartPosition{}), w.sinkAt("http://127.0.0.1:9/")
	for _, sink := range []int64{gone, stays} {
		w.advance(sink, all)
		_, entries := w.claimEntries(sink)
		w.recordAttempt(entries[0], inbox.Retry)
	}
	w.must(w.ForgetSink(w.Context(), gone))
	known := have(w.Sinks(w.Context()))(w)
	w.same("sinks", []int64{int64(len(known)), known[0].ID, known[0].Waiting}, []int64{1, stays, 1})
	w.same("waiting", len(w.waiting(w.Store)), 1)
	w.is("again", w.ForgetSink(w.Context(), gone), inbox.ErrNoSink)
}

func (w *world) sinkAt(url string) int64 {
	return have(w.OpenSink(w.Context(), inbox.SinkKey{Name: "forward", URL: url}, &inbox.StartPosition{}))(w).ID
}

func showsWhatWasForwarded(w *world) {
	first, gone := w.deliver("A"), w.deliver("C")
	sink := w.sink(&inbox.StartPosition{})
	key := inbox.SinkKey{Name: "forward", URL: "http://127.0.0.1:2/", Filter: "event=x"}
	other := have(w.OpenSink(w.Context(), key, &inbox.StartPosition{}))(w)
	of := func(delivery int64) []string {
		w.Helper()
		found := have(w.ForwardingsOf(w.Context(), delivery))(w)
		var lines []string
		for _, f := range found {
			line := fmt.Sprintf("%s: read %v", f.Sink.URL[len("http://127.0.0.1"):], f.Read)
			if f.Waiting != nil {
				line += fmt.Sprintf(", attempt %d, %d %s, given up %v", f.Waiting.Attempt, f.Waiting.Status, f.Waiting.Problem, !f.Waiting.GivenUpAt.IsZero())
			}
			if !f.SentAt.IsZero() {
				line += fmt.Sprintf(", sent %v after %d with %d", f.SentAt.Sub(sent), f.Attempts, f.Status)
			}
			lines = append(lines, line)
		}
		return lines
	}
	record := func(d inbox.Disposition, status int, after time.Duration, delivery int64) {
		w.Helper()
		e := have(w.ForwardingsOf(w.Context(), delivery))(w)[0].Waiting
		w.must(w.RecordAttempt(w.Context(), e.ID, inbox.AttemptOutcome{Disposition: d, Now: sent.Add(after), Took: 1500 * time.Microsecond, Due: sent, Status: status, Problem: "why"}))
	}
	w.same("unread", of(first), []string{":1/: read false", ":2/: read false"})
	w.advance(sink, all)
	w.same("queued", of(first), []string{":1/: read true, attempt 0, 0 , given up false", ":2/: read false"})
	w.claimEntries(sink)
	record(inbox.Retry, 503, 0, first)
	record(inbox.GivenUp, 500, 0, gone)
	w.same("failed", of(first)[0], ":1/: read true, attempt 1, 503 why, given up false")
	w.claimEntries(sink)
	record(inbox.Sent, 204, time.Second, first)
	w.same("sent", of(first), []string{":1/: read true, sent 1s after 2 with 204", ":2/: read false"})
	w.same("given up", of(gone)[0], ":1/: read true, attempt 1, 500 why, given up true")
	record(inbox.Sent, 200, 2*time.Second, gone)
	w.same("sent by hand", of(gone)[0], ":1/: read true, sent 2s after 2 with 200")
	w.same("attempts", w.attempts(first), []string{"1: 503 at 0s in 1.5ms", "2: 204 at 1s in 1.5ms, sent"})
	w.same("attempts by hand", w.attempts(gone), []string{"1: 500 at 0s in 1.5ms", "2: 200 at 2s in 1.5ms, sent"})
	w.advance(other.ID, func([]inbox.Event) bool { return false })
	w.same("not accepted", of(first)[1], ":2/: read true")
	w.kill()
	w.same("after a death", of(first)[0], ":1/: read true, sent 1s after 2 with 204")
	w.same("of no delivery", of(99), []string{":1/: read false", ":2/: read false"})
}
