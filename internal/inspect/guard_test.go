package inspect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/inspect"
)

// site is a server of the test with a browser that has opened its page.
type site struct {
	*inspect.Server

	test    *testing.T
	browser *http.Client
	changes int // that were made
	cancel  context.CancelFunc
	ended   chan error // what Serve returned
}

// open starts a server.
func open(t *testing.T, o inspect.Options) *site {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{test: t, ended: make(chan error, 1)}
	o.Session = func(_ context.Context, token string) (any, error) { return map[string]string{"token": token}, nil }
	o.Explain = func(err error) *inspect.Error {
		return &inspect.Error{Status: 503, Message: err.Error(), Hint: "try again", Code: "store"}
	}
	o.Hide = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("secret"), []byte("***")) }
	o.Log = func(text string) { t.Log(text) }
	o.Routes = append(o.Routes, inspect.Route{Method: "POST", Pattern: "/change", Serve: func(r *http.Request) (any, error) {
		s.changes++
		body, err := io.ReadAll(r.Body)
		return len(body), err
	}})
	if s.Server, err = inspect.New(l, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.cancel = cancel
	go func() { s.ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
	})
	s.browser = &http.Client{Transport: &http.Transport{}}
	t.Cleanup(s.browser.CloseIdleConnections)
	return s
}

// token returns the token of the site's URL.
func (s *site) token() string {
	s.test.Helper()
	base, token, _ := strings.Cut(s.SecretURL(), "#token=")
	if base != s.URL() || len(token) != 43 {
		s.test.Fatalf("the URL with the token: %s", s.SecretURL())
	}
	return token
}

// request returns a request for a path of the site, or for a URL, with the token unless a header says otherwise.
func (s *site) request(method, path, body string, header ...string) *http.Request {
	s.test.Helper()
	if !strings.HasPrefix(path, "http://") {
		path = s.URL() + path
	}
	r, err := http.NewRequestWithContext(s.test.Context(), method, path, strings.NewReader(body))
	if err != nil {
		s.test.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	if r.Header["Waybill-Token"] == nil {
		r.Header.Set("Waybill-Token", s.token())
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	return r
}

func (s *site) do(r *http.Request) (status int, header http.Header, body string) {
	s.test.Helper()
	resp, err := s.browser.Do(r)
	if err != nil {
		s.test.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.test.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func TestForeignRequestsAreRefused(t *testing.T) {
	s := open(t, inspect.Options{})
	port := s.URL()[strings.LastIndex(s.URL(), ":")+1 : len(s.URL())-1]
	tests := []struct {
		name, method, path string
		header             []string
		status             int
		code               string
	}{
		{"the page", "GET", "", nil, 200, ""},
		{"the page by itself", "GET", "api/v1/session", []string{"Sec-Fetch-Site", "same-origin"}, 200, ""},
		{"typed", "GET", "", []string{"Sec-Fetch-Site", "none"}, 200, ""},
		{"localhost", "GET", "api/v1/session", []string{"Host", "localhost:" + port}, 200, ""},
		{"a foreign host", "GET", "api/v1/session", []string{"Host", "evil.example"}, 421, "wrong_host"},
		{"a foreign host with the port", "GET", "api/v1/session", []string{"Host", "evil.example:" + port}, 421, "wrong_host"},
		{"a rebinding name", "GET", "api/v1/session", []string{"Host", "127.0.0.1.nip.io:" + port}, 421, "wrong_host"},
		{"a name below localhost", "GET", "api/v1/session", []string{"Host", "evil.localhost:" + port}, 421, "wrong_host"},
		{"a trailing dot", "GET", "api/v1/session", []string{"Host", "localhost.:" + port}, 421, "wrong_host"},
		{"another port", "GET", "api/v1/session", []string{"Host", "127.0.0.1:1"}, 421, "wrong_host"},
		{"no port", "GET", "api/v1/session", []string{"Host", "127.0.0.1"}, 421, "wrong_host"},
		{"every interface", "GET", "api/v1/session", []string{"Host", "0.0.0.0:" + port}, 421, "wrong_host"},
		{"a foreign host of the page", "GET", "", []string{"Host", "evil.example:" + port}, 421, ""},
		{"a foreign host with the token", "GET", s.SecretURL(), []string{"Host", "evil.example:" + port}, 421, ""},
		{"a foreign origin", "GET", "api/v1/session", []string{"Origin", "https://evil.example"}, 403, "foreign_origin"},
		{"no origin", "GET", "api/v1/session", []string{"Origin", "null"}, 403, "foreign_origin"},
		{"another port's origin", "GET", "api/v1/session", []string{"Origin", "http://127.0.0.1:1"}, 403, "foreign_origin"},
		{"https", "GET", "api/v1/session", []string{"Origin", "https://127.0.0.1:" + port}, 403, "foreign_origin"},
		{"two origins", "GET", "api/v1/session", []string{"Origin", "http://127.0.0.1:" + port, "Origin", "https://evil.example"}, 403, "foreign_origin"},
		{"another site", "GET", "api/v1/session", []string{"Sec-Fetch-Site", "cross-site"}, 403, "foreign_origin"},
		{"another port of the site", "GET", "api/v1/session", []string{"Sec-Fetch-Site", "same-site"}, 403, "foreign_origin"},
		{"an unknown word", "GET", "api/v1/session", []string{"Sec-Fetch-Site", "x"}, 403, "foreign_origin"},
		{"a link", "GET", s.SecretURL(), []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200, ""},
		{"a link to what is not the page", "GET", "api/v1/session", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403, "foreign_origin"},
		{"a form that leads to the page", "POST", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403, ""},
		{"a frame with the page", "GET", s.SecretURL(), []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403, ""},
		{"a script of another site", "GET", "app.js", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, 403, ""},
		{"an EventSource of another site", "GET", "api/v1/stream", []string{"Origin", "https://evil.example", "Accept", "text/event-stream", "Sec-Fetch-Site", "cross-site"}, 403, "foreign_origin"},
		{"a WebSocket of another site", "GET", "api/v1/stream", []string{"Origin", "https://evil.example", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAA"}, 403, "foreign_origin"},
		{"a form of another site", "POST", "api/v1/change", []string{"Origin", "https://evil.example", "Content-Type", "application/x-www-form-urlencoded"}, 403, "foreign_origin"},
		{"a preflight", "OPTIONS", "api/v1/change", []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "waybill-token"}, 403, "foreign_origin"},
	}
	for _, test := range tests {
		r := s.request(test.method, test.path, "", test.header...)
		status, header, body := s.do(r)
		var e inspect.Error
		if test.code != "" {
			if err := json.Unmarshal([]byte(body), &e); err != nil || e.Message == "" || e.Hint == "" {
				t.Errorf("%s: %v: %s", test.name, err, body)
			}
		}
		if status != test.status || e.Code != test.code {
			t.Errorf("%s: %d %s; want %d %q", test.name, status, body, test.status, test.code)
		}
		if header.Get("Access-Control-Allow-Origin") != "" || !strings.HasPrefix(header.Get("Content-Security-Policy"), "default-src 'none'; ") ||
			header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", test.name, header)
		}
	}
	if s.changes != 0 {
		t.Errorf("%d changes were made", s.changes)
	}
}

func TestOnlyTheTokenOpensThePage(t *testing.T) {
	s, other, kept := open(t, inspect.Options{}), open(t, inspect.Options{}), inspect.NewToken()
	restarted := open(t, inspect.Options{Token: kept})
	tests := []struct {
		name, path string
		site       *site
		header     []string
		status     int
	}{
		{"the page", "", s, []string{"Waybill-Token", ""}, 200},
		{"its files", "app.js", s, []string{"Waybill-Token", ""}, 200},
		{"the token", "api/v1/session", s, nil, 200},
		{"no token", "api/v1/session", s, []string{"Waybill-Token", ""}, 401},
		{"a part of the token", "api/v1/session", s, []string{"Waybill-Token", s.token()[:20]}, 401},
		{"the token of another inspector", "api/v1/session", s, []string{"Waybill-Token", other.token()}, 401},
		{"a wrong token before the right one", "api/v1/session", s, []string{"Waybill-Token", "x", "Waybill-Token", s.token()}, 401},
		{"the token as a parameter", "api/v1/session?token=" + s.token(), s, []string{"Waybill-Token", ""}, 401},
		{"the token as a cookie", "api/v1/session", s, []string{"Waybill-Token", "", "Cookie", "waybill=" + s.token()}, 401},
		{"the token as another header", "api/v1/session", s, []string{"Waybill-Token", "", "Authorization", "Bearer " + s.token()}, 401},
		{"a route that is none", "api/v1/nothing", s, []string{"Waybill-Token", ""}, 401},
		{"a stream", "api/v1/stream", s, []string{"Waybill-Token", ""}, 401},
		{"the token that lasts", "api/v1/session", restarted, []string{"Waybill-Token", kept}, 200},
		{"the token of the URL beside it", "api/v1/session", restarted, nil, 200},
		{"no token beside it", "api/v1/session", restarted, []string{"Waybill-Token", ""}, 401},
		{"the token of another process", "api/v1/session", s, []string{"Waybill-Token", kept}, 401},
	}
	for _, test := range tests {
		status, header, body := test.site.do(test.site.request("GET", test.path, "", test.header...))
		if status != test.status || len(header.Values("Set-Cookie")) > 0 {
			t.Errorf("%s: %d %v %s; want %d", test.name, status, header, body, test.status)
		}
		if status == 401 && (!strings.Contains(body, "open the URL that waybill printed") || strings.Contains(body, "--ui-token-file") != (test.header[1] != "")) {
			t.Errorf("%s: %s", test.name, body)
		}
		if status == 200 && test.path == "api/v1/session" && !strings.Contains(body, map[*site]string{s: s.token(), restarted: kept}[test.site]) {
			t.Errorf("%s: %s", test.name, body)
		}
	}
}

func TestChangesAreJSON(t *testing.T) {
	s := open(t, inspect.Options{})
	tests := []struct {
		name   string
		header []string
		status int
		code   string
	}{
		{"no token", []string{"Content-Type", "application/json", "Waybill-Token", ""}, 401, "unauthorized"},
		{"a form", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "unsupported_media_type"},
		{"no type", nil, 415, "unsupported_media_type"},
		{"text", []string{"Content-Type", "text/plain; x=application/json"}, 415, "unsupported_media_type"},
	}
	for _, test := range tests {
		status, _, body := s.do(s.request("POST", "api/v1/change", "{}", test.header...))
		if status != test.status || !strings.Contains(body, `"code":"`+test.code+`"`) {
			t.Errorf("%s: %d %s; want %d %s", test.name, status, body, test.status, test.code)
		}
	}
	if s.changes != 0 {
		t.Errorf("%d changes were made", s.changes)
	}
	if status, _, body := s.do(s.request("POST", "api/v1/change", "{}", "Content-Type", "application/json; charset=utf-8")); status != 200 || body != "2\n" || s.changes != 1 {
		t.Errorf("with all of it: %d %s, %d changes", status, body, s.changes)
	}
	if status, _, body := s.do(s.request("POST", "api/v1/change", strings.Repeat(" ", 16<<20+1), "Content-Type", "application/json")); status != 413 || s.changes != 1 {
		t.Errorf("a large body: %d %s, %d changes", status, body, s.changes)
	}
	closed := open(t, inspect.Options{ReadOnly: true})
	if status, _, body := closed.do(closed.request("POST", "api/v1/change", "{}", "Content-Type", "application/json")); status != 403 || !strings.Contains(body, `"read_only"`) || closed.changes != 0 {
		t.Errorf("read-only: %d %s, %d changes", status, body, closed.changes)
	}
}

func TestErrorsOfRoutes(t *testing.T) {
	s := open(t, inspect.Options{Routes: []inspect.Route{
		{Method: "GET", Pattern: "/own", Serve: func(*http.Request) (any, error) {
			return nil, &inspect.Error{Status: 404, Message: "no delivery 9", Hint: "reload", Code: "not_found"}
		}},
		{Method: "GET", Pattern: "/other/{id}", Serve: func(r *http.Request) (any, error) { return nil, errors.New("disk " + r.PathValue("id")) }},
		{Method: "GET", Pattern: "/file", Serve: func(*http.Request) (any, error) {
			return inspect.File{Name: "a\"\r\n/../é.html", Body: []byte("<script>")}, nil
		}},
		{Method: "GET", Pattern: "/secret", Serve: func(*http.Request) (any, error) { return map[string]string{"a": "a secret"}, nil }},
		{Method: "GET", Pattern: "/hidden", Serve: func(*http.Request) (any, error) { return nil, errors.New("a secret") }},
		{Method: "GET", Pattern: "/broken", Serve: func(*http.Request) (any, error) { return func() {}, nil }},
	}})
	for path, want := range map[string]string{
		"own": `404 {"error":"no delivery 9","hint":"reload","code":"not_found"}`, "other/full": `503 {"error":"disk full","hint":"try again","code":"store"}`,
		"secret": `200 {"a":"a ***"}`, "hidden": `503 {"error":"a ***"`, "broken": "500 {", "nothing": `404 {`, "session/": "404 {", "change": "405 {",
	} {
		status, header, body := s.do(s.request("GET", "api/v1/"+path, ""))
		if !strings.HasPrefix(strconv.Itoa(status)+" "+body, want) || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s %s; want %s", path, status, header.Get("Content-Type"), body, want)
		}
	}
	_, header, body := s.do(s.request("GET", "api/v1/file", ""))
	if header.Get("Content-Disposition") != `attachment; filename="a____..__.html"` || header.Get("Content-Type") != "application/octet-stream" || body != "<script>" {
		t.Errorf("file: %v %s", header, body)
	}
}
