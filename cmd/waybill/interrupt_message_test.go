package main_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/sandbox"
)

// heldService is the service, and a target of deliveries, that holds its answers
// back while holding is set.
type heldService struct {
	*httptest.Server
	holding atomic.Bool
	arrived chan struct{} // a value for each request that is held

	mu      sync.Mutex
	release context.CancelFunc // lets held requests go
	held    context.Context
}

func newHeldService(t *testing.T) *heldService {
	t.Helper()
	box, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := &heldService{arrived: make(chan struct{}, 100)}
	s.hold(false)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		held := s.held
		s.mu.Unlock()
		if s.holding.Load() {
			s.arrived <- struct{}{}
			<-held.Done()
		}
		if strings.HasPrefix(r.URL.Path, "/hook") {
			return
		}
		box.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.hold(false)
		s.Close()
		_ = box.Close()
	})
	return s
}

// hold holds the requests from now on, or lets all go.
func (s *heldService) hold(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.release != nil {
		s.release()
	}
	s.held, s.release = context.WithCancel(context.Background())
	s.holding.Store(on)
}

// The first signal is answered at once, while requests are under way: with how
// many of them the command finishes. A listener ends without a word.
func TestFirstSignalSaysWhatIsFinished(t *testing.T) {
	t.Parallel()
	service := newHeldService(t)
	w := newHome(t).at(service.URL)
	w.env = append(w.env, "WAYBILL_WEBHOOK_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "WAYBILL_CONCURRENCY=4")
	first := rowsFile(t, w.home, "first.csv", pairs(8, ascending))
	if code, _, stderr := w.run("create", first, "-q"); code != 0 {
		t.Fatalf("create: %s", stderr)
	}
	for name, tt := range map[string]struct {
		args []string
		held int
		want string
	}{
		"create": {[]string{"create", "SIGNAL.csv", "--batch-size", "2", "--skip-proof"}, 4, "Finishing 4 requests; Ctrl-C again to stop now"},
		"show":   {[]string{"show", ascending(0)}, 1, "Finishing 1 request; Ctrl-C again to stop now"},
		"wait":   {[]string{"wait", "--from", first, "--refresh"}, 4, "Finishing 4 requests; Ctrl-C again to stop now"},
		"list":   {[]string{"list", "--refresh", "-o", "json"}, 4, `{"type":"note","message":"Finishing 4 requests; Ctrl-C again to stop now"}`},
		"send":   {[]string{"events", "send", "--to", service.URL + "/hook", "--count", "3", "--scheme", "standard-webhooks"}, 1, "Finishing 1 request; Ctrl-C again to stop now"},
	} {
		for sig, want := range signals {
			for i := range tt.args {
				if strings.HasSuffix(tt.args[i], ".csv") && name == "create" { // rows that the service does not have yet
					tt.args[i] = rowsFile(t, w.home, fmt.Sprint(want, ".csv"), pairs(8, func(i int) string { return fmt.Sprint(want, "-", i) }))
				}
			}
			cmd := w.command(tt.args...)
			cmd.Stderr = nil
			pipe, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			service.hold(true)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for range tt.held {
				select {
				case <-service.arrived:
				case <-time.After(patience):
					t.Fatalf("%s: its requests did not come: %s", name, cmd.Stdout)
				}
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			late := time.AfterFunc(patience, func() { service.hold(false) })
			said := false
			for lines := bufio.NewScanner(pipe); lines.Scan(); {
				if lines.Text() == tt.want {
					said = true
					service.hold(false) // only now does an answer come
				}
			}
			late.Stop()
			if code, err := ended(cmd, patience); code != want || err != nil || !said {
				t.Errorf("%s: %v ended it with %d, %v; want %d, after %q (said: %v)", name, sig, code, err, want, tt.want, said)
			}
		}
	}
}
