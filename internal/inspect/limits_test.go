package inspect_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inspect"
)

const waitLimit = 20 * time.Second // for what comes at once

// dial opens a bare connection to a site.
func (s *site) dial() net.Conn {
	s.test.Helper()
	var d net.Dialer
	conn, err := d.DialContext(s.test.Context(), "tcp", s.host())
	if err != nil {
		s.test.Fatal(err)
	}
	s.test.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(waitLimit)); err != nil {
		s.test.Fatal(err)
	}
	return conn
}

func (s *site) host() string { return strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/") }

// raw writes bytes to a bare connection, and returns the status of the answer: 0 if the
// connection was closed. It has been closed when raw returns, if wantClosed is set.
func (s *site) raw(text string, wantClosed bool) int {
	s.test.Helper()
	conn := s.dial()
	if _, err := io.WriteString(conn, text); err != nil {
		return 0
	}
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if wantClosed {
		_, _ = io.Copy(io.Discard, resp.Body)
		if _, err := reader.ReadByte(); err == nil || errors.Is(err, context.DeadlineExceeded) {
			s.test.Errorf("%.60q: the connection stays open: %v", text, err)
		}
	}
	return resp.StatusCode
}

func TestPathsAndMethods(t *testing.T) {
	s := open(t, inspect.Options{Routes: []inspect.Route{{Method: "GET", Pattern: "/deliveries/{id}", Serve: func(r *http.Request) (any, error) { return r.PathValue("id"), nil }}}})
	rest := " HTTP/1.1\r\nHost: " + s.host() + "\r\nWaybill-Token: " + s.token() + "\r\nConnection: close\r\n\r\n"
	for line, want := range map[string]int{
		"GET /": 200, "GET /app.js": 200, "GET /api/v1/session": 200, "GET /api/v1/deliveries/refused:3": 200, "GET /api/v1/deliveries/a%2Fb": 200,
		"GET /index.html": 404, "GET //": 404, "GET /page/app.js": 404, "GET /../go.mod": 404, "GET /..%2f..%2fgo.mod": 404, "GET /%2e%2e/go.mod": 404,
		"GET //api/v1/session": 404, "GET /api/v1/../v1/session": 404, "GET /api/v1/%2e%2e/v1/session": 404, "GET /api/v1/session/": 404, "GET /api/v1": 404, "GET /api/v1/": 404,
		"GET /API/v1/session": 404, "GET /api/v1/deliveries/": 404, "GET /app.js%00": 404, "GET /app.js/": 404, "GET /api/v2/session": 404,
		"HEAD /": 405, "POST /": 405, "PUT /app.js": 405, "HEAD /api/v1/session": 405, "OPTIONS /api/v1/session": 405, "TRACE /": 405, "TRACE /api/v1/session": 405,
		"DELETE /api/v1/deliveries/1": 405, "POST /api/v1/session": 405, "HEAD /api/v1/stream": 405, "GET /api/v1/change": 405, "PUT /api/v1/change": 405,
		"CONNECT 127.0.0.1:1": 421, "GET http://evil.example/": 421, "OPTIONS *": 404,
	} {
		if line == "HEAD /api/v1/stream" {
			want = 404 // this site has no stream
		}
		if got := s.raw(line+rest, false); got != want {
			t.Errorf("%s: %d; want %d", line, got, want)
		}
	}
	if status, header, _ := s.do(s.request("POST", "api/v1/session", "{}")); status != 405 || header.Get("Allow") != "GET" {
		t.Errorf("Allow: %d %s", status, header.Get("Allow"))
	}
	for name, text := range map[string]string{
		"no host": "GET / HTTP/1.1\r\n\r\n", "two hosts": "GET / HTTP/1.1\r\nHost: " + s.host() + "\r\nHost: evil.example\r\n\r\n",
		"not HTTP": "\x16\x03\x01\n\n",
	} {
		if got := s.raw(text, false); got != 400 && got != 0 {
			t.Errorf("%s: %d; want 400", name, got)
		}
	}
}

func TestHeadersAndBodiesAreBounded(t *testing.T) {
	s := open(t, inspect.Options{})
	rest := " HTTP/1.1\r\nHost: " + s.host() + "\r\n"
	if got := s.raw("GET /"+rest+"X: "+strings.Repeat("x", 40<<10)+"\r\n\r\n", false); got != 431 {
		t.Errorf("a header of 40 KiB: %d; want 431", got)
	}
	if got := s.raw("GET /"+strings.Repeat("x", 40<<10)+rest+"\r\n", false); got != 431 {
		t.Errorf("a path of 40 KiB: %d; want 431", got)
	}
	// Nothing of the body has come, and nothing is waited for.
	if got := s.raw("POST /api/v1/change"+rest+"Content-Length: 1000\r\n\r\n", true); got != 401 {
		t.Errorf("a slow body without a token: %d; want 401", got)
	}
	if got := s.raw("POST /api/v1/change"+rest+"Waybill-Token: "+s.token()+"\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n", true); got != 413 {
		t.Errorf("a body that says it is too large: %d; want 413", got)
	}
	if s.changes != 0 {
		t.Errorf("%d changes were made", s.changes)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	s := open(t, inspect.Options{})
	s.browser.CloseIdleConnections()
	const limit = 128
	conns := make([]net.Conn, 0, limit+20)
	for range limit + 20 {
		conns = append(conns, s.dial())
	}
	closed := 0
	for _, conn := range conns[limit:] {
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, io.EOF) || isReset(err) {
			closed++
		}
	}
	if closed < 18 { // the browser's own may not have ended yet
		t.Errorf("%d of 20 connections too many were closed", closed)
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	for { // their slots are free again
		if resp, err := s.browser.Do(s.request("GET", "", "")); err == nil {
			_ = resp.Body.Close()
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("no connection is accepted any more")
		}
	}
}

// isReset reports whether the other side closed a connection.
func isReset(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && !op.Timeout()
}

// counter is a stream that counts up to an end as fast as it can, and waits then.
func counter(end int64) inspect.Stream {
	return func(ctx context.Context, _ *http.Request, after int64, send func(int64, string, any) error) error {
		if err := send(after, "", "begun"); err != nil {
			return err
		}
		for n := after + 1; n <= end; n++ {
			if err := send(n, "", n); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}
}

// events is an open stream.
type events struct {
	status int
	kind   string // its Content-Type
	lines  *bufio.Scanner
	close  func() error
}

// stream opens a stream.
func (s *site) stream(query string) events {
	s.test.Helper()
	resp, err := s.browser.Do(s.request("GET", "api/v1/stream"+query, ""))
	if err != nil {
		s.test.Fatal(err)
	}
	s.test.Cleanup(func() { _ = resp.Body.Close() })
	return events{resp.StatusCode, resp.Header.Get("Content-Type"), bufio.NewScanner(resp.Body), resp.Body.Close}
}

// until reads lines up to one with that text.
func until(t *testing.T, lines *bufio.Scanner, want string) []string {
	t.Helper()
	var all []string
	for lines.Scan() {
		all = append(all, lines.Text())
		if lines.Text() == want {
			return all
		}
	}
	t.Fatalf("the stream ended before %q: %v, %q", want, lines.Err(), all)
	return nil
}

func TestStreamContinuesByNumber(t *testing.T) {
	s := open(t, inspect.Options{Stream: counter(5)})
	first := s.stream("?after=2")
	if got := strings.Join(until(t, first.lines, "id: 4"), "|"); !strings.HasSuffix(got, "id: 2|data: \"begun\"||id: 3|data: 3||id: 4") || first.kind != "text/event-stream" {
		t.Errorf("%s: %s", first.kind, got)
	}
	if got := strings.Join(until(t, s.stream("?after=4").lines, "id: 5"), "|"); !strings.HasSuffix(got, "id: 4|data: \"begun\"||id: 5") {
		t.Error(got)
	}
	for _, query := range []string{"?after=-1", "?after=x"} {
		got := strings.Join(until(t, s.stream(query).lines, "id: 1"), "|")
		if !strings.HasSuffix(got, "id: 0|data: \"begun\"||id: 1") {
			t.Errorf("%s: %s", query, got)
		}
	}
}

func TestErrorsOfStreams(t *testing.T) {
	s := open(t, inspect.Options{Stream: func(_ context.Context, r *http.Request, _ int64, send func(int64, string, any) error) error {
		switch r.URL.Query().Get("fail") {
		case "first":
			return errors.New("no disk")
		case "filter":
			return &inspect.Error{Status: 400, Message: "no such key", Hint: "use event=", Code: "usage"}
		}
		return errors.Join(send(7, "", "begun"), errors.New("no disk"))
	}})
	for query, want := range map[string]int{"?fail=first": 503, "?fail=filter": 400} {
		status, _, body := s.do(s.request("GET", "api/v1/stream"+query, ""))
		if err := json.Unmarshal([]byte(body), &inspect.Error{}); status != want || err != nil {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	if _, _, body := s.do(s.request("GET", "api/v1/stream", "")); !strings.HasSuffix(body, "id: 7\ndata: \"begun\"\n\nevent: problem\ndata: {\"error\":\"no disk\",\"hint\":\"try again\",\"code\":\"store\"}\n\n") {
		t.Errorf("%q", body)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	s := open(t, inspect.Options{Stream: counter(0)})
	const limit = 32
	var last events
	for range limit {
		last = s.stream("")
		until(t, last.lines, `data: "begun"`)
	}
	if status, _, body := s.do(s.request("GET", "api/v1/stream", "")); status != 503 || !strings.Contains(body, `"code":"too_many_streams"`) {
		t.Errorf("one stream too many: %d %s", status, body)
	}
	if status, _, _ := s.do(s.request("GET", "api/v1/session", "")); status != 200 {
		t.Errorf("beside all streams: %d", status)
	}
	_ = last.close() // and its place is free soon
	for {
		again := s.stream("")
		if again.status == http.StatusOK {
			until(t, again.lines, `data: "begun"`)
			return
		}
		_ = again.close()
	}
}

// A server that ends does not wait for streams and for reading requests, but for
// changes, also those whose client has gone.
func TestEndOfServer(t *testing.T) {
	begun, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	reading, read := make(chan struct{}), make(chan struct{})
	s := open(t, inspect.Options{Stream: counter(0), Routes: []inspect.Route{
		{Method: "GET", Pattern: "/slow", Serve: func(r *http.Request) (any, error) {
			close(reading)
			<-r.Context().Done()
			close(read)
			return nil, r.Context().Err()
		}},
		{Method: "POST", Pattern: "/send", Serve: func(r *http.Request) (any, error) {
			close(begun)
			<-release
			done <- r.Context().Err()
			return nil, nil //nolint:nilnil // nobody reads it
		}},
	}})
	lines := s.stream("").lines
	until(t, lines, `data: "begun"`)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		r := s.request("POST", "api/v1/send", "{}", "Content-Type", "application/json")
		if resp, err := s.browser.Do(r.WithContext(ctx)); err == nil {
			_ = resp.Body.Close()
		}
	}()
	go func() {
		if resp, err := s.browser.Do(s.request("GET", "api/v1/slow", "")); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-begun
	<-reading
	leave()
	s.dial() // on which nothing is ever sent
	s.cancel()
	for lines.Scan() { // the stream ends by itself
	}
	select {
	case err := <-s.ended:
		t.Fatalf("the server has ended before a change: %v", err)
	default:
	}
	<-read // and what reads has ended before
	close(release)
	if err := <-done; err != nil {
		t.Errorf("the change was cut off: %v", err)
	}
	err := <-s.ended
	if s.ended <- err; err != nil {
		t.Error(err)
	}
	late := httptest.NewRecorder()
	s.ServeHTTP(late, s.request("GET", "api/v1/slow", ""))
	if late.Code != http.StatusServiceUnavailable || !strings.Contains(late.Body.String(), `"ending"`) || late.Header().Get("Content-Security-Policy") == "" {
		t.Errorf("a request after the end: %d %v %s", late.Code, late.Header(), late.Body)
	}
}
