//go:build browser

package main_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// testSendMoved sends again the delivery that the keys have just moved to, and has
// no dialog of a delivery that is not open any more.
func testSendMoved(t *testing.T, b *browser) {
	target := newApp(t)
	i := newHome(t).inspects("--forward-to", target.URL)
	for n := range 3 {
		i.post("[" + event(1, n) + "]")
	}
	target.last(t, 3)
	tb := b.open(t)
	i.list(tb, "#/deliveries")
	tb.click("#row-3 a")
	tb.wait(`document.querySelector(".pane button.primary")`)
	eval[any](tb, `(["j", "r"].forEach(key => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}))), null)`)
	tb.wait(`document.querySelector("dialog[open] form.send")`)
	tb.wait(`document.querySelector("dialog[open] h2").textContent == "Send delivery 2 again" && document.querySelector(".pane").getAttribute("aria-label") == "Delivery 2"`)
	tb.goTo("#/deliveries/1")
	tb.wait(`document.querySelector(".pane").getAttribute("aria-label") == "Delivery 1" && !document.querySelector("dialog[open]")`)
	tb.press("r")
	tb.wait(`document.querySelector("dialog[open] h2").textContent == "Send delivery 1 again"`)
}

// setHidden does what a browser does when the reader leaves a tab or comes back.
func (tb *tab) setHidden(hidden bool) {
	tb.t.Helper()
	eval[any](tb, fmt.Sprintf(`(Object.defineProperty(document, "hidden", {value: %t, configurable: true}), document.dispatchEvent(new Event("visibilitychange")), null)`, hidden))
}

// testManyPages opens more pages than a browser has connections to a server: those
// that nobody sees have none, and show what they missed once they are visible.
func testManyPages(t *testing.T, b *browser) {
	const hidden = 6
	i := newHome(t).inspects()
	i.post("[" + event(1, 0) + "]")
	first := b.open(t)
	tabs := []*tab{first}
	for len(tabs) < hidden+1 {
		tabs = append(tabs, b.open(t, chromedp.WithExistingBrowserContext(chromedp.FromContext(first.ctx).BrowserContextID)))
	}
	for n, tb := range tabs {
		i.list(tb, []string{"#/deliveries", "#/deliveries?filter=event%3Drouter.delivered"}[n%2])
		tb.waitRows(1)
		if n < hidden {
			tb.setHidden(true)
		}
	}
	for n := range 3 {
		i.post("[" + event(2, n) + "]")
	}
	tabs[hidden].waitRows(4, 3, 2, 1)
	for _, tb := range tabs[:2] {
		tb.waitRows(1)
		tb.setHidden(false)
		tb.waitRows(4, 3, 2, 1)
	}
	i.post("[" + event(3, 1) + "]")
	for _, tb := range tabs[:2] {
		tb.waitRows(5, 4, 3, 2, 1)
	}
}

// changeAnswers lets a script change the answers of a route: j is the JSON, n how
// many there were.
func (tb *tab) changeAnswers(path, script string) {
	tb.t.Helper()
	eval[any](tb, fmt.Sprintf(`((fetch, n) => (globalThis.fetch = async (...asked) => {
		const answer = await fetch(...asked);
		if (!asked[0].startsWith(%s)) return answer;
		const j = await answer.json();
		n++;
		%s;
		return new Response(JSON.stringify(j));
	}, null))(fetch, 0)`, quoteJS(path), script))
}

// testKeepsPlace has a section unfolded, and the focus, where a page changes.
func testKeepsPlace(t *testing.T, b *browser) {
	target := newApp(t)
	i := newHome(t).inspects("--forward-to", target.URL)
	i.post("[" + event(1, 1) + "]")
	target.last(t, 1)
	tb := b.open(t)
	i.list(tb, "#/deliveries")
	tb.changeAnswers("/api/v1/deliveries/1", `j.forwarding.forEach(f => Object.assign(f, {state: "waiting", attempts: n, reply: "busy"}))`)
	tb.goTo("#/deliveries/1")
	tb.wait(`document.querySelector(".targets summary")`)
	eval[any](tb, `(globalThis.before = document.querySelector(".targets summary"), before.focus(), before.click(), null)`)
	i.post("[" + event(1, 2) + "]") // a change of the store, after which the page asks again
	tb.wait(`!before.isConnected`)
	tb.wait(`document.querySelector(".targets details").open && document.activeElement == document.querySelector(".targets summary")`)
}

// testAddress leaves the list just after its search was changed, and goes from one
// tracking to another.
func testAddress(t *testing.T, b *browser) {
	w := newWorld(t, "--processing", "0s")
	w.env = append(w.env, "WAYBILL_STORE="+filepath.Join(w.home, "waybill.db"))
	if code, _, said := w.run("create", orders(t, w.home, 3, func(n int) string { return fmt.Sprint("ORD-", n) }), "-q"); code != 0 {
		t.Fatalf("create ended with %d: %s", code, said)
	}
	tb := b.open(t)
	w.inspects().list(tb, "#/deliveries")
	names := []string{"ORD-1", "ORD-2"}
	eval[any](tb, fmt.Sprintf(`(() => {
		const input = document.querySelector("[name=search]");
		input.value = "ORD";
		input.dispatchEvent(new Event("input"));
		location.hash = "#/tracking/%s";
	})()`, names[0]))
	tb.wait(fmt.Sprintf(`document.querySelector("h1").textContent.startsWith(%q)`, names[0]))
	tb.wait(fmt.Sprintf(`document.title.startsWith(%q)`, names[0]))
	tb.goTo("#/tracking/" + names[1])
	tb.wait(fmt.Sprintf(`document.title.startsWith(%q)`, names[1]))
}
