//go:build browser

package main_test

import (
	"bytes"
	"cmp"
	"database/sql"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// maxPicture is how many bytes a picture of the documentation may have.
const maxPicture = 150_000

// TestScreenshots takes the pictures of the documentation and writes them into
// the folder that the environment names in SCREENSHOTS. `make screenshots` runs it.
func TestScreenshots(t *testing.T) {
	b := openBrowser(t)
	if b == nil {
		return // Chromium is missing, and the log says so
	}
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		dir = t.TempDir()
	}
	i := newPictured(t)
	tb := b.open(t)
	i.list(tb, "#/deliveries")
	tb.wait(`rows.numbers().length == 14`)
	tb.do(chromedp.EmulateViewport(1280, 480))
	tb.picture(dir, "deliveries")
	tb.goTo("#/deliveries/12")
	tb.wait(`document.querySelector(".pane-body").innerText.includes("9400")`)
	tb.do(chromedp.EmulateViewport(1280, 900))
	tb.picture(dir, "delivery")

	w := newHome(t)
	store, file := filepath.Join(w.home, "large.db"), filepath.Join(w.home, "report.html")
	if err := writeLarge(t.Context(), store, 3000); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "WAYBILL_ACCOUNT="+largeAccount, "WAYBILL_STORE="+store)
	if code, _, said := w.run("report", file); code != 0 {
		t.Fatalf("report ended with %d: %s", code, said)
	}
	report := b.open(t)
	report.do(chromedp.EmulateViewport(1280, 1100))
	report.visit("file://" + file)
	report.picture(dir, "report")
}

// picture writes what the window shows. The name is that of the file.
func (tb *tab) picture(dir, name string) {
	tb.t.Helper()
	eval[any](tb, `document.fonts.ready.then(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(null)))))`)
	shot, err := chromedp.Run(tb.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		tb.t.Fatal(err)
	}
	small := fewColours(tb.t, shot)
	if len(small) > maxPicture {
		tb.t.Errorf("%s.png has %d bytes; want at most %d", name, len(small), maxPicture)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), small, 0o644); err != nil {
		tb.t.Fatal(err)
	}
}

// fewColours makes a PNG of the 256 colours that a picture has most of; others become
// the nearest of these.
func fewColours(t *testing.T, shot []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	pixels := map[color.Color]int{}
	for y := range from.Bounds().Dy() {
		for x := range from.Bounds().Dx() {
			pixels[from.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(pixels), func(a, b color.Color) int {
		return cmp.Or(pixels[b]-pixels[a], strings.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	to := image.NewPaletted(from.Bounds(), colours[:min(256, len(colours))])
	draw.Draw(to, to.Rect, from, image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// picturedEvent is an event of the pictures.
func picturedEvent(n int, kind, status, text, place string) string {
	return fmt.Sprintf(`{"eventId":%q,"event":"router.%s","eventTime":"2026-03-05T%02d:10:00.000Z","data":{"trackingNumber":%q,"status":%d,"statusTrack":%q,`+
		`"routerId":"5f0c7a52-9f2d-4c1e-8b3a-%012x","summary":{"trackingNumber":%[4]q,"status":%[5]d,"statusLabel":%[8]q,"latestEvent":%[9]q,"latestCheckpointTime":"2026-03-05T%02[3]d:00:00.000Z","transitTime":%[10]d},`+
		`"detail":{"trackingNumber":%[4]q,"statusSummary":%[9]q,"trackingEvents":[{"eventType":%[9]q,"eventCity":%[11]q,"eventState":"TN","eventZIPCode":"38118","eventTimestamp":"2026-03-04T%02[12]d:00:00","GMTTimestamp":"2026-03-05T%02[3]d:00:00Z"},`+
		`{"eventType":"Departed from facility","eventCity":"NASHVILLE","eventState":"TN","eventZIPCode":"37201","eventTimestamp":"2026-03-03T23:40:00","GMTTimestamp":"2026-03-04T05:40:00Z"},`+
		`{"eventType":"Shipment information received","eventCity":"NASHVILLE","eventState":"TN","eventZIPCode":"37201","eventTimestamp":"2026-03-02T16:05:00","GMTTimestamp":"2026-03-02T22:05:00Z"}]},"error":null}}`,
		eventID(7, n), kind, n%12, picturedNumber(n), map[string]int{"delivered": 1, "in_transit": 2, "out_for_delivery": 3, "exception": 4}[kind], kind, n, strings.ToUpper(strings.ReplaceAll(kind, "_", " ")), text, n%5+1, place, (n+6)%12)
}

func picturedNumber(n int) string { return fmt.Sprintf("94001118992235678912%02d", n%12+41) }

// newPictured is `waybill inspect` on a store of deliveries and trackings whose
// times don't depend on when it is made.
func newPictured(t *testing.T) *inspector {
	t.Helper()
	orders := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/returns") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(`{"ok":true}`))
	}))
	defer orders.Close()
	w := newWorld(t, "--processing", "0s")
	w.env = append(w.env, "WAYBILL_STORE="+filepath.Join(w.home, "waybill.db"))
	file := filepath.Join(w.home, "orders.csv")
	text := "referId,rawTrackingNumber,carrierCode\n"
	for n := range 14 {
		text += fmt.Sprintf("ORD-%d,%s,usps\n", 1001+n, strings.Replace(picturedNumber(n%12), "9400", []string{"9400", "9405"}[n/12], 1))
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, said := w.run("create", file, "-q"); code != 0 {
		t.Fatalf("create ended with %d: %s", code, said)
	}
	i := w.inspects("--forward-to", orders.URL+"/orders", "--forward-to", "event=router.exception=>"+orders.URL+"/returns")
	for n := range 12 {
		kind := [][3]string{
			{"delivered", "Delivered, front door", "MEMPHIS"},
			{"in_transit", "Arrived at sort facility", "MEMPHIS"},
			{"exception", "Delivery attempted, no access", "MEMPHIS"},
			{"out_for_delivery", "Out for delivery", "MEMPHIS"},
			{"in_transit", "Departed from facility", "NASHVILLE"},
		}[n*3%5]
		i.post("[" + picturedEvent(n, kind[0], "", kind[1], kind[2]) + "]")
	}
	again := "[" + picturedEvent(4, "delivered", "", "Delivered, in mailbox", "MEMPHIS") + "," + picturedEvent(13, "in_transit", "", "Arrived at sort facility", "MEMPHIS") + "]"
	i.post(again)
	i.postAs("/hook", again, strings.Repeat("0", 64))
	i.post("[" + picturedEvent(14, "delivered", "", "Delivered, parcel locker", "MEMPHIS") + "]")
	waitUntil(t, "deliveries are forwarded", func() bool {
		var page struct {
			Deliveries []struct {
				Forwarding []struct{ State string }
			}
		}
		i.get("/deliveries?limit=50", &page)
		for _, d := range page.Deliveries {
			for _, f := range d.Forwarding {
				if f.State == "unread" || f.State == "sending" {
					return false
				}
			}
		}
		return len(page.Deliveries) == 14
	})
	i.stop()
	db, err := sql.Open("sqlite", "file:"+i.store)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"deliveries SET received = 1772670000000 + 61000 * seq", "events SET received = 1772670000000 + 61000 * delivery"} {
		if _, err := db.ExecContext(t.Context(), "UPDATE "+table); err != nil {
			t.Fatal(err)
		}
	}
	return w.showsStore(i.store, "--to", orders.URL+"/orders")
}
