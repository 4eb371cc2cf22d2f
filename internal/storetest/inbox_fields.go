package storetest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// fillFields gives each field of a struct a value that says which field it is.
func (w *world) fillFields(of any) {
	w.Helper()
	v := reflect.ValueOf(of).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch field := v.Field(i).Addr().Interface().(type) {
		case *int, *int64:
			v.Field(i).SetInt(int64(i + 1))
		case *bool:
			*field = true
		case *time.Time:
			*field = sent.Add(time.Duration(i) * time.Millisecond)
		case *[]webhook.Field:
			*field = []webhook.Field{{Name: name, Value: "1"}, {Name: name, Value: "\x00\xff"}}
		case *[]byte:
			*field = []byte(name)
		case *json.RawMessage:
			*field = json.RawMessage(name)
		default:
			v.Field(i).SetString(name + " é\u202e")
		}
	}
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
