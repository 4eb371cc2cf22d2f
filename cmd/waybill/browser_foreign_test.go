//go:build browser

package main_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// attack is a page of another origin that tries what a browser lets it try. It
// has AT for the origin of the inspector, and WS for that as a WebSocket.
const attack = `<!doctype html><title>elsewhere</title><body><script>
const at = "AT", out = {};
const note = (name, promise) => out[name] = promise.then(v => "open: " + v, e => "refused");
const soon = (set) => new Promise((yes, no) => { set(yes, no); setTimeout(no, 15000); });
const load = (tag, attributes) => soon((yes, no) => {
	const node = document.createElement(tag);
	node.onload = () => yes("loaded"); node.onerror = no;
	for (const name in attributes) node[name] = attributes[name];
	document.body.append(node);
});
for (const path of ["/", "/api/v1/session", "/api/v1/deliveries", "/api/v1/stream?after=0"]) {
	note("fetch " + path, fetch(at + path, {credentials: "include"}).then(r => r.text()));
	note("fetch without CORS " + path, fetch(at + path, {credentials: "include", mode: "no-cors"}).then(r => r.text()).then(t => t || Promise.reject()));
}
for (const type of ["application/json", "text/plain"])
	note("send as " + type, fetch(at + "/api/v1/deliveries/1/send", {method: "POST", credentials: "include", headers: {"Content-Type": type}, body: '{"target":"1"}'}).then(r => r.text()));
note("send without CORS", fetch(at + "/api/v1/deliveries/1/send", {method: "POST", credentials: "include", mode: "no-cors", body: '{"target":"1"}'}).then(r => r.text()).then(t => t || Promise.reject()));
note("beacon", Promise.resolve(navigator.sendBeacon(at + "/api/v1/deliveries/1/send", '{"target":"1"}')).then(() => Promise.reject()));
note("EventSource", soon((yes, no) => { const s = new EventSource(at + "/api/v1/stream", {withCredentials: true}); s.onopen = yes; s.onmessage = yes; s.onerror = no; }));
note("WebSocket", soon((yes, no) => { const s = new WebSocket("WS/api/v1/stream"); s.onopen = yes; s.onerror = no; }));
note("script", load("script", {src: at + "/app.js"}));
note("module", load("script", {src: at + "/app.js", type: "module"}));
note("style", load("link", {rel: "stylesheet", href: at + "/style.css"}));
note("image", load("img", {src: at + "/icon.svg"}));
const frame = document.createElement("iframe");
frame.src = at + "/"; frame.name = "frame"; document.body.append(frame);
const form = document.createElement("form");
form.method = "post"; form.enctype = "text/plain"; form.target = "posted"; form.action = at + "/api/v1/deliveries/1/send";
const field = document.createElement("input"); field.name = '{"target":"1","x":"'; field.value = '"}'; form.append(field);
const posted = document.createElement("iframe"); posted.name = "posted"; document.body.append(posted, form); form.submit();
globalThis.results = (async () => { const all = {}; for (const name in out) all[name] = await out[name]; return all; })();
</script>`

// testForeign lets pages of other origins, in a tab that had the page open, ask the
// inspector for what they can.
func testForeign(t *testing.T, b *browser) {
	var received atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received.Add(1) }))
	defer target.Close()
	w := newHome(t)
	i := w.inspects("--forward-to", "event=none=>"+target.URL)
	i.post("[" + event(1, 1) + "]")
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(strings.NewReplacer("AT", i.origin, "WS", "ws"+strings.TrimPrefix(i.origin, "http")).Replace(attack)))
	}))
	defer elsewhere.Close()
	_, port, _ := net.SplitHostPort(elsewhere.Listener.Addr().String())
	_, own, _ := net.SplitHostPort(strings.TrimPrefix(i.origin, "http://"))

	tb := b.openUnchecked(t) // what is blocked is reported
	i.show(tb, "#/deliveries")
	for name, origin := range map[string]string{"another port of the same site": "http://127.0.0.1:" + port, "another site": "http://localhost:" + port} {
		tb.visit(origin + "/")
		for what, got := range eval[map[string]string](tb, "results") {
			if got != "refused" {
				t.Errorf("%s: %s: %s", name, what, got)
			}
		}
		tb.wait(`document.querySelectorAll("iframe").length == 2`)
		if n := eval[int](tb, `[...document.querySelectorAll("iframe")].filter(f => { try { return f.contentDocument.body.innerText.length } catch { return false } }).length`); n > 0 {
			t.Errorf("%s: %d frames have a text that can be read", name, n)
		}
		// A link leads to the page and no further.
		tb.visit(origin + "/")
		eval[any](tb, "(setTimeout(() => location = "+quoteJS(i.origin+"/api/v1/session")+", 0), null)")
		tb.wait(fmt.Sprintf(`location.origin == %q && document.body.innerText.includes("foreign_origin")`, i.origin))
	}
	// A foreign name that leads to loopback, as DNS rebinding makes one.
	for _, path := range []string{"/", "/api/v1/session", strings.TrimPrefix(i.url, i.origin)} {
		tb.visit("http://rebound.test:" + own + path)
		tb.wait(`document.body.innerText.includes("does not answer for the host")`)
	}
	if n := received.Load(); n != 0 {
		t.Errorf("%d requests reached the target", n)
	}
	tb.visit(i.origin + "/") // and the tab still has its token
	tb.wait(`document.querySelector("main")?.children.length`)
}
