package tracking_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/tracking"
)

const (
	summary = `"summary":{"id":"7f0e","trackingNumber":"1Z999","status":1,"statusLabel":"DELIVERED","latestEvent":"Delivered","latestCheckpointTime":"2026-11-20T10:00:00.000Z","transitTime":3,"created":"2026-11-17T00:00:00.000Z","updated":"2026-11-20T10:00:01.000Z"}`
	detail  = `"detail":{"trackingNumber":"1Z999","statusSummary":"Delivered","trackingEvents":[{"eventType":"Delivered","eventCity":"Ulm","eventState":"BW","eventZIPCode":"89073","eventTimestamp":"2026-11-20T11:00:00","GMTTimestamp":"2026-11-20T10:00:00Z","x":1},{"eventType":"Picked up","eventCity":"Bonn","eventState":"NW","eventZIPCode":"53111","eventTimestamp":"2026-11-17T11:00:00","GMTTimestamp":"2026-11-17T10:00:00Z"}]}`
	object  = `{"trackingNumber":"1Z999","status":1,"statusTrack":"delivered","routerId":"7f0e",` + summary + `,` + detail + `,"error":null}`
)

func TestAnswerFindsTheSameTrackingWhereverItStands(t *testing.T) {
	want := tracking.Tracking{
		Number: "1Z999",
		Report: tracking.Report{
			RouterID: "7f0e", Status: "1", StatusLabel: "DELIVERED",
			StatusTrack: "delivered", LatestEvent: "Delivered", LatestTime: "2026-11-20T10:00:00.000Z",
		},
		StatusSummary: "Delivered",
		TransitTime:   "3",
		Created:       "2026-11-17T00:00:00.000Z", Updated: "2026-11-20T10:00:01.000Z",
	}
	shapes := map[string]string{
		"bare":             object,
		"data":             `{"success":true,"data":` + object + `}`,
		"deep":             `{"result":{"payload":{"tracking":` + object + `}}}`,
		"list":             `[` + object + `]`,
		"list in data":     `{"code":200,"data":[` + object + `]}`,
		"noisy":            `{"status":200,"code":0,"message":"OK","request":{"trackingNumber":"other","status":9,"statusLabel":"X"},"page":{"size":1,"status":3},"data":{"carrier":{"id":"q"},"tracking":` + object + `},"related":[{"trackingNumber":"2","statusLabel":"LOST"}]}`,
		"apart":            `{"data":{"info":{"statusTrack":"delivered","routerId":"7f0e",` + summary + `},"track":{` + detail + `}}}`,
		"echo with status": `{"status":200,"trackingNumber":"1Z999","data":` + object + `}`,
	}
	for name, raw := range shapes {
		t.Run(name, func(t *testing.T) {
			a := tracking.ReadBody([]byte(raw)).Answer()
			if !a.JSON || a.Processing || len(a.Trackings) != 1 {
				t.Fatalf("JSON %v, Processing %v, %d trackings; want one processed tracking: %+v", a.JSON, a.Processing, len(a.Trackings), a.Trackings)
			}
			got := a.Trackings[0]
			if len(got.Checkpoints) != 2 || got.Checkpoints[0].City != "Ulm" || got.Checkpoints[1].UTC != "2026-11-17T10:00:00Z" {
				t.Errorf("checkpoints %+v", got.Checkpoints)
			}
			if !bytes.Contains(got.Checkpoints[0].Raw, []byte(`"x":1`)) {
				t.Errorf("the checkpoint's unknown field is lost: %s", got.Checkpoints[0].Raw)
			}
			got.Checkpoints = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("tracking (-want +got):\n%s", diff)
			}
			if !bytes.Equal(a.Raw, []byte(raw)) {
				t.Error("the answer's bytes changed")
			}
		})
	}
}

func TestAnswerKeepsParcelsApart(t *testing.T) {
	raw := `{"referId":"A1","data":[{"trackingNumber":"P1","statusLabel":"DELIVERED","status":1},{"trackingNumber":"P2","message":"Processing"}]}`
	a := tracking.ReadBody([]byte(raw)).Answer()
	if a.Processing || len(a.Trackings) != 2 {
		t.Fatalf("Processing %v, trackings %+v; want two, not processing as a whole", a.Processing, a.Trackings)
	}
	if a.Trackings[0].ReferID != "A1" || a.Trackings[0].Number != "P1" || a.Trackings[0].Processing {
		t.Errorf("first parcel %+v", a.Trackings[0])
	}
	if a.Trackings[1].Number != "P2" || !a.Trackings[1].Processing {
		t.Errorf("second parcel %+v", a.Trackings[1])
	}
}

func TestAnswerProcessing(t *testing.T) {
	tests := map[string]bool{
		`{"message":"Processing"}`:                              true,
		`[{"message":"Processing"}]`:                            true,
		`[{"message":"Processing"},{"message":"Processing"}]`:   false,
		`{"message":"OK","data":{"message":"Processing"}}`:      true,
		`{"data":{"referId":"A1","message":" processing "}}`:    true,
		`{"message":"Not found"}`:                               false,
		`{"history":[{"message":"Processing"}],"message":"OK"}`: false,
		`{"message":"Processing","data":` + object + `}`:        false,
		`"Processing"`: false,
		`Processing`:   false,
	}
	for raw, want := range tests {
		if got := tracking.ReadBody([]byte(raw)).Answer().Processing; got != want {
			t.Errorf("Processing of %s = %v; want %v", raw, got, want)
		}
	}
}

func TestSignsOfError(t *testing.T) {
	tests := []struct {
		raw         string
		json, wrong bool
	}{
		{`{}`, true, false},
		{`[]`, true, false},
		{`{"success":true,"error":null,"code":200,"meta":{"code":200}}`, true, false},
		{`{"success":false}`, true, true},
		{`{"error":"no"}`, true, true},
		{`{"error":{}}`, true, true},
		{`{"code":401}`, true, true},
		{`{"code":"401"}`, true, true},
		{`{"meta":{"code":4012}}`, true, true},
		{`{"items":[{"success":false}]}`, true, false},
		{`<html>`, false, false},
		{`{"a":1} {"b":2}`, false, false},
		{``, false, false},
	}
	for _, tt := range tests {
		b := tracking.ReadBody([]byte(tt.raw))
		if b.JSON() != tt.json || b.Wrong() != tt.wrong {
			t.Errorf("%s: JSON %v, wrong %v; want %v, %v", tt.raw, b.JSON(), b.Wrong(), tt.json, tt.wrong)
		}
	}
}

func TestPointer(t *testing.T) {
	raw := []byte(`{"a/b":[{"~":7}],"":1}`)
	tests := []struct {
		pointer, want string
		ok            bool
	}{{"/a~1b/0/~0", "7", true}, {"/", "1", true}, {"", string(raw), true}, {"/x", "", false}, {"/a~1b/1", "", false}, {"/a~1b/-1", "", false}}
	for _, tt := range tests {
		got, ok := tracking.ReadBody(raw).Pointer(tt.pointer)
		if string(got) != tt.want || ok != tt.ok {
			t.Errorf("Pointer(%q) = %s, %v; want %s, %v", tt.pointer, got, ok, tt.want, tt.ok)
		}
	}
}

func TestAppendBatchIsWhatTheServiceReads(t *testing.T) {
	items := []tracking.Item{
		{ReferID: `a"\<é` + "\u202e\x7f", Number: "1"},
		{ReferID: "b", Number: "2", CarrierCode: "dhl"},
	}
	raw := tracking.AppendBatch(nil, items)
	var got struct {
		Data []struct {
			ReferID           string             `json:"referId"`
			RawTrackingNumber string             `json:"rawTrackingNumber"`
			Metadata          *map[string]string `json:"metadata"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	if len(got.Data) != 2 || got.Data[0].ReferID != items[0].ReferID || got.Data[0].Metadata != nil {
		t.Errorf("first item %+v", got.Data[0])
	}
	if got.Data[1].Metadata == nil || (*got.Data[1].Metadata)["carrierCode"] != "dhl" {
		t.Errorf("second item has no carrier code: %s", raw)
	}
}

// What was read must be refused, or nothing of it lost; nothing may panic.
func FuzzBody(f *testing.F) {
	for _, s := range []string{object, `[` + object + `]`, `{"message":"Processing"}`, `{"data":[{"trackingNumber":"1","status":{}}]}`, `[[[]]]`, `{"a":{"a":1},"a":2}`, "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b := tracking.ReadBody(raw)
		a := b.Answer()
		if !bytes.Equal(a.Raw, raw) {
			t.Fatal("bytes changed")
		}
		if a.JSON && !json.Valid(raw) {
			t.Fatalf("took %q for JSON", raw)
		}
		for _, tr := range a.Trackings {
			if tr.Status != "" && !json.Valid([]byte(tr.Status)) {
				t.Errorf("status %q is no JSON literal", tr.Status)
			}
			for _, c := range tr.Checkpoints {
				if !json.Valid(c.Raw) {
					t.Errorf("checkpoint %q is no JSON", c.Raw)
				}
			}
		}
		if b.Wrong() && !b.JSON() {
			t.Errorf("%q is wrong, and no JSON", raw)
		}
		if s := b.ErrorText(); !utf8.ValidString(s) {
			t.Errorf("error text %q", s)
		}
		if rows, _ := b.Refusals([]tracking.Item{{ReferID: "A", Number: "1"}}); len(rows) > 1 {
			t.Errorf("%d verdicts on one row", len(rows))
		}
	})
}

// No answer has no body, and nothing can be read out of it.
func TestNoBody(t *testing.T) {
	var b *tracking.Body
	_, found := b.Pointer("")
	rows, blanket := b.Refusals([]tracking.Item{{ReferID: "A", Number: "1"}})
	if b.JSON() || b.Wrong() || b.ErrorText() != "" || found || rows != nil || blanket || b.Answer().JSON {
		t.Error("something was found in no body")
	}
	if e := b.Evidence(tracking.Item{ReferID: "A", Number: "1"}); e.Presence != tracking.PresenceUndecided || e.Why != "empty" {
		t.Errorf("evidence %+v", e)
	}
	if got := b.AbsenceFingerprint(404); got != "404 empty" {
		t.Errorf("fingerprint %q", got)
	}
}
