package create

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/send"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// --timeout is a deadline: whatever a create waits for, it ends then, with words of its own
// and an exit status that says what became of the rows.
func TestCreateEndsWithItsTimeout(t *testing.T) {
	const text = "referId,trackingNumber\nA1,1Z999AA10123456784\nA2,1Z999AA10123456785\n"
	hangs := func(method string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.Method == method {
				select {
				case <-r.Context().Done():
				case <-time.After(20 * time.Second):
					t.Error("the request did not end with the command's time")
				}
				return
			}
			w.WriteHeader(http.StatusNotFound)
		}
	}
	for name, tt := range map[string]struct {
		service http.HandlerFunc
		options createOptions
		busy    func(t *testing.T, db *store.DB) // what another process does
		code    command.Code
		says    string
	}{
		"a create hangs":           {hangs(http.MethodPost), createOptions{Options: send.Options{SkipProof: true}}, nil, command.Unknown, "timed out: "},
		"a create hangs, and wait": {hangs(http.MethodPost), createOptions{Options: send.Options{SkipProof: true, Wait: true}}, nil, command.Unknown, "timed out: "},
		"a query hangs":            {hangs(http.MethodGet), createOptions{}, nil, command.Pending, "timed out: 0 accepted, 0 rejected, 0 unknown, 2 pending"},
		"another process sends": {hangs(""), createOptions{}, func(t *testing.T, db *store.DB) {
			t.Helper()
			staging, err := db.Stage(t.Context(), ledger.Plan{Files: []string{"x"}, Mode: ledger.Async, BatchSize: 10})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = staging.Discard(context.Background()) })
		}, command.Store, "run 1 of x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := httptest.NewServer(tt.service)
			defer service.Close()
			folder := t.TempDir()
			input, place := filepath.Join(folder, "orders.csv"), filepath.Join(folder, "s.db")
			if err := os.WriteFile(input, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.busy != nil {
				db, err := sqlite.Open(t.Context(), place, store.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				tt.busy(t, db)
			}
			call, _, stderr := clitest.Call(t, "WAYBILL_BASE_URL="+service.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE="+place, "WAYBILL_TIMEOUT=1500ms")
			tt.options.Files, tt.options.Unknown, tt.options.RecheckDelay = []string{input}, "reconcile", "2m"
			err := runCreate(t.Context(), call, tt.options)
			if code, _ := command.CodeAndHint(err); code != tt.code || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("status %d: %v; want %d, %q", code, err, tt.code, tt.says)
			}
			if all := err.Error() + stderr.String(); strings.Contains(all, "deadline") || strings.Contains(all, "--request-timeout") {
				t.Errorf("says %s", all)
			}
		})
	}
}
