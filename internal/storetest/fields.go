package storetest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// fillFields gives each field of a struct, and of structs in it, a value that says which field it is.
func (w *world) fillFields(of any) {
	w.Helper()
	fill(reflect.ValueOf(of).Elem(), "", new(int64))
}

// fill gives a field its value. n counts the fields.
func fill(v reflect.Value, name string, n *int64) {
	*n++
	switch field := v.Addr().Interface().(type) {
	case *int, *int64:
		v.SetInt(*n)
	case *bool:
		*field = true
	case *time.Time:
		*field = sent.Add(time.Duration(*n) * time.Millisecond)
	case *time.Duration:
		*field = time.Duration(*n) * time.Millisecond
	case *[]webhook.Field:
		*field = []webhook.Field{{Name: name, Value: "1"}, {Name: name, Value: "\x00\xff"}}
	case *[]byte:
		*field = []byte(name)
	case *json.RawMessage:
		*field = json.RawMessage(name)
	case *[]string:
		*field = []string{name, "é\u202e"}
	default:
		if v.Kind() == reflect.String {
			v.SetString(name + " é\u202e")
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Name, n)
		}
	}
}

// isFilled checks that each field of a struct is set, since nobody sees whether an empty one is kept.
func (w *world) isFilled(of any) {
	w.Helper()
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			w.Errorf("%T.%s is empty", of, v.Type().Field(i).Name)
		}
	}
}

// A plan is kept except for what its rows and the tally say, and each counter of a tally has its own column.
func everyFieldOfRunsIsKept(w *world) {
	first := w.run(plan(), entries(1, 12)...)
	b := w.claim(first.ID, 2)
	w.record(ledger.Accepted, b[0])
	w.record(ledger.Unknown, b[1])
	have(w.Erase(w.Context(), []tracking.Query{byRefer(12)}, ledger.EraseOptions{}))(w)
	var p ledger.Plan
	w.fillFields(&p)
	input := slices.Concat(entries(1, 8), entries(12, 12), entries(20, 28), slices.Repeat(entries(20, 20), 7))
	for i := range 6 {
		input[i].Item.CarrierCode = "dhl"
	}
	run := w.run(p, input...)
	want := ledger.Run{ID: run.ID, Plan: p, Created: run.Created, Tally: ledger.Tally{
		New: 9, Known: 8, Repeats: 7, Skipped: p.Skipped, Erased: 1, KnownPending: 2, KnownOpen: 3, OtherCarrier: 6,
	}}
	w.same("run", run, want)
	w.isFilled(want)
	w.isFilled(want.Plan)
	w.isFilled(want.Tally)
	w.same("own columns", have(w.OwnColumns(w.Context()))(w), []string{"Own", "é\u202e"})
	w.kill()
	want.Plan.Skipped, want.Plan.Own, want.Plan.CheckFirst = 0, nil, false
	w.same("run as kept", have(w.Run(w.Context(), run.ID))(w).Run, want)
}

// Whatever a delivery and an event say is kept, of refused deliveries too.
func everyFieldOfDeliveriesIsKept(w *world) {
	var d inbox.Delivery
	var e inbox.Event
	w.fillFields(&d)
	w.fillFields(&e)
	e.Raw, e.Data = json.RawMessage(`{"eventId":"1","data":{"a":1}}`), json.RawMessage(`{"a":1}`)
	d.Body = append([]byte("[1,"), e.Raw...)
	e.Offset, e.Length = bytes.Index(d.Body, e.Raw), len(e.Raw)
	r := have(w.Put(w.Context(), d, []inbox.Event{e, e}))(w)
	d.Seq = r.Delivery
	w.same("delivery", have(w.Delivery(w.Context(), d.Seq))(w), d)
	e.Delivery, e.ReceivedAt = d.Seq, d.ReceivedAt
	e.Verified, e.Reason, e.BodyAuthenticated = d.Verified, d.Reason, d.BodyAuthenticated
	for i, mark := range []inbox.Mark{inbox.Current, inbox.Duplicate} {
		e.Seq, e.Mark = r.Rows[i].Seq, mark
		w.same("event", have(w.Event(w.Context(), e.Seq))(w), e)
	}
	d.Seq = w.refuse(d)
	w.same("refused", collect(w, w.Refused(w.Context(), 0)), []inbox.Delivery{d})
}
