//go:build browser

package main_test

import "testing"

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
