package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/sandbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// interrupted starts a command, signals it once its stderr has a line with
// mark, and returns its exit status and all of stderr.
func (w *world) interrupted(cmd *exec.Cmd, mark string, sig os.Signal) (int, string) {
	w.tb.Helper()
	cmd.Stderr = nil
	pipe, err := cmd.StderrPipe()
	if err != nil {
		w.tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.tb.Fatal(err)
	}
	var all strings.Builder
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), mark) {
				_ = cmd.Process.Signal(sig)
			}
		}
	}()
	code, err := ended(cmd, patience)
	<-read
	if err != nil {
		w.tb.Errorf("%v: %s", err, all.String())
	}
	return code, all.String()
}

// signals are those that end a command, and the exit statuses they give.
var signals = map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143}

// A create that waits for another process's staging says whom it waits for,
// and ends with a signal, or with --timeout.
func TestWaitForAnotherStagingEnds(t *testing.T) {
	t.Parallel()
	w := newHome(t).at("http://127.0.0.1:1")
	path := filepath.Join(w.home, "w.db")
	rowsFile(t, w.home, "orders.csv", pairs(3, ascending))
	db, err := sqlite.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	plan := ledger.Plan{Files: []string{"theirs.csv"}, Mode: ledger.Async, BatchSize: 10}
	staging, err := db.Stage(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	create := []string{"create", "orders.csv", "--store", path}
	for sig, want := range signals {
		code, stderr := w.interrupted(w.command(create...), "theirs.csv", sig)
		if code != want || !strings.Contains(stderr, "run 1") {
			t.Errorf("%v ended it with %d, want %d: %s", sig, code, want, stderr)
		}
	}
	code, _, stderr := w.run(append(create, "--timeout", "2s")...)
	if code != 10 || !strings.Contains(string(stderr), "theirs.csv") {
		t.Errorf("--timeout ended it with %d, want 10: %s", code, stderr)
	}
	if err := staging.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Standard input that never ends is left with a signal, and what was read of
// it is nowhere on disk.
func TestSignalEndsARead(t *testing.T) {
	t.Parallel()
	w := newHome(t).at("http://127.0.0.1:1")
	temp := filepath.Join(w.home, "temp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "TMPDIR="+temp, "WAYBILL_WEBHOOK_SECRET=s1")
	for sig, want := range signals {
		for _, args := range [][]string{
			{"create", "-"},
			{"events", "import", "-"},
			{"signature", "verify", "--body", "-", "--scheme", "hmac-body-hex"},
			{"signature", "learn", "--from", "-"},
		} {
			cmd := w.command(args...)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// More than a pipe holds: it returns once the program reads.
			if _, err := in.Write(make([]byte, 256<<10)); err != nil {
				t.Fatal(err)
			}
			if files, err := os.ReadDir(temp); err != nil || len(files) > 0 {
				t.Errorf("%q keeps %v, %v", args, files, err)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if code, err := ended(cmd, patience); code != want || err != nil {
				t.Errorf("%q: %v ended it with %d, %v; want %d: %s", args, sig, code, err, want, cmd.Stderr)
			}
			_ = in.Close()
		}
	}
}

// A signal ends a show and a wait with its status: they print what is known of
// every REF, and the command that continues.
func TestSignalEndsAsking(t *testing.T) {
	t.Parallel()
	box, err := sandbox.New(sandbox.Config{Latency: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		box.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		srv.Close()
		_ = box.Close()
	})
	w := newHome(t).at(srv.URL)
	var refs []string
	for i := range 500 {
		refs = append(refs, fmt.Sprint("R", i))
	}
	for sig, want := range signals {
		for _, name := range []string{"show", "wait"} {
			cmd := w.command(append([]string{name, "-o", "json", "--concurrency", "1"}, refs...)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-asked
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			code, err := ended(cmd, patience)
			var all []struct{ Phase string }
			if err := json.Unmarshal(cmd.Stdout.(*bytes.Buffer).Bytes(), &all); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if code != want || err != nil || len(all) != len(refs) || all[len(refs)-1].Phase != "notAsked" {
				t.Errorf("%s: %v ended it with %d, %v; want %d; %d results", name, sig, code, err, want, len(all))
			}
			if next := `"nextCommand":"waybill ` + name + " R0 "; !strings.Contains(fmt.Sprint(cmd.Stderr), next) {
				t.Errorf("%s: no %s in %s", name, next, cmd.Stderr)
			}
			select { // of a question that the end cut off
			case <-asked:
			default:
			}
		}
	}
}

// The second signal ends the program, whatever it does: it waits for a server that never
// answers, or for somebody to read what it prints.
func TestSecondSignalEndsEverything(t *testing.T) {
	t.Parallel()
	reached, release := make(chan struct{}, 1000), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		if r.URL.Query().Get("referId") == "hangs" {
			<-release
		}
		fmt.Fprint(w, `{"message":"Processing","padding":"`+strings.Repeat("x", 8<<10)+`"}`)
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(release) })
	w := newHome(t).at(srv.URL)
	unread, full, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	defer full.Close()
	many := []string{"show", "-o", "json"}
	for i := range 100 {
		many = append(many, fmt.Sprint("R", i))
	}
	for _, tt := range []struct {
		args   []string
		out    *os.File
		answer int // requests until it hangs
	}{
		{[]string{"show", "hangs", "--request-timeout", "10m"}, nil, 1},
		{[]string{"wait", "hangs", "--request-timeout", "10m"}, nil, 1},
		{many, full, 50},
	} {
		cmd := w.command(tt.args...)
		if tt.out != nil {
			cmd.Stdout = tt.out
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range tt.answer {
			<-reached
		}
		time.Sleep(200 * time.Millisecond) // a pipe of 64 KiB is full by now
		for range 2 {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if code, err := ended(cmd, patience); code != 130 || err != nil {
			t.Errorf("%.20q: %d, %v; want 130", tt.args, code, err)
		}
	}
}

// A reader that goes away ends a wait quietly: how far it came is nobody's question, and
// what was not printed is not called unfinished.
func TestWaitWhoseReaderWentAwayCountsNothing(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"data":{"referId":%q,"trackingNumber":"N1","status":1,"statusLabel":"DELIVERED"}}`, r.URL.Query().Get("referId"))
	}))
	t.Cleanup(srv.Close)
	w := newHome(t).at(srv.URL)
	for _, args := range [][]string{
		{"wait", "R1", "R2", "R3", "R4", "--concurrency", "1", "-o", "jsonl"},
		{"wait", "R1", "R2", "R3", "R4", "--concurrency", "1", "--for", "status=returned", "--timeout", "2s", "-o", "csv"},
		{"show", "R1", "R2", "R3", "R4", "--concurrency", "1", "-o", "jsonl"},
	} {
		gone, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		gone.Close()
		cmd := w.command(args...)
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		code, err := ended(cmd, patience)
		out.Close()
		if said := fmt.Sprint(cmd.Stderr); code != 0 || err != nil || strings.Contains(said, " of ") || strings.Contains(said, "trackings") {
			t.Errorf("%q: %d, %v: %s; want 0 and no count", args, code, err, said)
		}
	}
}
