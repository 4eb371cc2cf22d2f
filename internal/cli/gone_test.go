//go:build !windows

package cli_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

// A store that goes away while rows are sent ends the run: what was answered
// is kept beside it, and nothing is reported as accepted or sent any more.
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
			var calls atomic.Int32
			var env []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && calls.Add(1) == 1 {
					awaitStaged(t, env)
					if err := away(path); err != nil {
						t.Error(err)
					}
				}
				_, _ = w.Write([]byte(`{"message":"taken"}`))
			}))
			defer srv.Close()
			input := filepath.Join(t.TempDir(), "orders.csv")
			if err := os.WriteFile(input, []byte("referId,trackingNumber\nA1,1Z999AA10123456784\nA2,1Z999AA10123456785\nA3,1Z999AA10123456786\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			env = []string{"WAYBILL_BASE_URL=" + srv.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + path}
			code, stdout, stderr := run(t, env, "create", input, "--canary=false", "--batch-size", "1", "--concurrency", "1")
			if code != command.Store || calls.Load() != 1 || stdout != "" {
				t.Errorf("status %d after %d requests; want 10 after one: %s%s", code, calls.Load(), stdout, stderr)
			}
			file := regexp.MustCompile(regexp.QuoteMeta(path) + `\.salvage-\S+\.jsonl`).FindString(stderr)
			if file == "" {
				t.Fatalf("no salvage file is named: %s", stderr)
			}
			checkSalvage(t, file)
			if _, next, ok := strings.Cut(stderr, "next: "); !ok || !strings.Contains(next, "--check-first") {
				t.Errorf("the next command would send everything again: %s", stderr)
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

func checkSalvage(t *testing.T, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want it for its user alone", info, err)
	}
	lines := bufio.NewScanner(f)
	n := 0
	for ; lines.Scan(); n++ {
		var l struct {
			State, Answer string
			HTTPStatus    int
			Rows          []struct{ ReferID, RawTrackingNumber, State string }
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if l.State != "accepted" || l.HTTPStatus != 200 || !strings.Contains(l.Answer, "taken") ||
			len(l.Rows) != 1 || l.Rows[0].ReferID != "A1" || l.Rows[0].RawTrackingNumber != "1Z999AA10123456784" || l.Rows[0].State != "accepted" {
			t.Errorf("salvaged %s", lines.Text())
		}
	}
	if n != 1 || lines.Err() != nil {
		t.Errorf("%d lines, %v; want 1", n, lines.Err())
	}
}
