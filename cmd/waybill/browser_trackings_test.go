//go:build browser

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// testTrackings goes through trackings and runs by keyboard, while events arrive.
func testTrackings(t *testing.T, b *browser) {
	w := newWorld(t, "--processing", "0s", "--reject", "^BAD")
	w.env = append(w.env, "WAYBILL_STORE="+filepath.Join(w.home, "waybill.db"))
	text := "referId,rawTrackingNumber,carrierCode\n"
	for n := range 30 {
		text += fmt.Sprintf("ORD-%d,N%04d,dhl\n", 1001+n, n)
	}
	file := filepath.Join(w.home, "orders.csv")
	if err := os.WriteFile(file, []byte(text+"BAD-1,X1,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, said := w.run("create", file, "-q", "--batch-size", "1"); code != 6 {
		t.Fatalf("create ended with %d: %s", code, said)
	}
	i := w.inspects()
	tb := b.open(t)
	moved := func(n int, label string, stops ...string) {
		i.post(fmt.Sprintf(`[{"eventId":"%d %s","event":"router.moved","data":{"trackingNumber":"N%04d","status":7,"summary":{"statusLabel":%q},"detail":{"trackingEvents":[%s]}}}]`,
			n, label, n, label, strings.Join(stops, ",")))
	}

	i.show(tb, "#/trackings")
	tb.wait(`document.querySelectorAll("tbody tr").length == 31`)
	tb.axe("trackings")
	tb.press("j", "j", "j")
	tb.wait(`document.activeElement.textContent == "ORD-1003"`)
	moved(4, "MOVED")
	tb.wait(`document.querySelectorAll("tbody tr")[4].innerText.includes("MOVED")`)
	tb.wait(`[...document.querySelectorAll(".chips a")].some(a => a.innerText == "1 moved")`)
	tb.wait(`document.activeElement.textContent == "ORD-1003"`)
	tb.press("/")
	tb.wait(`document.activeElement.name == "refer-id"`)
	tb.fill("input[name=refer-id]", "ORD-101*")
	tb.wait(`location.hash == "#/trackings?refer-id=ORD-101*" && document.querySelectorAll("tbody tr").length == 10`)
	tb.press(kb.Escape, "j", "j")
	tb.wait(`document.activeElement.textContent == "ORD-1011"`)
	tb.press(kb.Enter)
	tb.wait(`location.hash == "#/tracking?referId=ORD-1011&trackingNumber=N0010"`)
	tb.wait(`document.querySelector("h1").textContent.startsWith("ORD-1011")`)

	moved(10, "MOVED", `{"eventType":"Left","eventTimestamp":"2026-01-05T11:00:00","GMTTimestamp":"2026-01-05T10:00:00Z"}`,
		`{"eventType":"Strange","eventTimestamp":"2026-01-11T12:00:00","GMTTimestamp":"2026-01-10T10:00:00Z"}`)
	tb.wait(`document.querySelectorAll(".timeline tbody tr").length == 2 && document.querySelectorAll(".events tbody tr").length == 1`)
	stops := eval[[]string](tb, `[...document.querySelectorAll(".timeline tbody tr")].map(r => [...r.cells].map(c => c.textContent).join("|"))`)
	want := []string{"|2026-01-11 12:00||2026-01-10 10:00 UTC|Strange||! offset +26:00 impossible |5 days", "|2026-01-05 11:00|+01:00|2026-01-05 10:00 UTC|Left|||"}
	if strings.Join(stops, "\n") != strings.Join(want, "\n") {
		t.Errorf("timeline\n%s\nwant\n%s", strings.Join(stops, "\n"), strings.Join(want, "\n"))
	}
	tb.axe("a tracking")
	tb.press("o")
	tb.wait(`document.querySelector(".timeline tbody tr").innerText.includes("Left")`)
	tb.press("j", kb.Enter)
	tb.wait(`location.hash == "#/deliveries/2"`)
	eval[any](tb, "(history.back(), null)")
	tb.wait(`document.querySelector(".timeline")`)
	tb.press("u")
	tb.wait(`location.hash == "#/trackings?refer-id=ORD-101*" && document.querySelectorAll("tbody tr").length == 10`)

	tb.press("g", "r")
	tb.wait(`document.querySelectorAll(".runs tbody tr").length == 1`)
	tb.axe("runs")
	tb.press("j", kb.Enter)
	tb.wait(`location.hash == "#/runs/1" && document.querySelector("main").innerText.includes("waybill runs retry 1")`)
	tb.wait(`document.querySelector("details[open]").innerText.startsWith("1 rejected")`)
	tb.media("prefers-color-scheme", "dark")
	tb.axe("a run, dark")
	tb.narrow()
	for _, view := range [][2]string{{"#/trackings", "trackings"}, {"#/runs/1", "runs"}, {"#/tracking?referId=ORD-1011", "tracking"}, {"#/runs", "runs"}} {
		tb.goTo(view[0])
		tb.wait(fmt.Sprintf(`document.querySelector(".view-%s h1") && document.querySelector(".view-%[1]s > .status-line").textContent.includes("Read from the store")`, view[1]))
		tb.fits(view[0])
		tb.axe(view[0] + ", narrow and dark")
	}
}
