//go:build unix

package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	visible "github.com/waybill-cli/waybill/internal/term"
)

// journey is an answer with zones, wide characters, a hostile text and an event that
// is longer than a line.
const journey = `{"data":{"referId":"R1","carrierCode":"dhl","trackingNumber":"350586033920","status":1,"statusTrack":"delivered","error":null,
	"summary":{"created":"2026-03-01T11:45:57.125Z","updated":"2026-03-06T17:13:11.125Z","latestEvent":"Delivered, front door",
		"latestCheckpointTime":"2026-03-06T17:12:00.000Z","status":1,"statusLabel":"DELIVERED","transitTime":4},
	"detail":{"trackingEvents":[
		{"eventType":"Delivered, front door","eventCity":"Seattle","eventState":"WA","eventZIPCode":"98108","eventTimestamp":"2026-03-06T09:12:00","GMTTimestamp":"2026-03-06T17:12:00Z"},
		{"eventType":"Out for delivery: your shipment was loaded","eventCity":"Seattle","eventState":"WA","eventZIPCode":"98108","eventTimestamp":"2026-03-07T06:01:00","GMTTimestamp":"2026-03-06T04:01:00Z"},
		{"eventType":"国際交換局から発送 🚚","eventCity":"東京","eventZIPCode":"100-0001","eventTimestamp":"2026-03-04T00:22:00","GMTTimestamp":"2026-03-03T15:22:00Z"},
		{"eventType":"a\u001b[2J\u202eb","eventCity":"Kyoto","eventTimestamp":"2026-03-02T20:50:00","GMTTimestamp":"2026-03-02T11:50:00Z"}]}}}`

// newShownWorld is a world whose service has one tracking, R1, and processes others.
func newShownWorld(tb testing.TB) *world {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("referId") == "R1" {
			fmt.Fprint(w, journey)
			return
		}
		fmt.Fprint(w, `{"message":"Processing"}`)
	}))
	tb.Cleanup(server.Close)
	return newHome(tb).at(server.URL)
}

// The form of one tracking on terminals of four widths: UTC goes first, then texts go
// on in further lines.
func TestShowOnTerminals(t *testing.T) {
	w := newShownWorld(t)
	const head = "R1 · dhl 350586033920\n" +
		"DELIVERED (1)  2026-03-06 09:12 -08:00, Seattle, WA 98108\n" +
		"updated now by query · 4 days in transit\n\n"
	for columns, want := range map[uint16]string{
		60: `
LOCAL TIME               EVENT              PLACE
2026-03-06 09:12 -08:00  Delivered, front   Seattle, WA
                         door               98108
2026-03-07 06:01         Out for delivery:  Seattle, WA
                         your shipment was  98108
                         loaded
                         ! offset +26:00
                         impossible
2026-03-04 00:22 +09:00  国際交換局から発…  東京, 100-0001
                         🚚
2026-03-02 20:50 +09:00  a\u{1b}[2J\u{202…  Kyoto
`,
		80: `
LOCAL TIME               EVENT                                 PLACE
2026-03-06 09:12 -08:00  Delivered, front door                 Seattle, WA 98108
2026-03-07 06:01         Out for delivery: your shipment was   Seattle, WA 98108
                         loaded
                         ! offset +26:00 impossible
2026-03-04 00:22 +09:00  国際交換局から発送 🚚                 東京, 100-0001
2026-03-02 20:50 +09:00  a\u{1b}[2J\u{202e}b                   Kyoto
`,
		100: `
LOCAL TIME               EVENT                                       PLACE
2026-03-06 09:12 -08:00  Delivered, front door                       Seattle, WA 98108
2026-03-07 06:01         Out for delivery: your shipment was loaded  Seattle, WA 98108
                         ! offset +26:00 impossible
2026-03-04 00:22 +09:00  国際交換局から発送 🚚                       東京, 100-0001
2026-03-02 20:50 +09:00  a\u{1b}[2J\u{202e}b                         Kyoto
`,
		140: `
LOCAL TIME               UTC               EVENT                                       PLACE
2026-03-06 09:12 -08:00  2026-03-06 17:12  Delivered, front door                       Seattle, WA 98108
2026-03-07 06:01         2026-03-06 04:01  Out for delivery: your shipment was loaded  Seattle, WA 98108
                                           ! offset +26:00 impossible
2026-03-04 00:22 +09:00  2026-03-03 15:22  国際交換局から発送 🚚                       東京, 100-0001
2026-03-02 20:50 +09:00  2026-03-02 11:50  a\u{1b}[2J\u{202e}b                         Kyoto
`,
	} {
		code, raw := w.terminal(columns, "show", "R1")
		lines, _ := drawn(t, raw)
		if got := strings.Join(lines, "\n"); code != 0 || got != head+want[1:] {
			t.Errorf("%d columns: exit status %d\n%s\nwant\n%s", columns, code, got, head+want[1:])
		}
		for _, line := range lines {
			if n := visible.DisplayWidth(line); n > int(columns) {
				t.Errorf("%d columns: %d in %q", columns, n, line)
			}
		}
		for _, styled := range []string{"\x1b[1mR1\x1b[0m", "\x1b[32mDELIVERED (1)\x1b[0m"} {
			if !strings.Contains(raw, styled) {
				t.Errorf("%d columns: no %q in %q", columns, styled, raw)
			}
		}
	}
}

// Colour is never needed: without it the same text is there.
func TestShowWithoutColour(t *testing.T) {
	w := newShownWorld(t)
	_, coloured := w.terminal(100, "show", "R1", "-q")
	for _, env := range []string{"TERM=dumb", "NO_COLOR=1"} {
		cmd := w.command("show", "R1", "-q")
		cmd.Stdout = nil
		code, raw := w.on(100, cmd, "TERM=xterm-256color", env)
		if plain := colours.ReplaceAllString(coloured, ""); code != 0 || raw != plain {
			t.Errorf("%s: exit status %d\n%s\nwant\n%s", env, code, raw, plain)
		}
	}
}

// Scripts read the same lines whatever a terminal shows.
func TestShowInAPipe(t *testing.T) {
	w := newShownWorld(t)
	code, stdout, stderr := w.run("show", "R1")
	want := `Reference:     R1
Number:        350586033920
Carrier:       dhl
Status:        DELIVERED \(1\)
Latest event:  Delivered, front door
Created:       2026-03-01T11:45:57\.125Z
Updated:       2026-03-06T17:13:11\.125Z
Transit time:  4 days
Asked:         20..-..-.. ..:..:.. \+00:00

LOCAL TIME	UTC	EVENT	CITY	STATE	ZIP	NOTE
2026-03-06T09:12:00	2026-03-06T17:12:00Z	Delivered, front door	Seattle	WA	98108	
2026-03-07T06:01:00	2026-03-06T04:01:00Z	Out for delivery: your shipment was loaded	Seattle	WA	98108	impossible offset
2026-03-04T00:22:00	2026-03-03T15:22:00Z	国際交換局から発送 🚚	東京		100-0001	
2026-03-02T20:50:00	2026-03-02T11:50:00Z	.*	Kyoto			

Note:  2026-03-06T04:01:00Z, Out for delivery: your shipment was loaded, Seattle, WA, 98108: offset \+26:00 impossible
`
	if code != 0 || len(stderr) > 0 || !regexp.MustCompile("^"+want+"$").Match(stdout) {
		t.Errorf("exit status %d\n%s\nwant\n%s\nstderr %s", code, stdout, want, stderr)
	}
}
