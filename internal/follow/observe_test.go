package follow_test

import (
	"slices"
	"testing"

	"github.com/waybill-cli/waybill/internal/follow"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/observed"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// undocumented returns the kinds of events and the headers of a register that the document does not have.
func (w *world) undocumented(of observed.Origin) []string {
	w.Helper()
	o := follow.Observer{Inbox: w.db, Store: w.db}
	if err := o.CatchUp(w.Context()); err != nil {
		w.Fatal(err)
	}
	entries, err := w.db.Observed(w.Context(), of)
	if err != nil {
		w.Fatal(err)
	}
	all, _ := observed.Sum(entries)
	var names []string
	for _, e := range all {
		if !e.Documented && (e.Kind == observed.EventKind || e.Kind == observed.Header || e.Kind == observed.Status) {
			names = append(names, e.Value)
		}
	}
	return names
}

func (w *world) putWith(verified inbox.Verified, body string, header ...webhook.Field) {
	w.Helper()
	d := inbox.Delivery{ReceivedAt: at, Body: []byte(body), Verified: verified, Header: header}
	if _, err := w.db.Put(w.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body))); err != nil {
		w.Fatal(err)
	}
}

// What nothing verified is held apart, and what did not verify, or waybill made up, is not observed.
func TestDeliveriesAreObserved(t *testing.T) {
	w := newWorld(t)
	verified, unverified := observed.Verified, observed.Unverified
	if got := w.undocumented(verified); got != nil {
		t.Errorf("of nothing: %q", got)
	}
	w.putWith(inbox.Yes, `[{"event":"router.a","data":{"status":7}},{"event":"router.b"},5]`, webhook.Field{Name: "x-sign", Value: "s"}, webhook.Field{Name: "Date", Value: "d"})
	w.putWith(inbox.Unknown, `[{"event":"router.u"}]`, webhook.Field{Name: "X-Junk", Value: "s"})
	w.putWith(inbox.No, `[{"event":"router.forged"}]`, webhook.Field{Name: "X-Forged", Value: "s"})
	w.putWith(inbox.Yes, `[{"event":"router.made"}]`, webhook.Field{Name: inbox.HeaderSynthetic, Value: "1"})
	w.putWith(inbox.Yes, `<html>`)
	for range 2 {
		if got, want := w.undocumented(verified), []string{"7", "router.a", "router.b", "delivery X-Sign"}; !slices.Equal(got, want) {
			t.Errorf("verified: %q; want %q", got, want)
		}
		if got, want := w.undocumented(unverified), []string{"router.u", "delivery X-Junk"}; !slices.Equal(got, want) {
			t.Errorf("unverified: %q; want %q", got, want)
		}
	}
	entries, err := w.db.Observed(t.Context(), verified)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Count != 1 && e.Value != "delivery event" || !e.First.Equal(at) {
			t.Errorf("%+v", e)
		}
	}
}
