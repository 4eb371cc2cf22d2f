package api_test

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/waybill-cli/waybill/internal/api"
)

// Whatever a path holds, the request goes to the base URL's host, below its path.
func FuzzRequestPath(f *testing.F) {
	for _, p := range []string{
		"/api/v1/routers/detail?referId=a%20b", "x", "", "//h/x", "/%2f%2fh", "https://h", "HTTP:h", "@h", "/a/../../b", "/a/%2e%2e/b", "/%2E%2e%2fb", `\h`, "/\t/h", "/x?y=%0d%0a", "/a;b/@c:d", "/ä",
	} {
		f.Add(p)
	}
	c, err := api.New(api.Options{BaseURL: "https://service.example:8443/base", Key: "k"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, p string) {
		r, err := c.NewRequest(http.MethodGet, p, url.Values{"q": {"1"}}, nil)
		if err != nil {
			return
		}
		u, err := url.Parse(r.URL)
		if err != nil {
			t.Fatal(err)
		}
		if u.Scheme != "https" || u.Host != "service.example:8443" || u.User != nil || !strings.HasPrefix(path.Clean(u.Path)+"/", "/base/") || u.Query().Get("q") == "" || u.Fragment != "" {
			t.Errorf("%q goes to %s", p, u)
		}
	})
}

func TestOperationOf(t *testing.T) {
	for p, want := range map[string]api.Operation{
		"/api/v1/routers/create": api.OpCreateSync, "/API/v2//trackings/create/": api.OpCreateAsync, "/api/v1/routers/detail": api.OpDetail, "/api/v1/routers": api.OpOther,
	} {
		if got := api.OperationOf(p); got != want {
			t.Errorf("%s is %s; want %s", p, got, want)
		}
	}
}

func TestPathsOfRequests(t *testing.T) {
	c := client(t, "http://127.0.0.1:1/base", nil)
	for p, want := range map[string]string{ // a URL, or what is wrong
		"x?at=10:30&to=a@b": "http://127.0.0.1:1/base/x?at=10:30&to=a@b",
		"/x y":              "white space", "/x\x7f": "white space", "/x/%7f": "control character", "/x/%2f": "escaped slash",
		"mailto:a": "names a host", "//h/x": "names a host", "a@b/x": "names a host",
		`/a\b`: "backslash", "/a#b": "%23", "/a?b=%zz": "not a path", "/a/../b": "segment",
	} {
		r, err := c.NewRequest(http.MethodGet, p, nil, nil)
		if err == nil && r.URL != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v; want %s", p, r.URL, err, want)
		}
	}
}

// A response is whole for every status; of a request that may have changed something, an
// error says whether that is known.
func TestResponsesOfRequests(t *testing.T) {
	status := 0
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(strconv.Itoa(status)))
	})
	var inFlight atomic.Int64
	c := client(t, url, func(o *api.Options) { o.InFlight = &inFlight })
	for _, tt := range []struct {
		status  int
		ok      bool
		unknown bool // after a POST
	}{
		{200, true, false}, {299, true, false}, {300, false, false}, {404, false, false}, {408, false, true}, {425, false, true}, {499, false, false}, {500, false, true},
	} {
		status = tt.status
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r, err := c.NewRequest(method, "x", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.Send(t.Context(), r)
			e, refused := errors.AsType[*api.StatusError](err)
			if res.Status != tt.status || string(res.Body) != strconv.Itoa(tt.status) || (err == nil) != tt.ok || refused == tt.ok || refused && e.Status != tt.status {
				t.Errorf("%s, %d: %+v, %v", method, tt.status, res, err)
			}
			if errors.Is(err, api.ErrUnanswered) != (tt.unknown && method == http.MethodPost) {
				t.Errorf("%s, %d: %v", method, tt.status, err)
			}
		}
	}
	if n := inFlight.Load(); n != 0 {
		t.Errorf("%d requests are under way", n)
	}
}
