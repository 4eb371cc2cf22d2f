//go:build browser

package main_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// testHarness shows that a tab notices what the other tests say doesn't happen.
func testHarness(t *testing.T, b *browser) {
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'")
		switch r.URL.Path {
		case "/":
			_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>t</title><main><h1>t</h1><input id=i aria-label=text><p id=p></p></main>` +
				`<script>alert(1)</script><img src="` + elsewhere.URL + `/x" alt=""><script src="/s.js"></script>`))
		case "/s.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(`document.getElementById("i").addEventListener("input", e => p.textContent = "typed " + e.target.value); setTimeout(() => { throw new Error("late") }, 1)`))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	tb := b.openUnchecked(t)
	tb.visit(server.URL + "/")
	tb.fill("#i", "abc")
	tb.wait(`p.textContent == "typed abc"`)
	tb.fill("#i", "Ünï 1")
	tb.wait(`p.textContent == "typed Ünï 1"`)
	tb.press(kb.Backspace)
	tb.wait(`p.textContent == "typed Ünï "`)
	tb.axe("the harness")
	tb.visit(elsewhere.URL + "/there")
	tb.mu.Lock()
	reports, exceptions := strings.Join(tb.reports, "\n"), strings.Join(tb.exceptions, "\n")
	tb.mu.Unlock()
	for _, want := range []string{"script-src-elem blocks inline", "img-src blocks " + elsewhere.URL} {
		if !strings.Contains(reports, want) {
			t.Errorf("the policy's reports lack %q:\n%s", want, reports)
		}
	}
	if !strings.Contains(exceptions, "late") {
		t.Errorf("no exception was noticed: %q", exceptions)
	}
	if got := tb.foreign(server.URL); len(got) == 0 || got[len(got)-1] != elsewhere.URL+"/there" {
		t.Errorf("requests to elsewhere: %q", got)
	}
}
