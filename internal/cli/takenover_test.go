//go:build !windows

package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/pgtest"
)

// A command that others took for dead while it waited for an answer ends with 10 and
// the counts of the store: its row is unknown, whatever the answer was, and the same
// command goes on.
func TestRunThatAnotherTookOver(t *testing.T) {
	t.Parallel()
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s.db")
		takeOver(t, path, func() error { return os.RemoveAll(path + ".owners") }) // its lock is gone
	})
	t.Run("server", func(t *testing.T) {
		url, ok := pgtest.URL(t)
		if !ok {
			return
		}
		takeOver(t, url, func() error { // its row is gone
			_, err := pgtest.Connect(t, url).Exec(t.Context(), "DELETE FROM owners")
			return err
		})
	})
}

// takeOver lets another command take over the rows that a first one is sending. die makes
// the first look dead.
func takeOver(t *testing.T, place string, die func() error) {
	t.Helper()
	input := filepath.Join(t.TempDir(), "orders.csv")
	if err := os.WriteFile(input, []byte("referId,trackingNumber\nA1,1Z999AA10123456784\nA2,1Z999AA10123456785\nA3,1Z999AA10123456786\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	var env []string
	create := []string{"create", input, "--skip-proof", "--batch-size", "1", "--concurrency", "1", "--unknown", "keep"}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && calls.Add(1) == 1 {
			awaitStaged(t, env)
			if err := die(); err != nil {
				t.Error(err)
			}
			const says = "another waybill ended or was cut off while sending 1 row; the outcome is unknown\n"
			if code, stdout, stderr := run(t, env, create...); code != command.Unknown || !strings.Contains(stderr, says) {
				t.Errorf("the other ended with %d: %s%s", code, stdout, stderr)
			}
		}
		_, _ = w.Write([]byte(`{"message":"taken"}`))
	}))
	defer srv.Close()
	env = []string{"WAYBILL_BASE_URL=" + srv.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + place}
	code, stdout, stderr := run(t, env, create...)
	if code != command.Store || calls.Load() != 3 {
		t.Errorf("status %d after %d requests; want 10 after three: %s%s", code, calls.Load(), stdout, stderr)
	}
	_, counts, _ := strings.Cut(stdout, "\n")
	if counts != "1\t3\t3\t0\t0\t0\t2\t0\t1\t0\t1\t0\t0\t0\n" {
		t.Errorf("counts: %s", stdout)
	}
	for _, want := range []string{"another waybill took over what this one was sending", "2 accepted, 0 rejected, 1 unknown", "hint: re-run the same command", "next: waybill create "} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in %s", want, stderr)
		}
	}
}
