//go:build browser

package main_test

import (
	"fmt"
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
