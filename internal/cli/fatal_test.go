package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

// Commands about many trackings stop at the first answer that all further
// questions would meet too, but not at one about a single REF.
func TestManyQuestionsStopAtTheFirstFatalAnswer(t *testing.T) {
	for _, tt := range []struct {
		status int
		code   command.Code
		stops  bool
	}{
		{http.StatusUnauthorized, command.Auth, true},
		{http.StatusForbidden, command.Auth, true},
		{http.StatusPaymentRequired, command.Refused, true},
		{http.StatusMethodNotAllowed, command.Refused, true},
		{http.StatusFound, command.Refused, true},
		{http.StatusNotImplemented, command.Unreachable, true},
		{http.StatusBadRequest, command.Refused, false},
		{http.StatusUnprocessableEntity, command.Refused, false},
		{http.StatusNotFound, command.NotFound, false},
	} {
		for _, line := range []string{"show", "wait"} {
			t.Run(fmt.Sprint(line, " ", tt.status), func(t *testing.T) {
				var asked atomic.Int64
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					asked.Add(1)
					w.WriteHeader(tt.status)
				}))
				defer srv.Close()
				const workers, refs = 4, 60
				args := []string{line}
				for i := range refs {
					args = append(args, fmt.Sprint("R", i))
				}
				env := []string{"WAYBILL_BASE_URL=" + srv.URL, "WAYBILL_API_KEY=k1", "WAYBILL_CONCURRENCY=" + strconv.Itoa(workers), "WAYBILL_STORE=" + filepath.Join(t.TempDir(), "s.db")}
				code, _, stderr := run(t, env, args...)
				if code != tt.code {
					t.Errorf("status %d: %s; want %d", code, stderr, tt.code)
				}
				if got := asked.Load(); tt.stops && got > 2*workers || !tt.stops && got != refs {
					t.Errorf("%d questions were asked of %d", got, refs)
				}
			})
		}
	}
}

// A key that is refused while further parcels of an order are asked for is
// refused, and what was told of the others is known all the same.
func TestRefusedKeyComesOutOfQuestionsAboutParcels(t *testing.T) {
	var created atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			created.Store(true)
			fmt.Fprint(w, `{}`)
		case !created.Load():
			w.WriteHeader(http.StatusNotFound)
		case r.URL.Query().Get("referId") == "":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			fmt.Fprint(w, `{"data":{"trackingNumber":"N1","status":1,"statusLabel":"DELIVERED"}}`)
		}
	}))
	defer srv.Close()
	env := []string{"WAYBILL_BASE_URL=" + srv.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + filepath.Join(t.TempDir(), "s.db")}
	for _, number := range []string{"N1", "N2"} {
		if code, _, stderr := run(t, env, "create", "--refer-id", "P1", "--tracking-number", number); code != command.OK {
			t.Fatalf("create: %d %s", code, stderr)
		}
	}
	for _, line := range []string{"show", "wait"} {
		if code, _, stderr := run(t, env, line, "P1"); code != command.Auth || !strings.Contains(stderr, `parcel "N2": the service answered 401`) {
			t.Errorf("%s: status %d: %s; want %d for the parcel", line, code, stderr, command.Auth)
		}
	}
	if _, stdout, _ := run(t, env, "list"); !strings.Contains(stdout, "DELIVERED") {
		t.Errorf("what was told is not known: %s", stdout)
	}
}

// Whoever asks, a service that is unavailable for as long as was tried is status 11: also
// where another REF was answered, since the first cause in the order of codes wins.
func TestUnavailableServiceIsOneStatusForAllCommands(t *testing.T) {
	for _, tt := range []struct {
		status int
		lines  []string
	}{
		{http.StatusTooManyRequests, []string{"show R1", "show R1 R2", "wait R1", "wait R1 R2", "list --refresh", "create --refer-id R3 --tracking-number N3"}},
		{http.StatusServiceUnavailable, []string{"show R1", "wait R1", "wait R1 R2", "list --refresh", "create --refer-id R3 --tracking-number N3"}},
		{http.StatusBadGateway, []string{"show R1", "show R1 R2", "wait R1", "list --refresh"}},
		{http.StatusInternalServerError, []string{"show R1", "show R1 R2", "wait R1 R2"}},
	} {
		for _, line := range tt.lines {
			t.Run(fmt.Sprint(tt.status, " ", line), func(t *testing.T) {
				t.Parallel()
				var away atomic.Bool
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch id := r.URL.Query().Get("referId"); {
					case r.Method == http.MethodPost && !away.Load():
						fmt.Fprint(w, `{}`)
					case away.Load() && (id != "R2" || tt.status != http.StatusInternalServerError):
						w.WriteHeader(tt.status)
					default:
						fmt.Fprintf(w, `{"data":{"referId":%q,"trackingNumber":"N1","status":1,"statusLabel":"DELIVERED"}}`, id)
					}
				}))
				defer srv.Close()
				env := []string{"WAYBILL_BASE_URL=" + srv.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + filepath.Join(t.TempDir(), "s.db")}
				if code, _, stderr := run(t, env, "create", "--refer-id", "R1", "--tracking-number", "N1", "--skip-proof"); code != command.OK {
					t.Fatalf("create: %d %s", code, stderr)
				}
				away.Store(true)
				// So long that the first request is sent within it, however busy the machine is.
				if code, _, stderr := run(t, env, append(strings.Fields(line), "--timeout", "5s")...); code != command.Unreachable {
					t.Errorf("status %d; want %d: %s", code, command.Unreachable, stderr)
				}
			})
		}
	}
}
