package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

// serveErrors serves trackings of which those whose referId begins with BAD have an error
// and no status, and those with ODD an error beside a status.
func serveErrors(t *testing.T) (env []string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ref := r.URL.Query().Get("referId")
		status, fault := `1,"statusTrack":"delivered"`, "null"
		switch {
		case r.Method == http.MethodPost:
			fmt.Fprint(w, `{"success":true}`)
			return
		case strings.HasPrefix(ref, "BAD"):
			status, fault = "null", `{"code":"CARRIER_UNKNOWN","message":"no carrier has this number"}`
		case strings.HasPrefix(ref, "ODD"):
			fault = `"carrier does not answer"`
		}
		fmt.Fprintf(w, `{"data":{"referId":%q,"trackingNumber":%q,"status":%s,"error":%s}}`, ref, "N1-"+ref, status, fault)
	}))
	t.Cleanup(srv.Close)
	return []string{"WAYBILL_BASE_URL=" + srv.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + filepath.Join(t.TempDir(), "s.db")}
}

func createOne(t *testing.T, env []string, ref string, flags ...string) command.Code {
	t.Helper()
	code, _, stderr := run(t, env, append([]string{"create", "--refer-id", ref, "--tracking-number", "N1-" + ref, "--skip-proof", "--timeout", "20s"}, flags...)...)
	t.Logf("create %s: %d %s", ref, code, stderr)
	return code
}

// What the service reports as the error of a tracking is part of what is known of it.
func TestErrorsOfTrackings(t *testing.T) {
	env := serveErrors(t)
	for ref, want := range map[string]command.Code{"GOOD": command.OK, "BAD": command.Partial, "ODD": command.Partial} {
		if got := createOne(t, env, ref, "--wait"); got != want {
			t.Errorf("create --wait of %s: status %d; want %d", ref, got, want)
		}
	}
	for _, tt := range []struct {
		args string
		code command.Code
		want []string
	}{
		{"show BAD", command.OK, []string{"Status", "error", "no carrier has this number"}},
		{"show BAD GOOD ODD -o csv", command.OK, []string{"no carrier has this number", "carrier does not answer"}},
		{"show BAD -o json", command.OK, []string{`"phase": "error"`, `"CARRIER_UNKNOWN"`}},
		{"list --status error", command.OK, []string{"BAD", "ODD", "2 trackings: 2 error"}},
		{"list --status error -o json", command.OK, []string{`"phase": "error"`, `"error": {`, `"error": "carrier does not answer"`}},
		{"list -o csv", command.OK, []string{"no carrier has this number"}},
		{"stats", command.OK, []string{"2 error", "1 delivered"}},
		{"stats -o json", command.OK, []string{`"name": "error"`, `"trackings": 2`}},
		{"wait BAD --timeout 20s", command.Partial, []string{"no carrier has this number"}},
		{"wait ODD --for status=delivered --timeout 20s", command.Partial, []string{"carrier does not answer"}},
		{"wait BAD --for status=error --timeout 20s", command.OK, nil},
		{"wait GOOD BAD --timeout 20s", command.Partial, []string{"1 of 2 REFs failed", "no carrier has this number"}},
	} {
		code, stdout, stderr := run(t, env, strings.Fields(tt.args)...)
		if code != tt.code {
			t.Errorf("%s: status %d; want %d\n%s%s", tt.args, code, tt.code, stdout, stderr)
		}
		for _, want := range tt.want {
			if !strings.Contains(stdout+stderr, want) {
				t.Errorf("%s: no %s in\n%s%s", tt.args, want, stdout, stderr)
			}
		}
	}
	_, stdout, _ := run(t, env, "show", "BAD", "-o", "json")
	var got struct{ Error struct{ Code string } }
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.Error.Code != "CARRIER_UNKNOWN" {
		t.Errorf("%v: %s; want the error as it was sent", err, stdout)
	}
}

// A list that is refreshed ends as show does: what could not be queried is no success.
func TestRefreshOfAListFails(t *testing.T) {
	answer := `{"success":true}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
	defer srv.Close()
	env := []string{"WAYBILL_BASE_URL=" + srv.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + filepath.Join(t.TempDir(), "s.db")}
	createOne(t, env, "A")
	createOne(t, env, "B")
	answer = "<html>"
	want, _, _ := run(t, env, "show", "A", "B")
	code, stdout, stderr := run(t, env, "list", "--refresh")
	if code != want || code != command.Unknown || !strings.Contains(stderr, "2 of 2 trackings failed") || strings.Count(stdout, "accepted") != 2 {
		t.Errorf("status %d, %s%s; want %d, the rows, and why", code, stdout, stderr, want)
	}
}
