package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func filtersByStatus(w *world) {
	w.run(plan(), entries(1, 5)...)
	moving := sighting(2, sent)
	moving.Status, moving.StatusLabel, moving.StatusTrack = "7", "In Transit", "in_transit"
	text := sighting(3, sent)
	text.Status, text.StatusLabel, text.StatusTrack = `"X9"`, "", ""
	only := sighting(6, sent)
	w.learn(sighting(1, sent), moving, text, only)
	for status, want := range map[string][]string{
		"1": ids(1, 6), "delivered": ids(1, 6), "DeLiVeReD": ids(1, 6),
		"7": ids(2), "in transit": ids(2), "IN_TRANSIT": ids(2), "in-transit": ids(2), "In\u00a0Transit": ids(2), "-7": {}, "intransit": {},
		"X9": ids(3), `"X9"`: ids(3), "deliver": {}, "": {},
	} {
		w.same("status "+status, w.list(ledger.Filter{Statuses: []string{status}}), want)
	}
	w.same("two statuses", w.list(ledger.Filter{Statuses: []string{"7", "x9", "none"}}), ids(2, 3))
}

// A text that no store keeps is not found; it is no error.
func textsThatNoneKeepsFindNothing(w *world) {
	run := w.rejected(parcel(2, "A", "bad-1"))
	w.put("["+event(uuid(1), "")+"]", inbox.Yes)
	for _, bad := range []string{"R\xff", "R\x00", "\x00'", "\xff*", "R\xff*"} {
		found := have(w.Find(w.Context(), bad, ""))(w)
		byNumber := have(w.FindAll(w.Context(), []tracking.Query{{ReferID: bad}, {Number: bad}}))(w)
		w.same("found", len(found)+len(byNumber[0])+len(byNumber[1]), 0)
		dismissed := have(w.Dismiss(w.Context(), run.ID, bad))(w)
		reopened := have(w.Reopen(w.Context(), run.ID, ledger.Rejected, bad))(w)
		erased := have(w.Erase(w.Context(), []tracking.Query{{ReferID: bad}, {Number: bad}}, ledger.EraseOptions{}))(w)
		w.same("changed", dismissed+reopened+erased.Rows, int64(0))
		for _, f := range []ledger.Filter{
			{ReferIDs: []string{bad}},
			{ReferIDs: []string{bad}, Order: ledger.ByReference},
			{Carrier: bad},
			{Statuses: []string{bad}},
		} {
			w.same(fmt.Sprintf("list by %+v", f), len(w.list(f)), 0)
		}
		for _, q := range []inbox.Query{
			{EventID: bad},
			{EventIDPrefix: bad},
			{Kind: bad},
			{TrackingNumber: bad},
			{Trackings: &inbox.TrackingKeys{Numbers: []string{bad}, RouterIDs: []string{bad}}},
		} {
			w.same(fmt.Sprintf("events by %+v", q), len(collect(w, w.Events(w.Context(), q))), 0)
		}
	}
}

func filtersByRun(w *world) {
	first := w.run(plan(), entries(3, 6)...)
	second := w.run(plan(), append(append(entries(7, 8), entries(5, 5)...), append(entries(4, 4), entries(7, 7)...)...)...)
	w.learn(sighting(5, sent), sighting(99, sent))
	w.same("first", w.list(ledger.Filter{Run: first.ID}), ids(3, 4, 5, 6))
	w.same("second, in the order of creation", w.list(ledger.Filter{Run: second.ID}), ids(4, 5, 7, 8))
	w.same("with a status", w.list(ledger.Filter{Run: second.ID, Statuses: []string{"1"}}), ids(5))
	w.same("limited", w.list(ledger.Filter{Run: second.ID, Limit: 3}), ids(4, 5, 7))
	w.is("no such run", end(w.Statuses(w.Context(), ledger.Filter{Run: 99})), ledger.ErrNoRun)
}

// What an input says beside what is sent is kept with its new rows, filters lists, and is
// erased with its row.
func keepsOwnColumns(w *world) {
	p, all := plan(), entries(1, 6)
	p.Own = []string{"customer", "shop"}
	all[0].Own = `{"customer":"Ann Lee","shop":"North"}`
	all[1].Own = `{"customer":"Müller \"K\u003c\", 50 % off_\\"}`
	all[2].Own = `{"shop":"ann"}`
	w.run(p, all...)
	again := entries(1, 1)
	again[0].Own = `{"Customer":"Bob"}`
	p.Own = []string{"Customer", "notes"}
	w.run(p, again...)
	w.run(plan(), entries(7, 7)...)
	w.learn(sighting(2, sent), sighting(5, sent), sighting(9, sent))
	columns := have(w.OwnColumns(w.Context()))(w)
	for i := range columns {
		columns[i] = strings.ToLower(columns[i])
	}
	w.same("columns", columns, []string{"customer", "notes", "shop"})
	for _, o := range []ledger.Order{ledger.ByCreation, ledger.ByReference, ledger.ByReceived} {
		for where, want := range map[string][]string{
			"customer=Ann Lee": ids(1), "CUSTOMER=ann lee": ids(1), "customer=ann*": ids(1), "customer=*lee": ids(1), "customer=a*n*e*": ids(1),
			"customer=ann": {}, "customer=*ann lee*x": {}, "customer=a*a": {}, "customer=Bob": {}, "shop=*": ids(1, 3),
			"customer=müller*": ids(2), "customer=MÜLLER \"k<\", 50 % OFF_\\": ids(2), "customer=*50 % off-*": {}, "shop=ann": ids(3), "shop=": {},
		} {
			column, pattern, _ := strings.Cut(where, "=")
			f := ledger.Filter{Order: o, Own: []ledger.OwnText{{Column: column, Pattern: pattern}}}
			got := w.list(f)
			slices.Sort(got)
			w.same(fmt.Sprintf("%s, sorted by %q", where, o), got, want)
			f.Limit = 1
			w.same("the first of "+where, len(w.list(f)), min(1, len(want)))
			var counted int64
			for _, g := range have(w.Count(w.Context(), f))(w) {
				counted += g.Trackings
			}
			w.same("counted of "+where, counted, int64(len(want)))
		}
	}
	w.same("both", w.list(ledger.Filter{Own: []ledger.OwnText{{Column: "customer", Pattern: "ann*"}, {Column: "shop", Pattern: "north"}}}), ids(1))
	found := have(w.Find(w.Context(), "order-0001", ""))(w)
	w.same("kept", found[0].Own, all[0].Own)
	_ = have(w.Erase(w.Context(), []tracking.Query{{ReferID: "order-0001"}}, ledger.EraseOptions{}))(w)
	w.same("erased", w.list(ledger.Filter{Own: []ledger.OwnText{{Column: "customer", Pattern: "ann*"}}}), []string{})
}

func filtersByTime(w *world) {
	run := w.run(plan(), entries(1, 9)...)
	b := w.claim(run.ID, 3)
	w.record(ledger.Accepted, b[0], b[1])
	w.record(ledger.Unknown, b[2])
	later := sent.Add(time.Hour)
	at := func(n int, d time.Duration, label string) ledger.Sighting {
		s := sighting(n, later)
		s.Status, s.StatusLabel, s.StatusTrack, s.Times = "", label, "", tracking.Times{Checkpoint: later.Add(d)}
		return s
	}
	updated := at(4, -time.Hour, "")
	updated.Times.Updated = later
	w.learn(at(1, 0, "MOVING"), at(2, time.Hour, "MOVING"), at(3, 0, "Delivered"), updated, at(7, -time.Millisecond, "Delivered"), at(20, 0, "Delivered"), at(21, -time.Minute, "MOVING"))
	w.must(w.Record(w.Context(), []ledger.RecordedAnswer{{ReferID: item(6).ReferID, Asked: later, Raw: []byte("?")}}))
	since, until := ledger.Range{Since: later}, ledger.Range{Until: later}
	w.same("updated since", w.list(ledger.Filter{Updated: since}), ids(1, 2, 3, 4, 20))
	w.same("updated before", w.list(ledger.Filter{Updated: until}), ids(7, 21))
	w.same("updated within", w.list(ledger.Filter{Updated: ledger.Range{Since: later, Until: later.Add(time.Hour)}}), ids(1, 3, 4, 20))
	w.same("delivered since", w.list(ledger.Filter{Delivered: since}), ids(3, 20))
	w.same("delivered before", w.list(ledger.Filter{Delivered: until}), ids(7))
	w.same("created since", w.list(ledger.Filter{Created: ledger.Range{Since: run.Created.Truncate(time.Millisecond)}}), ids(1, 2, 3, 4, 5, 6, 7, 8, 9))
	w.same("created before", w.list(ledger.Filter{Created: ledger.Range{Until: run.Created.Truncate(time.Millisecond)}}), []string{})
	w.same("not checked", w.list(ledger.Filter{States: []ledger.State{ledger.NotChecked}}), ids(5, 6))
	w.same("not checked or delivered", w.list(ledger.Filter{Statuses: []string{"delivered"}, States: []ledger.State{ledger.NotChecked}}), ids(3, 5, 6, 7, 20))
	w.same("a state or a status", w.list(ledger.Filter{Statuses: []string{"moving"}, States: []ledger.State{ledger.Unknown}}), ids(1, 2, 7, 8, 9, 21))
	var unchecked []string
	for _, st := range collect(w, w.Statuses(w.Context(), ledger.Filter{})) {
		if st.Unchecked() {
			unchecked = append(unchecked, st.Item.ReferID)
		}
	}
	w.same("unchecked", unchecked, ids(5))
}

func filtersByState(w *world) {
	p := plan()
	p.BatchSize = 2
	run := w.run(p, entries(1, 9)...)
	b := w.claim(run.ID, 3)
	w.must(w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{{Batch: b[0].ID, State: ledger.Accepted, Began: sent, Rows: []ledger.RowOutcome{{Row: b[0].Rows[1].ID, State: ledger.Rejected}}}}))
	w.record(ledger.Unknown, b[1])
	w.learn(sighting(1, sent), sighting(5, sent), sighting(20, sent))
	for state, want := range map[ledger.State][]string{
		ledger.Accepted: ids(1), ledger.Rejected: ids(2), ledger.Unknown: ids(3, 4), ledger.Sending: ids(5, 6), ledger.Pending: ids(7, 8, 9), "other": {},
	} {
		w.same("state "+string(state), w.list(ledger.Filter{States: []ledger.State{state}}), want)
		w.same("in the run", w.list(ledger.Filter{States: []ledger.State{state}, Run: run.ID}), want)
	}
	again := w.run(p, entries(5, 8)...)
	w.same("in another run", w.list(ledger.Filter{States: []ledger.State{ledger.Sending}, Run: again.ID}), ids(5, 6))
	w.same("or with a status", w.list(ledger.Filter{States: []ledger.State{ledger.Sending}, Statuses: []string{"1"}}), ids(1, 5, 6, 20))
}

// What a filter takes is the same whatever was known of numbers before their rows.
func filtersAmongMany(w *world) {
	w.follow(eventSighting(1, item(7).Number, ""), eventSighting(2, item(9500).Number, ""), eventSighting(3, "1Z-nobody", ""))
	p := plan()
	p.BatchSize = 1000
	w.run(p, entries(1, 9000)...)
	w.learn(sighting(3, sent), sighting(8000, sent))
	moving := sighting(9600, sent)
	moving.Status, moving.StatusLabel, moving.StatusTrack = "7", "In Transit", "in_transit"
	w.learn(moving)
	check := func(when string, more ...int) {
		w.Helper()
		w.same("delivered "+when, w.list(ledger.Filter{Statuses: []string{"delivered"}})[:3+len(more)], ids(append([]int{3, 7, 8000}, more...)...))
		w.same("moving "+when, w.list(ledger.Filter{Statuses: []string{"in transit"}}), ids(9600))
		w.same("all "+when, len(w.list(ledger.Filter{})), len(collect(w, w.Statuses(w.Context(), ledger.Filter{Order: ledger.ByAsked}))))
	}
	check("at first")
	w.run(p, entries(9400, 9900)...)
	check("with some more", 9500)
	counts := map[string]int64{}
	all := have(w.countByStatus())(w)
	for _, c := range all {
		counts[string(c.Phase)+" "+c.StatusLabel] += c.Trackings
	}
	w.same("counts", counts, map[string]int64{" ": 9501 - 5, "processed DELIVERED": 5, "processed In Transit": 1})
}

// countByStatus returns how many trackings have which status, the most frequent first.
func (w *world) countByStatus() ([]ledger.StatusCount, error) {
	groups, err := w.Count(w.Context(), ledger.Filter{})
	counts := map[ledger.StatusCount]int64{}
	for _, g := range groups {
		n := g.Trackings
		g.Trackings = 0
		counts[g.StatusCount] += n
	}
	var all []ledger.StatusCount
	for c, n := range counts {
		c.Trackings = n
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b ledger.StatusCount) int {
		return cmp.Or(cmp.Compare(b.Trackings, a.Trackings), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	return all, err
}

func countsByStatus(w *world) {
	w.run(plan(), entries(1, 5)...)
	counts := func() []string {
		w.Helper()
		all := have(w.countByStatus())(w)
		lines := []string{}
		for _, c := range all {
			lines = append(lines, fmt.Sprintf("%d %s %s/%s/%s", c.Trackings, c.Phase, c.Status, c.StatusLabel, c.StatusTrack))
		}
		return lines
	}
	w.same("at first", counts(), []string{"5  //"})
	processing := sighting(2, sent)
	processing.Phase, processing.Status, processing.StatusLabel, processing.StatusTrack = ledger.Processing, "", "", ""
	w.learn(sighting(1, sent), processing, sighting(20, sent))
	w.same("after answers", counts(), []string{"3  //", "2 processed 1/DELIVERED/delivered", "1 processing //"})
	w.learn(sighting(2, sent.Add(time.Hour)), sighting(2, sent.Add(2*time.Hour)))
	w.follow(eventSighting(1, item(3).Number, ""), eventSighting(2, "1Z-nobody", ""))
	want := []string{"5 processed 1/DELIVERED/delivered", "2  //"}
	w.same("after events", counts(), want)
	nobody := entries(6, 6)
	nobody[0].Item.Number = "1z nobody"
	w.run(plan(), nobody...)
	w.same("when the number has an order", counts(), want)
	w.kill()
	w.same("in another process", counts(), want)
	staging := have(w.Stage(w.Context(), plan()))(w)
	have(staging.Add(w.Context(), entries(20, 21)))(w)
	w.same("while more is staged", counts(), want)
	w.must(staging.Discard(w.Context()))
	w.same("when that was discarded", counts(), want)
	w.run(plan(), entries(20, 21)...)
	w.same("when an order has what was known before", counts(), []string{"5 processed 1/DELIVERED/delivered", "3  //"})
	total := int64(0)
	all := have(w.countByStatus())(w)
	for _, c := range all {
		total += c.Trackings
	}
	w.same("all", total, int64(len(w.list(ledger.Filter{}))))
}

// What is staged meanwhile is pending in every sum, and never taken for accepted.
func countsWhileRowsArrive(w *world) {
	const portions = 60
	staging, _ := w.beginRun(plan(), entries(1, 1)...)
	staged := make(chan struct{})
	go func() {
		defer close(staged)
		for n := range portions {
			w.add(staging, entries(100*n+2, 100*n+101)...)
		}
	}()
	for counts := 0; ; counts++ {
		for _, g := range have(w.Count(w.Context(), ledger.Filter{}))(w) {
			if g.State != ledger.Pending {
				w.Errorf("count %d: %d rows are %q", counts, g.Trackings, g.State)
			}
		}
		select {
		case <-staged:
			w.must(staging.Discard(w.Context()))
			return
		default:
		}
	}
}

func leastRecentlyAskedFirst(w *world) {
	run := w.run(plan(), entries(1, 700)...)
	asked := func(n int, d time.Duration) ledger.RecordedAnswer {
		return ledger.RecordedAnswer{ReferID: item(n).ReferID, Asked: sent.Add(d), Raw: []byte("{}"), Seen: []ledger.Sighting{sighting(n, sent.Add(d))}}
	}
	w.must(w.Record(w.Context(), []ledger.RecordedAnswer{asked(1, 3*time.Hour), asked(2, time.Hour), asked(3, 2*time.Hour)}))
	got := w.list(ledger.Filter{Order: ledger.ByAsked})
	w.same("all", len(got), 700)
	w.same("never asked", got[:2], ids(4, 5))
	w.same("asked", got[697:], ids(2, 3, 1))
	again := w.run(plan(), entries(1, 3)...)
	w.same("in a run", w.list(ledger.Filter{Order: ledger.ByAsked, Run: again.ID}), ids(2, 3, 1))
	w.same("with a status", w.list(ledger.Filter{Order: ledger.ByAsked, Statuses: []string{"1"}, Limit: 2}), ids(2, 3))
	// What is recorded while the list is read changes nothing in it.
	seen := map[string]int{}
	for st, err := range w.Statuses(w.Context(), ledger.Filter{Order: ledger.ByAsked, Run: run.ID}) {
		w.must(err)
		if seen[st.Item.ReferID]++; len(seen) == 1 {
			var all []ledger.RecordedAnswer
			for n := range 700 {
				all = append(all, asked(n+1, time.Duration(700-n)*time.Minute+24*time.Hour))
			}
			w.must(w.Record(w.Context(), all))
		}
	}
	w.same("each once", len(seen), 700)
	for ref, times := range seen {
		if times != 1 {
			w.Errorf("%s was there %d times", ref, times)
		}
	}
}

// Pages neither repeat nor skip a row when others write meanwhile.
func pagesWhileOthersWrite(w *world) {
	p := plan()
	p.BatchSize = 1000
	w.run(p, entries(1, 3000)...)
	var learnt []ledger.Sighting
	for n := range 3000 {
		learnt = append(learnt, sighting(n+1, sent))
		learnt[n].Times.Checkpoint = sent
	}
	w.learn(learnt...)
	for _, f := range []ledger.Filter{{}, {Statuses: []string{"delivered"}}, {Updated: ledger.Range{Since: sent}}} {
		w.follow(eventSighting(1, "1Z-nobody", ""))
		seen := map[string]bool{}
		for st, err := range w.Statuses(w.Context(), f) {
			w.must(err)
			if seen[st.Item.ReferID] {
				w.Errorf("%s is there twice", st.Item.ReferID)
			}
			if seen[st.Item.ReferID] = true; len(seen) == 100 {
				for i := range learnt {
					learnt[i].Seen = learnt[i].Seen.Add(time.Minute)
				}
				w.learn(learnt...)
				w.run(p, entries(1, 10)...)
			}
		}
		for n := range 3000 {
			if !seen[item(n+1).ReferID] {
				w.Fatalf("%+v: %s is not there", f, item(n+1).ReferID)
			}
		}
	}
}

func limitsAndPages(w *world) {
	const n = 2300
	p := plan()
	p.BatchSize = 1000
	w.run(p, entries(1, n)...)
	var seen []ledger.Sighting
	for i := range n {
		seen = append(seen, sighting(i+1, sent), sighting(i+5001, sent))
	}
	w.must(w.Record(w.Context(), []ledger.RecordedAnswer{{Seen: seen}}))
	for limit, want := range map[int]int{0: 2 * n, 1: 1, 999: 999, 1000: 1000, 1001: 1001, n: n, n + 1: n + 1, 3 * n: 2 * n} {
		w.same("statuses", len(w.list(ledger.Filter{Limit: limit})), want)
	}
	for _, err := range w.Statuses(w.Context(), ledger.Filter{}) {
		w.must(err)
		break
	}
}
