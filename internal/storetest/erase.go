package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

var eraseTests = map[string]func(*world){
	"RowsGoAndAreNotSentAgain": erasesRows,
	"RowsOfInputsThatNameThem": erasesKnownRows,
	"WhatIsKnownGoes":          erasesWhatIsKnown,
	"EventsGoAndOthersStay":    erasesEvents,
	"LaterEventsAreNotKept":    erasesLaterEvents,
	"SharedNumbersStay":        keepsSharedNumbers,
	"OneParcelOfAnOrder":       erasesOneParcel,
	"WhatIsBeingSentStays":     keepsWhatIsBeingSent,
	"NamesOfNothing":           erasesNothing,
	"AgainAfterAnEnd":          erasesAgain,
	"AmongMany":                erasesAmongMany,
	"EndedAnywhere":            erasesAfterAnyEnd,
	"OutboxesGiveWay":          erasesEntries,
	"DroppedEntriesBlockNone":  unblocksAfterDropped,
	"ShortNamesAreNotGuessed":  keepsWhatMayBeAnything,
	"ForgottenMayComeBack":     forgetsErased,
	"OneRowOfAnOrder":          erasesPair,
}

func (w *world) erase(qs ...tracking.Query) ledger.Erasure {
	w.Helper()
	done := have(w.Erase(w.Context(), qs, ledger.EraseOptions{}))(w)
	return done
}

func byRefer(n int) tracking.Query  { return tracking.Query{ReferID: item(n).ReferID} }
func byNumber(n int) tracking.Query { return tracking.Query{Number: item(n).Number} }

// erased reports which of the queries were erased.
func (w *world) erased(qs ...tracking.Query) []bool {
	w.Helper()
	all := have(w.Erased(w.Context(), qs))(w)
	return all
}

func erasesRows(w *world) {
	run := w.run(plan(), entries(1, 7)...)
	w.record(ledger.Accepted, w.claim(run.ID, 1)...) // 1 to 3
	w.record(ledger.Unknown, w.claim(run.ID, 1)...)  // 4 to 6
	done := w.erase(byRefer(2), byNumber(5), byRefer(7))
	w.same("rows", []int64{done.Rows, done.UnknownRows, done.Pending}, []int64{3, 1, 1})
	w.counts(run.ID, ledger.Counts{Accepted: 2, Unknown: 2})
	w.same("tally", have(w.Run(w.Context(), run.ID))(w).Tally, ledger.Tally{New: 4, Erased: 3})
	w.same("trackings", w.list(ledger.Filter{}), ids(1, 3, 4, 6))
	w.same("batches to send", len(w.claim(run.ID, 9)), 0)

	again := w.run(plan(), entries(1, 8)...)
	w.same("the same input and one more", again.Tally, ledger.Tally{New: 1, Known: 4, KnownOpen: 2, Erased: 3})
	batches := w.claim(again.ID, 9)
	w.same("sent", len(batches) == 1 && len(batches[0].Rows) == 1 && batches[0].Rows[0].Item == item(8), true)
	w.record(ledger.Accepted, batches...)
	pair := tracking.Query{ReferID: item(2).ReferID, Number: item(2).Number}
	w.same("erased", w.erased(byRefer(2), byNumber(2), pair, byRefer(1)), []bool{true, true, true, false})
	spaced := item(5)
	spaced.Number = "1z 0005"
	w.same("in another spelling", w.run(plan(), ledger.Entry{Line: 2, Item: spaced}).Tally, ledger.Tally{Erased: 1})
}

func erasesKnownRows(w *world) {
	first := w.run(plan(), entries(1, 9)...)
	w.record(ledger.Accepted, w.claim(first.ID, 9)...)
	second := w.run(plan(), append(entries(1, 9), entries(3, 5)...)...)
	w.same("tally", second.Tally, ledger.Tally{Known: 9, Repeats: 3})
	w.erase(byRefer(1), byRefer(4), byRefer(9))
	got := have(w.Run(w.Context(), second.ID))(w)
	w.same("tally afterwards", got.Tally, ledger.Tally{Known: 6, Repeats: 2, Erased: 4})
	w.counts(second.ID, ledger.Counts{Accepted: 6})
	lines := map[string]int{}
	for _, r := range collect(w, w.Rows(w.Context(), second.ID)) {
		if !r.Repeat {
			lines[r.Item.ReferID] = r.Line
		}
	}
	w.same("lines", lines, map[string]int{"order-0002": 3, "order-0003": 4, "order-0005": 6, "order-0006": 7, "order-0007": 8, "order-0008": 9})
}

func erasesWhatIsKnown(w *world) {
	ctx, at := w.Context(), time.UnixMilli(5000)
	w.run(plan(), entries(1, 3)...)
	answer := func(n int) ledger.RecordedAnswer {
		return ledger.RecordedAnswer{ReferID: item(n).ReferID, Asked: at, Seen: []ledger.Sighting{sighting(n, at)}, Raw: fmt.Appendf(nil, `{"n":%d}`, n)}
	}
	w.must(w.Record(ctx, []ledger.RecordedAnswer{answer(1), answer(2)}))
	w.same("removed", w.erase(byRefer(1)), ledger.Erasure{Rows: 1, Pending: 1, Trackings: 1, Responses: 1})
	w.must(w.Record(ctx, []ledger.RecordedAnswer{answer(1), answer(2)})) // somebody had asked
	for n, want := range map[int]bool{1: false, 2: true} {
		w.same(fmt.Sprint("answer ", n), have(w.LastAnswer(ctx, item(n).ReferID))(w) != nil, want)
	}
	w.same("trackings", w.list(ledger.Filter{}), ids(2, 3))
	counts := have(w.Count(ctx, ledger.Filter{}))(w)
	all := int64(0)
	for _, c := range counts {
		all += c.Trackings
	}
	w.same("counted", all, int64(2))
}

// eventAbout is an event of the n-th item in JSON.
func eventAbout(id, n int) string {
	return fmt.Sprintf(`{"eventId":%q,"data":{"trackingNumber":%q}}`, uuid(id), item(n).Number)
}

func erasesEvents(w *world) {
	w.run(plan(), entries(1, 3)...)
	mixed := "[" + eventAbout(1, 1) + "," + eventAbout(2, 2) + "]"
	w.put(mixed, inbox.Yes)
	bare := delivery("["+eventAbout(3, 1)+"]", inbox.No)
	bare.RawQuery, bare.Header = "", nil
	w.putInto(w.Store, bare)
	have(w.PutRefused(w.Context(), delivery("["+eventAbout(4, 1)+"]", inbox.No)))(w)
	w.same("removed", w.erase(byRefer(1)), ledger.Erasure{Rows: 1, Pending: 1, Events: 2, Deliveries: 2, Refused: 1})
	for seq := range int64(2) {
		d := have(w.Delivery(w.Context(), seq+1))(w)
		w.same("bytes of a delivery that names it", []bool{d.Body == nil, len(d.Header)+len(d.Path)+len(d.RawQuery) == 0}, []bool{true, true})
	}
	kept := each(w, w.Events(w.Context(), inbox.Query{}), func(e inbox.Event) string {
		return e.TrackingNumber + " " + e.EventID + " " + e.Anomaly
	})
	w.same("events", kept, []string{"  erased", item(2).Number + " " + uuid(2) + " ", "  erased"})
	w.put("["+eventAbout(2, 2)+"]", inbox.Yes)
	all := collect(w, w.Events(w.Context(), inbox.Query{TrackingNumber: item(2).Number}))
	w.same("the other counts once", all[len(all)-1].Mark, inbox.Duplicate)
}

func erasesLaterEvents(w *world) {
	w.run(plan(), entries(1, 2)...)
	w.erase(byNumber(1))
	w.put("["+eventAbout(2, 2)+","+eventAbout(1, 1)+","+eventAbout(5, 1)+"]", inbox.Yes)
	w.put("["+eventAbout(3, 1)+"]", inbox.Yes)
	w.put("["+eventAbout(6, 2)+"]", inbox.Yes)
	have(w.PutRefused(w.Context(), delivery("["+eventAbout(4, 1)+"]", inbox.No)))(w)
	for _, d := range collect(w, w.Refused(w.Context(), 0)) {
		w.same("refused", len(d.Body), 0)
	}
	for seq, kept := range []bool{false, false, true} {
		d := have(w.Delivery(w.Context(), int64(seq+1)))(w)
		w.same("bytes of a delivery", []bool{d.Body != nil, len(d.Header)+len(d.Path)+len(d.RawQuery) > 0, d.Anomaly != inbox.Erased}, []bool{kept, kept, kept})
	}
	events := each(w, w.Events(w.Context(), inbox.Query{}), func(e inbox.Event) string {
		return fmt.Sprint(e.Index, " ", e.TrackingNumber, e.Anomaly, e.EventID)
	})
	w.same("events", events, []string{"0 " + item(2).Number + uuid(2), "1 erased", "2 erased", "0 erased", "0 " + item(2).Number + uuid(6)})
	moved := have(w.Follow(w.Context(), []ledger.Sighting{eventSighting(1, item(1).Number, "")}, 0, 1))(w)
	w.same("followed", moved, true)
	w.same("trackings", w.list(ledger.Filter{}), ids(2))

	// Once another order has the number, what is said of it is kept again.
	other := ledger.Entry{Line: 2, Item: tracking.Item{ReferID: "order-later", Number: item(1).Number}}
	w.same("another order", w.run(plan(), append(entries(1, 1), other)...).Tally, ledger.Tally{New: 1, Erased: 1})
	w.same("the same input", w.run(plan(), append(entries(1, 1), other)...).Tally, ledger.Tally{Known: 1, KnownPending: 1, Erased: 1})
	w.put("["+eventAbout(4, 1)+"]", inbox.Yes)
	w.same("kept", len(collect(w, w.Events(w.Context(), inbox.Query{TrackingNumber: item(1).Number}))), 1)
}

func keepsSharedNumbers(w *world) {
	twin := ledger.Entry{Line: 9, Item: tracking.Item{ReferID: "order-twin", Number: item(1).Number}}
	w.run(plan(), append(entries(1, 2), twin)...)
	w.put("["+eventAbout(1, 1)+"]", inbox.Yes)
	w.same("removed", w.erase(byRefer(1)), ledger.Erasure{Rows: 1, Pending: 1, Shared: 1})
	w.same("events", len(collect(w, w.Events(w.Context(), inbox.Query{TrackingNumber: item(1).Number}))), 1)
	w.same("the other goes too", w.erase(byNumber(1)), ledger.Erasure{Rows: 1, Pending: 1, Events: 1, Deliveries: 1})
}

func erasesOneParcel(w *world) {
	ctx, at := w.Context(), time.UnixMilli(5000)
	second := ledger.Entry{Line: 9, Item: tracking.Item{ReferID: item(1).ReferID, Number: "1Z-SECOND"}}
	w.run(plan(), append(entries(1, 1), second)...)
	raw := []byte(`{"trackings":["` + item(1).Number + `","1Z-SECOND"]}`)
	both := ledger.RecordedAnswer{ReferID: item(1).ReferID, Asked: at, Seen: []ledger.Sighting{sighting(1, at)}, Raw: raw}
	w.must(w.Record(ctx, []ledger.RecordedAnswer{both}))
	w.erase(byNumber(1))
	w.must(w.Record(ctx, []ledger.RecordedAnswer{both}))
	w.same("answer", string(have(w.LastAnswer(ctx, item(1).ReferID))(w)), "")
	w.same("erased", w.erased(byRefer(1), byNumber(1)), []bool{false, true})
	found := have(w.Find(ctx, item(1).ReferID, ""))(w)
	w.same("parcels", len(found) == 1 && found[0].Item.Number == "1Z-SECOND", true)
}

func keepsWhatIsBeingSent(w *world) {
	run := w.run(plan(), entries(1, 6)...)
	batch := w.claim(run.ID, 1)
	_, err := w.Erase(w.Context(), []tracking.Query{byRefer(1)}, ledger.EraseOptions{})
	w.is("while it is sent", err, ledger.ErrBeingSent)
	_, err = w.open().Erase(w.Context(), []tracking.Query{byRefer(6)}, ledger.EraseOptions{})
	w.is("of another's run", err, ledger.ErrBeingSent)
	w.same("erased", w.erased(byRefer(1), byRefer(6)), []bool{false, false})
	w.record(ledger.Accepted, batch...)
	w.same("afterwards", w.erase(byRefer(1)).Rows, int64(1))
	w.kill()
	w.same("once it ended", w.erase(byRefer(6)), ledger.Erasure{Rows: 1, Pending: 1})
}

func erasesNothing(w *world) {
	w.same("in an empty store", w.erase(byRefer(1), byNumber(1)), ledger.Erasure{Unknown: []int{0, 1}})
	w.run(plan(), entries(1, 1)...)
	w.same("unknown", w.erase(byRefer(2), byRefer(1), byNumber(3)), ledger.Erasure{Unknown: []int{0, 2}, Rows: 1, Pending: 1})
	w.same("erased", w.erased(byRefer(2), byNumber(3)), []bool{false, false})
	w.put("["+eventAbout(1, 3)+"]", inbox.Yes)
	w.same("known by an event alone", w.erase(byNumber(3)), ledger.Erasure{Events: 1, Deliveries: 1})
}

func erasesAgain(w *world) {
	w.run(plan(), entries(1, 1)...)
	w.put("["+eventAbout(1, 1)+"]", inbox.Yes)
	w.erase(byRefer(1))
	w.kill()
	w.same("again", w.erase(byRefer(1), byNumber(1)), ledger.Erasure{})
	left := have(w.Compact(w.Context()))(w)
	for range 5 { // on a server, transactions of other tests keep what was erased
		if len(left) > 0 {
			left = have(w.Compact(w.Context()))(w)
		}
	}
	w.same("left", len(left), 0)
}

// endingContext ends after so many questions about its end.
type endingContext struct {
	context.Context //nolint:containedctx // it is one

	left   *atomic.Int64
	cancel context.CancelFunc
}

// Err ends the context at the last question.
func (c endingContext) Err() error {
	if c.left.Add(-1) <= 0 {
		c.cancel()
	}
	return c.Context.Err()
}

func erasesAfterAnyEnd(w *world) {
	run := w.run(plan(), entries(1, 4)...)
	w.record(ledger.Accepted, w.claim(run.ID, 9)...)
	w.learn(sighting(1, sent))
	w.put("["+eventAbout(1, 1)+","+eventAbout(2, 2)+"]", inbox.Yes)
	ended := 0
	for {
		var questions atomic.Int64
		questions.Store(1 << ended)
		inner, cancel := context.WithCancel(w.Context())
		_, err := w.Erase(endingContext{inner, &questions, cancel}, []tracking.Query{byRefer(1)}, ledger.EraseOptions{})
		cancel()
		if err == nil {
			break
		}
		w.is("end", err, context.Canceled)
		if ended++; ended > 20 {
			w.Fatal("it never ends")
		}
	}
	w.same("it ended in between", ended > 3, true)
	w.same("rows", w.list(ledger.Filter{}), ids(2, 3, 4))
	w.same("events", len(collect(w, w.Events(w.Context(), inbox.Query{TrackingNumber: item(1).Number}))), 0)
	w.same("bytes", have(w.Delivery(w.Context(), 1))(w).Body == nil, true)
	w.same("the same input", w.run(plan(), entries(1, 4)...).Tally, ledger.Tally{Known: 3, Erased: 1})
}

func erasesEntries(w *world) {
	sink := w.sink(nil)
	alone := w.deliver(item(1).Number)
	mixed := w.deliver(item(1).Number, item(2).Number)
	other := w.deliver(item(2).Number)
	w.same("queued", w.advance(sink, all), []int64{alone, mixed, other})
	w.same("removed", w.erase(byNumber(1)), ledger.Erasure{Events: 2, Deliveries: 2})
	due, _ := w.claimEntries(sink)
	w.same("due", due, []int64{other})
}

func unblocksAfterDropped(w *world) {
	w.run(plan(), ledger.Entry{Line: 2, Item: tracking.Item{ReferID: "ORDER-ALPHA-1", Number: item(1).Number}})
	sink := w.sink(nil)
	w.put(fmt.Sprintf(`[{"eventId":%q,"data":{"trackingNumber":%q,"note":"belongs to \u004fRDER-ALPHA-1"}}]`, uuid(1), item(2).Number), inbox.Yes)
	other := w.deliver(item(2).Number)
	w.same("queued", len(w.advance(sink, all)), 2)
	w.same("removed", w.erase(tracking.Query{ReferID: "ORDER-ALPHA-1"}), ledger.Erasure{Rows: 1, Pending: 1, Deliveries: 1})
	due, _ := w.claimEntries(sink)
	w.same("due", due, []int64{other})
}

func keepsWhatMayBeAnything(w *world) {
	number := "2026112210"
	w.run(plan(), append(entries(1, 1), ledger.Entry{Line: 2, Item: tracking.Item{ReferID: "DELIVERED", Number: "10001"}}, ledger.Entry{Line: 3, Item: tracking.Item{ReferID: "10002", Number: number}})...)
	about := func(n int, more string) string {
		return fmt.Sprintf(`[{"eventId":%q,"data":{"trackingNumber":%q,%s}}]`, uuid(n), item(1).Number, more)
	}
	others := []string{
		about(1, `"zip":"10001","n":10002,"statusLabel":"DELIVERED"`),
		about(2, `"eventTime":"2026-11-22 10:15:00","latestEvent":"Left on 2026-11-22 10:15:00"`),
	}
	for _, body := range others {
		w.put(body, inbox.Yes)
	}
	w.put(about(3, `"note":"with parcel `+number+`"`), inbox.Yes)
	w.put(fmt.Sprintf(`[{"eventId":%q,"data":{"trackingNumber":"10001"}}]`, uuid(4)), inbox.Yes)
	w.same("removed", w.erase(tracking.Query{ReferID: "DELIVERED"}, tracking.Query{ReferID: "10002"}), ledger.Erasure{Rows: 2, Pending: 2, Events: 1, Deliveries: 2})
	for i, body := range others {
		w.same("the other", string(have(w.Delivery(w.Context(), int64(i+1)))(w).Body), body)
	}
}

func forgetsErased(w *world) {
	w.run(plan(), entries(1, 2)...)
	w.put("["+eventAbout(1, 1)+"]", inbox.Yes)
	have(w.Erase(w.Context(), []tracking.Query{byRefer(1)}, ledger.EraseOptions{Forget: true}))(w)
	w.same("erased", w.erased(byRefer(1), byNumber(1)), []bool{false, false})
	w.same("the same input", w.run(plan(), entries(1, 2)...).Tally, ledger.Tally{New: 1, Known: 1, KnownPending: 1})
	w.put("["+eventAbout(1, 1)+"]", inbox.Yes)
	w.same("events", len(collect(w, w.Events(w.Context(), inbox.Query{TrackingNumber: item(1).Number}))), 1)
}

func erasesPair(w *world) {
	second := ledger.Entry{Line: 9, Item: tracking.Item{ReferID: item(1).ReferID, Number: "1Z-SECOND"}}
	w.run(plan(), append(entries(1, 1), second)...)
	w.same("removed", w.erase(tracking.Query{ReferID: item(1).ReferID, Number: item(1).Number}), ledger.Erasure{Rows: 1, Pending: 1})
	found := have(w.Find(w.Context(), item(1).ReferID, ""))(w)
	w.same("parcels", len(found) == 1 && found[0].Item.Number == "1Z-SECOND", true)
}

// erasesAmongMany erases by chance between inputs, batches, answers and events: the
// harness then checks that the tables agree.
func erasesAmongMany(w *world) {
	const items = 40
	for seed := range uint64(4) {
		by := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // not a secret
		gone, sent := map[int]bool{}, map[int]bool{}
		base := int(seed) * items
		one := func() int { return base + 1 + by.IntN(items) }
		for range 25 {
			switch by.IntN(5) {
			case 0:
				w.sendSome(by, one, gone, sent)
			case 1:
				if n := one(); sent[n] {
					w.learn(sighting(n, time.UnixMilli(5000)))
				}
			case 2:
				w.put("["+eventAbout(by.IntN(1e6), one())+","+eventAbout(by.IntN(1e6), one())+"]", inbox.Yes)
			default:
				if n := one(); sent[n] {
					gone[n] = true
					w.erase([]tracking.Query{byRefer(n), byNumber(n)}[by.IntN(2)])
				}
			}
		}
		for n := range gone {
			found := have(w.Find(w.Context(), item(n).ReferID, ""))(w)
			if len(found) > 0 {
				w.Errorf("seed %d: %s is found", seed, item(n).ReferID)
			}
			if about := collect(w, w.Events(w.Context(), inbox.Query{TrackingNumber: item(n).Number})); len(about) > 0 {
				w.Errorf("seed %d: %d events of %s", seed, len(about), item(n).Number)
			}
		}
	}
}

// sendSome sends an input of items by chance, and checks its tally.
func (w *world) sendSome(by *rand.Rand, one func() int, gone, sent map[int]bool) {
	w.Helper()
	var input []ledger.Entry
	want, named := ledger.Tally{}, map[int]bool{}
	for line := range 1 + by.IntN(30) {
		n := one()
		input = append(input, ledger.Entry{Line: line + 2, Item: item(n)})
		switch {
		case gone[n]:
			want.Erased++
		case named[n]:
			want.Repeats++
		case sent[n]:
			want.Known++
		default:
			want.New++
		}
		named[n] = true
	}
	run := w.run(plan(), input...)
	got := run.Tally
	got.KnownPending, got.KnownOpen = 0, 0
	w.same("tally", got, want)
	for n := range named {
		sent[n] = sent[n] || !gone[n]
	}
	for i, b := range w.claim(run.ID, by.IntN(9)) {
		w.record([]ledger.State{ledger.Accepted, ledger.Rejected, ledger.Unknown, ledger.Pending}[(i+by.IntN(4))%4], b)
	}
}
