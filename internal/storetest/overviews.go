package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// overviews returns the overviews of a range, and checks each against what else the
// store tells of its delivery.
func (w *world) overviews(r inbox.DeliveryRange) []inbox.Overview {
	w.Helper()
	all := have(w.Overviews.Overviews(w.Context(), r))(w)
	bodies := have(w.Bodies(w.Context(), r))(w)
	for _, o := range all {
		d := have(w.Delivery(w.Context(), o.Seq))(w)
		body, kept := bodies[o.Seq]
		if kept != (d.Body != nil) || !bytes.Equal(body, d.Body) || kept && o.Size != int64(len(d.Body)) || !kept && o.Size != -1 {
			w.Errorf("delivery %d of %d bytes: body %q, size %d", o.Seq, len(d.Body), body, o.Size)
		}
		d.Header, d.Body = nil, nil
		w.same("delivery", o.Delivery, d)
		var events []inbox.Event
		for _, e := range collect(w, w.Events(w.Context(), inbox.Query{Delivery: o.Seq})) {
			if e.Raw, e.Data = nil, nil; e.Index < len(events) {
				events[e.Index] = e // verified again
			} else {
				events = append(events, e)
			}
		}
		w.same("number of events", o.EventCount, len(events))
		w.same("events", o.Events, events[:min(len(events), inbox.MaxOverviewEvents)])
		of := have(w.ForwardingsOf(w.Context(), o.Seq))(w)
		if len(of) == 0 {
			of = nil
		}
		for i := range of {
			if of[i].Waiting != nil {
				of[i].Waiting.HeldBy, of[i].Waiting.Number = 0, ""
			}
		}
		w.same("forwardings", o.Forwardings, of)
	}
	return all
}

func numbersOf(all []inbox.Overview) []int64 {
	var numbers []int64
	for _, o := range all {
		numbers = append(numbers, o.Seq)
	}
	return numbers
}

func listsWithoutBodies(w *world) {
	w.same("none", numbersOf(w.overviews(inbox.DeliveryRange{})), []int64(nil))
	var events []string
	for i := range inbox.MaxOverviewEvents + 3 {
		events = append(events, event(uuid(i), ""))
	}
	w.put("["+strings.Join(events, ",")+"]", inbox.Yes)
	w.put("not JSON \x00\xff", inbox.Unknown)
	w.put("[7, "+event(uuid(0), "")+","+event(uuid(1), `,"a":1`)+"]", inbox.No)
	w.put("[]", inbox.Yes)
	w.put("", inbox.Unknown)
	for name, c := range map[string]struct {
		r    inbox.DeliveryRange
		want []int64
	}{
		"all":          {inbox.DeliveryRange{}, []int64{5, 4, 3, 2, 1}},
		"from":         {inbox.DeliveryRange{From: 4}, []int64{5, 4}},
		"to":           {inbox.DeliveryRange{To: 2}, []int64{2, 1}},
		"between":      {inbox.DeliveryRange{From: 2, To: 3}, []int64{3, 2}},
		"the newest":   {inbox.DeliveryRange{Limit: 2}, []int64{5, 4}},
		"newest up to": {inbox.DeliveryRange{To: 4, Limit: 1}, []int64{4}},
		"behind all":   {inbox.DeliveryRange{From: 6}, nil},
		"none is so":   {inbox.DeliveryRange{From: 3, To: 2}, nil},
	} {
		w.same(name, numbersOf(w.overviews(c.r)), c.want)
	}
	have(w.Prune(w.Context(), sent.Add(time.Hour)))(w)
	w.same("pruned", w.overviews(inbox.DeliveryRange{Limit: 1})[0].Size, int64(-1))
}

func listsEventsAsTheyAre(w *world) {
	w.put("["+event(uuid(1), "")+", 7, "+event(uuid(2), "")+"]", inbox.Unknown)
	w.put("["+event(uuid(1), "")+"]", inbox.Yes)
	w.setVerdict(1, inbox.Yes)
	var marks []inbox.Mark
	for _, o := range w.overviews(inbox.DeliveryRange{}) {
		for _, e := range o.Events {
			marks = append(marks, e.Mark)
		}
	}
	w.same("marks", marks, []inbox.Mark{inbox.Current, inbox.Duplicate, inbox.Anomaly, inbox.Current})
}

func listsWhatWasForwarded(w *world) {
	for range 4 {
		w.deliver("A")
	}
	sink := w.sink(&inbox.StartPosition{})
	key := inbox.SinkKey{Name: "forward", URL: "http://127.0.0.1:2/", Filter: "event=x"}
	other := have(w.OpenSink(w.Context(), key, &inbox.StartPosition{}))(w)
	w.overviews(inbox.DeliveryRange{})
	w.advance(sink, all)
	for _, d := range []inbox.Disposition{inbox.Sent, inbox.GivenUp, inbox.Retry} {
		_, entries := w.claimEntries(sink)
		w.recordAttempt(entries[0], d)
		w.overviews(inbox.DeliveryRange{})
	}
	w.claimEntries(sink)
	have(w.Advance(w.Context(), other.ID, 2, func([]inbox.Event) bool { return false }))(w)
	var got []string
	for _, o := range w.overviews(inbox.DeliveryRange{}) {
		parts := []string{fmt.Sprint(o.Seq)}
		for _, f := range o.Forwardings {
			part := fmt.Sprintf("read %v", f.Read)
			switch {
			case f.Waiting != nil:
				part += fmt.Sprintf(" attempt %d, sending %v, given up %v", f.Waiting.Attempt, f.Waiting.Sending, !f.Waiting.GivenUpAt.IsZero())
			case !f.SentAt.IsZero():
				part += fmt.Sprintf(" sent after %d with %d", f.Attempts, f.Status)
			}
			parts = append(parts, part)
		}
		got = append(got, strings.Join(parts, ", "))
	}
	w.same("forwardings", got, []string{
		"4, read true attempt 0, sending false, given up false, read false",
		"3, read true attempt 2, sending true, given up false, read false",
		"2, read true attempt 1, sending false, given up true, read true",
		"1, read true sent after 1 with 500, read true",
	})
}

func listsRefused(w *world) {
	w.put("[1]", inbox.Yes)
	first, second := delivery("\x00\xff", inbox.No), delivery("", inbox.No)
	second.Anomaly = "odd"
	a, b := w.refuse(first), w.refuse(second)
	all := have(w.Overviews.Overviews(w.Context(), inbox.DeliveryRange{Refused: true}))(w)
	first.Seq, second.Seq = a, b
	for i, d := range []inbox.Delivery{second, first} {
		size := int64(len(d.Body))
		d.Header, d.Body = nil, nil
		w.same("refused", all[i], inbox.Overview{Delivery: d, Size: size})
	}
	bodies := have(w.Bodies(w.Context(), inbox.DeliveryRange{Refused: true, From: a, To: a}))(w)
	w.same("bodies", bodies, map[int64][]byte{a: []byte("\x00\xff")})
}
