package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/sandbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// witness looks into a store that another process works on.
type witness struct {
	path string

	mu sync.Mutex
	db *store.DB // nil before the first look
}

// states returns the state of every row that is on disk now.
func (w *witness) states() (map[pair]ledger.State, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx := context.Background()
	if w.db == nil {
		db, err := sqlite.Open(ctx, w.path, store.Options{MustExist: true})
		if err != nil {
			return nil, err
		}
		w.db = db
	}
	states := map[pair]ledger.State{}
	for run, err := range w.db.Runs(ctx, 0) {
		if err != nil {
			return nil, err
		}
		for row, err := range w.db.Rows(ctx, run.ID) {
			if err != nil {
				return nil, err
			}
			states[pair{row.Item.ReferID, row.Item.Number}] = row.State
		}
	}
	return states, nil
}

func (w *witness) close() error {
	if w.db == nil {
		return nil
	}
	return w.db.Close()
}

// watchedConn takes a look at the store when the first byte of a request is
// there, before anything is made of it.
type watchedConn struct {
	net.Conn
	w *witness

	mu      sync.Mutex
	inside  bool // a request has begun
	seen    map[pair]ledger.State
	problem error
}

// Read looks before it lets the server have the first bytes of a request.
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 && !c.inside {
		c.inside = true
		c.seen, c.problem = c.w.states()
	}
	return n, err
}

// Write notes that a request was answered.
func (c *watchedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.inside = false
	c.mu.Unlock()
	return c.Conn.Write(p)
}

type watchedListener struct {
	net.Listener
	w *witness
}

// Accept returns a connection that is watched.
func (l watchedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &watchedConn{Conn: c, w: l.w}, nil
}

type connKey struct{}

// watch starts a sandbox that looks into the store of its client at the first
// byte of every create, and fails the test if a row of it is not sending. It
// notes the rows of each.
func watch(t *testing.T, w *world, path string, creates *[][]pair) *witness {
	t.Helper()
	box, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	eye := &witness{path: path}
	var mu sync.Mutex
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			rows := sent(t, body)
			mu.Lock()
			*creates = append(*creates, rows)
			mu.Unlock()
			c := r.Context().Value(connKey{}).(*watchedConn)
			for _, p := range rows {
				if state := c.seen[p]; state != ledger.Sending {
					t.Errorf("%v was on its way while the disk said %q (%v)", p, state, c.problem)
				}
			}
		}
		box.ServeHTTP(rw, r)
	}))
	srv.Listener = watchedListener{srv.Listener, eye}
	srv.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}
	srv.Start()
	t.Cleanup(func() {
		srv.Close()
		_ = box.Close()
		if err := eye.close(); err != nil {
			t.Error(err)
		}
	})
	w.at(srv.URL)
	return eye
}

// sent returns the rows in the body of a create.
func sent(t *testing.T, body []byte) []pair {
	var request struct {
		Data []struct{ ReferID, RawTrackingNumber string }
	}
	if err := json.Unmarshal(body, &request); err != nil || len(request.Data) == 0 {
		t.Errorf("no create: %v: %.200s", err, body)
	}
	rows := make([]pair, len(request.Data))
	for i, d := range request.Data {
		rows[i] = pair{d.ReferID, d.RawTrackingNumber}
	}
	return rows
}

// A batch is on disk as sending before its first byte leaves, and a row is on
// disk as accepted before anybody reads that it is. The full form has the same
// proven of what the disk was told to keep, see [synced].
func TestTortureOrderOfWrites(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{"--batch-size", "50"}, {"--sync"}} {
		for _, strace := range either([]bool{false}, []bool{false, true}) {
			t.Run(fmt.Sprint(flags[0], " ", strace), func(t *testing.T) { orderOfWrites(t, strace, flags) })
		}
	}
}

func orderOfWrites(t *testing.T, strace bool, flags []string) {
	n, workers := either(400, 10_000), "4"
	if strace {
		n, workers = 400, "1" // creates arrive as they leave, and the log of the store is never begun anew
	}
	w := newHome(t)
	path, log := filepath.Join(w.home, "order.db"), filepath.Join(w.home, "strace.log")
	var creates [][]pair
	eye := watch(t, w, path, &creates)
	args := append([]string{"create", orders(t, w.home, n, parcels), "--store", path, "-o", "jsonl", "-v", "--concurrency", workers}, flags...)
	cmd := w.command(args...)
	if strace {
		cmd = w.straced([]string{"-s", "32", "-e", "trace=" + writes, "-o", log}, args)
	}
	if told := tells(t, cmd, eye); told != n {
		t.Errorf("%d rows were told to be accepted; want %d", told, n)
	}
	if len(creates) < n/50 {
		t.Errorf("only %d creates were watched", len(creates))
	}
	if strace {
		survives(t, log, path, creates)
	}
}

// tells runs a create, holds every row it prints against the disk at that
// moment, and returns how many it called accepted.
func tells(t *testing.T, cmd *exec.Cmd, eye *witness) (accepted int) {
	t.Helper()
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(allowed(), func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	defer hung.Stop()
	var disk map[pair]ledger.State
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var row struct{ ReferID, RawTrackingNumber, State string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Errorf("%v: %s", err, lines.Bytes())
		}
		if disk == nil { // before the first is made anything of
			if disk, err = eye.states(); err != nil {
				t.Error(err)
			}
		}
		if row.State != "accepted" {
			continue
		}
		accepted++
		if p := (pair{row.ReferID, row.RawTrackingNumber}); disk[p] != ledger.Accepted {
			t.Errorf("%v is printed as accepted, and %q on disk", p, disk[p])
		}
	}
	code, err := ended(cmd, allowed())
	if code != 0 || err != nil || lines.Err() != nil {
		t.Errorf("%s ended with %d: %v: %v: %s", strings.Join(cmd.Args, " "), code, err, lines.Err(), fmt.Sprint(cmd.Stderr))
	}
	return accepted
}
