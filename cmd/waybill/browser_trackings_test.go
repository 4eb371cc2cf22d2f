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

// testTracking goes from an event to its tracking and back by keyboard, while events arrive.
func testTracking(t *testing.T, b *browser) {
	w := newWorld(t, "--processing", "0s")
	w.env = append(w.env, "WAYBILL_STORE="+filepath.Join(w.home, "waybill.db"))
	file := filepath.Join(w.home, "orders.csv")
	if err := os.WriteFile(file, []byte("referId,rawTrackingNumber,carrierCode\nORD-1011,N0010,dhl\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, said := w.run("create", file, "-q"); code != 0 {
		t.Fatalf("create ended with %d: %s", code, said)
	}
	i := w.inspects()
	tb := b.open(t)
	moved := func(label string, stops ...string) {
		i.post(fmt.Sprintf(`[{"eventId":%[1]q,"event":"router.moved","data":{"trackingNumber":"N0010","status":7,"summary":{"statusLabel":%[1]q},"detail":{"trackingEvents":[%[2]s]}}}]`,
			label, strings.Join(stops, ",")))
	}

	moved("LEFT")
	i.show(tb, "#/deliveries/1")
	tb.wait(`document.querySelector(".event-card a.id")`)
	eval[any](tb, `(document.querySelector(".event-card a.id").click(), null)`)
	tb.wait(`location.hash == "#/tracking?trackingNumber=N0010"`)
	tb.wait(`document.querySelector("h1").textContent.startsWith("ORD-1011")`)

	moved("MOVED", `{"eventType":"Left","eventTimestamp":"2026-01-05T11:00:00","GMTTimestamp":"2026-01-05T10:00:00Z"}`,
		`{"eventType":"Strange","eventTimestamp":"2026-01-11T12:00:00","GMTTimestamp":"2026-01-10T10:00:00Z"}`)
	tb.wait(`document.querySelectorAll(".timeline tbody tr").length == 2 && document.querySelectorAll(".events tbody tr").length == 2`)
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
	tb.wait(`location.hash == "#/deliveries" && document.querySelector(".grid")`)
	tb.media("prefers-color-scheme", "dark")
	tb.narrow()
	tb.goTo("#/tracking?referId=ORD-1011")
	tb.wait(`document.querySelector(".view-tracking h1") && document.querySelector(".view-tracking > .status-line").textContent.includes("Read from the store")`)
	tb.fits("a tracking")
	tb.axe("a tracking, narrow and dark")
}
