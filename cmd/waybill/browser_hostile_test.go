//go:build browser

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// hostilePages is a store whose every text from outside is hostile.
type hostilePages struct {
	*inspector

	strings   []string
	elsewhere *httptest.Server
	visits    atomic.Int64 // that elsewhere had
}

// newHostilePages has trackings of a file, answers of the service, deliveries
// and answers of a target that are hostile throughout. Delivery n+1 has string n.
func newHostilePages(t *testing.T) *hostilePages {
	t.Helper()
	h := &hostilePages{}
	h.elsewhere = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { h.visits.Add(1) }))
	t.Cleanup(h.elsewhere.Close)
	h.strings = hostileStrings(t, h.elsewhere.URL)
	service := httptest.NewServer(http.HandlerFunc(h.serveService))
	t.Cleanup(service.Close)
	target := httptest.NewServer(http.HandlerFunc(h.serveTarget))
	t.Cleanup(target.Close)

	w := newHome(t).at(service.URL)
	w.env = append(w.env, "WAYBILL_ACCOUNT="+h.strings[0])
	store := filepath.Join(w.home, "waybill.db")
	w.env = append(w.env, "WAYBILL_STORE="+store)
	type row struct {
		ReferID  string            `json:"referId"`
		Number   string            `json:"rawTrackingNumber"`
		Metadata map[string]string `json:"metadata,omitempty"`
	}
	var rows []row
	for n, s := range h.strings {
		rows = append(rows, row{ReferID: fmt.Sprint("R-", n), Number: number(n)}, row{s, fmt.Sprint("F", n), map[string]string{"carrierCode": s}}, row{fmt.Sprint("S-", n), s, nil})
	}
	text, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.home, "orders<img src=x onerror=pwn(1)>.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, said := w.run("create", file, "--skip-invalid", "--skip-proof", "-o", "json"); code != 0 && code != 6 {
		t.Fatalf("create ended with %d: %s%s", code, short(string(out)), short(string(said)))
	}
	// 7: of an order that is a hostile text itself the service says nothing.
	if code, _, said := w.run("show", "--run", "1", "-o", "json"); code != 7 {
		t.Fatalf("show ended with %d: %s", code, short(string(said)))
	}
	h.inspector = w.inspects("--forward-to", target.URL)
	for n, s := range h.strings {
		h.deliver(n, s)
	}
	return h
}

// number ends in no zeros: those would be damage that a spreadsheet did.
func number(n int) string { return fmt.Sprintf("94001%016d7", n) }

// serveService answers as the service, with hostile texts wherever it has any.
func (h *hostilePages) serveService(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	refer := r.URL.Query().Get("referId")
	n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(refer, "R-"), "S-"))
	if r.Method == http.MethodPost || err != nil || n >= len(h.strings) {
		_, _ = w.Write([]byte(`{}`))
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"message": h.strings[n], "data": h.data(n, h.strings[n])})
}

// data is what the service says of a tracking.
func (h *hostilePages) data(n int, s string) map[string]any {
	return map[string]any{
		"routerId": s, "trackingNumber": number(n), "status": s, "statusTrack": s, "carrier": s, "error": s, s: s,
		"summary": map[string]any{"id": s, "trackingNumber": number(n), "status": n, "statusLabel": s, "latestEvent": s, "latestCheckpointTime": s, "transitTime": s, "carrier": s, "created": s, "updated": s},
		"detail": map[string]any{"trackingNumber": number(n), "statusSummary": s, "trackingEvents": []any{
			map[string]any{"eventType": s, "eventCity": s, "eventState": s, "eventZIPCode": s, "eventTimestamp": "2026-03-04T21:10:00", "GMTTimestamp": "2026-03-05T03:10:00Z", s: s},
			map[string]any{"eventType": s, "eventCity": s, "eventState": s, "eventZIPCode": s, "eventTimestamp": s, "GMTTimestamp": s},
			s,
			map[string]any{s: []any{s}},
		}},
	}
}

// serveTarget answers a forwarded delivery with a page, in every way that may be shown.
func (h *hostilePages) serveTarget(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.Header.Get("X-String"))
	s := h.strings[n%len(h.strings)]
	w.Header().Set("Content-Type", "text/html")
	if validHeader(s) {
		w.Header().Set("X-Reply", s)
	}
	w.WriteHeader([]int{200, 202, 404, 200}[n%4])
	_, _ = w.Write([]byte(s))
}

// deliver posts a delivery with a string in every field, header and place of its URL.
func (h *hostilePages) deliver(n int, s string) {
	h.tb.Helper()
	event := map[string]any{"eventId": fmt.Sprint(n, s), "event": s, "eventTime": s, "data": h.data(n, s), s: s}
	body, err := json.Marshal([]any{event, s, map[string]any{s: s}})
	if err != nil {
		h.tb.Fatal(err)
	}
	header := []string{"X-String", fmt.Sprint(n)}
	if validHeader(s) {
		header = append(header, "X-Hostile", s, "User-Agent", s, "Referer", s, "Cookie", s, "Authorization", "Bearer "+s)
	}
	text := string(body)
	switch n {
	case 3: // half a surrogate, and a name that is there twice
		text = strings.Replace(text, `"eventId"`, `"lone":"\ud800 \udfff","eventId":"\ud83d","eventId"`, 1)
	case 4: // no UTF-8
		text = strings.Replace(text, `"eventId"`, "\"bytes\":\"\xff\xfe\xc0\x80\",\"eventId\"", 1)
	case 5: // no JSON
		text = s + text
	case 6:
		text = `[null, {"eventId": null, "event": null, "data": null}, 1, [[]], {"eventId": {"a": []}, "event": ["x"], "data": "x"}]`
	}
	status := h.postAs("/"+url.PathEscape(s)+"?"+url.QueryEscape(s)+"="+url.QueryEscape(s), text, signature(text), header...)
	if status != http.StatusOK {
		h.tb.Errorf("string %d: status %d", n, status)
	}
	if n%10 == 0 { // one that is refused, or not verified
		h.postAs("/"+url.PathEscape(s), text, url.PathEscape(s), header...)
	}
}

// testHostile opens everything that a page shows of hostile texts.
func testHostile(t *testing.T, b *browser) {
	h := newHostilePages(t)
	tb := b.open(t)
	h.list(tb, "#/deliveries")
	met := eval[struct{ Numbers []int }](tb, "rows.scroll()").Numbers
	if len(met) < len(h.strings) {
		t.Errorf("the list has %d rows; want %d", len(met), len(h.strings))
	}
	for n, s := range h.strings {
		if n == 6 {
			continue // its body has no strings
		}
		tb.goTo(fmt.Sprint("#/deliveries/", n+1))
		tb.wait(fmt.Sprintf(`document.querySelector(".pane").getAttribute("aria-label") == "Delivery %d" && (text => text.includes(%s) && text.includes("X-String"))(document.querySelector(".pane-body").textContent)`,
			n+1, quoteJS(plainPart(s))))
	}
	for _, hash := range []string{"#/deliveries?refused=1", "#/deliveries?search=pwn", "#/deliveries?search=" + url.QueryEscape("event="+h.strings[0])} {
		tb.goTo(hash)
		tb.wait(`document.querySelector("main").innerText.length > 100 && !document.querySelector("[aria-busy=true]")`)
	}
	for n, s := range h.strings {
		tb.goTo(fmt.Sprint("#/tracking/R-", n))
		tb.wait(fmt.Sprintf(`document.querySelector("main").textContent.includes(%s) && document.querySelector("main").textContent.includes(%s)`, quoteJS(number(n)), quoteJS(plainPart(s))))
	}
	// Texts in the address are from anybody who makes a link.
	for n := 0; n < len(h.strings); n += 5 {
		s := h.strings[n]
		tb.goTo("#/deliveries?search=" + url.QueryEscape(s))
		tb.goTo("#/tracking/" + url.PathEscape(s))
	}
	tb.goTo("#/deliveries")
	tb.wait(`document.querySelector(".grid")`)
	if foreign := tb.foreign(h.origin); len(foreign) > 0 {
		t.Errorf("requests to elsewhere: %q", foreign)
	}

	file := filepath.Join(h.home, "report.html")
	if code, _, said := h.run("report", file); code != 0 {
		t.Fatalf("report ended with %d: %s", code, said)
	}
	report := b.open(t)
	report.visit("file://" + file)
	text := eval[string](report, "document.body.textContent")
	for n, s := range h.strings {
		if want := plainPart(s); !strings.Contains(text, want) {
			t.Errorf("the report lacks string %d: %q", n, want)
		}
	}
	if foreign := report.foreign("file://"); len(foreign) > 0 {
		t.Errorf("the report asks for %q", foreign)
	}
	if n := h.visits.Load(); n > 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// validHeader reports whether a text can be sent as the value of a header field.
func validHeader(s string) bool {
	return len(s) < 2000 && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
