//go:build !windows

package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/pgtest"
)

// A create whose store goes away says how far it came.
func TestCreateSaysHowFarItCameWhenTheServerWentAway(t *testing.T) {
	t.Parallel()
	server, ok := pgtest.Start(t)
	if !ok {
		return
	}
	var calls atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && calls.Add(1) == 2 {
			if err := server.Stop(r.Context(), "immediate"); err != nil {
				t.Error(err)
			}
		}
		_, _ = w.Write([]byte(`{"message":"taken"}`))
	}))
	defer service.Close()
	input := filepath.Join(t.TempDir(), "orders.csv")
	if err := os.WriteFile(input, []byte("referId,trackingNumber\nA1,1Z999AA10123456784\nA2,1Z999AA10123456785\nA3,1Z999AA10123456786\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"WAYBILL_BASE_URL=" + service.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + server.NewURL(t)}
	code, stdout, stderr := run(t, env, "create", input, "--skip-proof", "--batch-size", "1", "--concurrency", "1")
	said := regexp.MustCompile(`; before that, (\d) of 3 rows recorded as accepted\n`).FindStringSubmatch(stderr)
	if code != command.Store || said == nil || !strings.Contains(stderr, "next: waybill create ") {
		t.Fatalf("status %d: %s%s", code, stdout, stderr)
	}
	// The first row may be waiting to be recorded when the server goes: what is said is
	// what the store has.
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := run(t, env, "runs", "show", "1", "--jq", ".accepted"); strings.TrimSpace(stdout) != said[1] {
		t.Errorf("said %s, status %d: %s%s", said[1], code, stdout, stderr)
	}
}

// What waits goes on once the server is back, however long it was away within --timeout, also
// where that began before its first question; other commands end with 10.
func TestWaitsOutlastAServerThatIsAway(t *testing.T) {
	t.Parallel()
	server, ok := pgtest.Start(t)
	if !ok {
		return
	}
	var done atomic.Bool
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			_, _ = w.Write([]byte(`{"message":"taken"}`))
		case done.Load():
			_, _ = w.Write([]byte(`{"data":{"trackingNumber":"` + r.URL.Query().Get("referId") + `","summary":{"status":1,"statusLabel":"DELIVERED"}}}`))
		default:
			_, _ = w.Write([]byte(`{"message":"Processing"}`))
		}
	}))
	defer service.Close()
	env := sharedEnv(service.URL, server.NewURL(t))
	order := func(n string) []string {
		return []string{"create", "--refer-id", n, "--tracking-number", n, "--skip-proof"}
	}
	if code, stdout, stderr := run(t, env, order("A1")...); code != command.OK {
		t.Fatalf("status %d: %s%s", code, stdout, stderr)
	}
	events := func() *process { return start(t, env, "events", "wait", "--timeout", "2m", "-o", "jsonl") }
	before := []*process{events()}
	before[0].await("connection", func() (made bool) {
		const query = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE application_name = 'waybill')"
		if err := server.Ask(t.Context(), query, nil, &made); err != nil {
			t.Fatal(err)
		}
		return made
	})
	wait := start(t, env, "wait", "A1", "--timeout", "2m")
	wait.await("beginning", func() bool { return strings.Contains(wait.errs.String(), "Waiting") || wait.hasEnded() })
	before = append(before, wait)
	if err := server.Stop(t.Context(), "immediate"); err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(before, []*process{
		start(t, env, "wait", "A1", "--timeout", "2m"), events(), start(t, env, append(order("A2"), "--timeout", "2m")...),
	})
	done.Store(true)
	// Other commands give up. Two, one after the other, try for longer than any one call.
	for _, args := range [][]string{{"runs", "list"}, order("A3")} {
		p := start(t, env, args...)
		p.await("end", p.hasEnded)
		if code := p.stop(); code != command.Store {
			t.Errorf("a command without --timeout ended with %d: %s%s", code, p.out.String(), p.errs.String())
		}
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := startListener(t, env)
	for i, p := range all {
		p.await("end", func() bool { l.deliver(i, "N1"); return p.hasEnded() })
		if code := p.stop(); code != command.OK {
			t.Errorf("command %d ended with %d: %s%s", i, code, p.out.String(), p.errs.String())
		}
	}
	l.stop()
}
