package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// bytesOf is how many bytes of a delivery are kept, give or take the lengths
// of what its header consists of.
func bytesOf(d inbox.Delivery) int64 {
	n := int64(len(d.Body))
	if d.Verified != inbox.Yes {
		n += int64(len(d.Path) + len(d.RawQuery))
	}
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
	p := have(w.Prune(w.Context(), sent.Add(2*time.Hour)))(w)
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
	d := have(w.Delivery(w.Context(), 1))(w)
	if d.Body != nil || d.Header != nil || d.Verified != inbox.Yes || d.Path == "" {
		w.Errorf("pruned delivery %+v; want it without body and header", d)
	}
	p = have(w.Prune(w.Context(), sent.Add(2*time.Hour)))(w)
	w.same("pruned again", p, inbox.PruneResult{})
	// What comes again is still compared with what came first.
	w.same("the same again", w.put("["+event(uuid(0), "")+"]", inbox.Yes).Rows[0].Mark, inbox.Duplicate)
	w.same("other bytes", w.put("["+event(uuid(0), `,"a":1`)+"]", inbox.Yes).Rows[0].Mark, inbox.Conflict)
}

// Rows, path and query of what did not verify go with its bytes: anybody may send it.
func prunesUnverifiedRows(w *world) {
	forged := delivery("["+event(uuid(1), "")+", 7, {}]", inbox.No)
	forged.Path, forged.RawQuery = "/"+strings.Repeat("p", 9000), strings.Repeat("q", 9000)
	w.putInto(w.Store, forged)
	later := delivery("["+event(uuid(1), "")+"]", inbox.Unknown)
	later.ReceivedAt = sent.Add(time.Hour)
	w.putInto(w.Store, later)
	learned := delivery("["+event(uuid(2), "")+"]", inbox.Unknown)
	receipt := w.putInto(w.Store, learned)
	learned.Seq, learned.Verified = receipt.Delivery, inbox.Yes
	have(w.SetVerdict(w.Context(), learned))(w)
	p := have(w.Prune(w.Context(), sent.Add(time.Minute)))(w)
	if want := bytesOf(forged) + bytesOf(learned); p.Deliveries != 2 || p.Bytes < want || p.Bytes > want+100 {
		w.Errorf("pruned %+v; want 2 deliveries of about %d bytes", p, want)
	}
	left := each(w, w.Events(w.Context(), inbox.Query{}), func(e inbox.Event) string {
		return fmt.Sprintf("%d of %s: %s %s", e.Seq, e.ID(), e.Verified, e.Mark)
	})
	w.same("rows", left, []string{"4 of 2: unknown duplicate", "6 of 3: yes "})
	d := have(w.Delivery(w.Context(), 1))(w)
	if d.Path != "" || d.RawQuery != "" || d.Body != nil {
		w.Errorf("the pruned delivery has a path of %d bytes and a query of %d", len(d.Path), len(d.RawQuery))
	}
	w.same("number of the next row", w.put("[{}]", inbox.No).Rows[0].Seq, int64(7))
	have(w.Prune(w.Context(), time.Now().Add(time.Hour)))(w)
	w.same("what is counted of one row", have(w.UnverifiedBytes(w.Context()))(w), int64(inbox.RowBytes))
	w.same("number of the next row", w.put("[{}]", inbox.No).Rows[0].Seq, int64(8))
}

func countsUnverifiedBytes(w *world) {
	want := func(what string, ds ...inbox.Delivery) {
		w.Helper()
		least := int64(len(ds)) * inbox.RowBytes // each has one row
		for _, d := range ds {
			least += bytesOf(d)
		}
		got := have(w.UnverifiedBytes(w.Context()))(w)
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
	have(w.Prune(w.Context(), sent.Add(time.Minute)))(w)
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
	r := have(w.Readmit(w.Context(), refused[0].Seq, genuine, rows))(w)
	w.same("receipt", r, inbox.Receipt{Delivery: 2, Rows: []inbox.Placement{{Seq: 2, Mark: inbox.Current}, {Seq: 3, Mark: inbox.Anomaly}}})
	_, err := w.Readmit(w.Context(), refused[0].Seq, genuine, rows)
	w.is("again", err, inbox.ErrNoDelivery)
	w.same("marks", w.marks(), []inbox.Mark{inbox.Superseded, inbox.Current, inbox.Anomaly})
	left := collect(w, w.Refused(w.Context(), 0))
	if len(left) != 1 || left[0].Seq != refused[1].Seq {
		w.Errorf("%d refusals are left; want the other one", len(left))
	}
	w.same("body", string(have(w.Delivery(w.Context(), 2))(w).Body), string(d.Body))
	w.same("became", have(w.Readmitted(w.Context(), refused[0].Seq))(w), int64(2))
	_, err = w.Readmitted(w.Context(), refused[1].Seq)
	w.is("not readmitted", err, inbox.ErrNoDelivery)
}
