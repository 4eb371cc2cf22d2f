package storetest

import (
	"fmt"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// eventSighting is what the n-th event, n hours after sent, shows of a number and a
// routerId.
func eventSighting(n int, number, routerID string) ledger.Sighting {
	s := sighting(1, sent.Add(24*time.Hour))
	s.Key, s.RouterID, s.Source = tracking.Key{Number: number}, routerID, ledger.FromEvent
	s.AsOf, s.Event, s.LatestEvent = sent.Add(time.Duration(n)*time.Hour), int64(n), fmt.Sprint("event ", n)
	return s
}

// follow follows events up to the latest of them.
func (w *world) follow(seen ...ledger.Sighting) {
	w.Helper()
	from, _, err := w.Followed(w.Context())
	w.must(err)
	to := from + 1
	for _, s := range seen {
		to = max(to, s.Event)
	}
	w.same("moved", have(w.Follow(w.Context(), seen, from, to))(w), true)
}

// known returns what is known of trackings from events, in the order of a list.
func (w *world) known() []string {
	w.Helper()
	all := []string{}
	for _, st := range collect(w, w.Statuses(w.Context(), ledger.Filter{})) {
		if s := st.Sighting; s != nil && s.Source == ledger.FromEvent {
			all = append(all, fmt.Sprintf("%s/%s: %s", st.Item.ReferID, st.Item.Number, s.LatestEvent))
		}
	}
	return all
}

func eventsAreAboutRows(w *world) {
	twin := item(3)
	twin.ReferID = "other"
	w.run(plan(), append(entries(1, 3), ledger.Entry{Line: 9, Item: twin})...)
	w.follow(eventSighting(1, "1Z-0001", ""), eventSighting(2, "1z 0003", "r-3"), eventSighting(3, "1Z-9", ""), eventSighting(4, "", "r-9"), eventSighting(5, "", ""))
	want := []string{"order-0001/1Z-0001: event 1", "order-0003/1Z-0003: event 2", "other/1Z-0003: event 2", "/1Z-9: event 3"}
	w.same("known", w.known(), want)
	found := have(w.Find(w.Context(), "other", ""))(w)
	one := eventSighting(2, "1Z-0003", "")
	one.Key.ReferID, one.Shared = "other", 2 // and no routerId: it may be the other's
	w.same("sighting", *found[0].Sighting, one)
	w.follow(eventSighting(6, "1Z-0001", ""))
	w.follow(eventSighting(4, "1Z-0001", ""))
	want[0] = "order-0001/1Z-0001: event 6"
	w.same("after newer and older events", w.known(), want)
	// Rows that are still being staged are not here yet.
	w.begin(w.Store, plan(), entries(5, 5)...)
	w.follow(eventSighting(7, item(5).Number, ""))
	w.same("staged", w.known(), append(want, "/1Z-0005: event 7"))
}

func routerIDsTie(w *world) {
	w.run(plan(), entries(1, 2)...)
	w.follow(eventSighting(1, "1Z0001", "r-1"))
	w.follow(eventSighting(2, "elsewhere", "r-1"))
	w.same("events tie nothing", w.known(), []string{"order-0001/1Z-0001: event 1", "/elsewhere: event 2"})
	s := sighting(1, sent.Add(150*time.Minute))
	s.RouterID = "r-1"
	w.learn(s)
	w.follow(eventSighting(3, "further on", "r-1"))
	w.same("tied", w.known(), []string{"order-0001/1Z-0001: event 3"})
	w.follow(eventSighting(4, item(2).Number, "r-1"))
	w.same("both", w.known(), []string{"order-0001/1Z-0001: event 4", "order-0002/1Z-0002: event 4"})
	s.RouterID, s.Seen = "", sent.Add(5*time.Hour)
	w.learn(s)
	w.follow(eventSighting(6, "", "r-1"))
	w.same("still tied", w.known()[0], "order-0001/1Z-0001: event 6")
}

// What was learnt of a number alone is told only while no tracking has it.
func nobodysNumbersGiveWay(w *world) {
	w.follow(eventSighting(1, "1Z 0001", "r-1"), eventSighting(2, "elsewhere", "r-2"))
	w.same("nobody's", w.known(), []string{"/1Z 0001: event 1", "/elsewhere: event 2"})
	w.run(plan(), entries(1, 1)...)
	w.same("when it was created", w.known(), []string{"order-0001/1Z-0001: event 1", "/elsewhere: event 2"})
	late := eventSighting(3, "1Z-0001", "r-1")
	late.AsOf = sent
	w.follow(late)
	w.same("after an older event", w.known(), []string{"order-0001/1Z-0001: event 1", "/elsewhere: event 2"})
	working := sighting(1, sent.Add(48*time.Hour))
	working.Phase = ledger.Processing
	w.learn(working)
	w.same("while it is worked on", w.known(), []string{"order-0001/1Z-0001: event 1", "/elsewhere: event 2"})
	w.follow(eventSighting(4, "1Z-0001", "r-1"))
	w.same("after a newer one", w.known(), []string{"order-0001/1Z-0001: event 4", "/elsewhere: event 2"})
	w.same("found", len(have(w.Find(w.Context(), "", "1Z0001"))(w)), 1)
}

func followsOnce(w *world) {
	w.run(plan(), entries(1, 2)...)
	at := func(what string, want int64) {
		w.Helper()
		got, last, err := w.Followed(w.Context())
		w.must(err)
		w.same(what, got, want)
		w.same("last", last, int64(3))
	}
	for n := range 3 {
		w.put("["+event(uuid(n), "")+"]", inbox.Yes)
	}
	at("at first", 0)
	w.follow(eventSighting(2, "1Z0001", ""))
	at("followed", 2)
	moved := have(w.Follow(w.Context(), []ledger.Sighting{eventSighting(9, "1Z0001", "")}, 0, 9))(w)
	w.same("moved from elsewhere", moved, false)
	at("from elsewhere", 2)
	w.same("known", w.known(), []string{"order-0001/1Z-0001: event 2"})
	w.follow()
	at("with nothing seen", 3)
	bad := eventSighting(4, "a\x00", "")
	if _, err := w.Follow(w.Context(), []ledger.Sighting{bad}, 3, 4); err == nil {
		w.Error("a number that is no text was followed")
	}
	w.kill()
	at("by another process", 3)
}

// claimsAreBeside puts events that do not verify beside trackings.
func claimsAreBeside(w *world) {
	w.run(plan(), entries(1, 2)...)
	w.follow(eventSighting(1, "alone", ""))
	claims := func() []int64 {
		w.Helper()
		all := []int64{}
		for _, st := range collect(w, w.Statuses(w.Context(), ledger.Filter{})) {
			all = append(all, st.Unverified)
		}
		return all
	}
	put := func(id, number string, verified inbox.Verified) int64 {
		w.Helper()
		body := fmt.Sprintf(`[{"eventId":%q,"data":{"trackingNumber":%q,"status":1}}]`, id, number)
		return w.put(body, verified).Rows[0].Seq
	}
	w.same("at first", claims(), []int64{0, 0, 0})
	before := w.known()
	put("a", "1Z-0001", inbox.No)
	b := put("b", "1z 0001", inbox.Unknown)
	alone := put("c", "ALONE", inbox.Unknown)
	put("d", "nobody's", inbox.No)
	for number, want := range map[string]int64{"1Z0001": b, "1Z0002": 0, "Alone": alone, "": 0} {
		w.same("unverified of "+number, have(w.LastUnverified(w.Context(), number))(w), want)
	}
	w.same("beside", claims(), []int64{b, 0, alone})
	w.same("what is known", w.known(), before)
	put("b", "1z 0001", inbox.Yes)
	w.same("after the genuine one", claims(), []int64{b - 1, 0, alone})
	put("a", "1Z-0001", inbox.Yes)
	w.same("after both", claims(), []int64{0, 0, alone})
}
