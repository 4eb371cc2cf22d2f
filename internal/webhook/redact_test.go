package webhook_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

func redacted(body string) string {
	r := webhook.Redactor{Key: []byte("k"), Secrets: []string{"", "s3cret"}, Fold: tracking.FoldNumber}
	return string(r.Redact(webhook.Capture{Sample: webhook.Sample{Request: webhook.Request{Body: []byte(body)}}}).Body)
}

func TestRedactBodies(t *testing.T) {
	for body, want := range map[string]string{
		"":               "",
		"no JSON at all": "***",
		` [ {"event" : "router.delivered", "status": 1, "x": 12.5, "y": [true, null, {}, [ ] ]} ] ` + "\n": ` [ {"event" : "router.delivered", "status": 1, "x": 0, "y": [true, null, {}, [ ] ]} ] ` + "\n",
		`{"data":{"signedBy":"Erika Muster","note":["a\"b",""],"statusLabel":"DELIVERED"}}`:                `{"data":{"signedBy":"***","note":["***",""],"statusLabel":"DELIVERED"}}`,
		`{"event":"with s3cret inside","s3cret":1,"status":"s3cret"}`:                                      `{"event":"***","***":0,"status":"***"}`,
		`{"st\u0061tus":"x","status":{"name":"y","status":"z"}}`:                                           `{"st\u0061tus":"x","status":{"name":"***","status":"z"}}`,
		`"alone"`: `"***"`,
		`7`:       `0`,
	} {
		if got := redacted(body); got != want {
			t.Errorf("%s:\n%s; want\n%s", body, got, want)
		}
	}
}

func TestRedactedIdentifiersStayAlike(t *testing.T) {
	got := redacted(`[{"trackingNumber":"1Z 999-a","a":{"rawTrackingNumber":"1z999A"},"routerId":"1Z9990","id":""}]`)
	var all []struct {
		TrackingNumber string
		A              struct{ RawTrackingNumber string }
		RouterID       string `json:"routerId"`
		ID             string `json:"id"`
	}
	if err := json.Unmarshal([]byte(got), &all); err != nil {
		t.Fatal(err)
	}
	e := all[0]
	if !strings.HasPrefix(e.TrackingNumber, "redacted-") || e.A.RawTrackingNumber != e.TrackingNumber || e.RouterID == e.TrackingNumber || e.ID != "" {
		t.Errorf("%s: equal numbers must stay equal, others others", got)
	}
	other := webhook.Redactor{Key: []byte("other"), Fold: tracking.FoldNumber}.Redact(webhook.Capture{Sample: webhook.Sample{Request: webhook.Request{Body: []byte(`{"trackingNumber":"1z999A"}`)}}})
	if strings.Contains(string(other.Body), e.TrackingNumber) {
		t.Errorf("another key made the same of it: %s", other.Body)
	}
}

func TestRedactHeadersAndAddress(t *testing.T) {
	c := webhook.Capture{From: "192.0.2.1:9", Sample: webhook.Sample{Request: webhook.Request{
		Method: "POST", Path: "/hooks/0123456789abcdef/s3cret/x", RawQuery: "token=abc&s3cret&n=",
		Header: []webhook.Field{
			{Name: "authorization", Value: "Bearer t"},
			{Name: "X-Forwarded-For", Value: "192.0.2.1"},
			{Name: "X-Signature", Value: "9f86"},
			{Name: "X-Empty", Value: ""},
			{Name: "User-Agent", Value: "sender/1 s3cret"},
			{Name: "Content-Type", Value: "application/json"},
			{Name: "Content-Length", Value: "99"},
		}, Body: []byte(`{"a":"bcd"}`),
	}}}
	before, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	got := webhook.Redactor{Secrets: []string{"s3cret"}}.Redact(c)
	if after, err := json.Marshal(c); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the capture itself was changed: %s (%v)", after, err)
	}
	values := ""
	for _, f := range got.Header {
		values += f.Name + "=" + f.Value + ";"
	}
	want := "authorization=***;X-Forwarded-For=***;X-Signature=***;X-Empty=;User-Agent=***;Content-Type=application/json;Content-Length=11;"
	if values != want || got.Path != "/hooks/***/***/x" || got.RawQuery != "token=***&***&n=" || got.From != "" || !got.Redacted {
		t.Errorf("%s %s %s %q %v; want %s", values, got.Path, got.RawQuery, got.From, got.Redacted, want)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add([]byte(`[{"event":"x","data":{"trackingNumber":"1","n":[1,{"a":"b"}]}}]`), "b")
	f.Add([]byte(` { } `), "")
	f.Fuzz(func(t *testing.T, body []byte, secret string) {
		r := webhook.Redactor{Secrets: []string{secret}, Key: []byte("k")}
		got := r.Redact(webhook.Capture{Sample: webhook.Sample{Request: webhook.Request{Body: body}}}).Body
		if json.Valid(body) != json.Valid(got) {
			t.Errorf("%q became %q", body, got)
		}
		if len(webhook.Decode(body).Events) != len(webhook.Decode(got).Events) && json.Valid(body) {
			t.Errorf("%q has other events than %q", body, got)
		}
	})
}
