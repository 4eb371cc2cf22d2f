package storetest

import (
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// bytesOf is how many bytes of a delivery are kept, give or take the lengths
// of what its header consists of.
func bytesOf(d inbox.Delivery) int64 {
	n := int64(len(d.Body))
	for _, f := range d.Header {
		n += int64(len(f.Name) + len(f.Value))
	}
	return n
}

func prunesBytesAndNothingElse(w *world) {
	var bytes int64
	for i := range 3 {
		d := delivery("["+event(uuid(i), "")+", 7]", inbox.Yes)
		d.ReceivedAt = sent.Add(time.Duration(i) * time.Hour)
		w.putInto(w.Store, d)
		w.refuse(d)
		if i < 2 {
			bytes += bytesOf(d)
		}
	}
	before := collect(w, w.Events(w.Context(), inbox.Query{}))
	p, err := w.Prune(w.Context(), sent.Add(2*time.Hour))
	w.must(err)
	if p.Deliveries != 2 || p.Refused != 2 || p.Bytes < bytes || p.Bytes > bytes+100 {
		w.Errorf("pruned %+v; want 2 deliveries of about %d bytes, and 2 refusals", p, bytes)
	}
	after := collect(w, w.Events(w.Context(), inbox.Query{}))
	for i := range before {
		if i < 4 {
			before[i].Raw, before[i].Data = nil, nil
		}
	}
	w.same("events", after, before)
	d, err := w.Delivery(w.Context(), 1)
	w.must(err)
	if d.Body != nil || d.Header != nil || d.Verified != inbox.Yes || d.Path == "" {
		w.Errorf("pruned delivery %+v; want it without body and header", d)
	}
	p, err = w.Prune(w.Context(), sent.Add(2*time.Hour))
	w.must(err)
	w.same("pruned again", p, inbox.PruneResult{})
	// What comes again is still compared with what came first.
	w.same("the same again", w.put("["+event(uuid(0), "")+"]", inbox.Yes).Rows[0].Mark, inbox.Duplicate)
	w.same("other bytes", w.put("["+event(uuid(0), `,"a":1`)+"]", inbox.Yes).Rows[0].Mark, inbox.Conflict)
}

func countsUnverifiedBytes(w *world) {
	want := func(what string, ds ...inbox.Delivery) {
		w.Helper()
		var least int64
		for _, d := range ds {
			least += bytesOf(d)
		}
		got, err := w.UnverifiedBytes(w.Context())
		w.must(err)
		if got < least || got > least+int64(len(ds)*100) {
			w.Errorf("%s: %d bytes; want about %d", what, got, least)
		}
	}
	want("none")
	yes, no, unknown := delivery("["+event(uuid(1), "")+"]", inbox.Yes), delivery("[1]", inbox.No), delivery("not JSON", inbox.Unknown)
	w.putInto(w.Store, yes)
	want("verified")
	w.putInto(w.Store, no)
	unknown.ReceivedAt = sent.Add(time.Hour)
	w.putInto(w.Store, unknown)
	w.refuse(no)
	want("not verified", no, unknown)
	_, err := w.Prune(w.Context(), sent.Add(time.Minute))
	w.must(err)
	want("pruned", unknown)
}

func readmitsOnce(w *world) {
	forged := delivery("["+event(uuid(1), `,"a":1`)+"]", inbox.Unknown)
	w.putInto(w.Store, forged)
	d := delivery("["+event(uuid(1), "")+", 7]", inbox.No)
	w.refuse(d)
	w.refuse(forged)
	refused := collect(w, w.Refused(w.Context(), 0))
	w.same("refused", len(refused), 2)
	genuine := delivery(string(d.Body), inbox.Yes)
	rows := inbox.Prepare(genuine, webhook.Decode(genuine.Body))
	r, err := w.Readmit(w.Context(), refused[0].Seq, genuine, rows)
	w.must(err)
	w.same("receipt", r, inbox.Receipt{Delivery: 2, Rows: []inbox.Placement{{Seq: 2, Mark: inbox.Current}, {Seq: 3, Mark: inbox.Anomaly}}})
	_, err = w.Readmit(w.Context(), refused[0].Seq, genuine, rows)
	w.is("again", err, inbox.ErrNoDelivery)
	w.same("marks", w.marks(), []inbox.Mark{inbox.Superseded, inbox.Current, inbox.Anomaly})
	left := collect(w, w.Refused(w.Context(), 0))
	if len(left) != 1 || left[0].Seq != refused[1].Seq {
		w.Errorf("%d refusals are left; want the other one", len(left))
	}
	got, err := w.Delivery(w.Context(), 2)
	w.must(err)
	w.same("body", string(got.Body), string(d.Body))
	became, err := w.Readmitted(w.Context(), refused[0].Seq)
	w.must(err)
	w.same("became", became, int64(2))
	_, err = w.Readmitted(w.Context(), refused[1].Seq)
	w.is("not readmitted", err, inbox.ErrNoDelivery)
}
