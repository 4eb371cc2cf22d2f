package inspect

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxPage is how large all files of the page may be together, in bytes.
const maxPage = 150_000

// banned finds what the policy would stop, or what would put text from outside into the
// page as anything else.
var banned = map[string]*regexp.Regexp{
	".html": regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|javascript:|https?://|<script>|<iframe|<object|<base`),
	".js":   regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\b|new Function|setAttribute\('style|DOMParser|localStorage|indexedDB|document\.cookie|https?://`),
	".css":  regexp.MustCompile(`(?i)@import|url\(|https?://|expression\(`),
	".svg":  regexp.MustCompile(`(?i)<script|\son[a-z]+=|href=|<foreignObject`),
}

func TestPageIsSmallAndSafe(t *testing.T) {
	files, err := page.ReadDir("page")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, f := range files {
		name, ext := "/"+f.Name(), path.Ext(f.Name())
		if name == "/index.html" {
			name = "/"
		}
		body, contentType, ok := readFile(name)
		if !ok || contentType == "" {
			t.Errorf("page%s: served %v, as %q", name, ok, contentType)
		}
		total += len(body)
		for i, line := range strings.Split(string(body), "\n") {
			line = strings.ReplaceAll(line, "'http://www.w3.org/2000/svg'", "''")
			if found := banned[ext].FindString(line); found != "" && !strings.HasPrefix(strings.TrimSpace(line), "//") {
				t.Errorf("page%s:%d: %q is not for this page", name, i+1, found)
			}
		}
	}
	t.Logf("%d files, %d bytes", len(files), total)
	if total > maxPage {
		t.Errorf("the page has %d bytes; at most %d", total, maxPage)
	}
	for _, name := range []string{"/", "/app.js", "/style.css", "/icon.svg"} {
		if body, _, _ := readFile(name); len(body) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestOnlyLoopbackIsServed(t *testing.T) {
	for _, addr := range []net.Addr{&net.TCPAddr{IP: net.IPv4(192, 168, 0, 1), Port: 1}, &net.TCPAddr{IP: net.IPv4zero, Port: 1}, &net.TCPAddr{Port: 1}, &net.UnixAddr{Name: "x"}} {
		if _, err := New(listenerAt{addr: addr}, Options{}); err == nil || !strings.Contains(err.Error(), "no loopback address") {
			t.Errorf("%v: %v", addr, err)
		}
	}
}

// listenerAt is a listener of which only the address is asked.
type listenerAt struct {
	net.Listener

	addr net.Addr
}

func (l listenerAt) Addr() net.Addr { return l.addr }

func TestHostsOfAnAddress(t *testing.T) {
	tests := map[*net.TCPAddr][]string{
		{IP: net.IPv6loopback, Port: 9}:         {"[::1]:9", "localhost:9", "LocalHost:9"},
		{IP: net.IPv4(127, 0, 0, 2), Port: 9}:   {"127.0.0.2:9", "localhost:9"},
		{IP: net.IPv4(127, 0, 0, 1), Port: 80}:  {"127.0.0.1", "127.0.0.1:80", "localhost", "localhost:80"},
		{IP: net.IPv4(127, 0, 0, 1), Port: 808}: {"127.0.0.1:808", "localhost:808"},
	}
	for addr, hosts := range tests {
		s, err := New(listenerAt{addr: addr}, Options{Hide: func(b []byte) []byte { return b }})
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range append(hosts, "127.0.0.1:8", "[::1]", "::1", "") {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Host = host
			want := http.StatusMisdirectedRequest
			if slices.Contains(hosts, host) {
				want = http.StatusOK
			}
			w := httptest.NewRecorder()
			if s.ServeHTTP(w, r); w.Code != want {
				t.Errorf("%s asked as %q: %d; want %d", addr, host, w.Code, want)
			}
		}
	}
}
