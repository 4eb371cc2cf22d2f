package inbox_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

func TestPrepareKeepsTheOrderOfTheBody(t *testing.T) {
	const body = `[7,{"eventId":"a","event":"k","data":{"trackingNumber":"N","status":1}},null,{"x":1}]`
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d := inbox.Delivery{ReceivedAt: at, Body: []byte(body), Verified: inbox.No, Reason: webhook.ReasonSignatureMismatch}
	got := inbox.Prepare(d, webhook.Decode(d.Body))
	row := func(index, offset, length int) inbox.Event {
		return inbox.Event{
			ReceivedAt: at, Verified: inbox.No, Reason: webhook.ReasonSignatureMismatch,
			Index: index, Offset: offset, Length: length, Raw: json.RawMessage(body[offset : offset+length]),
		}
	}
	first, event, third, bare := row(0, 1, 1), row(1, 3, 68), row(2, 72, 4), row(3, 77, 7)
	first.Mark, first.Anomaly = inbox.Anomaly, "not an object"
	third.Mark, third.Anomaly = inbox.Anomaly, "not an object"
	event.Key, event.EventID, event.Kind, event.TrackingNumber, event.Status = webhook.IDKey("a"), "a", "k", "N", "1"
	event.Data = json.RawMessage(`{"trackingNumber":"N","status":1}`)
	bare.Key, bare.Anomaly = webhook.DecodeEvent([]byte(`{"x":1}`)).Key(), "eventId missing"
	if diff := cmp.Diff([]inbox.Event{first, event, third, bare}, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestPrepareKeepsAnUnreadableBodyWhole(t *testing.T) {
	for _, body := range []string{"", "[]", "<html>"} {
		d := inbox.Delivery{Body: []byte(body), Verified: inbox.Yes, BodyAuthenticated: true}
		got := inbox.Prepare(d, webhook.Decode(d.Body))
		if len(got) != 1 || got[0].Mark != inbox.Anomaly || string(got[0].Raw) != body || got[0].Key != nil || !got[0].BodyAuthenticated || got[0].Verified != inbox.Yes {
			t.Errorf("%q: rows %+v; want one anomaly with all of it", body, got)
		}
	}
}

func TestDeliveryRequest(t *testing.T) {
	d := inbox.Delivery{Method: "POST", Path: "/p", RawQuery: "q=1", Header: []webhook.Field{{Name: "A", Value: "b"}}, Body: []byte("x")}
	want := webhook.Request{Method: "POST", Path: "/p", RawQuery: "q=1", Header: []webhook.Field{{Name: "A", Value: "b"}}, Body: []byte("x")}
	if diff := cmp.Diff(want, d.Request()); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// Anybody may send elements that cost a row each: an unverified body has few.
func TestDecodeOfAnUnverifiedBodyIsLimited(t *testing.T) {
	body := []byte("[" + strings.Repeat("{},", 9_999) + "{}]") // 30 kB
	for verified, want := range map[inbox.Verified]int{inbox.Yes: 10_000, inbox.No: 1, inbox.Unknown: 1} {
		d, rows := inbox.Decode(inbox.Delivery{Body: body, Verified: verified})
		if len(rows) != want || (d.Anomaly == "") != (verified == inbox.Yes) {
			t.Errorf("%v: %d rows, anomaly %q; want %d", verified, len(rows), d.Anomaly, want)
		}
	}
}
