package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func items(n int) []tracking.Item {
	list := make([]tracking.Item, n)
	for i := range list {
		list[i] = tracking.Item{ReferID: fmt.Sprintf("R%d", i), Number: fmt.Sprintf("N%d", i)}
	}
	return list
}

func client(t *testing.T, url string, change func(*api.Options)) *api.Client {
	t.Helper()
	o := api.Options{BaseURL: url, Key: "k1", UserAgent: "waybill/test", Workers: 2, NumberParam: "trackingNumber", Unprocessed: []int{429}, Timeout: 5 * time.Second}
	if change != nil {
		change(&o)
	}
	c, err := api.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// serveCounting is serve that also counts the connections made to it.
func serveCounting(t *testing.T, h http.HandlerFunc) (string, *atomic.Int64) {
	t.Helper()
	var made atomic.Int64
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, &made
}

// cut ends the connection after raw.
func cut(t *testing.T, w http.ResponseWriter, raw string) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = buf.WriteString(raw)
	_ = buf.Flush()
	_ = conn.Close()
}

func TestCreateReadsEveryAnswer(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	raw := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { cut(t, w, s) }
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    tracking.Outcome
	}{
		{"empty 200", answer(200, ""), tracking.OutcomeAccepted},
		{"204", answer(204, ""), tracking.OutcomeAccepted},
		{"JSON 200", answer(200, `{"message":"ok","error":null}`), tracking.OutcomeAccepted},
		{"unframed JSON", raw("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"a\":1}"), tracking.OutcomeAccepted},
		{"unframed empty", raw("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"), tracking.OutcomeAccepted},
		{"unframed half", raw("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"a\":"), tracking.OutcomeUnknown},
		{"HTML 200", answer(200, "<html>"), tracking.OutcomeNotCredible},
		{"error envelope", answer(200, `{"code":401,"message":"no"}`), tracking.OutcomeNotCredible},
		{"success false", answer(200, `{"success":false}`), tracking.OutcomeNotCredible},
		{"400", answer(400, ""), tracking.OutcomeRows},
		{"409", answer(409, ""), tracking.OutcomeRows},
		{"422", answer(422, ""), tracking.OutcomeRows},
		{"401", answer(401, ""), tracking.OutcomeUnauthorized},
		{"403", answer(403, ""), tracking.OutcomeUnauthorized},
		{"402", answer(402, ""), tracking.OutcomeRefused},
		{"404", answer(404, ""), tracking.OutcomeRefused},
		{"405", answer(405, ""), tracking.OutcomeRefused},
		{"413", answer(413, ""), tracking.OutcomeTooLarge},
		{"429", answer(429, ""), tracking.OutcomeThrottled},
		{"408", answer(408, ""), tracking.OutcomeUnknown},
		{"425", answer(425, ""), tracking.OutcomeUnknown},
		{"500", answer(500, ""), tracking.OutcomeUnknown},
		{"503", answer(503, ""), tracking.OutcomeOverloaded},
		{"302", answer(302, ""), tracking.OutcomeNotCredible},
		{"cut before the status", raw(""), tracking.OutcomeUnknown},
		{"cut in the status", raw("HTTP/1.1 20"), tracking.OutcomeUnknown},
		{"truncated", raw("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}"), tracking.OutcomeUnknown},
		{"chunks without end", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"), tracking.OutcomeUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var calls atomic.Int32
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				tt.handler(w, r)
			})
			r := client(t, url, nil).CreateAsync(t.Context(), items(3))
			if r.Outcome != tt.want {
				t.Errorf("outcome %v (%v); want %v", r.Outcome, r.Err, tt.want)
			}
			if (r.Err == nil) != (tt.want == tracking.OutcomeAccepted) {
				t.Errorf("err = %v", r.Err)
			}
			if n := calls.Load(); n != 1 {
				t.Errorf("%d requests; want 1", n)
			}
		})
	}
}

func TestCreateThatFindsNobodyIsNotSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	r := client(t, "http://"+addr, nil).CreateAsync(t.Context(), items(1))
	var unreachable *api.ConnectError
	if r.Outcome != tracking.OutcomeNotSent || !errors.As(r.Err, &unreachable) {
		t.Errorf("outcome %v, err %v; want not sent and a ConnectError", r.Outcome, r.Err)
	}
	if text := r.Err.Error(); strings.Count(text, addr) > 1 || strings.Contains(text, "dial") {
		t.Errorf("%q names the address twice, or the system call", text)
	}
}

// A process can stand still between any two writes. What is not allowed any more when it
// goes on does not leave, and a connection is as good as new for the next request.
func TestCreateStopsWhenItIsNotAllowedAnyMore(t *testing.T) {
	var whole atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			whole.Add(1)
		}
		_, _ = io.WriteString(w, "{}")
	})
	c := client(t, url, nil)
	for writes, want := range []tracking.Outcome{tracking.OutcomeNotSent, tracking.OutcomeUnknown} {
		forbidden := errors.New("not allowed")
		asked := 0
		ctx := tracking.WithAllowed(t.Context(), func() error {
			if asked++; asked > writes {
				return forbidden
			}
			return nil
		})
		before := whole.Load()
		if r := c.CreateAsync(ctx, items(1000)); r.Outcome != want || !errors.Is(r.Err, forbidden) || whole.Load() != before {
			t.Errorf("allowed %d writes: %v (%v), %d whole requests; want %v and none", writes, r.Outcome, r.Err, whole.Load()-before, want)
		}
		if r := c.CreateAsync(t.Context(), items(1)); r.Outcome != tracking.OutcomeAccepted {
			t.Errorf("the next one: %v (%v)", r.Outcome, r.Err)
		}
	}
}

func TestCreateThatStallsIsUnknown(t *testing.T) {
	release := make(chan struct{})
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
	})
	defer close(release)
	r := client(t, url, func(o *api.Options) { o.Timeout = 50 * time.Millisecond }).CreateAsync(t.Context(), items(1))
	if r.Outcome != tracking.OutcomeUnknown || !strings.Contains(r.Reason(), "--request-timeout") {
		t.Errorf("outcome %v, reason %q; want unknown, naming --request-timeout", r.Outcome, r.Reason())
	}
}

func TestCreateAcceptedSettingDecides(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"code":1000,"result":{"state":"queued"}}`)
	})
	for equals, want := range map[string]tracking.Outcome{`"queued"`: tracking.OutcomeAccepted, `"lost"`: tracking.OutcomeNotCredible} {
		c := client(t, url, func(o *api.Options) { o.Accepted = []tracking.Match{{Path: "/result/state", Equals: equals}} })
		if r := c.CreateAsync(t.Context(), items(1)); r.Outcome != want {
			t.Errorf("with %q: %v (%v); want %v", equals, r.Outcome, r.Err, want)
		}
	}
}

func TestRequestsAreWhatTheInterfaceAsksFor(t *testing.T) {
	var got *http.Request
	var body string
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
	})
	c := client(t, url+"/base", nil)
	c.CreateSync(t.Context(), items(1))
	if got.Method != http.MethodPost || got.URL.Path != "/base/api/v1/routers/create" {
		t.Errorf("v1 create went to %s %s", got.Method, got.URL.Path)
	}
	if body != `{"data":[{"referId":"R0","rawTrackingNumber":"N0"}]}` {
		t.Errorf("body %s", body)
	}
	for name, want := range map[string]string{"Authorization": "k1", "Content-Type": "application/json", "Accept": "application/json", "User-Agent": "waybill/test", "Idempotency-Key": ""} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s: %q; want %q", name, v, want)
		}
	}
	_, _ = c.Detail(t.Context(), tracking.Query{ReferID: "a b&c"})
	if got.URL.Path != "/base/api/v1/routers/detail" || got.URL.Query().Get("referId") != "a b&c" {
		t.Errorf("query went to %s", got.URL)
	}
	_, _ = c.Detail(t.Context(), tracking.Query{Number: "N1"})
	if got.URL.Query().Get("trackingNumber") != "N1" || got.URL.Query().Has("referId") {
		t.Errorf("query by number went to %s", got.URL)
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	var reached atomic.Int32
	target := serve(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, status) })
		r := client(t, url, nil).CreateAsync(t.Context(), items(1))
		if r.Outcome != tracking.OutcomeNotCredible || !strings.Contains(r.Reason(), target) {
			t.Errorf("%d: outcome %v, reason %q; want not credible, naming the target", status, r.Outcome, r.Reason())
		}
		var refused *api.StatusError
		if _, err := client(t, url, nil).Detail(t.Context(), tracking.Query{ReferID: "A"}); !errors.As(err, &refused) {
			t.Errorf("%d: query: %v; want a StatusError", status, err)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests reached the target", n)
	}
}

func TestDetail(t *testing.T) {
	type check func(error) bool
	is := func(target error) check { return func(err error) bool { return errors.Is(err, target) } }
	as := func(status int) check {
		return func(err error) bool {
			var e *api.StatusError
			return errors.As(err, &e) && e.Status == status
		}
	}
	unbelievable := func(err error) bool {
		var e *api.AnswerError
		return errors.As(err, &e)
	}
	tests := []struct {
		name   string
		status int
		body   string
		ok     check
	}{
		{"found", 200, `{"data":{"trackingNumber":"N","statusLabel":"DELIVERED"}}`, is(nil)},
		{"processing", 200, `{"message":"Processing"}`, is(tracking.ErrProcessing)},
		{"processing, with status 404", 404, `{"message":"Processing"}`, is(tracking.ErrProcessing)},
		{"processing, with status 400", 400, `[{"message":"Processing"}]`, is(tracking.ErrProcessing)},
		{"processing, with a refused key", 401, `{"message":"Processing"}`, is(tracking.ErrUnauthorized)},
		{"404", 404, `<html>`, is(tracking.ErrAbsent)},
		{"configured message", 200, `{"message":"No data"}`, is(tracking.ErrAbsent)},
		{"configured value", 200, `{"data":null,"found":false}`, is(tracking.ErrAbsent)},
		{"other message", 200, `{"message":"hm"}`, is(tracking.ErrUndecided)},
		{"empty object", 200, `{}`, is(tracking.ErrUndecided)},
		{"HTML", 200, `<html>`, unbelievable},
		{"error envelope", 200, `{"code":401,"message":"bad key"}`, unbelievable},
		{"401", 401, `{"message":"bad key"}`, is(tracking.ErrUnauthorized)},
		{"500", 500, ``, as(500)},
		{"299 is an answer", 299, `{"data":{"trackingNumber":"N","statusLabel":"DELIVERED"}}`, is(nil)},
		{"300 is none", 300, `{"data":{"trackingNumber":"N","statusLabel":"DELIVERED"}}`, as(300)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			c := client(t, url, func(o *api.Options) {
				o.Absent = []tracking.Absent{{Status: 200, Message: "No data"}, {Match: tracking.Match{Path: "/found", Equals: "false"}}}
			})
			a, err := c.Detail(t.Context(), tracking.Query{ReferID: "A"})
			if !tt.ok(err) {
				t.Errorf("err = %v", err)
			}
			if string(a.Raw) != tt.body {
				t.Errorf("raw %q; want %q", a.Raw, tt.body)
			}
		})
	}
}

func TestOneConnectionForManyRequests(t *testing.T) {
	url, made := serveCounting(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{}`)
	})
	c := client(t, url, nil)
	for range 20 {
		if r := c.CreateAsync(t.Context(), items(2)); r.Outcome != tracking.OutcomeAccepted {
			t.Fatal(r.Err)
		}
	}
	if n := made.Load(); n != 1 {
		t.Errorf("%d connections; want 1", n)
	}
}

// Whatever the key looks like, it changes no verdict, and what is kept of an answer has
// the form of the answer.
func TestKeyInAnAnswerChangesNoVerdict(t *testing.T) {
	for _, tt := range []struct{ key, body, kept string }{
		{"12345678", `{"batchId":12345678,"echo":"key 12345678"}`, `{"batchId":"***","echo":"key ***"}`},
		{"0041abcd", `{"echo":"x\u0041abcd"}`, `{"echo":"***"}`},
		{"12345678", `<12345678>`, `<***>`},
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tt.body) })
		c := client(t, url, func(o *api.Options) { o.Key = tt.key })
		want := tracking.OutcomeAccepted
		if tt.body[0] == '<' {
			want = tracking.OutcomeNotCredible
		}
		if r := c.CreateAsync(t.Context(), items(1)); r.Outcome != want || string(r.Answer) != tt.kept {
			t.Errorf("%s: %v (%v), kept %s", tt.body, r.Outcome, r.Err, r.Answer)
		}
	}
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":{"trackingNumber":"N12345678","referId":"R","statusLabel":"DELIVERED"}}`)
	})
	c := client(t, url, func(o *api.Options) { o.Key = "12345678" })
	if e := c.Evidence(t.Context(), tracking.Query{ReferID: "R"}, tracking.Item{ReferID: "R", Number: "N12345678"}); e.Presence != tracking.PresenceNamed {
		t.Errorf("%+v", e)
	}
}

func TestTraceNeverSeesTheKey(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	var seen []string
	c := client(t, url, func(o *api.Options) {
		o.Key = "s3cret"
		o.Trace = func(x api.Trace) { seen = append(seen, fmt.Sprintf("%+v", x)) }
	})
	c.CreateAsync(context.Background(), items(1))
	if len(seen) != 1 || strings.Contains(seen[0], "s3cret") {
		t.Errorf("trace %q; want one exchange without the key", seen)
	}
}

func TestCreateReadsRowsThatAreNamed(t *testing.T) {
	two := items(2)
	tests := []struct {
		name    string
		status  int
		body    string
		want    tracking.Outcome
		refused int
	}{
		{"accepted but for one", 200, `{"failed":[{"referId":"R1","reason":"x"}]}`, tracking.OutcomeAccepted, 1},
		{"accepted but for all", 200, `{"failed":[{"referId":"R0","reason":"x"},{"referId":"R1","reason":"y"}]}`, tracking.OutcomeAccepted, 2},
		{"accepted, and all listed as refused", 200, `{"failed":[{"referId":"R0"},{"referId":"R1"}]}`, tracking.OutcomeNotCredible, 0},
		{"refused for one", 422, `{"errors":[{"rawTrackingNumber":"N0","message":"x"}]}`, tracking.OutcomeRows, 1},
		{"refused, the request repeated", 422, `{"error":{"message":"no","rows":[{"referId":"R0"},{"referId":"R1"}]}}`, tracking.OutcomeRows, 0},
		{"refused by a status that is not about rows", 500, `{"errors":[{"rawTrackingNumber":"N0","message":"x"}]}`, tracking.OutcomeUnknown, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			r := client(t, url, nil).CreateAsync(t.Context(), two)
			if r.Outcome != tt.want || len(r.Refused) != tt.refused {
				t.Errorf("outcome %v (%v), %d rows refused; want %v and %d", r.Outcome, r.Err, len(r.Refused), tt.want, tt.refused)
			}
		})
	}
}

// However many ask at once, there are as many connections as workers.
func TestConnectionsAreAsManyAsWorkers(t *testing.T) {
	url, made := serveCounting(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{}`)
	})
	c := client(t, url, func(o *api.Options) { o.Timeout = time.Minute })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if r := c.CreateAsync(t.Context(), items(2)); r.Outcome != tracking.OutcomeAccepted {
					t.Error(r.Err)
				}
			}
		})
	}
	wg.Wait()
	if n := made.Load(); n > 2 {
		t.Errorf("%d connections; want 2 at most", n)
	}
}

// What may pass is told apart from what stays, and a pause from a failure.
func TestWhatAStatusMeans(t *testing.T) {
	for status, want := range map[int][3]bool{ // throttled, temporary, systemic
		http.StatusTooManyRequests: {true, true, false}, http.StatusServiceUnavailable: {true, true, false},
		http.StatusBadGateway: {false, true, false}, http.StatusRequestTimeout: {false, true, false}, http.StatusGatewayTimeout: {false, true, false},
		http.StatusForbidden: {false, false, true}, http.StatusNotImplemented: {false, false, true},
		299: {}, 300: {false, false, true}, 399: {false, false, true}, http.StatusBadRequest: {}, http.StatusInternalServerError: {},
	} {
		f := (&api.StatusError{Status: status}).Failure()
		if got := [3]bool{f.Throttled, f.Temporary, f.Systemic}; got != want {
			t.Errorf("%d: throttled, temporary, systemic: %v; want %v", status, got, want)
		}
	}
}

func TestKeyInAHeaderIsRemoved(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("X-Echo", "key s3cret-key")
		_, _ = io.WriteString(w, `{}`)
	})
	var seen []http.Header
	c := client(t, url, func(o *api.Options) {
		o.Key = "s3cret-key"
		o.Trace = func(x api.Trace) { seen = append(seen, x.Header) }
	})
	c.CreateAsync(t.Context(), items(1))
	if len(seen) != 1 || seen[0].Get("X-Echo") != "key ***" {
		t.Errorf("%v", seen)
	}
}
