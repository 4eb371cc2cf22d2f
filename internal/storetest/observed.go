package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/observed"
)

// Observed tests a store against the contract of package observed.
func Observed(t *testing.T, h Harness) {
	t.Helper()
	suite(t, h, map[string]func(*world){
		"AddsUp":             observationsAddUp,
		"IsBounded":          observationsAreBounded,
		"AddsUpTogether":     observationsAddUpTogether,
		"EventsAreReadOnce":  eventsAreObservedOnce,
		"OddTextsAreCleaned": oddObservationsAreCleaned,
	})
}

// met is an entry seen so many minutes after sent.
func met(kind observed.Kind, name string, minutes int) observed.Entry {
	at := sent.Add(time.Duration(minutes) * time.Minute)
	return observed.Entry{Key: observed.Key{Kind: kind, Value: name}, Count: 1, First: at, Last: at}
}

// register returns the entries of an origin, a line each.
func (w *world) register(of observed.Origin) []string {
	w.Helper()
	all := have(w.Observed.Observed(w.Context(), of))(w)
	var lines []string
	for _, e := range all {
		lines = append(lines, fmt.Sprintf("%s %s: %d, %v-%v, %v", e.Kind, e.Value, e.Count, e.First.Sub(sent).Minutes(), e.Last.Sub(sent).Minutes(), e.Documented))
	}
	slices.Sort(lines)
	return lines
}

func observationsAddUp(w *world) {
	ctx, of := w.Context(), observed.Responses
	w.same("at first", len(w.register(of)), 0)
	field, status := met(observed.Field, "query a", 5), met(observed.Status, "1", 5)
	field.Count, status.Documented = 3, true
	w.must(w.Observed.Observe(ctx, []observed.Entry{field, status}))
	w.must(w.Observed.Observe(ctx, nil))
	w.must(w.Observed.Observe(ctx, []observed.Entry{met(observed.Status, "1", 2), met(observed.Field, "query a", 9), met(observed.Field, "query b", 9)}))
	w.kill()
	w.same("sums", w.register(of), []string{`field query a: 4, 5-9, false`, `field query b: 1, 9-9, false`, `status 1: 2, 2-5, false`})
	for _, other := range []observed.Origin{observed.Verified, observed.Unverified} {
		w.same("of others", len(w.register(other)), 0)
	}
}

func observationsAreBounded(w *world) {
	ctx := w.Context()
	var all []observed.Entry
	for n := range observed.MaxEntries + 10 {
		all = append(all, met(observed.Field, fmt.Sprint("query ", n), 1))
	}
	for range 2 {
		w.must(w.Observed.Observe(ctx, append(slices.Clone(all), met(observed.Error, "query e", 1))))
	}
	// What was not kept before counts together with what is not kept now.
	w.must(w.Observed.Observe(ctx, []observed.Entry{met(observed.Field, "", 1), met(observed.Field, "query new", 1)}))
	lines := w.register(observed.Responses)
	w.same("entries", len(lines), observed.MaxEntries+2)
	w.same("beyond", lines[1], `field : 22, 1-1, false`)
}

// Two processes that meet the same at once count it twice.
func observationsAddUpTogether(w *world) {
	other := w.open()
	var both sync.WaitGroup
	for i, s := range []observed.Store{w.Observed, other.Observed} {
		both.Go(func() {
			for n := range 20 {
				e := met(observed.Field, fmt.Sprint("query ", (n+i)%3), n)
				if err := s.Observe(w.Context(), []observed.Entry{e, met(observed.Header, "answer X", n)}); err != nil {
					w.Error(err)
				}
			}
		})
	}
	both.Wait()
	all := have(w.Observed.Observed(w.Context(), observed.Responses))(w)
	var sum int64
	for _, e := range all {
		sum += e.Count
	}
	w.same("sum", sum, int64(80))
}

func eventsAreObservedOnce(w *world) {
	ctx := w.Context()
	for n := range 3 {
		w.put("["+event(uuid(n), "")+"]", inbox.Yes)
	}
	observe := func(from, to int64, want bool) {
		w.Helper()
		verified, unverified := []observed.Entry{met(observed.EventKind, "x", 1)}, []observed.Entry{met(observed.EventKind, "y", 1)}
		moved := have(w.Observed.ObserveEvents(ctx, verified, unverified, from, to))(w)
		w.same("moved", moved, want)
	}
	observe(0, 2, true)
	observe(0, 2, false)
	observe(2, 3, true)
	w.kill()
	to, last, err := w.Observed.EventsObserved(ctx)
	w.must(err)
	w.same("observed", []int64{to, last}, []int64{3, 3})
	w.same("verified", w.register(observed.Verified), []string{`event x: 2, 1-1, false`})
	w.same("unverified", w.register(observed.Unverified), []string{`event y: 2, 1-1, false`})
}

func oddObservationsAreCleaned(w *world) {
	w.must(w.Observed.Observe(w.Context(), []observed.Entry{met(observed.Field, "query \xff\x00", 1)}))
	w.same("entries", w.register(observed.Responses), []string{`field query ` + "\ufffd\ufffd" + `: 1, 1-1, false`})
	other := met(observed.Field, "query \ufffd\ufffd", 2)
	w.must(w.Observed.Observe(w.Context(), []observed.Entry{met(observed.Field, "query \xff\x00", 1), other}))
	w.same("entries", w.register(observed.Responses), []string{`field query ` + "\ufffd\ufffd" + `: 3, 1-2, false`})
}
