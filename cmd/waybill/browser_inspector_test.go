//go:build browser

package main_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// inspector is a listener with its page.
type inspector struct {
	*listener

	url    string // with the token
	origin string
	client *http.Client
	token  string // that the program's own requests bring
}

// inspects starts a listener with a page, on a store of its own.
func (w *world) inspects(flags ...string) *inspector {
	w.tb.Helper()
	file := filepath.Join(w.tb.TempDir(), "page.url")
	i := &inspector{listener: w.listens(filepath.Join(w.home, "waybill.db"), nil, append(flags, "--ui", "--ui-file", file)...)}
	return i.openedBy(file)
}

// showsStore starts `waybill inspect` on a store.
func (w *world) showsStore(path string, flags ...string) *inspector {
	w.tb.Helper()
	l := &listener{world: w, store: path, ready: filepath.Join(w.tb.TempDir(), "inspect.url")}
	l.env = []string{"WAYBILL_WEBHOOK_SCHEME=hmac-body-hex", "WAYBILL_WEBHOOK_SECRET=" + hookKey}
	l.cmd = w.command(append([]string{"inspect", "--ready-file", l.ready, "--store", path}, flags...)...)
	l.start()
	return (&inspector{listener: l}).openedBy(l.ready)
}

// openedBy opens the page whose URL is in a file.
func (i *inspector) openedBy(file string) *inspector {
	i.tb.Helper()
	waitUntil(i.tb, "the file with the page's URL", func() bool {
		text, err := os.ReadFile(file)
		i.url = strings.TrimSpace(string(text))
		return err == nil && i.url != ""
	})
	i.origin = originOf(i.tb, i.url)
	_, i.token, _ = strings.Cut(i.url, "#token=")
	i.client = &http.Client{Timeout: stepPatience, Transport: &http.Transport{}}
	i.tb.Cleanup(i.client.CloseIdleConnections)
	return i
}

// fetch returns the body of a page, which must be there.
func (i *inspector) fetch(address string) []byte {
	i.tb.Helper()
	r, err := http.NewRequestWithContext(i.tb.Context(), http.MethodGet, address, nil)
	if err != nil {
		i.tb.Fatal(err)
	}
	r.Header.Set("Waybill-Token", i.token)
	res, err := i.client.Do(r)
	if err != nil {
		i.tb.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		i.tb.Fatalf("%s: status %d, %v: %s", address, res.StatusCode, err, body)
	}
	return body
}

// get asks a route of the page.
func (i *inspector) get(path string, into any) {
	i.tb.Helper()
	body := i.fetch(i.origin + "/api/v1" + path)
	if err := json.Unmarshal(body, into); err != nil {
		i.tb.Fatalf("%s: %v: %s", path, err, body)
	}
}

// post delivers a body, signed, with more header fields: name and value by turns.
func (i *inspector) post(body string, header ...string) {
	i.tb.Helper()
	if status := i.postAs("/hook", body, signature(body), header...); status != http.StatusOK {
		i.tb.Fatalf("a delivery was answered %d: %s", status, short(body))
	}
}

// postAs delivers a body to a path, with a signature, and returns the status of the answer.
func (i *inspector) postAs(path, body, signature string, header ...string) int {
	i.tb.Helper()
	r, err := http.NewRequestWithContext(i.tb.Context(), http.MethodPost, "http://"+i.addr+path, strings.NewReader(body))
	if err != nil {
		i.tb.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Signature", signature)
	for n := 0; n < len(header); n += 2 {
		r.Header.Add(header[n], header[n+1])
	}
	res, err := i.client.Do(r)
	if err != nil {
		i.tb.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

func signature(body string) string {
	m := hmac.New(sha256.New, []byte(hookKey))
	m.Write([]byte(body))
	return hex.EncodeToString(m.Sum(nil))
}

// show opens the page in a tab, and in it what the address names: #/deliveries.
func (i *inspector) show(tb *tab, hash string) {
	tb.t.Helper()
	tb.visit(i.url)
	tb.wait(`location.hash == "#/deliveries" && document.querySelector("main")?.children.length`)
	tb.goTo(hash)
}

// goTo leaves for another view of the page that is open.
func (tb *tab) goTo(hash string) {
	tb.t.Helper()
	eval[any](tb, "(location.hash = "+quoteJS(hash)+", null)")
}

// waitUntil waits until a condition of the test is met.
func waitUntil(tb testing.TB, what string, met func() bool) {
	tb.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(stepPatience); !met(); <-tick.C {
		if time.Now().After(end) {
			tb.Fatalf("not within %v: %s", stepPatience, what)
		}
	}
}
