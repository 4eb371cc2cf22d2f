//go:build !windows

package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/pgtest"
)

// counted is a service that takes everything, and what it took.
type counted struct {
	*httptest.Server
	mu    sync.Mutex
	taken map[string]int // creates by body
	first func()         // called during the first create
	asked func()         // called during the first query
}

func newCounted(t *testing.T) *counted {
	t.Helper()
	c := &counted{taken: map[string]int{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			c.take(r)
		} else {
			c.ask()
		}
		_, _ = w.Write([]byte(`{"message":"taken"}`))
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *counted) ask() {
	c.mu.Lock()
	asked := c.asked
	c.asked = nil
	c.mu.Unlock()
	if asked != nil {
		asked()
	}
}

func (c *counted) take(r *http.Request) {
	body := make([]byte, r.ContentLength)
	_, _ = r.Body.Read(body)
	c.mu.Lock()
	c.taken[string(body)]++
	first := c.first
	c.first = nil
	c.mu.Unlock()
	if first != nil {
		first()
	}
}

// sent returns how many creates were sent, and how many of them twice.
func (c *counted) sent() (all, twice int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.taken {
		all += n
		twice += n - 1
	}
	return all, twice
}

// orders writes a file of so many rows.
func orders(t *testing.T, rows int) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("referId,trackingNumber\n")
	for i := range rows {
		fmt.Fprintf(&text, "A%d,1Z999AA1012345%04d\n", i, i)
	}
	path := filepath.Join(t.TempDir(), "orders.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A server that stops while a request is under way ends the run with 10. The request ends
// first; what it brought is unknown to the store, and is reported nowhere. The same
// command goes on.
func TestARunWhoseServerStops(t *testing.T) {
	t.Parallel()
	server, ok := pgtest.Start(t)
	if !ok {
		return
	}
	service := newCounted(t)
	place := server.NewURL(t)
	env := []string{"WAYBILL_BASE_URL=" + service.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + place}
	service.first = func() {
		awaitStaged(t, env)
		if err := server.Stop(t.Context(), "immediate"); err != nil {
			t.Error(err)
		}
	}
	create := []string{"create", orders(t, 5), "--skip-proof", "--batch-size", "1", "--concurrency", "1", "--unknown", "keep"}
	code, stdout, stderr := run(t, env, create...)
	if all, _ := service.sent(); code != command.Store || stdout != "" || all != 1 {
		t.Errorf("status %d after %d requests; want 10 after one: %s%s", code, all, stdout, stderr)
	}
	for _, want := range []string{"server is unreachable", "hint: check that the server runs", "next: waybill create "} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in %s", want, stderr)
		}
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = run(t, env, append(create, "-o", "json", "--jq", `"\(.accepted) \(.unknown) \(.pending)"`)...)
	if all, twice := service.sent(); code != command.Unknown || stdout != "4 1 0\n" || all != 5 || twice != 0 {
		t.Errorf("status %d after %d requests, %d of them twice; want 7 after 5: %s%s", code, all, twice, stdout, stderr)
	}
}

// A run goes on after a short cut of the network, whether it shows or not.
func TestARunGoesOnAfterAShortCut(t *testing.T) {
	t.Parallel()
	server, ok := pgtest.Start(t)
	if !ok {
		return
	}
	for name, cut := range map[string]func(*pgtest.Proxy){"refused": (*pgtest.Proxy).Refuse, "stalled": (*pgtest.Proxy).Stall} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := newCounted(t)
			proxy := server.NewProxy(t)
			place, err := proxy.URL(server.NewURL(t))
			if err != nil {
				t.Fatal(err)
			}
			env := []string{"WAYBILL_BASE_URL=" + service.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + place}
			var healed *time.Timer
			service.first = func() {
				awaitStaged(t, env)
				cut(proxy)
				healed = time.AfterFunc(3*time.Second, proxy.Heal)
			}
			code, stdout, stderr := run(t, env, "create", orders(t, 50), "--skip-proof", "--batch-size", "1", "--concurrency", "4", "-o", "json", "--jq", `"\(.accepted) \(.unknown) \(.pending)"`)
			if all, twice := service.sent(); code != command.OK || stdout != "50 0 0\n" || all != 50 || twice != 0 {
				t.Errorf("status %d after %d requests, %d of them twice; want 0 after 50: %s%s", code, all, twice, stdout, stderr)
			}
			if healed.Stop() {
				t.Error("it did not wait for the network")
			}
		})
	}
}
