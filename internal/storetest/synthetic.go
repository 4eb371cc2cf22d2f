package storetest

import (
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// putSynthetic puts a delivery that says that it is made up.
func (w *world) putSynthetic(body string, verified inbox.Verified) inbox.Receipt {
	w.Helper()
	d := delivery(body, verified)
	d.Header = append(d.Header, webhook.Field{Name: "waybill-synthetic", Value: "1"})
	return w.putInto(w.Store, d)
}

// syntheticAreComparedApart puts made-up events beside genuine ones of the same
// eventIds: neither takes the other's place.
func syntheticAreComparedApart(w *world) {
	w.putSynthetic("["+event(uuid(1), "")+", 7]", inbox.Yes)
	w.put("["+event(uuid(1), "")+"]", inbox.Yes)
	w.put("["+event(uuid(2), "")+"]", inbox.Unknown)
	w.putSynthetic("["+event(uuid(2), "")+"]", inbox.Yes)
	w.putSynthetic("["+event(uuid(1), "")+","+event(uuid(2), `,"a":1`)+"]", inbox.Yes)
	w.same("marks", w.marks(), []inbox.Mark{inbox.Current, inbox.Anomaly, inbox.Current, inbox.Current, inbox.Current, inbox.Duplicate, inbox.Conflict})
	synthetic := []bool{}
	for _, e := range collect(w, w.Events(w.Context(), inbox.Query{})) {
		synthetic = append(synthetic, e.Synthetic)
	}
	w.same("synthetic", synthetic, []bool{true, true, false, false, true, true, true})
	w.same("genuine", len(collect(w, w.Events(w.Context(), inbox.Query{Genuine: true}))), 2)
	w.same("of one eventId", len(collect(w, w.Events(w.Context(), inbox.Query{EventID: uuid(1), Genuine: true}))), 1)

	unverified := have(w.LastUnverified(w.Context(), "1Z1"))(w)
	w.same("last unverified", unverified, int64(4))
	last := w.putSynthetic("["+event(uuid(3), "")+"]", inbox.Unknown)
	unverified = have(w.LastUnverified(w.Context(), "1Z1"))(w)
	w.same("last unverified", unverified, int64(4))

	// It stays synthetic when it verifies later.
	r := w.setVerdict(last.Delivery, inbox.Yes)
	e := have(w.Event(w.Context(), r.Rows[0].Seq))(w)
	w.same("synthetic", e.Synthetic, true)
	w.same("number", e.ID(), "6")
}

func findsEventsByTheBeginning(w *world) {
	w.put("["+event(uuid(0x1ff), "")+","+event(uuid(0x1f0), "")+","+event("9f2d-text", "")+",{\"event\":\"none\"}]", inbox.Yes)
	w.put("["+event("9F2D-other", "")+","+event(uuid(0x1ff), "")+"]", inbox.Yes)
	for prefix, want := range map[string][]int64{
		"9f2d":                     {1, 2, 3, 6},
		"9F2D":                     {1, 2, 5, 6},
		"9f2d-":                    {3},
		"9F2D4C1E-8b3a-":           {1, 2, 6},
		uuid(0x1ff)[:35]:           {1, 2, 6},
		uuid(0x1ff):                {1, 6},
		uuid(0x1ff) + "0":          nil,
		"9f2d4c1e8":                nil,
		"9f2d-text":                {3},
		"text":                     nil,
		"'":                        nil,
		"9f2d4c1e-8b3a-4f6d-9e7d-": nil,
	} {
		got := each(w, w.Events(w.Context(), inbox.Query{EventIDPrefix: prefix}), func(e inbox.Event) int64 {
			return e.Seq
		})
		w.same(prefix, got, want)
	}
	w.same("newest", collect(w, w.Events(w.Context(), inbox.Query{EventIDPrefix: "9f2d", Newest: true, Limit: 1}))[0].Seq, int64(6))
}
