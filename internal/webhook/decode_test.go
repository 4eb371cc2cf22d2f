package webhook_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/webhook"
)

const delivered = `{"eventId":"6F1F9D9C-8f62-4a3c-9b53-1c1f8f5a0b11","event":"router.delivered","eventTime":"2024-05-01T10:00:00.000Z",` +
	`"data":{"trackingNumber":"1Z999AA10123456784","status":1,"statusTrack":"delivered","routerId":"0b1c2d3e-0000-4000-8000-000000000001",` +
	`"summary":{"id":"0b1c2d3e-0000-4000-8000-000000000001","trackingNumber":"1Z999AA10123456784","status":1,"statusLabel":"DELIVERED",` +
	`"latestEvent":"Delivered, front door","latestCheckpointTime":"2024-05-01T09:58:00.000Z","transitTime":3,"created":"2024-04-28T08:00:00.000Z","updated":"2024-05-01T10:00:00.000Z"},` +
	`"detail":{"trackingNumber":"1Z999AA10123456784","statusSummary":"Delivered","trackingEvents":[{"eventType":"Delivered","eventCity":"BOSTON","eventState":"MA",` +
	`"eventZIPCode":"02108","eventTimestamp":"2024-05-01T05:58:00","GMTTimestamp":"2024-05-01T09:58:00Z"}]},"error":null}}`

func TestDecodeDocumentedDelivery(t *testing.T) {
	sent := []byte("[\n  " + delivered + " ,\t{\"event\":\"router.new_kind\"}]\n")
	got := webhook.Decode(sent)
	if got.Single || got.Anomaly != "" || len(got.Rows) != 2 || got.Rows[0].Part || got.Rows[1].Part {
		t.Fatalf("got %+v; want two events and nothing odd", got)
	}
	want := webhook.Event{
		Index:          0,
		Offset:         4,
		Length:         len(delivered),
		EventID:        "6F1F9D9C-8f62-4a3c-9b53-1c1f8f5a0b11",
		Kind:           "router.delivered",
		EventTime:      "2024-05-01T10:00:00.000Z",
		TrackingNumber: "1Z999AA10123456784",
		Status:         "1",
		StatusTrack:    "delivered",
		StatusLabel:    "DELIVERED",
		LatestEvent:    "Delivered, front door",
		RouterID:       "0b1c2d3e-0000-4000-8000-000000000001",
		Data:           json.RawMessage(delivered[strings.Index(delivered, `"data":`)+7 : len(delivered)-1]),
		Raw:            json.RawMessage(delivered),
	}
	if diff := cmp.Diff(want, got.Rows[0].Event); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	second := got.Rows[1]
	if second.Index != 1 || second.Kind != "router.new_kind" || string(sent[second.Offset:second.Offset+second.Length]) != string(second.Raw) {
		t.Errorf("second event %+v; want the unknown kind, at its place", second)
	}
	if second.Anomaly != "eventId missing" {
		t.Errorf("second event's anomaly %q; want it to miss its eventId", second.Anomaly)
	}
}

// Some senders write a byte order mark.
func TestDecodeSkipsAByteOrderMark(t *testing.T) {
	sent := "\uFEFF [" + delivered + "]"
	got := webhook.Decode([]byte(sent))
	events, parts := split(got)
	if got.Anomaly != "" || len(events) != 1 || len(parts) != 0 || events[0].Offset != strings.Index(sent, "{") ||
		string(events[0].Raw) != delivered {
		t.Errorf("got %+v; want one event, at its place", got)
	}
}

func TestDecodeEventFields(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		want      webhook.Event // without place, Raw and Data
	}{
		{"nothing", `{}`, webhook.Event{Anomaly: "eventId missing"}},
		{"null", `{"eventId":null,"event":null,"data":null}`, webhook.Event{Anomaly: "eventId missing"}},
		{"exact names only", `{"EventID":"a","EVENT":"b","eventId":"x"}`, webhook.Event{EventID: "x"}},
		{"an escaped name is the name", `{"event\u0049d":"x"}`, webhook.Event{EventID: "x"}},
		{"number as identifier", `{"eventId":9007199254740993}`, webhook.Event{EventID: "9007199254740993"}},
		{"empty identifier", `{"eventId":""}`, webhook.Event{Anomaly: "eventId missing"}},
		{"identifier twice, the same", `{"eventId":"x","eventId":"x"}`, webhook.Event{EventID: "x"}},
		{"identifier twice", `{"eventId":"x","eventId":"y"}`, webhook.Event{Anomaly: "eventId appears twice with different values"}},
		{"identifier an object", `{"eventId":{}}`, webhook.Event{Anomaly: "eventId is not a text"}},
		{"identifier of bad bytes", "{\"eventId\":\"\xff\"}", webhook.Event{Anomaly: "eventId is not valid Unicode"}},
		{"identifier half a surrogate", `{"eventId":"\ud800"}`, webhook.Event{Anomaly: "eventId is not valid Unicode"}},
		{"identifier with NUL", `{"eventId":"a\u0000"}`, webhook.Event{Anomaly: "eventId is not valid Unicode"}},
		{
			"kind of bad bytes", "{\"eventId\":\"x\",\"event\":\"a\xffb\"}",
			webhook.Event{EventID: "x", Kind: "a\ufffdb", Anomaly: "event is not valid Unicode"},
		},
		{"kind an array", `{"eventId":"x","event":["a"]}`, webhook.Event{EventID: "x", Anomaly: "event is not a text"}},
		{"status as text", `{"eventId":"x","data":{"status":"1"}}`, webhook.Event{EventID: "x", Status: `"1"`}},
		{"status as written", `{"eventId":"x","data":{"status":1.0e0}}`, webhook.Event{EventID: "x", Status: `1.0e0`}},
		{
			"status an object", `{"eventId":"x","data":{"status":{"a":1}}}`,
			webhook.Event{EventID: "x", Anomaly: "status is not a single value"},
		},
		{
			"number and status from the summary", `{"eventId":"x","data":{"summary":{"trackingNumber":"N","status":7}}}`,
			webhook.Event{EventID: "x", TrackingNumber: "N", Status: "7"},
		},
		{
			"number from the detail", `{"eventId":"x","data":{"detail":{"trackingNumber":"N"}}}`,
			webhook.Event{EventID: "x", TrackingNumber: "N"},
		},
		{
			"number as a number", `{"eventId":"x","data":{"trackingNumber":123456789012345678901}}`,
			webhook.Event{EventID: "x", TrackingNumber: "123456789012345678901"},
		},
		{
			"data twice", `{"eventId":"x","data":{"status":1},"data":{"status":2}}`,
			webhook.Event{EventID: "x", Anomaly: "data appears twice with different values"},
		},
		{
			"data twice, the same", `{"eventId":"x","data":{"status":1},"data":{"status":1}}`,
			webhook.Event{EventID: "x", Status: "1"},
		},
		{
			"data twice, and in it", `{"eventId":"x","data":{"status":1,"status":3},"data":{"status":2},"data":null}`,
			webhook.Event{EventID: "x", Anomaly: "data appears twice with different values"},
		},
		{
			"data null and not", `{"eventId":"x","data":null,"data":{"summary":{"trackingNumber":"N"}}}`,
			webhook.Event{EventID: "x", Anomaly: "data appears twice with different values"},
		},
		{
			"summary twice",
			`{"eventId":"x","data":{"summary":{"trackingNumber":"N"},"summary":7,"detail":{"trackingNumber":"M"}}}`,
			webhook.Event{EventID: "x", TrackingNumber: "M", Anomaly: "summary appears twice with different values"},
		},
		{"in the order of their levels", `{"event":1,"event":2,"data":{"detail":{"trackingNumber":"a","trackingNumber":"b"},"routerId":1,"routerId":2}}`, webhook.Event{Anomaly: "event appears twice with different values; eventId missing; routerId appears twice with different values; trackingNumber appears twice with different values"}},
		{"data a list", `{"eventId":"x","data":[1]}`, webhook.Event{EventID: "x", Anomaly: "data is not an object"}},
		{"two things odd", `{"event":1,"event":2}`, webhook.Event{Anomaly: "event appears twice with different values; eventId missing"}},
		{"control characters stay", `{"eventId":"x","event":"\u001b[2J"}`, webhook.Event{EventID: "x", Kind: "\x1b[2J"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := webhook.DecodeEvent([]byte(tt.raw))
			if string(got.Raw) != tt.raw || got.Length != len(tt.raw) {
				t.Errorf("raw %q, length %d; want the bytes as they were", got.Raw, got.Length)
			}
			got.Raw, got.Data, got.Length = nil, nil, 0
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeOddBodies(t *testing.T) {
	deep := func(levels int) string {
		return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
	}
	for _, tt := range []struct {
		name, body string
		events     int
		odd        []webhook.Event // without Raw
		single     bool
		anomaly    string
	}{
		{"one object", ` {"eventId":"x"} `, 1, nil, true, ""},
		{"empty", ``, 0, []webhook.Event{{Anomaly: "the body is empty"}}, false, "the body is empty"},
		{"empty array", `[ ]`, 0, []webhook.Event{{Length: 3, Anomaly: "the array is empty"}}, false, "the array is empty"},
		{
			"a number", `12`, 0,
			[]webhook.Event{{Length: 2, Anomaly: "neither an array nor an object"}},
			false, "neither an array nor an object",
		},
		{
			"null", `null`, 0,
			[]webhook.Event{{Length: 4, Anomaly: "neither an array nor an object"}},
			false, "neither an array nor an object",
		},
		{
			"cut", `[{"eventId":"x"}`, 0,
			[]webhook.Event{{Length: 16, Anomaly: "not JSON at byte 16: unexpected end of JSON input"}},
			false, "not JSON at byte 16: unexpected end of JSON input",
		},
		{
			"two documents", "[1]\n[2]", 0,
			[]webhook.Event{{Length: 7, Anomaly: "not JSON at byte 5: invalid character '[' after top-level value"}},
			false, "not JSON at byte 5: invalid character '[' after top-level value",
		},
		{
			"a web page", "<html>", 0,
			[]webhook.Event{{Length: 6, Anomaly: "not JSON at byte 1: invalid character '<' looking for beginning of value"}},
			false, "not JSON at byte 1: invalid character '<' looking for beginning of value",
		},
		{"elements that are no objects", `[1, {"eventId":"x"},null ,"a]",[{}],true]`, 1, []webhook.Event{
			{Index: 0, Offset: 1, Length: 1, Anomaly: "not an object"},
			{Index: 2, Offset: 20, Length: 4, Anomaly: "not an object"},
			{Index: 3, Offset: 26, Length: 4, Anomaly: "not an object"},
			{Index: 4, Offset: 31, Length: 4, Anomaly: "not an object"},
			{Index: 5, Offset: 36, Length: 4, Anomaly: "not an object"},
		}, false, ""},
		{"as deep as may be", "[" + deep(200) + "]", 1, nil, false, ""},
		{
			"too deep", "[{}," + deep(201) + "]", 1,
			[]webhook.Event{{Index: 1, Offset: 4, Length: 406, Anomaly: "nested deeper than 200 levels"}},
			false, "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := webhook.Decode([]byte(tt.body))
			events, odd := split(got)
			if len(events) != tt.events || got.Single != tt.single || got.Anomaly != tt.anomaly {
				t.Errorf("%d events, single %v, anomaly %q; want %d, %v, %q",
					len(events), got.Single, got.Anomaly, tt.events, tt.single, tt.anomaly)
			}
			for i := range tt.odd {
				o := &tt.odd[i]
				o.Raw = json.RawMessage(tt.body[o.Offset : o.Offset+o.Length])
			}
			if diff := cmp.Diff(tt.odd, odd); diff != "" {
				t.Errorf("odd (-want +got):\n%s", diff)
			}
		})
	}
	many := "[" + strings.Repeat("{},", 10_240) + "{}]"
	if got := webhook.Decode([]byte(many)); got.Anomaly != "more than 10240 elements" || !isWholeBody(got, many) {
		t.Errorf("10241 empty objects: anomaly %q, %d rows; want the body kept whole", got.Anomaly, len(got.Rows))
	}
	got := webhook.Decode([]byte("[" + strings.Repeat("{},", 10_000) + "{}]"))
	if events, _ := split(got); got.Anomaly != "" || len(events) != 10_001 {
		t.Errorf("10001 empty objects: anomaly %q, %d events; want them all", got.Anomaly, len(events))
	}
	brackets := strings.Repeat("[", 1<<20)
	if got := webhook.Decode([]byte(brackets)); !isWholeBody(got, brackets) {
		t.Errorf("a million brackets: %+v; want them kept", got)
	}
}

// split returns the events of a batch and its other parts.
func split(b webhook.Batch) (events, parts []webhook.Event) {
	for _, e := range b.Rows {
		if e.Part {
			parts = append(parts, e.Event)
		} else {
			events = append(events, e.Event)
		}
	}
	return events, parts
}

// isWholeBody reports whether the whole body is the only row of a batch, as a part.
func isWholeBody(b webhook.Batch, body string) bool {
	return len(b.Rows) == 1 && b.Rows[0].Part && b.Rows[0].Offset == 0 && b.Rows[0].Length == len(body) &&
		string(b.Rows[0].Raw) == body
}

func TestEventKey(t *testing.T) {
	key := func(raw string) []byte { return webhook.DecodeEvent([]byte(raw)).Key() }
	uuid, err := hex.DecodeString("6f1f9d9c8f624a3c9b531c1f8f5a0b11")
	if err != nil {
		t.Fatal(err)
	}
	if got := key(delivered); !bytes.Equal(got, uuid) {
		t.Errorf("key of a UUID %x; want its 16 bytes", got)
	}
	if got := webhook.IDKey("6f1f9d9c-8F62-4a3c-9b53-1c1f8f5a0b11"); !bytes.Equal(got, uuid) {
		t.Errorf("key of the UUID in other case %x; want the same", got)
	}
	sum := sha256.Sum256([]byte(`{"event":"a"}`))
	if got := key(`{"event":"a"}`); !bytes.Equal(got, sum[:]) {
		t.Errorf("key without eventId %x; want the hash of the bytes", got)
	}
	if a, b := key(`{"eventId":"x","event":"a"}`), key(`{"event":"b","eventId":"x"}`); !bytes.Equal(a, b) || len(a) != 32 {
		t.Errorf("keys of one eventId %x and %x; want them equal, 32 bytes", a, b)
	}
	if a, b := key(`{"eventId":"x"}`), key(`{"eventId":"X"}`); bytes.Equal(a, b) {
		t.Error("eventIds that are no UUIDs are equal in other case")
	}
	// Two identifiers that read alike once mended must not be one.
	if a, b := key("{\"eventId\":\"\xff\"}"), key("{\"eventId\":\"\xfe\"}"); bytes.Equal(a, b) {
		t.Error("two bad identifiers share a key")
	}
	for _, id := range []string{
		"6f1f9d9c8f624a3c9b531c1f8f5a0b11", "6f1f9d9c-8f62-4a3c-9b53-1c1f8f5a0b1g", "{6f1f9d9c-8f62-4a3c-9b53-1c1f8f5a0b11}", "6f1f9d9c-8f62-4a3c-9b531-c1f8f5a0b11",
	} {
		if got := webhook.IDKey(id); len(got) != 32 {
			t.Errorf("key of %q %x; want it not to be taken for a UUID", id, got)
		}
	}
}

func TestDecodeEventOfNoObject(t *testing.T) {
	for _, raw := range []string{"", " ", "[]", "1", `{"a":`, "x"} {
		if got := webhook.DecodeEvent([]byte(raw)); got.Anomaly != "not an object" || string(got.Raw) != raw {
			t.Errorf("%q: %+v; want it kept as no object", raw, got)
		}
	}
}

// Every element of what is JSON comes out, in its place and with its bytes; of
// what is not, the whole body does.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("[" + delivered + "]"))
	f.Add([]byte(delivered))
	f.Add([]byte(`[1,{"a\"b\\":"c\\\"]}"},[],{"eventId":"x","eventId":"y"}, null ]`))
	f.Add([]byte("[{\"eventId\":\"\xff\",\"data\":{\"status\":-1.5e+3}}]"))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		got := webhook.Decode(body)
		if !bytes.Equal(body, before) {
			t.Fatal("the body was changed")
		}
		if got.Anomaly != "" {
			if !isWholeBody(got, string(body)) {
				t.Fatalf("unreadable body not kept whole: %+v", got)
			}
			return
		}
		checkElements(t, body, got)
		events, _ := split(got)
		for _, e := range events {
			checkEvent(t, e)
		}
	})
}

// checkElements compares a batch with what package json finds in body.
func checkElements(t *testing.T, body []byte, got webhook.Batch) {
	t.Helper()
	var want []json.RawMessage
	if got.Single {
		want = []json.RawMessage{bytes.Trim(body, " \t\r\n")}
	} else if err := json.Unmarshal(body, &want); err != nil {
		t.Fatalf("accepted a body that is no array: %q", body)
	}
	if len(got.Rows) != len(want) {
		t.Fatalf("%d rows of %d elements", len(got.Rows), len(want))
	}
	for i, e := range got.Rows {
		if raw := body[e.Offset : e.Offset+e.Length]; e.Index != i || !bytes.Equal(raw, want[i]) {
			t.Errorf("element %d: index %d, %q at %d; want %q", i, e.Index, raw, e.Offset, want[i])
		}
		if !bytes.Equal(e.Raw, want[i]) {
			t.Errorf("element %d: bytes changed: %q", i, e.Raw)
		}
	}
}

func checkEvent(t *testing.T, e webhook.Event) {
	t.Helper()
	for _, s := range []string{
		e.EventID, e.Kind, e.EventTime, e.TrackingNumber, e.Status, e.StatusTrack, e.StatusLabel, e.LatestEvent, e.RouterID,
		e.Anomaly,
	} {
		if !utf8.ValidString(s) || strings.Contains(s, "\x00") {
			t.Errorf("text %q cannot be stored", s)
		}
	}
	if n := len(e.Key()); n != 16 && n != 32 {
		t.Errorf("key of %d bytes", n)
	}
	if e.Data != nil && !json.Valid(e.Data) {
		t.Errorf("data %q is not JSON", e.Data)
	}
	again := webhook.DecodeEvent(e.Raw)
	again.Index, again.Offset = e.Index, e.Offset
	if diff := cmp.Diff(e, again); diff != "" {
		t.Errorf("reads otherwise alone (-batch +alone):\n%s", diff)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(e.Raw, &members); err != nil {
		t.Fatalf("event that is no object: %q", e.Raw)
	}
	if _, ok := members["data"]; ok && e.Data == nil && e.Anomaly == "" {
		t.Errorf("data lost from %q", e.Raw)
	}
}

// BenchmarkDelivery verifies and decodes deliveries of one and of fifty events of about 1.2 kB each.
func BenchmarkDelivery(b *testing.B) {
	event := strings.Replace(delivered, "Delivered, front door", "Delivered, front door "+strings.Repeat("x", 1200-len(delivered)), 1)
	for _, tt := range []struct {
		name   string
		events int
	}{{"1", 1}, {"50", 50}} {
		b.Run(tt.name, func(b *testing.B) {
			body := "[" + strings.TrimSuffix(strings.Repeat(event+",", tt.events), ",") + "]"
			v := verifier(b, webhook.Scheme{}, "k")
			r := post(body, "Content-Type", "application/json", "X-Signature", hexMAC("k", body))
			now := time.Now()
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if !v.Verify(r, now).OK || len(webhook.Decode(r.Body).Rows) != tt.events {
					b.Fatal("not verified, or events lost")
				}
			}
			b.ReportMetric(float64(b.N*tt.events)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
