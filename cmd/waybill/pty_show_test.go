//go:build unix

package main_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
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

// The form of one tracking on terminals of four widths: UTC goes first, then ZIP codes;
// then texts go on in further lines.
func TestShowOnTerminals(t *testing.T) {
	w := newShownWorld(t)
	const head = "R1 · dhl 350586033920\n" +
		"DELIVERED (1)  2026-03-06 09:12 -08:00, Seattle, WA 98108\n" +
		"received now by query · 4 days in transit\n\n"
	for columns, want := range map[uint16]string{
		60: `
LOCAL TIME               EVENT                   PLACE
2026-03-06 09:12 -08:00  Delivered, front door   Seattle, WA
2026-03-07 06:01         Out for delivery: your  Seattle, WA
                         shipment was loaded
                         ! offset +26:00
                         impossible
2026-03-04 00:22 +09:00  国際交換局から発送 🚚   東京
2026-03-02 20:50 +09:00  a\u{1b}[2J\u{202e}b     Kyoto
`,
		80: `
LOCAL TIME               EVENT                                       PLACE
2026-03-06 09:12 -08:00  Delivered, front door                       Seattle, WA
2026-03-07 06:01         Out for delivery: your shipment was loaded  Seattle, WA
                         ! offset +26:00 impossible
2026-03-04 00:22 +09:00  国際交換局から発送 🚚                       東京
2026-03-02 20:50 +09:00  a\u{1b}[2J\u{202e}b                         Kyoto
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

// A table of several keeps identifiers, status and its colour on every terminal, and
// ends with one line that sums it up.
func TestShowOfSeveralOnTerminals(t *testing.T) {
	w := newShownWorld(t)
	for _, columns := range []uint16{60, 80, 100, 140} {
		code, raw := w.terminal(columns, "show", "R1", "R2")
		lines, _ := drawn(t, raw)
		shown := strings.Join(lines, "\n")
		for _, want := range []string{"REFERENCE", "NUMBER", "STATUS", "350586033920", "DELIVERED ", "2 trackings: 1 delivered · 1 processing"} {
			if !strings.Contains(shown, want) {
				t.Errorf("%d columns: no %q in\n%s", columns, want, shown)
			}
		}
		for column, from := range map[string]uint16{"RECEIVED": 80, "CHECKPOINT": 100} {
			if columns >= from && !strings.Contains(shown, column) {
				t.Errorf("%d columns: no %s in\n%s", columns, column, shown)
			}
		}
		for _, line := range lines {
			if n := visible.DisplayWidth(line); n > int(columns) {
				t.Errorf("%d columns: %d in %q", columns, n, line)
			}
		}
		if code != 0 || !strings.Contains(raw, "\x1b[32mDELIVERED\x1b[0m") {
			t.Errorf("%d columns: exit status %d, or no colour: %q", columns, code, raw)
		}
	}
}

// What programs read can be read, with every text as it was sent.
func TestShowForPrograms(t *testing.T) {
	w := newShownWorld(t)
	_, stdout, _ := w.run("show", "R1", "R2", "-o", "csv")
	table, err := csv.NewReader(bytes.NewReader(stdout)).ReadAll()
	if err != nil || len(table) != 3 {
		t.Fatalf("%d lines, %v: %s", len(table), err, stdout)
	}
	want := map[string]string{"referId": "R1", "trackingNumber": "350586033920", "status": "1", "latestCheckpointTime": "2026-03-06T17:12:00.000Z", "learntFrom": "query"}
	for name, value := range want {
		if i := slices.Index(table[0], name); i < 0 || table[1][i] != value {
			t.Errorf("%s is not %q in %q", name, value, table)
		}
	}
	for _, args := range [][]string{{"show", "R1", "-o", "json"}, {"show", "R1", "R2", "-o", "json", "--jq", ".[0]"}, {"show", "R1", "R1", "-o", "jsonl"}} {
		_, stdout, _ := w.run(args...)
		var got struct {
			TransitTime int
			Checkpoints []struct{ EventType string }
		}
		if err := json.Unmarshal(stdout, &got); err != nil || got.TransitTime != 4 || len(got.Checkpoints) != 4 || got.Checkpoints[3].EventType != "a\x1b[2J\u202eb" {
			t.Errorf("%q: %v: %s", args, err, stdout)
		}
	}
}
