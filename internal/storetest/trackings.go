package storetest

import (
	"fmt"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

var trackingTests = map[string]func(*world){
	"RowsThenOnlySeen":         rowsThenOnlySeen,
	"OlderNewsChangesNothing":  olderSightingsChangeNothing,
	"EveryFieldIsKept":         everyFieldIsKept,
	"KeysMustBeText":           keysMustBeText,
	"FindsByReferID":           findsByReferID,
	"FindsByNumber":            findsByNumber,
	"FindsAmongMany":           findsAmongMany,
	"FiltersByStatus":          filtersByStatus,
	"TextsThatNoneKeeps":       textsThatNoneKeepsFindNothing,
	"FiltersByRun":             filtersByRun,
	"KeepsOwnColumns":          keepsOwnColumns,
	"FiltersByTime":            filtersByTime,
	"FiltersByState":           filtersByState,
	"FiltersAmongMany":         filtersAmongMany,
	"CountsByStatus":           countsByStatus,
	"CountsWhileRowsArrive":    countsWhileRowsArrive,
	"LeastRecentlyAskedFirst":  leastRecentlyAskedFirst,
	"PagesWhileOthersWrite":    pagesWhileOthersWrite,
	"LimitsAndPages":           limitsAndPages,
	"SightingsOutliveTheirRun": sightingsSurviveTheirRun,
	"ProcessingGivesWay":       processingGivesWay,
	"TimesOfTheServiceCount":   timesOfTheServiceCount,
	"ErrorsAreKept":            errorsAreKept,
	"ManySightingsAtOnce":      manySightingsAtOnce,
	"ManyAreFoundAtOnce":       manyAreFoundAtOnce,
	"WhenItWasAsked":           whenItWasAsked,
	"EventsAreAboutRows":       eventsAreAboutRows,
	"RouterIDsTie":             routerIDsTie,
	"NobodysNumbersGiveWay":    nobodysNumbersGiveWay,
	"FollowsOnce":              followsOnce,
	"ClaimsAreBeside":          claimsAreBeside,
}

// sighting is what is seen of the n-th item.
func sighting(n int, seen time.Time) ledger.Sighting {
	return ledger.Sighting{
		Key: item(n).Key(), Phase: ledger.Processed,
		Report: tracking.Report{
			Status: "1", StatusLabel: "DELIVERED", StatusTrack: "delivered",
			LatestEvent: "Left with a neighbour", LatestTime: "2026-03-01T10:00:00.000Z",
		},
		CarrierCode: "ups", Seen: seen, Source: ledger.FromQuery,
	}
}

// learn records sightings.
func (w *world) learn(seen ...ledger.Sighting) {
	w.Helper()
	w.must(w.Record(w.Context(), []ledger.RecordedAnswer{{Seen: seen, Raw: []byte(`{"raw":true}`)}}))
}

// list returns which items a filter leaves, by their referIds.
func (w *world) list(f ledger.Filter) []string {
	w.Helper()
	ids := []string{}
	for _, st := range collect(w, w.Statuses(w.Context(), f)) {
		ids = append(ids, st.Item.ReferID)
	}
	return ids
}

// ids are the referIds of the n-th items.
func ids(n ...int) []string {
	all := []string{}
	for _, i := range n {
		all = append(all, item(i).ReferID)
	}
	return all
}

func rowsThenOnlySeen(w *world) {
	first := w.run(plan(), entries(4, 5)...)
	second := w.run(plan(), entries(1, 4)...)
	w.record(ledger.Rejected, w.claim(first.ID, 1)...)
	only := sighting(9, sent)
	only.CarrierCode = "dhl"
	w.learn(only, sighting(8, sent), sighting(2, sent))
	must := func(n int, s *ledger.Sighting, state ledger.State, run int64, reason string) ledger.TrackingStatus {
		return ledger.TrackingStatus{Item: item(n), State: state, Run: run, Reason: reason, Sighting: s}
	}
	seen8, seen2 := sighting(8, sent), sighting(2, sent)
	want := []ledger.TrackingStatus{
		must(4, nil, ledger.Rejected, first.ID, "because of the batch"),
		must(5, nil, ledger.Rejected, first.ID, "because of the batch"),
		must(1, nil, ledger.Pending, second.ID, ""),
		must(2, &seen2, ledger.Pending, second.ID, ""),
		must(3, nil, ledger.Pending, second.ID, ""),
		must(9, &only, "", 0, ""),
		must(8, &seen8, "", 0, ""),
	}
	for i, run := range []ledger.Run{first, first, second, second, second} {
		want[i].Created = run.Created.UTC().Truncate(time.Millisecond)
	}
	want[0].Sent, want[1].Sent = sent.Add(20*time.Millisecond), sent.Add(20*time.Millisecond)
	want[5].Item.CarrierCode = "dhl"
	w.same("statuses", collect(w, w.Statuses(w.Context(), ledger.Filter{})), want)
}

func olderSightingsChangeNothing(w *world) {
	get := func() ledger.Sighting {
		w.Helper()
		found := have(w.Find(w.Context(), item(1).ReferID, ""))(w)
		w.same("found", len(found), 1)
		return *found[0].Sighting
	}
	w.learn(sighting(1, sent))
	older := sighting(1, sent.Add(-time.Millisecond))
	older.Phase, older.StatusLabel = ledger.Absent, "OLD"
	w.learn(older)
	w.same("after older news", get(), sighting(1, sent))
	equal := sighting(1, sent)
	equal.LatestEvent = "said in the same moment, but later"
	w.learn(equal)
	w.same("after news of the same moment", get(), equal)
	newer := sighting(1, sent.Add(time.Millisecond))
	newer.Phase, newer.StatusTrack, newer.Source = ledger.Absent, "", ledger.FromEvent
	w.learn(newer)
	w.same("after newer news", get(), newer)
	w.kill()
	w.same("in another process", get(), newer)
	late := sighting(1, sent.Add(time.Hour))
	late.AsOf = sent
	w.learn(late)
	w.same("after news that came late", get(), newer)
}

// Processing says nothing of a shipment: it does not take back what is known
// of one, and gives way to it whenever that was so.
func processingGivesWay(w *world) {
	phase := func(n int) ledger.Phase {
		w.Helper()
		found := have(w.Find(w.Context(), item(n).ReferID, ""))(w)
		return found[0].Sighting.Phase
	}
	processing := func(n int, seen time.Time) ledger.Sighting {
		s := sighting(n, seen)
		s.Phase = ledger.Processing
		return s
	}
	w.learn(sighting(1, sent), processing(2, sent))
	w.learn(processing(1, sent.Add(time.Hour)), sighting(2, sent.Add(-time.Hour)))
	w.same("processing after processed", phase(1), ledger.Processed)
	w.same("processed before processing", phase(2), ledger.Processed)
	absent := sighting(3, sent)
	absent.Phase = ledger.Absent
	w.learn(absent, processing(3, sent.Add(time.Hour)))
	w.same("processing after absent", phase(3), ledger.Processing)
	fault := inError(sighting(4, sent))
	w.learn(processing(4, sent.Add(time.Hour)), fault, processing(4, sent.Add(2*time.Hour)))
	w.same("processing after an error", phase(4), ledger.InError)
	w.learn(sighting(4, sent.Add(3*time.Hour)))
	w.same("a report after an error", phase(4), ledger.Processed)
}

// inError is a sighting with an error beside what else it has.
func inError(s ledger.Sighting) ledger.Sighting {
	s.Phase, s.Error = ledger.InError, `{"code":7}`
	return s
}

// An error is kept apart from the same status without one, in lists and in sums, and one of
// a number alone is known of each tracking that has it.
func errorsAreKept(w *world) {
	w.run(plan(), entries(1, 3)...)
	bare := inError(ledger.Sighting{Key: item(2).Key(), Seen: sent, Source: ledger.FromQuery})
	w.learn(sighting(1, sent), bare, inError(sighting(3, sent)))
	late := inError(eventSighting(1, item(4).Number, ""))
	w.follow(late)
	w.run(plan(), entries(4, 4)...)
	all := have(w.countByStatus())(w)
	counts := map[string]int64{}
	for _, c := range all {
		counts[string(c.Phase)+" "+c.StatusLabel] += c.Trackings
	}
	w.same("counts", counts, map[string]int64{"processed DELIVERED": 1, "error ": 1, "error DELIVERED": 2})
	named := func(word string, s ledger.Sighting) bool { return word == string(s.Phase) }
	w.same("by phase", w.list(ledger.Filter{Statuses: []string{"error"}, NamedToo: named}), ids(2, 3, 4))
	for _, st := range collect(w, w.Statuses(w.Context(), ledger.Filter{Statuses: []string{"error"}, NamedToo: named})) {
		w.same("error of "+st.Item.ReferID, st.Sighting.Error, `{"code":7}`)
	}
	w.same("by status", w.list(ledger.Filter{Statuses: []string{"delivered"}}), ids(1, 3, 4))
}

// What is known of many trackings is compared as that of one is.
func manySightingsAtOnce(w *world) {
	const many = 470
	batch := func(seen time.Time, status string) []ledger.Sighting {
		all := make([]ledger.Sighting, many)
		for i := range all {
			all[i] = sighting(i+1, seen)
			all[i].Status = status
		}
		return all
	}
	statuses := func() map[string]int {
		counts := map[string]int{}
		for _, st := range collect(w, w.Statuses(w.Context(), ledger.Filter{})) {
			counts[st.Sighting.Status]++
		}
		return counts
	}
	w.must(w.Record(w.Context(), []ledger.RecordedAnswer{{Seen: batch(sent, "1")}}))
	w.must(w.Record(w.Context(), []ledger.RecordedAnswer{{Seen: batch(sent.Add(-time.Hour), "2")}}))
	w.same("older ones", statuses(), map[string]int{"1": many})
	newer := batch(sent.Add(time.Hour), "3")
	w.must(w.Record(w.Context(), []ledger.RecordedAnswer{{Seen: append(newer, batch(sent.Add(2*time.Hour), "4")[many-1])}}))
	w.same("newer ones, one of them twice", statuses(), map[string]int{"3": many - 1, "4": 1})
}

// What is newer by the service's own times counts, whichever came later.
func timesOfTheServiceCount(w *world) {
	w.run(plan(), entries(1, 3)...)
	status := func(n int) string {
		w.Helper()
		found := have(w.Find(w.Context(), item(n).ReferID, ""))(w)
		return found[0].Sighting.StatusLabel
	}
	answer := func(n int, label string, checkpoint time.Duration) ledger.Sighting {
		s := sighting(n, sent.Add(99*time.Hour))
		s.StatusLabel, s.Times.Checkpoint = label, sent.Add(checkpoint)
		return s
	}
	event := func(n int, number, label string, checkpoint time.Duration) ledger.Sighting {
		s := eventSighting(n, number, "")
		s.StatusLabel, s.Times.Checkpoint = label, sent.Add(checkpoint)
		return s
	}
	w.follow(event(1, item(1).Number, "DELIVERED", 5*time.Hour))
	w.learn(answer(1, "OLD", 4*time.Hour))
	w.same("after an older answer", status(1), "DELIVERED")
	w.learn(answer(1, "OLD", 4*time.Hour), answer(1, "RETURNED", 6*time.Hour), answer(2, "NEW", 6*time.Hour))
	w.same("after a newer answer", status(1), "RETURNED")
	w.follow(event(2, item(2).Number, "LATE", 5*time.Hour))
	w.same("after an older event", status(2), "NEW")
	// The number was nobody's when the event came.
	w.follow(event(3, "1Z-0009", "DELIVERED", 5*time.Hour))
	w.run(plan(), entries(9, 9)...)
	w.learn(answer(9, "OLD", 4*time.Hour))
	w.same("of a number that was nobody's, after an older answer", status(9), "DELIVERED")
	w.learn(answer(9, "RETURNED", 6*time.Hour))
	w.same("and after a newer one", status(9), "RETURNED")
}

func everyFieldIsKept(w *world) {
	var s ledger.Sighting
	w.fillFields(&s)
	s.Event, s.Transit = 1<<40, 36*time.Hour
	bare := ledger.Sighting{Key: tracking.Key{ReferID: "bare"}, Phase: ledger.Absent, Seen: sent, Source: ledger.FromQuery}
	odd := ledger.Sighting{
		Key: tracking.Key{ReferID: "odd"}, Phase: ledger.Processed,
		Report: tracking.Report{LatestEvent: "a\x00b\xff"}, Seen: sent, Source: ledger.FromQuery,
	}
	w.must(w.Record(w.Context(), []ledger.RecordedAnswer{{Seen: []ledger.Sighting{s, bare, odd}}}))
	odd.LatestEvent = "a\ufffdb\ufffd" // what only describes is made fit
	for _, want := range []ledger.Sighting{s, bare, odd} {
		found := have(w.Find(w.Context(), want.Key.ReferID, ""))(w)
		if len(found) != 1 {
			w.Fatalf("found %v", found)
		}
		w.same("sighting", *found[0].Sighting, want)
		w.same("item", found[0].Item, tracking.Item{ReferID: want.Key.ReferID, Number: want.Key.Number, CarrierCode: want.CarrierCode})
	}
}

func keysMustBeText(w *world) {
	for _, key := range []tracking.Key{{ReferID: "a\x00"}, {ReferID: "a", Number: "\xff"}} {
		good := sighting(1, sent)
		bad := sighting(1, sent)
		bad.Key = key
		if err := w.Record(w.Context(), []ledger.RecordedAnswer{{Seen: []ledger.Sighting{good, bad}}}); err == nil {
			w.Errorf("%q was learnt", key)
		}
	}
	w.same("statuses", w.list(ledger.Filter{}), []string{})
	w.must(w.Record(w.Context(), []ledger.RecordedAnswer{{Seen: nil, Raw: []byte("x")}}))
}

// parcels are three parcels of one order, two of them in the ledger.
func (w *world) parcels() ledger.Run {
	w.Helper()
	all := entries(1, 3)
	for i := range all {
		all[i].Item.ReferID = "order"
	}
	run := w.run(plan(), append(entries(9, 9), all[0], all[1])...)
	seen := sighting(3, sent)
	seen.Key.ReferID = "order"
	second := sighting(2, sent)
	second.Key.ReferID = "order"
	w.learn(seen, second)
	return run
}

func findsByReferID(w *world) {
	run := w.parcels()
	found := have(w.Find(w.Context(), "order", ""))(w)
	var got []string
	for _, st := range found {
		got = append(got, fmt.Sprintf("%s %s %d %t", st.Item.Number, st.State, st.Run, st.Sighting != nil))
	}
	w.same("parcels", got, []string{"1Z-0001 pending 1 false", "1Z-0002 pending 1 true", "1Z-0003  0 true"})
	w.same("run", run.ID, int64(1))
	w.same("by how it begins", have(w.Find(w.Context(), "orde", ""))(w), []ledger.TrackingStatus(nil))
}

func findsByNumber(w *world) {
	w.parcels()
	for number, want := range map[string]string{
		"1Z-0001": "pending", "1z 00 01": "pending", "1Z-0002": "pending", "1Z-0003": "", "1z0003": "", "1Z-0009": "pending",
	} {
		found := have(w.Find(w.Context(), "", number))(w)
		if len(found) != 1 || string(found[0].State) != want {
			w.Errorf("%s: found %v, want one that is %q", number, found, want)
		}
	}
	for _, number := range []string{"1Z-001", "1Z-0004", ""} {
		w.same("found "+number, have(w.Find(w.Context(), "", number))(w), []ledger.TrackingStatus(nil))
	}
}

// findsAmongMany has several rows of one number in each of several large runs.
func findsAmongMany(w *world) {
	p := plan()
	p.BatchSize = 1000
	for run := range 3 {
		all := entries(1, 9000)
		for i := range all {
			all[i].Item.ReferID = fmt.Sprintf("run-%d-%s", run, all[i].Item.ReferID)
		}
		w.run(p, all...)
		found := have(w.Find(w.Context(), "", "1z 4567"))(w)
		var got []string
		for _, st := range found {
			got = append(got, st.Item.ReferID)
		}
		w.same("rows", got, []string{"run-0-order-4567", "run-1-order-4567", "run-2-order-4567"}[:run+1])
	}
}

func sightingsSurviveTheirRun(w *world) {
	staging := w.begin(w.Store, plan(), entries(1, 1)...)
	w.learn(sighting(1, sent))
	w.must(staging.Discard(w.Context()))
	w.same("statuses", w.list(ledger.Filter{}), ids(1))
	w.run(plan(), entries(1, 1)...)
	w.same("statuses", w.list(ledger.Filter{}), ids(1))
}

// What is found of many is what is found of each.
func manyAreFoundAtOnce(w *world) {
	w.run(plan(), entries(1, 700)...)
	w.learn(sighting(2, sent), sighting(9001, sent))
	w.follow(eventSighting(1, item(3).Number, ""), eventSighting(2, "1Z-0900", ""))
	var qs []tracking.Query
	for n := range 710 {
		qs = append(qs, tracking.Query{ReferID: item(n).ReferID}, tracking.Query{Number: item(n).Number})
	}
	qs = append(qs, qs[4], tracking.Query{ReferID: item(9001).ReferID}, tracking.Query{Number: item(9001).Number}, tracking.Query{Number: "1z 0900"}, tracking.Query{})
	all := have(w.FindAll(w.Context(), qs))(w)
	w.same("lists", len(all), len(qs))
	for i, q := range qs {
		one := have(w.Find(w.Context(), q.ReferID, q.Number))(w)
		if len(one) == 0 && len(all[i]) == 0 {
			continue
		}
		w.same("found of "+q.Ref(), all[i], one)
	}
	w.same("found of none", len(have(w.FindAll(w.Context(), nil))(w)), 0)
}

func whenItWasAsked(w *world) {
	w.run(plan(), entries(1, 3)...)
	asked := func(n int) time.Time {
		w.Helper()
		found := have(w.Find(w.Context(), item(n).ReferID, ""))(w)
		return found[0].Asked
	}
	record := func(answers ...ledger.RecordedAnswer) {
		w.Helper()
		w.must(w.Record(w.Context(), answers))
	}
	later := sent.Add(time.Minute)
	record(ledger.RecordedAnswer{ReferID: item(1).ReferID, Asked: later, Raw: []byte("{}")}, ledger.RecordedAnswer{Asked: sent, Seen: []ledger.Sighting{sighting(2, sent)}, Raw: []byte("{}")})
	w.same("asked by referId", asked(1), later)
	w.same("asked by number", asked(2), sent)
	w.same("not asked", asked(3), time.Time{})
	record(ledger.RecordedAnswer{ReferID: item(1).ReferID, Asked: sent, Raw: []byte("{}")})
	w.same("after an older answer", asked(1), later)
	w.follow(eventSighting(1, item(1).Number, ""))
	w.same("after an event", asked(1), later)
}
