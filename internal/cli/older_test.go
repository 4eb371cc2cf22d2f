package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// An answer that is older than a verified event, by the service's own times,
// takes nothing back. Both are shown.
func TestOlderAnswersTakeNothingBack(t *testing.T) {
	const older = "is older than an event"
	for name, tt := range map[string]struct {
		answer string // summary of the tracking
		want   string // statusLabel that is known then
	}{
		"older checkpoint":                {`"latestCheckpointTime":"2026-01-05T08:00:00.000Z"`, "DELIVERED"},
		"older checkpoint, later updated": {`"latestCheckpointTime":"2026-01-05T08:00:00.000Z","updated":"2026-01-09T08:00:00.000Z"`, "DELIVERED"},
		"same checkpoint, older updated":  {`"latestCheckpointTime":"2026-01-05T09:00:00Z","updated":"2026-01-05T09:00:01.000Z"`, "DELIVERED"},
		"same times":                      {`"latestCheckpointTime":"2026-01-05T09:00:00Z","updated":"2026-01-05T09:01:00Z"`, "IN_TRANSIT"},
		"newer checkpoint":                {`"latestCheckpointTime":"2026-01-05T10:00:00.000Z"`, "IN_TRANSIT"},
		"older checkpoints in a list":     {`"trackingEvents":[{"eventType":"a","GMTTimestamp":"2026-01-05T07:00:00Z"},{"eventType":"b","GMTTimestamp":"2026-01-05T08:00:00Z"}]`, "DELIVERED"},
		"no times":                        {`"n":1`, "IN_TRANSIT"},
		"unreadable times":                {`"latestCheckpointTime":"yesterday","updated":"8 o'clock"`, "IN_TRANSIT"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := `{"data":{"trackingNumber":"N1","status":7,"statusLabel":"IN_TRANSIT",` + tt.answer + `}}`
			var created atomic.Bool
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodPost:
					created.Store(true)
					fmt.Fprint(w, `{}`)
				case !created.Load():
					w.WriteHeader(http.StatusNotFound)
				default:
					fmt.Fprint(w, answer)
				}
			}))
			defer srv.Close()
			path := filepath.Join(t.TempDir(), "s.db")
			env := []string{"WAYBILL_BASE_URL=" + srv.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + path}
			if code, _, stderr := run(t, env, "create", "--refer-id", "R1", "--tracking-number", "N1"); code != command.OK {
				t.Fatalf("create: %d %s", code, stderr)
			}
			putVerified(t, path, `[{"eventId":"e1","event":"router.delivered","eventTime":"2026-01-05T09:02:00Z","data":{"trackingNumber":"N1","status":1,"statusTrack":"delivered",
				"summary":{"statusLabel":"DELIVERED","latestCheckpointTime":"2026-01-05T09:00:00.000Z","updated":"2026-01-05T09:01:00.000Z"}}}]`)
			code, stdout, stderr := run(t, env, "show", "R1", "-o", "json")
			var got struct {
				StatusLabel string
				OlderAnswer *struct{ StatusLabel string }
				Raw         json.RawMessage
			}
			if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != command.OK {
				t.Fatalf("status %d, %v: %s%s", code, err, stdout, stderr)
			}
			event := tt.want == "DELIVERED"
			if got.StatusLabel != tt.want || strings.Contains(stderr, older) != event || (got.OlderAnswer != nil && got.OlderAnswer.StatusLabel == "IN_TRANSIT") != event || string(got.Raw) == "" {
				t.Errorf("show: %s%s; want %s", stdout, stderr, tt.want)
			}
			if _, stdout, _ := run(t, env, "list"); !strings.Contains(stdout, tt.want) {
				t.Errorf("list: %s; want %s", stdout, tt.want)
			}
			if code, _, stderr := run(t, env, "wait", "R1", "--for", "status="+tt.want, "--refresh", "--timeout", "5s"); code != command.OK || strings.Contains(stderr, older) != event {
				t.Errorf("wait: status %d: %s", code, stderr)
			}
		})
	}
}

// putVerified stores a delivery that verified.
func putVerified(t *testing.T, path, body string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := inbox.Delivery{ReceivedAt: time.Now(), Body: []byte(body), Verified: inbox.Yes}
	if _, err := db.Put(t.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body))); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
