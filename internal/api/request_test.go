package api_test

import (
	"net/http"
	"net/url"
	"path"
	"strings"
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
