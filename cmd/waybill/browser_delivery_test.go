//go:build browser

package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// app is a target that keeps what it gets.
type app struct {
	*httptest.Server

	mu  sync.Mutex
	got []received
}

type received struct {
	body   string
	header http.Header
}

func newApp(t *testing.T) *app {
	t.Helper()
	a := &app{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		a.got = append(a.got, received{string(body), r.Header})
		a.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("thank <b>you</b>"))
	}))
	t.Cleanup(a.Close)
	return a
}

// last waits for the n-th request and returns it.
func (a *app) last(t *testing.T, n int) received {
	t.Helper()
	var out received
	waitUntil(t, fmt.Sprint("request ", n), func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.got) >= n {
			out = a.got[len(a.got)-1]
		}
		return len(a.got) == n
	})
	return out
}

// button clicks the button with a text, inside of what a selector names.
func (tb *tab) button(inside, text string) {
	tb.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll(%s)].find(n => n.textContent.trim() == %s && !n.disabled)`, quoteJS(inside+" button"), quoteJS(text))
	tb.wait(find)
	eval[any](tb, "("+find+".click(), null)")
}

// testChanges lets another process take what was refused, while the list of it is open.
func testChanges(t *testing.T, b *browser) {
	w := newHome(t)
	i := w.inspects()
	for n := range 2 {
		body := "[" + event(1, n) + "]"
		key := []string{signature(body), "00"}[n]
		if n == 0 {
			key = strings.Repeat("0", len(key))
		}
		if status := i.postAs("/hook", body, key); status != http.StatusUnauthorized {
			t.Fatalf("a delivery was answered %d", status)
		}
	}
	tb := b.open(t)
	i.list(tb, "#/deliveries?refused=1&id=refused:1")
	tb.waitRows(2, 1)
	tb.wait(`document.querySelector(".pane").innerText.includes("signature_mismatch")`)
	w.env = append(w.env, "WAYBILL_WEBHOOK_SCHEME=token-x", "WAYBILL_STORE="+i.store)
	if code, _, stderr := w.run("store", "prune", "--older-than", "0s"); code != 0 {
		t.Fatalf("prune: %d %s", code, stderr)
	}
	tb.wait(`document.querySelector(".empty")?.innerText.includes("No delivery was refused.")`)
	tb.wait(`document.querySelector(".pane").innerText.includes("refused:1") && !document.querySelector(".pane").innerText.includes("signature_mismatch")`)
}

// testDelivery opens a delivery, sends it again, and sends an edited copy.
func testDelivery(t *testing.T, b *browser) {
	target := newApp(t)
	i := newHome(t).inspects("--forward-to", target.URL)
	body := "[" + event(1, 1) + "]"
	i.post(body)
	i.post(strings.Replace(body, "DELIVERED", "RETURNED", 1)) // a conflict, forwarded as well
	target.last(t, 2)
	tb := b.open(t)
	i.list(tb, "#/deliveries")
	tb.click("#row-1 a")
	const pane = `document.querySelector(".pane").innerText`
	tb.wait(pane + `.includes("X-Signature") && ` + pane + `.includes("hmac-body-hex") && ` + pane + `.includes("MEMPHIS")`)
	tb.wait(pane + `.includes("202")`)
	if text := eval[string](tb, pane); strings.Contains(text, signature(body)+"\n") && strings.Contains(text, hookKey) {
		t.Error("the page shows the secret")
	}
	tb.axe("a delivery")
	tb.media("prefers-color-scheme", "dark")
	tb.axe("a delivery, dark")
	tb.media("prefers-color-scheme", "light")

	tb.press("r")
	tb.wait(`document.querySelector("dialog[open] form.send")`)
	tb.axe("the dialog that sends")
	tb.button("dialog[open]", "Send")
	if got := target.last(t, 3); got.body != body || got.header.Get("X-Signature") != signature(body) {
		t.Errorf("sent again: %s, %v", got.body, got.header)
	}
	tb.wait(`document.querySelector("dialog[open] .outcomes").innerText.includes("202")`)
	if text := eval[string](tb, `document.querySelector("dialog[open]").innerText`); !strings.Contains(text, "thank <b>you</b>") {
		t.Errorf("the start of the answer is not shown: %s", text)
	}
	tb.press(kb.Escape)
	tb.wait(`!document.querySelector("dialog[open]")`)

	tb.button(".pane", "Edit and send…")
	tb.wait(`document.querySelector("dialog[open] textarea")`)
	tb.fill("dialog[open] textarea", `[{"eventId":"x","event":"router.tried"}]`)
	tb.button("dialog[open]", "Send")
	got := target.last(t, 4)
	if got.body != `[{"eventId":"x","event":"router.tried"}]` || got.header.Get("X-Signature") != signature(got.body) || got.header.Get("Waybill-Synthetic") == "" {
		t.Errorf("an edited copy: %s, %v", got.body, got.header)
	}
	tb.press(kb.Escape)
	tb.wait(`!document.querySelector("dialog[open]")`)

	tb.button(".pane", "Copy as curl…")
	tb.wait(`document.querySelector("dialog[open]").innerText.includes("curl ")`)
	tb.axe("the dialog for curl")
	tb.press(kb.Escape)
	tb.wait(`!document.querySelector("dialog[open]")`)

	// A conflict links to the event that counts.
	tb.press("k")
	tb.wait(`document.querySelector(".pane").getAttribute("aria-label") == "Delivery 2" && ` + pane + `.includes("RETURNED") && document.querySelector('.event-card a[href="#/deliveries/1"]')`)

	// The bytes, as they came.
	dir := t.TempDir()
	if _, err := chromedp.CallBrowser(tb.ctx, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{
		Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllow, BrowserContextID: chromedp.FromContext(tb.ctx).BrowserContextID, DownloadPath: dir,
	}); err != nil {
		t.Fatal(err)
	}
	tb.goTo("#/deliveries/1")
	const download = `[...document.querySelectorAll(".pane button")].find(b => b.textContent == "Download body")`
	tb.wait(download)
	eval[any](tb, "("+download+".click(), null)")
	waitUntil(t, "the download", func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		if len(files) != 1 {
			return false
		}
		text, _ := os.ReadFile(files[0])
		return string(text) == body
	})
	if foreign := tb.foreign(i.origin); len(foreign) > 0 {
		t.Errorf("requests to elsewhere: %q", foreign)
	}
}

// testLooks opens every view on a telephone, in the dark and without motion.
func testLooks(t *testing.T, b *browser) {
	w := newWorld(t, "--processing", "0s")
	w.env = append(w.env, "WAYBILL_STORE="+filepath.Join(w.home, "waybill.db"))
	if code, _, said := w.run("create", orders(t, w.home, 30, func(n int) string { return fmt.Sprint("ORD-", n) }), "-q"); code != 0 {
		t.Fatalf("create ended with %d: %s", code, said)
	}
	_, rows, _ := w.run("list", "-o", "jsonl", "--limit", "1")
	i := w.inspects()
	for n := range 5 {
		i.post("[" + event(1, n) + "," + event(1, n+100) + "]")
	}
	tb := b.open(t)
	i.list(tb, "#/deliveries")
	_, refer, _ := strings.Cut(string(rows), `"referId":"`)
	refer, _, _ = strings.Cut(refer, `"`)
	views := []struct{ name, hash, there string }{
		{"deliveries", "#/deliveries", "view-deliveries .row:not(.missing) .number"},
		{"a delivery", "#/deliveries/3", "view-deliveries .pane .jsontree"},
		{"a tracking", "#/tracking/" + refer, "view-tracking h1"},
	}
	for _, scheme := range []string{"light", "dark"} {
		tb.media("prefers-color-scheme", scheme)
		for _, v := range views {
			tb.goTo(v.hash)
			tb.wait(`document.querySelector(".` + v.there + `") && !document.querySelector("[aria-busy=true]")`)
			tb.axe(v.name + ", " + scheme)
			if scheme == "dark" {
				if light := eval[float64](tb, `(([r, g, b]) => (r + g + b) / 765)(getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g).map(Number))`); light > 0.3 {
					t.Errorf("%s: the background has %.0f %% of white in the dark", v.name, 100*light)
				}
			}
		}
	}
	tb.media("prefers-reduced-motion", "reduce")
	for _, width := range []int64{360, 768, 3840} {
		tb.do(chromedp.EmulateViewport(width, 740))
		for _, v := range views {
			tb.goTo(v.hash)
			tb.wait(`document.querySelector(".` + v.there + `") && !document.querySelector("[aria-busy=true]")`)
			tb.fits(v.name)
			if n := eval[int](tb, `document.getAnimations().filter(a => a.playState === "running" && a.effect.getComputedTiming().duration > 1).length`); n > 0 {
				t.Errorf("%s: %d animations run, though less motion is preferred", v.name, n)
			}
		}
	}
}

// testCopy selects rows and copies them as a spreadsheet takes them.
func testCopy(t *testing.T, b *browser) {
	i := newHome(t).inspects()
	for n := range 3 {
		i.post("[" + strings.ReplaceAll(event(1, n), "Delivered, front door", `=1+1\tDelivered`) + "]")
	}
	tb := b.open(t)
	i.list(tb, "#/deliveries")
	tb.waitRows(3, 2, 1)
	eval[any](tb, `(globalThis.copied = "", addEventListener("copy", e => setTimeout(() => copied = e.clipboardData.getData("text/plain")), true), null)`)
	tb.press("j")
	tb.wait(`document.querySelector(".row.active")`)
	tb.do(chromedp.KeyEvent(kb.ArrowDown, chromedp.KeyModifiers(kb.ModifierShift)))
	tb.wait(`document.querySelectorAll(".row[aria-selected=true]").length == 2`)
	text := eval[string](tb, `(() => {
		const data = new DataTransfer();
		document.activeElement.dispatchEvent(new ClipboardEvent("copy", {clipboardData: data, bubbles: true, cancelable: true}));
		return data.getData("text/plain");
	})()`)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("copied %q; want a head and two rows", text)
	}
	for _, line := range lines {
		if cells := strings.Split(line, "\t"); len(cells) != strings.Count(lines[0], "\t")+1 || len(cells) < 6 {
			t.Errorf("a line of %d cells: %q", len(cells), line)
		}
	}
	if !strings.Contains(lines[1], `="94001000`) || strings.Contains(lines[1], "\t=1+1") {
		t.Errorf("a spreadsheet would change or run a cell: %q", lines[1])
	}
}
