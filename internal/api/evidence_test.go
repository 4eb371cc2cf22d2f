package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/sandbox"
	"github.com/waybill-cli/waybill/internal/sandbox/shapes"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// service starts a sandbox and returns a client of it.
func service(t *testing.T, c sandbox.Config, change func(*api.Options)) *api.Client {
	t.Helper()
	s, err := sandbox.New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.Close()
		_ = s.Close()
	})
	return client(t, server.URL, change)
}

func TestEvidenceInEveryShapeOfTheService(t *testing.T) {
	absents := map[string]struct {
		form []tracking.Absent
		look string
	}{
		"404":     {nil, "404 not found"},
		"message": {[]tracking.Absent{{Status: 200, Message: "Tracking not found"}}, "200 Tracking not found"},
		"empty":   {[]tracking.Absent{{Status: 200, Match: tracking.Match{Path: "", Equals: "{}"}}}, "200 {}"},
	}
	one, two, slow, gone := tracking.Item{ReferID: "A", Number: "P1-x"}, tracking.Item{ReferID: "A", Number: "P2"}, tracking.Item{ReferID: "B", Number: "P3"}, tracking.Item{ReferID: "Z", Number: "P9"}
	for _, shape := range shapes.Names {
		for absent, look := range absents {
			t.Run(shape+" "+absent, func(t *testing.T) {
				c := service(t, sandbox.Config{Shape: shapes.Named(shape), Absent: absent, Processing: time.Hour}, func(o *api.Options) { o.Absent = look.form })
				for _, r := range []*tracking.Reply{c.CreateSync(t.Context(), []tracking.Item{one, two}), c.CreateAsync(t.Context(), []tracking.Item{slow})} {
					if r.Outcome != tracking.OutcomeAccepted {
						t.Fatal(r.Err)
					}
				}
				tests := []struct {
					name string
					q    tracking.Query
					item tracking.Item
					want tracking.Presence
				}{
					{"by referId", tracking.Query{ReferID: "A"}, one, tracking.PresenceNamed},
					{"the other parcel", tracking.Query{ReferID: "A"}, two, tracking.PresenceNamed},
					{"written otherwise", tracking.Query{ReferID: "A"}, tracking.Item{ReferID: "A", Number: "p1 X"}, tracking.PresenceNamed},
					{"a third parcel", tracking.Query{ReferID: "A"}, tracking.Item{ReferID: "A", Number: "P4"}, tracking.PresenceUndecided},
					{"by number", tracking.Query{Number: "P2"}, two, tracking.PresenceNamed},
					{"processing", tracking.Query{ReferID: "B"}, slow, tracking.PresenceProcessing},
					{"absent", tracking.Query{ReferID: "Z"}, gone, tracking.PresenceAbsent},
					{"absent by number", tracking.Query{Number: "P9"}, gone, tracking.PresenceAbsent},
				}
				for _, tt := range tests {
					e := c.Evidence(t.Context(), tt.q, tt.item)
					if e.Presence != tt.want || e.Err != nil {
						t.Errorf("%s: %+v; want %q", tt.name, e, tt.want)
					}
					if (tt.want == tracking.PresenceAbsent) != (e.Fingerprint == look.look) {
						t.Errorf("%s: look %q; want %q of an absence alone", tt.name, e.Fingerprint, look.look)
					}
				}
			})
		}
	}
}

func TestEvidenceOfEveryAnswer(t *testing.T) {
	const shown = `{"data":{"trackingNumber":"N0","statusLabel":"X"}}`
	type want struct {
		presence              tracking.Presence
		err                   bool
		passing, unauthorized bool
		why                   string
	}
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Location", "/elsewhere")
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
		want    want
	}{
		{"shown", answer(200, shown), want{presence: tracking.PresenceNamed}},
		{"404 and nothing", answer(404, ""), want{presence: tracking.PresenceAbsent}},
		{"404 and Processing", answer(404, `{"message":"Processing"}`), want{presence: tracking.PresenceProcessing}},
		{"404 and a web page", answer(404, "<html>"), want{presence: tracking.PresenceAbsent}},
		{"404 that shows it", answer(404, shown), want{why: "status 404), but shows the tracking"}},
		{"configured, and shows it", answer(200, `{"message":"none","data":{"trackingNumber":"N0","statusLabel":"X"}}`), want{why: "but shows the tracking"}},
		{"configured, and Processing", answer(200, `{"found":false,"message":"Processing"}`), want{why: "but shows the tracking"}},
		{"configured error", answer(400, `{"message":"none"}`), want{presence: tracking.PresenceAbsent}},
		{"half of a 404", raw("HTTP/1.1 404 Not Found\r\nContent-Length: 50\r\n\r\n{}"), want{err: true, passing: true}},
		{"half of what shows it", raw("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + shown), want{err: true, passing: true}},
		{"no length, half", raw("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"a\":"), want{err: true, passing: true}},
		{"cut before the status", raw(""), want{err: true, passing: true}},
		{"HTML", answer(200, "<html>"), want{why: "HTML"}},
		{"no content", answer(204, ""), want{why: "empty"}},
		{"sign of error", answer(200, `{"code":401,"message":"bad key"}`), want{why: "sign of error: bad key"}},
		{"redirect", answer(302, shown), want{err: true}},
		{"400 that shows it", answer(400, shown), want{err: true}},
		{"401", answer(401, ""), want{err: true, unauthorized: true}},
		{"403", answer(403, ""), want{err: true, unauthorized: true}},
		{"408", answer(408, ""), want{err: true, passing: true}},
		{"429", answer(429, ""), want{err: true, passing: true}},
		{"500", answer(500, shown), want{err: true, passing: true}},
		{"502", answer(502, ""), want{err: true, passing: true}},
		{"503", answer(503, ""), want{err: true, passing: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var asked atomic.Int32
			c := client(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				tt.handler(w, r)
			}), func(o *api.Options) {
				o.Absent = []tracking.Absent{{Message: "none"}, {Match: tracking.Match{Path: "/found", Equals: "false"}}}
			})
			e := c.Evidence(t.Context(), tracking.Query{ReferID: "R0"}, items(1)[0])
			got := want{e.Presence, e.Err != nil, e.Temporary, e.Unauthorized, tt.want.why}
			if got != tt.want || !strings.Contains(e.Why, tt.want.why) || e.Unconnected {
				t.Errorf("%+v; want %+v", e, tt.want)
			}
			if (e.RetryAfter == 7*time.Second) != (e.Err != nil && tt.name[0] >= '3' && tt.name[0] <= '5' || tt.name == "redirect") {
				t.Errorf("retry after %v", e.RetryAfter)
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("asked %d times; want once", n)
			}
		})
	}
}

func TestEvidenceWithoutAnAnswer(t *testing.T) {
	q, item := tracking.Query{ReferID: "R0"}, items(1)[0]
	release := make(chan struct{})
	silent := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) }) // before the server waits for its handlers

	e := client(t, silent, func(o *api.Options) { o.Timeout = 50 * time.Millisecond }).Evidence(t.Context(), q, item)
	if e.Err == nil || !e.Temporary || e.Unconnected {
		t.Errorf("timed out: %+v; want a passing error that is not of the connection", e)
	}
	var unanswered *api.ConnectError
	if !errors.As(e.Err, &unanswered) || !unanswered.Sent {
		t.Errorf("timed out: %v; want that the request had left", e.Err)
	}

	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if e = client(t, silent, nil).Evidence(ctx, q, item); !errors.Is(e.Err, enough) || !e.Temporary {
		t.Errorf("cancelled: %+v; want the cause", e)
	}

	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	e = client(t, gone.URL, nil).Evidence(t.Context(), q, item)
	if e.Err == nil || !e.Temporary || !e.Unconnected || !errors.As(e.Err, &unanswered) || unanswered.Sent {
		t.Errorf("nobody there: %+v; want an error of the connection", e)
	}

	e = client(t, silent, func(o *api.Options) { o.Key = "" }).Evidence(t.Context(), q, item)
	if e.Err == nil || !e.Unauthorized || e.Temporary || e.Unconnected {
		t.Errorf("no key: %+v; want unauthorized", e)
	}
}

// A 101 is no answer: what follows it is not HTTP, and may never end.
func TestSwitchingProtocolsIsNoAnswer(t *testing.T) {
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		<-end
		_ = conn.Close()
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	c := client(t, server.URL, nil)
	if e := c.Evidence(t.Context(), tracking.Query{ReferID: "R"}, tracking.Item{ReferID: "R", Number: "N"}); e.Err == nil || !strings.Contains(e.Err.Error(), "101") {
		t.Errorf("%+v; want an error with the status", e)
	}
	if r := c.CreateAsync(t.Context(), []tracking.Item{{ReferID: "R", Number: "N"}}); r.Outcome != tracking.OutcomeNotCredible || r.HTTPStatus != 101 {
		t.Errorf("%+v; want an answer that is not credible", r)
	}
}
