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

	"github.com/waybill-cli/waybill/internal/cli/command"
)

// startProcessing starts a service whose trackings are Processing until one of them is
// queried the third time. queries returns how often it was queried.
func startProcessing(t *testing.T) (url string, queries func() int) {
	t.Helper()
	var mu sync.Mutex
	asked, all, ready := map[string]int{}, 0, false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPost {
			fmt.Fprint(w, `{"message":"accepted"}`)
			return
		}
		ref := r.URL.Query().Get("referId")
		all++
		asked[ref]++
		if ready = ready || asked[ref] == 3; !ready {
			fmt.Fprint(w, `{"message":"Processing"}`)
			return
		}
		fmt.Fprintf(w, `{"data":{"referId":%q,"trackingNumber":"N%s","status":1,"statusTrack":"delivered"}}`, ref, ref)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() int {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// Of many trackings that are Processing alike, a wait queries all once, then a few until one is ready.
func TestAWaitForManyQueriesFew(t *testing.T) {
	t.Parallel()
	const rows = 60
	for name, commands := range map[string][]string{
		"create": {"create ORDERS --skip-proof --wait"},
		"wait":   {"create ORDERS --skip-proof", "wait --run 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			orders := filepath.Join(folder, "orders.csv")
			var text strings.Builder
			text.WriteString("referId,rawTrackingNumber\n")
			for n := range rows {
				fmt.Fprintf(&text, "%[1]d,N%[1]d\n", n)
			}
			if err := os.WriteFile(orders, []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			url, queries := startProcessing(t)
			env := []string{"WAYBILL_BASE_URL=" + url, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + filepath.Join(folder, "w.db")}
			for _, line := range commands {
				args := strings.Fields(strings.Replace(line, "ORDERS", orders, 1))
				if code, stdout, stderr := run(t, env, args...); code != command.OK {
					t.Fatalf("%s ended with %d: %s%s", line, code, stdout, stderr)
				}
			}
			if n := queries(); n < rows || n > 2*rows+rows/4 {
				t.Errorf("%d queries for %d trackings; want two each at most, and few more", n, rows)
			}
		})
	}
}
