package sandbox_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/waybill-cli/waybill/internal/sandbox"
	"github.com/waybill-cli/waybill/internal/sandbox/shapes"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// box is a sandbox behind a server.
type box struct {
	*sandbox.Server
	t   *testing.T
	url string
}

func start(t *testing.T, c sandbox.Config) box {
	t.Helper()
	s, err := sandbox.New(c)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		srv.CloseClientConnections()
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return box{s, t, srv.URL}
}

// do sends one request and returns status 0 if no whole answer came.
func (b box) do(method, path, body string) (int, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "k1")
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(raw)
}

func data(pairs ...string) string {
	var items []tracking.Item
	for _, p := range pairs {
		refer, number, _ := strings.Cut(p, " ")
		items = append(items, tracking.Item{ReferID: refer, Number: number})
	}
	return string(tracking.AppendBatch(nil, items))
}

const (
	v1     = "/api/v1/routers/create"
	v2     = "/api/v2/trackings/create"
	detail = "/api/v1/routers/detail"
)

func TestEveryShapeTellsTheSame(t *testing.T) {
	var want tracking.Tracking
	for i, shape := range shapes.Names {
		b := start(t, sandbox.Config{Shape: shapes.Named(shape), Seed: 3})
		b.do(http.MethodPost, v2, data("A 1Z999AA10123456784"))
		_, raw := b.do(http.MethodGet, detail+"?referId=A", "")
		a := tracking.ReadBody([]byte(raw)).Answer()
		if len(a.Trackings) != 1 {
			t.Fatalf("%s: %d trackings in %s", shape, len(a.Trackings), raw)
		}
		got := a.Trackings[0]
		if len(got.Checkpoints) < 3 {
			t.Errorf("%s: %d checkpoints; want three or more", shape, len(got.Checkpoints))
		}
		for _, c := range got.Checkpoints {
			local, errL := time.Parse("2006-01-02T15:04:05", c.Local)
			utc, errU := time.Parse(time.RFC3339, c.UTC)
			if errL != nil || errU != nil || local.Sub(utc).Abs() > 14*time.Hour || local.Sub(utc)%time.Hour != 0 {
				t.Errorf("%s: local %q and UTC %q do not agree", shape, c.Local, c.UTC)
			}
			if c.City == "" || c.State == "" || c.ZIP == "" || c.Event == "" {
				t.Errorf("%s: checkpoint without a place: %+v", shape, c)
			}
		}
		facts := tracking.Tracking{
			Number: got.Number, ReferID: got.ReferID, CarrierCode: got.CarrierCode,
			Report: tracking.Report{
				RouterID: got.RouterID, Status: got.Status, StatusLabel: got.StatusLabel,
				StatusTrack: got.StatusTrack, LatestEvent: got.LatestEvent,
			},
			StatusSummary: got.StatusSummary,
		}
		if i == 0 {
			want = facts
		}
		if fmt.Sprint(facts) != fmt.Sprint(want) || facts.CarrierCode != "ups" {
			t.Errorf("%s tells %+v; nested tells %+v", shape, facts, want)
		}
	}
}

func TestFaultsStoreWhatTheySay(t *testing.T) {
	tests := []struct {
		name   string
		stored int64
		status int // 0: no whole answer
	}{
		{sandbox.FaultError500, 0, 500},
		{sandbox.FaultError502, 1, 502},
		{sandbox.FaultCutBefore, 0, 0},
		{sandbox.FaultCutAfter, 1, 0},
		{sandbox.FaultTruncate, 1, 0},
		{sandbox.FaultStall, 1, 0},
		{sandbox.FaultRedirect, 0, 307},
		{sandbox.FaultHTML, 0, 200},
		{sandbox.FaultEnvelope, 0, 200},
		{sandbox.FaultNotFound, 0, 404},
		{sandbox.FaultLate, 0, 0},
		{sandbox.FaultFalseOK, 0, 200},
		{sandbox.FaultAbsent, 1, 200}, // queries alone meet it
		{sandbox.FaultRefused, 1, 400},
		{sandbox.FaultThrottled, 1, 429},
	}
	if len(tests) != len(sandbox.Faults()) {
		t.Errorf("%d faults tested of %d", len(tests), len(sandbox.Faults()))
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, sandbox.Config{})
			if status, raw := b.do(http.MethodPost, "/_sandbox/faults", fmt.Sprintf(`{"name":%q,"count":1,"operation":"createV2"}`, tt.name)); status != 200 {
				t.Fatalf("faults answered %d %s", status, raw)
			}
			if status, _ := b.do(http.MethodPost, v1, data("Z 9")); status != 200 {
				t.Errorf("another operation met the fault: %d", status)
			}
			status, raw := b.do(http.MethodPost, v2, data("A 1"))
			if status != tt.status {
				t.Errorf("status %d (%s); want %d", status, raw, tt.status)
			}
			if got := b.Stats().Distinct - 1; got != tt.stored {
				t.Errorf("%d stored; want %d", got, tt.stored)
			}
			if status, _ := b.do(http.MethodPost, v2, data("B 2")); status != 200 {
				t.Errorf("the fault came twice: %d", status)
			}
		})
	}
}

// Queries flap by the seed and how often each was asked, in whatever order.
func TestAbsentFaultFollowsTheSeed(t *testing.T) {
	answers := func(seed uint64, order ...string) string {
		b := start(t, sandbox.Config{Seed: seed, Faults: map[string]float64{sandbox.FaultAbsent: 0.5}})
		b.do(http.MethodPost, v2, data("A 1", "B 2"))
		got := map[string]string{}
		for range 20 {
			for _, ref := range order {
				status, _ := b.do(http.MethodGet, detail+"?referId="+ref, "")
				got[ref] += fmt.Sprint(status, " ")
			}
		}
		return got["A"] + got["B"]
	}
	one := answers(7, "A", "B")
	if one != answers(7, "B", "A") || one == answers(8, "A", "B") {
		t.Errorf("answers do not follow from the seed alone: %s", one)
	}
	if n := strings.Count(one, "404"); n < 10 || n > 30 {
		t.Errorf("%d of 40 answers are absences; want about half", n)
	}
}

func TestLateStoresWhenTheSandboxCloses(t *testing.T) {
	s, err := sandbox.New(sandbox.Config{Faults: map[string]float64{sandbox.FaultLate: 1}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	b := box{s, t, srv.URL}
	b.do(http.MethodPost, v2, data("A 1"))
	srv.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := s.Stats().Distinct; got != 1 {
		t.Errorf("%d stored after the delay; want 1", got)
	}
}

func TestCreateIsCheckedAndBounded(t *testing.T) {
	many := func(n int) string {
		var pairs []string
		for i := range n {
			pairs = append(pairs, fmt.Sprintf("R%d N%d", i, i))
		}
		return data(pairs...)
	}
	tests := []struct {
		name, path, body string
		status           int
		stored           int64
	}{
		{"40 by v1", v1, many(40), 200, 40},
		{"41 by v1", v1, many(41), 422, 0},
		{"1000 by v2", v2, many(1000), 200, 1000},
		{"1001 by v2", v2, many(1001), 422, 0},
		{"none", v2, `{"data":[]}`, 422, 0},
		{"no data", v2, `{}`, 422, 0},
		{"no JSON", v2, `data`, 400, 0},
		{"wrong type", v2, `{"data":[{"referId":1,"rawTrackingNumber":"2"}]}`, 400, 0},
		{"no number", v2, `{"data":[{"referId":"1"}]}`, 422, 0},
		{"unknown field", v2, `{"data":[{"referId":"1","rawTrackingNumber":"2","x":3}]}`, 200, 1},
		{"rejected row", v2, data("A 1", "BAD 2"), 422, 0},
		{"too large", v2, data("A " + strings.Repeat("9", 1<<17)), 413, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, sandbox.Config{Reject: "^BAD$", MaxBody: 1 << 17})
			status, raw := b.do(http.MethodPost, tt.path, tt.body)
			if status != tt.status || b.Stats().Distinct != tt.stored {
				t.Errorf("status %d, %d stored (%.200s); want %d and %d", status, b.Stats().Distinct, raw, tt.status, tt.stored)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	t.Run("items", func(t *testing.T) {
		b := start(t, sandbox.Config{CreateShape: "items", Reject: "^BAD$"})
		status, raw := b.do(http.MethodPost, v2, data("A 1", "BAD 2"))
		refused, _ := tracking.ReadBody([]byte(raw)).Refusals([]tracking.Item{{ReferID: "A", Number: "1"}, {ReferID: "BAD", Number: "2"}})
		if status != 200 || len(refused) != 1 || refused[0].Key.ReferID != "BAD" || b.Stats().Distinct != 1 {
			t.Errorf("status %d, refused %v, %d stored: %s", status, refused, b.Stats().Distinct, raw)
		}
	})
	for setting, want := range map[string]string{"404": `404 {"message":"not found"}`, "message": `200 {"message":"Tracking not found"}`, "empty": `200 {}`} {
		t.Run("absent "+setting, func(t *testing.T) {
			b := start(t, sandbox.Config{Absent: setting})
			status, raw := b.do(http.MethodGet, detail+"?referId=X", "")
			if got := fmt.Sprint(status, " ", raw); got != want {
				t.Errorf("%s; want %s", got, want)
			}
		})
	}
	for setting, want := range map[string]int{"num": 200, sandbox.Ignored: 400} {
		t.Run("number-param "+setting, func(t *testing.T) {
			b := start(t, sandbox.Config{NumberParam: setting})
			b.do(http.MethodPost, v1, data("A 77"))
			if status, raw := b.do(http.MethodGet, detail+"?num=77", ""); status != want {
				t.Errorf("status %d (%s); want %d", status, raw, want)
			}
		})
	}
	t.Run("key", func(t *testing.T) {
		b := start(t, sandbox.Config{Key: "other"})
		if status, _ := b.do(http.MethodGet, detail+"?referId=A", ""); status != 401 {
			t.Errorf("status %d; want 401", status)
		}
	})
	t.Run("processing", func(t *testing.T) {
		b := start(t, sandbox.Config{Processing: time.Hour})
		b.do(http.MethodPost, v2, data("A 1"))
		b.do(http.MethodPost, v1, data("B 2"))
		_, a := b.do(http.MethodGet, detail+"?referId=A", "")
		_, v := b.do(http.MethodGet, detail+"?referId=B", "")
		if !tracking.ReadBody([]byte(a)).Answer().Processing || tracking.ReadBody([]byte(v)).Answer().Processing {
			t.Errorf("by v2: %s; by v1: %.100s", a, v)
		}
	})
}

func TestWrongSettingsAreRefusedByName(t *testing.T) {
	for want, c := range map[string]sandbox.Config{
		"reject":      {Reject: "("},
		"fault":       {Faults: map[string]float64{"nope": 1}},
		"webhook-url": {WebhookURL: "https://example.com/"},
	} {
		if _, err := sandbox.New(c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v; want an error about %s", c, err, want)
		}
	}
}

func TestShipmentsTravelAndAreToldOnce(t *testing.T) {
	preset, ok := webhook.PresetByName("hmac-body-hex")
	if !ok {
		t.Fatal("no preset")
	}
	verifier, err := webhook.NewVerifier(preset.Scheme, []webhook.Secret{{Name: "s", Value: []byte("secret")}})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	kinds := map[string]int{}
	forged, tries := 0, 0
	delivered := make(chan struct{}, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if tries++; tries == 1 {
			w.WriteHeader(http.StatusInternalServerError) // the first is sent again
			return
		}
		var fields []webhook.Field
		for name, values := range r.Header {
			for _, v := range values {
				fields = append(fields, webhook.Field{Name: name, Value: v})
			}
		}
		if !verifier.Verify(webhook.Request{Method: r.Method, Path: r.URL.EscapedPath(), Header: fields, Body: body}, time.Now()).OK {
			forged++
			w.WriteHeader(http.StatusUnauthorized)
			delivered <- struct{}{}
			return
		}
		for _, e := range webhook.Decode(body).Rows {
			kinds[e.Kind+" "+e.TrackingNumber]++
			if e.Kind == "router.delivered" {
				if e.Status != "1" || e.StatusTrack != "delivered" || e.EventID == "" {
					t.Errorf("event %s", e.Raw)
				}
				delivered <- struct{}{}
			}
		}
	}))
	defer hook.Close()
	b := start(t, sandbox.Config{WebhookURL: hook.URL, WebhookSecret: "secret", WebhookScheme: preset.Scheme})
	b.do(http.MethodPost, v2, data("A 1Z1", "B 2222222222"))
	b.Advance(60 * 24 * time.Hour)
	for range 2 {
		<-delivered
	}
	if err := b.Emit(sandbox.Emission{ReferID: "A", Event: "router.delivered", Forge: true}); err != nil {
		t.Fatal(err)
	}
	<-delivered
	mu.Lock()
	defer mu.Unlock()
	if kinds["router.delivered 1Z1"] != 1 || kinds["router.delivered 2222222222"] != 1 || forged != 1 {
		t.Errorf("events %v, forged %d; want one delivered of each and one forged", kinds, forged)
	}
	_, raw := b.do(http.MethodGet, detail+"?referId=A", "")
	if tr := tracking.ReadBody([]byte(raw)).Answer().Trackings[0]; tr.StatusLabel != "DELIVERED" || tr.Status != "1" {
		t.Errorf("after sixty days: %+v", tr)
	}
}

func TestStatsAndReset(t *testing.T) {
	b := start(t, sandbox.Config{})
	b.do(http.MethodPost, v2, data("A 1", "B 2"))
	b.do(http.MethodPost, v2, data("A 1"))
	b.do(http.MethodGet, detail+"?referId="+url.QueryEscape("A"), "")
	_, raw := b.do(http.MethodGet, "/_sandbox/stats", "")
	var s sandbox.Stats
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	want := sandbox.Stats{Requests: sandbox.Requests{CreateV2: 2, Detail: 1}, Created: 3, Distinct: 2, Rows: []sandbox.Row{{ReferID: "A", Number: "1", Created: 2}, {ReferID: "B", Number: "2", Created: 1}}}
	if fmt.Sprint(s) != fmt.Sprint(want) {
		t.Errorf("stats %+v; want %+v", s, want)
	}
	if _, raw := b.do(http.MethodGet, "/_sandbox/stats?rows=0", ""); strings.Contains(raw, "rows") {
		t.Errorf("rows=0 has rows: %s", raw)
	}
	for path, body := range map[string]string{"advance": `{"by":"x"}`, "faults": `{"name":"x"}`, "emit": `{}`, "reset": `{"nope":1}`} {
		if status, _ := b.do(http.MethodPost, "/_sandbox/"+path, body); status != 400 {
			t.Errorf("%s %s: status %d; want 400", path, body, status)
		}
	}
	b.do(http.MethodPost, "/_sandbox/reset", "")
	if s := b.Stats(); s.Distinct != 0 || s.Requests != (sandbox.Requests{}) {
		t.Errorf("after reset: %+v", s)
	}
}

func TestWebhookTroubleIsToldOnce(t *testing.T) {
	var tries atomic.Int64
	taken := make(chan struct{}, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if tries.Add(1) <= 2 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		taken <- struct{}{}
	}))
	defer hook.Close()
	told := make(chan error, 8)
	b := start(t, sandbox.Config{WebhookURL: hook.URL, WebhookTrouble: func(err error) { told <- err }})
	b.do(http.MethodPost, v2, data("A 1Z1"))
	b.Advance(60 * 24 * time.Hour)
	<-taken
	if err := <-told; !strings.Contains(err.Error(), "502") {
		t.Errorf("told %v; want the answer 502", err)
	}
	if len(told) > 0 {
		t.Errorf("told again: %v", <-told)
	}
}

// A page of another site gets nothing, whether it names itself as the origin or its name
// leads to this computer.
func TestPagesOfOtherSitesGetNothing(t *testing.T) {
	b := start(t, sandbox.Config{})
	own := strings.TrimPrefix(b.url, "http://")
	for _, tt := range []struct {
		host, origin string
		want         int
	}{
		{own, "", http.StatusNotFound},
		{own, "http://" + own, http.StatusNotFound},
		{own, "https://evil.example", http.StatusForbidden},
		{own, "null", http.StatusForbidden},
		{"evil.example:80", "http://evil.example:80", http.StatusForbidden},
		{"evil.example", "", http.StatusForbidden},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/nothing", strings.NewReader("[]"))
		if err != nil {
			t.Fatal(err)
		}
		if req.Host = tt.host; tt.origin != "" {
			req.Header.Set("Origin", tt.origin)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != tt.want {
			t.Errorf("Host %q, Origin %q: %d, %v; want %d", tt.host, tt.origin, res.StatusCode, err, tt.want)
		}
	}
}
