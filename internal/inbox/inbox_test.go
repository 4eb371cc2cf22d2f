package inbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
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
			Event: webhook.Event{
				Index: index, Offset: offset, Length: length, Raw: json.RawMessage(body[offset : offset+length]),
			},
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

// What waybill made up, and what a verdict says, is said of each row.
func TestRowsAreMarked(t *testing.T) {
	made := []webhook.Field{{Name: "waybill-SYNTHETIC"}}
	for _, tt := range []struct {
		header    []webhook.Field
		verdict   webhook.Verdict
		verified  inbox.Verified
		synthetic bool
	}{
		{[]webhook.Field{{Name: "X"}}, webhook.Verdict{OK: true, BodyAuthenticated: true, SecretName: "env:S"}, inbox.Yes, false},
		{made, webhook.Verdict{Reason: webhook.ReasonSignatureMismatch}, inbox.No, true},
	} {
		d := inbox.Delivery{Header: tt.header, Body: []byte(`[{"eventId":"a"},7]`)}.WithVerdict("s", tt.verdict)
		if d.Verified != tt.verified || d.Scheme != "s" || d.Reason != tt.verdict.Reason || d.SecretName != tt.verdict.SecretName || d.BodyAuthenticated != tt.verdict.BodyAuthenticated {
			t.Errorf("%+v after %+v", d, tt.verdict)
		}
		_, rows := inbox.Decode(d)
		for _, e := range rows {
			if len(rows) != 2 || e.Synthetic != tt.synthetic || e.Verified != tt.verified || e.Reason != d.Reason || e.BodyAuthenticated != d.BodyAuthenticated {
				t.Errorf("%d rows, one is %+v", len(rows), e)
			}
		}
	}
	second := webhook.Event{Index: 1}
	for id, e := range map[string]inbox.Event{"12": {Delivery: 12}, "12.2": {Delivery: 12, Event: second}} {
		if e.ID() != id {
			t.Errorf("%+v is called %s; want %s", e, e.ID(), id)
		}
	}
	var receipt inbox.Receipt
	for mark, want := range map[inbox.Mark]bool{inbox.Current: false, inbox.Superseded: false, inbox.Duplicate: true, inbox.Conflict: false, inbox.Anomaly: false} {
		receipt.Rows = append(receipt.Rows, inbox.Placement{Mark: mark})
		if got := (inbox.Event{Mark: mark}).IsRepeat(); got != want {
			t.Errorf("%q is a repeat: %v", mark, got)
		}
	}
	if n := receipt.CountCurrent(); n != 1 {
		t.Errorf("%d are current; want 1", n)
	}
}

// passing is an error of a store that says itself whether it passes.
type passing bool

func (passing) Error() string       { return "cut off" }
func (p passing) IsTemporary() bool { return bool(p) }

func TestErrorsThatPass(t *testing.T) {
	for err, want := range map[error]bool{
		passing(true): true, passing(false): false, errors.Join(io.EOF, passing(true)): true,
		inbox.ErrLocked: true, inbox.ErrFull: true, inbox.ErrUnreachable: true, io.EOF: false, context.Canceled: false,
	} {
		if got := inbox.IsTemporary(err); got != want {
			t.Errorf("%v passes: %v; want %v", err, got, want)
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

// A signature that verified outranks the user's word, and both outrank all else.
func TestWhatCountsOutranksWhatDoesNot(t *testing.T) {
	rank := map[inbox.Verified]int{inbox.Yes: 2, inbox.Unsigned: 1, inbox.No: 0, inbox.Unknown: 0}
	counting := 0
	for v := range rank {
		if v.Counts() != (rank[v] > 0) {
			t.Errorf("%s counts: %t", v, v.Counts())
		}
		for other := range rank {
			if v.Outranks(other) != (rank[v] > rank[other]) {
				t.Errorf("%s outranks %s: %t", v, other, v.Outranks(other))
			}
		}
	}
	for _, v := range inbox.Counting() {
		counting += rank[v]
	}
	if counting != 3 {
		t.Errorf("%v count", inbox.Counting())
	}
}
