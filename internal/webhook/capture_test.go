package webhook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/webhook"
)

func TestCaptureIsReadAsItWasWritten(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 890e6, time.UTC)
	for _, r := range []webhook.Request{
		{Method: "POST", Path: "/", Body: []byte{}},
		{Method: "PUT", Path: "/p%20/é", RawQuery: "a=<b>&c=\u2028", Header: []webhook.Field{{Name: "b", Value: "1"}, {Name: "A", Value: ""}, {Name: "B", Value: "\ufffd"}}, Body: []byte("{\"a\": 1.0}\r\n\t\u202e \U000e0001 \ufffd \\ud800")},
		{Method: "POST", Path: "/\xff", RawQuery: "\xfe", Header: []webhook.Field{{Name: "X", Value: "M\xfcller"}}, Body: []byte("\x00\xff")},
		{Method: "POST", Path: "/", Body: bytes.Repeat([]byte{1, 2, 0x1b}, 1000)},
	} {
		want := webhook.Capture{Sample: webhook.Sample{Request: r, At: at}, From: "[::1]:7", ID: "refused:12", Delivery: 12, Verified: "yes"}
		line, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got webhook.Capture
		if err := json.Unmarshal(line, &got); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if len(want.Header) == 0 {
			got.Header = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", line, diff)
		}
		if len(line) > 2*len(r.Body)+1000 {
			t.Errorf("%d bytes for a body of %d", len(line), len(r.Body))
		}
	}
}

// What would be mended silently is refused: other bytes than were sent.
func TestCaptureRefusesWhatIsNoBytes(t *testing.T) {
	for text, why := range map[string]string{
		`{"body":"\ud800"}`:                  "surrogate",
		`{"body":"\\\udc00x"}`:               "surrogate",
		`{"body":"\ud83dx"}`:                 "surrogate",
		"{\"body\":\"\xff\"}":                "UTF-8",
		`{"body":"x","bodyBase64":"eA=="}`:   "both",
		`{"bodyBase64":"*"}`:                 "base64",
		`{"body":"x","receivedAt":"monday"}`: "time",
		`null`:                               "neither",
		`[]`:                                 "array",
	} {
		var c webhook.Capture
		if err := json.Unmarshal([]byte(text), &c); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v; want %q", text, err, why)
		}
	}
	for text, want := range map[string]string{`{"body":"\ud83d\ude00 \\ud800 \ufffd"}`: "😀 \\ud800 \ufffd", `{"body":"\\\\u00e9"}`: `\\u00e9`} {
		var c webhook.Capture
		if err := json.Unmarshal([]byte(text), &c); err != nil || string(c.Body) != want {
			t.Errorf("%s: %q, %v; want %q", text, c.Body, err, want)
		}
	}
}

// The captures of this repository are in the one form.
func TestCapturesOfTheRepository(t *testing.T) {
	files, err := filepath.Glob("../../testdata/webhooks/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all, err := webhook.ParseCaptures(data)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for i, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
			var c, again webhook.Capture
			if err := json.Unmarshal(line, &c); err != nil {
				t.Errorf("%s:%d: %v", file, i+1, err)
				continue
			}
			if diff := cmp.Diff(all[i], c.Sample); diff != "" {
				t.Errorf("%s:%d: as a line (-file +line)\n%s", file, i+1, diff)
			}
			out, err := json.Marshal(c)
			if err != nil || json.Unmarshal(out, &again) != nil || cmp.Diff(c, again) != "" {
				t.Errorf("%s:%d: written as %s (%v)", file, i+1, out, err)
			}
		}
	}
}

func FuzzCapture(f *testing.F) {
	f.Add([]byte(`{"method":"PUT","path":"/p","headers":{"A":["1","2"]},"body":"\ud83d\ude00"}`), []byte("body"), "v")
	f.Add([]byte(`{"headers":[{"name":"a","value":"b"}],"bodyBase64":"/w=="}`), []byte{0xff, 0}, "\xff")
	f.Fuzz(func(t *testing.T, line, body []byte, value string) {
		var c, again webhook.Capture
		if json.Unmarshal(line, &c) == nil {
			out, err := json.Marshal(c)
			if err != nil || json.Unmarshal(out, &again) != nil || fmt.Sprint(c) != fmt.Sprint(again) {
				t.Errorf("%q: written as %q (%v)", line, out, err)
			}
		}
		c = webhook.Capture{Sample: webhook.Sample{Request: webhook.Request{Path: "/" + value, RawQuery: value, Header: []webhook.Field{{Name: "X", Value: value}}, Body: body}}}
		out, err := json.Marshal(c)
		if err != nil || json.Unmarshal(out, &again) != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if !bytes.Equal(again.Body, body) || again.Header[0].Value != value || again.Path != "/"+value || again.RawQuery != value {
			t.Errorf("%q became %+v", out, again)
		}
	})
}
