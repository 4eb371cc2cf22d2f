//go:build unix

package main_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	visible "github.com/waybill-cli/waybill/internal/term"
)

// column is the column of a terminal in which a text begins in a line, -1 if it
// is not there.
func column(line, text string) int {
	before, _, found := strings.Cut(line, text)
	if !found {
		return -1
	}
	return visible.DisplayWidth(before)
}

// lineWith returns the one line that holds a text.
func lineWith(t *testing.T, lines []string, text string) string {
	t.Helper()
	found := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.Contains(l, text) })
	if len(found) != 1 {
		t.Fatalf("%d lines with %q in\n%s", len(found), text, strings.Join(lines, "\n"))
	}
	return found[0]
}

// Lines of a listener are aligned on a terminal, whatever their values hold, and none
// is wider than it.
func TestLinesOfListenAreAligned(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(app.Close)
	bodies := []string{
		`[{"eventId":"1","event":"router.delivered","data":{"trackingNumber":"1Z999AA10123456784","status":1,"long":[` + strings.Repeat("0,", 40) + `0],"summary":{"statusLabel":"DELIVERED","latestEvent":"Left at door"}}},` +
			`{"eventId":"2","event":"second.of.it","data":{"trackingNumber":"9400111899223100001234","status":1}}]`,
		`[{"eventId":"1","event":"router.delivered","data":{"trackingNumber":"last","status":2}}]`,
		`[{"eventId":"3","event":"\u001b[2J\u202ehostile\nkind of an event that is long","data":{"trackingNumber":"\u001b]0;x\u0007","status":7,"summary":{"statusLabel":"\u009b31m","latestEvent":"\u200b"}}}]`,
		`[{"eventId":"4","event":"配達完了しました配達完了しました配達","data":{"trackingNumber":"東京-1","status":1,"summary":{"statusLabel":"配達済み","latestEvent":"👩‍👩‍👧 玄関"}}}]`,
	}
	for _, columns := range []uint16{60, 80, 110, 150} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			w := newHome(t)
			ready := filepath.Join(t.TempDir(), "url")
			cmd := w.command("listen", "--addr", "127.0.0.1:0", "--ready-file", ready, "--timeout", "60s", "--exit-after", "4",
				"--forward-unverified", "--forward-to", app.URL)
			cmd.Stdout = nil
			sent := make(chan error, 1)
			go func() { sent <- postAll(ready, bodies) }()
			_, raw := w.on(columns, cmd, "TERM=xterm-256color")
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			lines, _ := drawn(t, raw)
			for _, l := range lines {
				if n := visible.DisplayWidth(l); n > int(columns) && column(l, ":") == 2 {
					t.Errorf("%d columns: %s", n, l)
				}
			}
			head := lineWith(t, lines, "TIME")
			first, second, wide := lineWith(t, lines, "1Z999AA10123456784"), lineWith(t, lines, "9400111899223100001234"), lineWith(t, lines, "東京-1")
			hostile, forwarded := lineWith(t, lines, `\u{1b}]0;x`), lineWith(t, slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.Contains(l, " 3 ") }), "forwarded to "+app.URL)
			for what, at := range map[string][2]int{
				"NUMBER":              {column(first, "1Z999AA"), column(head, "NUMBER")},
				"EVENT":               {column(first, "router"), column(head, "EVENT")},
				"VERIFIED":            {column(first, "unknown"), column(head, "VERIFIED")},
				"ID of the second":    {column(second, "1.2"), column(head, "ID")},
				"NUMBER too long":     {column(second, "94001"), column(head, "NUMBER")},
				"VERIFIED behind it":  {column(second, "unknown"), column(head, "VERIFIED")},
				"wide EVENT":          {column(wide, "配"), column(head, "EVENT")},
				"VERIFIED of wide":    {column(wide, "unknown"), column(head, "VERIFIED")},
				"VERIFIED of hostile": {column(hostile, "unknown"), column(head, "VERIFIED")},
				"ID of forwarding":    {column(forwarded, " 3 ") + 1, column(head, "ID")},
			} {
				if at[0] != at[1] {
					t.Errorf("%s begins in column %d, its head in %d", what, at[0], at[1])
				}
			}
			eventPageFits(t, w, columns)
			if t.Failed() {
				t.Log(strings.Join(lines, "\n"))
			}
		})
	}
}

// eventPageFits shows the hostile event of that store on a terminal.
func eventPageFits(t *testing.T, w *world, columns uint16) {
	t.Helper()
	code, raw := w.terminal(columns, "events", "show", "3")
	lines, _ := drawn(t, raw)
	page := strings.Join(lines, "\n")
	if code != 0 || !strings.Contains(page, "(now), from") && !strings.Contains(page, " s ago), from") {
		t.Errorf("status %d\n%s", code, page)
	}
	head := lineWith(t, lines, "ATTEMPTS")
	_, raw = w.terminal(columns, "events", "show", "1")
	if long, _ := drawn(t, raw); len(long) > 45 || !slices.ContainsFunc(long, func(l string) bool { return strings.HasPrefix(l, "… ") }) {
		t.Errorf("%d lines of a long event:\n%s", len(long), strings.Join(long, "\n"))
	}
	_, raw = w.terminal(columns, "events", "list")
	table, _ := drawn(t, raw)
	for _, name := range []string{"ID", "RECEIVED", "NUMBER", "STATUS"} {
		if columns >= 80 && column(table[0], name) < 0 {
			t.Errorf("events list at %d columns drops %s: %s", columns, name, table[0])
		}
	}
	if sent := lineWith(t, lines, " sent "); column(sent, "sent ") != column(head, "STATE") {
		t.Errorf("STATE is not aligned:\n%s", page)
	}
	for _, l := range lines[:slices.Index(lines, "{")] {
		if n := visible.DisplayWidth(l); n > int(columns) {
			t.Errorf("%d columns: %s", n, l)
		}
	}
}

// postAll posts bodies to a listener once its address is known.
func postAll(ready string, bodies []string, sign ...func(string) string) error {
	var url string
	for end := time.Now().Add(20 * time.Second); url == ""; time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(ready)
		if err != nil && time.Now().After(end) {
			return err
		}
		url = strings.TrimSpace(string(b))
	}
	for _, body := range bodies {
		req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return err
		}
		for _, of := range sign {
			req.Header.Set("X-Signature", of(body))
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = res.Body.Close()
	}
	return nil
}

// On a terminal, a listener without a scheme says once which one the deliveries fit.
func TestListenOffersAScheme(t *testing.T) {
	t.Parallel()
	lines := newHome(t).listensUnset(false)
	lineWith(t, lines, "The deliveries fit a scheme: HMAC-SHA256 of {body}, in hex at header:X-Signature")
	lineWith(t, lines, "next: waybill signature learn --pin learned")
}

// It offers none once one is set: pinning another would replace it.
func TestListenOffersNoSecondScheme(t *testing.T) {
	t.Parallel()
	lines := newHome(t).listensUnset(true)
	lineWith(t, lines, "Configuration reloaded. Scheme hmac-body-hex")
	if text := strings.Join(lines, "\n"); strings.Contains(text, "fit a scheme") {
		t.Errorf("offered while one is set:\n%s", text)
	}
}

// listensUnset returns what a listener without a scheme prints about five signed deliveries; with
// set, the scheme is set while it runs.
func (w *world) listensUnset(set bool) []string {
	w.tb.Helper()
	ready := filepath.Join(w.home, "url")
	cmd := w.command("listen", "--addr", "127.0.0.1:0", "--ready-file", ready, "--timeout", "10s")
	if set {
		cmd = w.command("listen", "--addr", "127.0.0.1:0", "--ready-file", ready, "--timeout", "60s", "--exit-after", "5")
	}
	cmd.Stdout = nil
	sent := make(chan error, 1)
	go func() {
		if set {
			if err := postAll(ready, nil); err != nil { // once it runs
				sent <- err
				return
			}
			if err := w.command("config", "set", "webhook.scheme", "hmac-body-hex").Run(); err != nil {
				sent <- err
				return
			}
			time.Sleep(3 * time.Second) // the listener looks each second
		}
		var bodies []string
		for n := range 5 {
			bodies = append(bodies, fmt.Sprintf(`[{"eventId":"%d","event":"x"}]`, n))
		}
		sent <- postAll(ready, bodies, func(body string) string {
			m := hmac.New(sha256.New, []byte(hookKey))
			m.Write([]byte(body))
			return hex.EncodeToString(m.Sum(nil))
		})
	}()
	code, raw := w.on(100, cmd, "WAYBILL_WEBHOOK_SECRET="+hookKey)
	if err := <-sent; err != nil || code != 0 {
		w.tb.Fatal(code, err, raw)
	}
	lines, _ := drawn(w.tb, raw)
	return lines
}
