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
)

// A store that goes away while rows are sent ends the run: nothing is reported as
// accepted or sent any more. Once it is back, the service is asked for what was sent
// before that goes out again.
func TestStoreThatGoesAwayWhileSending(t *testing.T) {
	for name, away := range map[string]func(path string) error{
		"deleted": os.Remove,
		"renamed": func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			if err := os.Rename(path, path+".old"); err != nil {
				return err
			}
			return os.WriteFile(path, nil, 0o600)
		},
		"folder deleted": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"log deleted":    func(path string) error { return os.Remove(path + "-wal") },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store", "s.db")
			var calls, queries atomic.Int32
			var env []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && calls.Add(1) == 1 {
					awaitStaged(t, env)
					if err := away(path); err != nil {
						t.Error(err)
					}
				}
				if r.Method == http.MethodGet && strings.Contains(r.URL.String(), "A1") {
					queries.Add(1)
				}
				_, _ = w.Write([]byte(`{"message":"taken"}`))
			}))
			defer srv.Close()
			input := filepath.Join(t.TempDir(), "orders.csv")
			if err := os.WriteFile(input, []byte("referId,trackingNumber\nA1,1Z999AA10123456784\nA2,1Z999AA10123456785\nA3,1Z999AA10123456786\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			env = []string{"WAYBILL_BASE_URL=" + srv.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + path}
			code, stdout, stderr := run(t, env, "create", input, "--skip-proof", "--batch-size", "1", "--concurrency", "1")
			if code != command.Store || calls.Load() != 1 || stdout != "" {
				t.Errorf("status %d after %d requests; want 10 after one: %s%s", code, calls.Load(), stdout, stderr)
			}
			if _, next, ok := strings.Cut(stderr, "next: "); !ok || !strings.Contains(next, "--check-first") {
				t.Errorf("the next command would send everything again: %s", stderr)
			}
			if name != "renamed" {
				return
			}
			if err := os.Rename(path+".old", path); err != nil {
				t.Fatal(err)
			}
			code, _, stderr = run(t, env, "create", input, "--skip-proof", "--batch-size", "1", "--concurrency", "1")
			if code != command.Unknown || calls.Load() != 3 || queries.Load() == 0 {
				t.Errorf("status %d after %d requests and %d queries; want 7, the others sent once and the first asked for: %s", code, calls.Load(), queries.Load(), stderr)
			}
		})
	}
}

// awaitStaged waits until the input of the run is staged: from then on only its
// sending uses the store.
func awaitStaged(t *testing.T, env []string) {
	t.Helper()
	for range 500 {
		if _, partial, _ := run(t, env, "runs", "show", "1", "-o", "json", "--jq", ".partial // false"); partial == "false\n" {
			return
		}
	}
	t.Error("the input is not staged")
}
