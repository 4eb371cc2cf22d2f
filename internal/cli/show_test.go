package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/sandbox"
	"github.com/waybill-cli/waybill/internal/sandbox/shapes"
)

// recorder keeps the body of the last answer.
type recorder struct {
	http.ResponseWriter
	body *bytes.Buffer
}

func (r recorder) Write(p []byte) (int, error) {
	r.body.Write(p)
	return r.ResponseWriter.Write(p)
}

// serveSandbox serves a sandbox and returns its URL and the last answer.
func serveSandbox(t *testing.T, c sandbox.Config) (url string, last func() []byte) {
	t.Helper()
	box, err := sandbox.New(c)
	if err != nil {
		t.Fatal(err)
	}
	var body *bytes.Buffer
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body = new(bytes.Buffer)
		box.ServeHTTP(recorder{w, body}, r)
	}))
	t.Cleanup(func() {
		srv.Close()
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv.URL, func() []byte { return body.Bytes() }
}

func TestShowTellsTheSameOfEveryShape(t *testing.T) {
	type shown struct {
		ReferID, TrackingNumber, State, StatusLabel, StatusTrack, LatestEvent, CarrierCode string

		Status      json.Number
		Checkpoints []struct{ EventType, EventCity, GMTTimestamp string }
		Others      []any
		Raw         json.RawMessage
	}
	var want shown
	for i, shape := range shapes.Names {
		url, last := serveSandbox(t, sandbox.Config{Shape: shapes.Named(shape)})
		env := []string{"WAYBILL_BASE_URL=" + url, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + filepath.Join(t.TempDir(), "s.db")}
		if code, _, stderr := run(t, env, "create", "--refer-id", "A1", "--tracking-number", "1Z999AA10123456784"); code != command.OK {
			t.Fatalf("create: %d %s", code, stderr)
		}
		code, stdout, stderr := run(t, env, "show", "A1", "-o", "json")
		var got shown
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != command.OK {
			t.Fatalf("%s: status %d, %v: %s%s", shape, code, err, stdout, stderr)
		}
		if len(got.Checkpoints) < 3 {
			t.Errorf("%s: %d checkpoints; want three or more", shape, len(got.Checkpoints))
		}
		for n := 1; n < len(got.Checkpoints); n++ {
			if got.Checkpoints[n-1].GMTTimestamp < got.Checkpoints[n].GMTTimestamp {
				t.Errorf("%s: checkpoint %d is newer than the one before", shape, n)
			}
		}
		var raw, served bytes.Buffer
		if err := json.Compact(&raw, got.Raw); err != nil {
			t.Fatal(err)
		}
		if err := json.Compact(&served, last()); err != nil {
			t.Fatal(err)
		}
		if raw.String() != served.String() {
			t.Errorf("%s: raw is not what was served:\n%s\n%s", shape, raw.String(), served.String())
		}
		got.Raw = nil
		for n := range got.Checkpoints { // the journey begins when it is created
			got.Checkpoints[n].GMTTimestamp = ""
		}
		if i == 0 {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s tells something else than nested (-nested +%s):\n%s", shape, shape, diff)
		}
	}
}

// What cannot be right in a timeline is marked, and nothing of it is hidden.
func TestShowMarksWhatCannotBeRightInATimeline(t *testing.T) {
	spoil := func(found any) any {
		one, _ := found.(map[string]any)
		if one["referId"] == "R1" {
			detail, _ := one["detail"].(map[string]any)
			cs, _ := detail["trackingEvents"].([]map[string]any)
			at, err := time.Parse(time.RFC3339, fmt.Sprint(cs[1]["GMTTimestamp"]))
			if err != nil {
				t.Error(err)
			}
			cs[1]["eventTimestamp"] = at.Add(26 * time.Hour).Format("2006-01-02T15:04:05")
			detail["trackingEvents"] = slices.Insert(cs, 2, cs[2])
		}
		return map[string]any{"data": one}
	}
	box, err := sandbox.New(sandbox.Config{Shape: spoil, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(box)
	defer srv.Close()
	env := []string{"WAYBILL_BASE_URL=" + srv.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + filepath.Join(t.TempDir(), "s.db")}
	for refer, number := range map[string]string{"R1": "1Z999AA10123456784", "R2": "1Z999AA10123456785"} {
		if code, _, stderr := run(t, env, "create", "--refer-id", refer, "--tracking-number", number); code != command.OK {
			t.Fatalf("create: %d %s", code, stderr)
		}
	}
	box.Advance(60 * 24 * time.Hour)
	_, marked, _ := run(t, env, "show", "R1")
	for _, want := range []string{
		`(?m)^Status: +DELIVERED \(1\)`, `(?m)NOTE$`, `(?m)Out for delivery\t.*\timpossible offset$`, `(?m)Arrived at facility\t.*\trepeated$`,
		`(?m)^Note: +20..-.*Z, Out for delivery, Seattle, WA, 98108: offset \+26:00 impossible$`,
		`(?m)^Note: +20..-.*Z, Arrived at facility, .*: repeated$`,
	} {
		if !regexp.MustCompile(want).MatchString(marked) {
			t.Errorf("no %s in\n%s", want, marked)
		}
	}
	type anomaly struct {
		Kind       string
		Checkpoint int
	}
	type shown struct{ Anomalies []anomaly }
	want := []anomaly{{"impossible_offset", 1}, {"repeated", 3}}
	var one shown
	var both []shown // many at once have them too, and other trackings have nothing of it
	_, alone, _ := run(t, env, "show", "R1", "-o", "json")
	_, beside, _ := run(t, env, "show", "R1", "R2", "-o", "json")
	if err := errors.Join(json.Unmarshal([]byte(alone), &one), json.Unmarshal([]byte(beside), &both)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]shown{{want}, {want}, {}}, append([]shown{one}, both...)); diff != "" {
		t.Error(diff)
	}
	_, whole, _ := run(t, env, "show", "R2")
	if _, raw, _ := run(t, env, "show", "R2", "-o", "json"); strings.Contains(raw, "anomalies") || regexp.MustCompile("NOTE|Note").MatchString(whole) {
		t.Errorf("a whole timeline has marks:\n%s\n%s", whole, raw)
	}
}

func TestShowNeverTakesAnotherNumberForTheOneAskedFor(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":{"trackingNumber":"OTHER","status":1,"statusLabel":"DELIVERED"}}`)
	}))
	defer srv.Close()
	env := []string{"WAYBILL_BASE_URL=" + srv.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + filepath.Join(t.TempDir(), "s.db")}
	code, stdout, _ := run(t, env, "show", "MINE", "--by", "tracking-number", "-o", "json")
	var got struct{ Phase, StatusLabel string }
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if code != command.Unknown || got.Phase != "undecided" || got.StatusLabel != "" {
		t.Errorf("status %d, %+v; want 7 and undecided", code, got)
	}
}

// A response about another order, or about none of the numbers of this one, is no answer: it
// is named, not recorded, and the output keeps the REF asked for.
func TestShowNeverTakesAnotherOrderForTheOneAskedFor(t *testing.T) {
	const delivered = `"status":1,"statusLabel":"DELIVERED"`
	for name, body := range map[string]string{
		"another order":             `{"data":{"referId":"B","trackingNumber":"N1-A",` + delivered + `}}`,
		"another order, processing": `{"referId":"B","message":"Processing"}`,
		"another number":            `{"data":{"trackingNumber":"N1-B",` + delivered + `}}`,
		"its own with the number":   `{"data":{"referId":"A","trackingNumber":"N1-B",` + delivered + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					fmt.Fprint(w, `{"success":true}`)
					return
				}
				fmt.Fprint(w, body)
			}))
			defer srv.Close()
			env := []string{"WAYBILL_BASE_URL=" + srv.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + filepath.Join(t.TempDir(), "s.db")}
			createOne(t, env, "A")
			code, stdout, stderr := run(t, env, "show", "A", "-o", "json")
			var got struct{ Ref, ReferID, Phase, StatusLabel, Message string }
			if err := json.Unmarshal([]byte(stdout), &got); err != nil {
				t.Fatalf("%v: %s%s", err, stdout, stderr)
			}
			if code != command.Unknown || got.Ref != "A" || got.ReferID != "A" || got.Phase != "undecided" || got.StatusLabel != "" || !strings.Contains(got.Message, `"B"`) && !strings.Contains(got.Message, `"N1-B"`) {
				t.Errorf("status %d, %+v; want 7, undecided, and what the response names", code, got)
			}
			if code, stdout, _ := run(t, env, "wait", "A", "--timeout", "2s", "-o", "csv"); code != command.Unknown || strings.Contains(stdout, "DELIVERED") {
				t.Errorf("wait: status %d, %s; want 7", code, stdout)
			}
			if _, stdout, _ = run(t, env, "list", "-o", "csv"); strings.Contains(stdout, "DELIVERED") || strings.Count(stdout, "\n") != 2 {
				t.Errorf("recorded:\n%s", stdout)
			}
		})
	}
}
