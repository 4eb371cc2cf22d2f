package storetest

import (
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// setVerdict gives a delivery the verdict of a kind.
func (w *world) setVerdict(seq int64, verified inbox.Verified) inbox.Receipt {
	w.Helper()
	d := delivery("not read", verified)
	d.Seq, d.Path, d.Header = seq, "/not/read", nil
	r := have(w.SetVerdict(w.Context(), d))(w)
	w.same("delivery of the receipt", r.Delivery, seq)
	return r
}

func verifiedAgainAreReleasedOnce(w *world) {
	body := "[" + event(uuid(1), "") + ", 7, " + event(uuid(2), "") + "," + event(uuid(2), "") + "]"
	was := w.put(body, inbox.Unknown)
	before := have(w.Delivery(w.Context(), was.Delivery))(w)

	// Refused by the new scheme: the same rows, told apart.
	w.same("rows", len(w.setVerdict(was.Delivery, inbox.No).Rows), 0)
	w.same("marks", w.marks(), []inbox.Mark{inbox.Current, inbox.Anomaly, inbox.Current, inbox.Duplicate})
	for _, e := range collect(w, w.Events(w.Context(), inbox.Query{})) {
		w.same("verified", e.Verified, inbox.No)
		w.same("reason", e.Reason, webhook.ReasonSignatureMismatch)
	}

	// Verified by another one: its events come once more.
	r := w.setVerdict(was.Delivery, inbox.Yes)
	w.same("rows", r.Rows, []inbox.Placement{{Seq: 5, Mark: inbox.Current}, {Seq: 6, Mark: inbox.Current}, {Seq: 7, Mark: inbox.Duplicate}})
	w.same("marks", w.marks(), []inbox.Mark{
		inbox.Superseded, inbox.Anomaly, inbox.Superseded, inbox.Superseded,
		inbox.Current, inbox.Current, inbox.Duplicate,
	})
	news := collect(w, w.Events(w.Context(), inbox.Query{After: 4}))
	want := inbox.Prepare(delivery(body, inbox.Yes), webhook.Decode([]byte(body)))
	for i, n := range []int{0, 2, 3} {
		e := want[n]
		e.Seq, e.Delivery, e.Mark = r.Rows[i].Seq, was.Delivery, r.Rows[i].Mark
		w.same("event", news[i], e)
	}
	w.same("anomaly verified", have(w.Event(w.Context(), 2))(w).Verified, inbox.Yes)

	after := have(w.Delivery(w.Context(), was.Delivery))(w)
	before.Verified, before.Scheme, before.SecretName, before.BodyAuthenticated = inbox.Yes, "mine", "env:SECRET", true
	w.same("delivery", after, before)
	w.kill()
	w.same("rows after all", len(w.marks()), 7)

	_, err := w.SetVerdict(w.Context(), inbox.Delivery{Seq: 99, Verified: inbox.Yes})
	w.is("no such delivery", err, inbox.ErrNoDelivery)
}

// A delivery that was verified later is no newer than those that came after it.
func verifiedAgainAreListedAsTheyCame(w *world) {
	first := w.put("["+event(uuid(1), "")+","+event(uuid(2), "")+"]", inbox.Unknown)
	w.put("["+event(uuid(3), "")+"]", inbox.Yes)
	w.setVerdict(first.Delivery, inbox.Yes)
	seqs := func(q inbox.Query) (all []int64) {
		q.Newest = true
		for _, e := range collect(w, w.Events(w.Context(), q)) {
			all = append(all, e.Seq)
		}
		return all
	}
	w.same("newest", seqs(inbox.Query{}), []int64{3, 5, 4, 2, 1})
	w.same("newest two current", seqs(inbox.Query{Marks: []inbox.Mark{inbox.Current}, Limit: 2}), []int64{3, 5})
	w.same("newest of the latest", seqs(inbox.Query{After: 2, Before: 5}), []int64{3, 4})
}

func verifiedAgainAreCompared(w *world) {
	forged, genuine := event(uuid(1), `,"forged":1`), event(uuid(1), "")
	first := w.put("["+forged+"]", inbox.Unknown)
	second := w.put("["+genuine+"]", inbox.Unknown)
	w.same("marks", w.marks(), []inbox.Mark{inbox.Current, inbox.Conflict})
	w.setVerdict(first.Delivery, inbox.No)
	w.same("mark", w.setVerdict(second.Delivery, inbox.Yes).Rows[0].Mark, inbox.Current)
	w.same("marks", w.marks(), []inbox.Mark{inbox.Superseded, inbox.Superseded, inbox.Current})

	// Another delivery of the same event, verified later still.
	third := w.put("["+genuine+"]", inbox.Unknown)
	w.same("mark", w.setVerdict(third.Delivery, inbox.Yes).Rows[0].Mark, inbox.Duplicate)
	fourth := w.put("["+forged+"]", inbox.Unknown)
	w.same("mark", w.setVerdict(fourth.Delivery, inbox.Yes).Rows[0].Mark, inbox.Conflict)
	current := collect(w, w.Events(w.Context(), inbox.Query{Marks: []inbox.Mark{inbox.Current}}))
	w.same("current", len(current), 1)
	w.same("current", string(current[0].Raw), genuine)
}

func verifiedStaysVerified(w *world) {
	was := w.put("["+event(uuid(1), "")+"]", inbox.Yes)
	before := have(w.Delivery(w.Context(), was.Delivery))(w)
	for _, verified := range []inbox.Verified{inbox.No, inbox.Unknown, inbox.Yes} {
		w.same("rows", len(w.setVerdict(was.Delivery, verified).Rows), 0)
	}
	w.same("delivery", have(w.Delivery(w.Context(), was.Delivery))(w), before)
	w.same("marks", w.marks(), []inbox.Mark{inbox.Current})
}
