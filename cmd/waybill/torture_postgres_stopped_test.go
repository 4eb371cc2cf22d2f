//go:build unix

package main_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/sandbox"
)

// holder is a service that does what it is asked, and then keeps the answers to
// POSTs back.
type holder struct {
	box http.Handler

	mu      sync.Mutex
	holds   bool
	holding chan struct{} // closed when it holds an answer
	release chan struct{} // closed to let the answers go
}

func newHolder(box http.Handler) *holder {
	return &holder{box: box, holding: make(chan struct{}), release: make(chan struct{})}
}

// hold says whether the answers to what comes from now on are held.
func (h *holder) hold(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds = on
}

// held reports whether the answer to a request is to be held.
func (h *holder) held(r *http.Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.holds || r.Method != http.MethodPost || strings.HasPrefix(r.URL.Path, "/_") {
		return false
	}
	select {
	case <-h.holding:
	default:
		close(h.holding)
	}
	return true
}

func (h *holder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	h.box.ServeHTTP(answer, r)
	if h.held(r) {
		<-h.release
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// A create that was stopped for longer than its claims last, and then goes on,
// writes nothing that counts: another took over the rows that it was sending.
func TestTorturePostgresStopped(t *testing.T) {
	t.Parallel()
	for i := range either(1, 10) {
		t.Run(fmt.Sprint(i), stoppedRound)
	}
}

func stoppedRound(t *testing.T) {
	schema, ok := pgtest.URL(t)
	if !ok {
		return
	}
	box, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	service := newHolder(box)
	d := openDoor(t, service)
	machines := make([]*world, 2)
	for i := range machines {
		machines[i] = newHome(t).at("http://" + d.addr)
		machines[i].env = append(machines[i].env, "WAYBILL_STORE="+schema)
	}
	first, second := machines[0], machines[1]
	rows := append(pairs(400, parcels), first.control())
	line := func(w *world) []string {
		return []string{"create", orders(t, w.home, 400, parcels), "-o", "json", "--settle", "0s", "--batch-size", "50", "--concurrency", "4", "--request-timeout", "5m"}
	}
	service.hold(true)
	cmd := first.command(line(first)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-service.holding:
	case <-time.After(patience):
		t.Fatal("nothing was sent")
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	service.hold(false)
	second.storeFails = true
	began := time.Now()
	for done := false; !done; {
		var r createResult
		var said []byte
		if r, said, done = second.again(line(second)...); time.Since(began) > patience {
			t.Fatalf("nobody takes over: %+v\nstderr: %s", r, said)
		}
	}
	took := time.Since(began)
	second.whole(rows, 0)
	before := second.ledgerText()
	close(service.release)
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	code, err := ended(cmd, patience)
	if err != nil || code != 10 {
		t.Errorf("what was stopped ended with %d: %v; want 10: it is not told that its rows were taken\nstdout: %s\nstderr: %s", code, err, cmd.Stdout, cmd.Stderr)
	}
	if diff := cmp.Diff(before, second.ledgerText()); diff != "" {
		t.Errorf("what was stopped wrote (-before +after):\n%s", diff)
	}
	second.whole(rows, 0)
	code, r := first.create(line(first)[1])
	if code != 0 || r.New != 0 {
		t.Errorf("the same command again ended with %d: %+v", code, r)
	}
	t.Logf("taken over after %v", took.Round(100*time.Millisecond))
}

// ledgerText is all that the ledger says of rows and runs.
func (w *world) ledgerText() string {
	w.tb.Helper()
	var all bytes.Buffer
	for _, args := range [][]string{{"list"}, {"runs", "list"}, {"runs", "rows", "1"}, {"runs", "rows", "2"}} {
		code, stdout, stderr := w.run(append(args, "-o", "jsonl")...)
		if code != 0 {
			w.tb.Fatalf("%q ended with %d: %s", args, code, stderr)
		}
		all.Write(stdout)
	}
	return all.String()
}
