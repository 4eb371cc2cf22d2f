package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is the built binary, made once for all tests that need processes of
// their own.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "waybill-test-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "waybill")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

// world is a home folder, and a sandbox in a process of its own.
type world struct {
	tb   testing.TB
	home string
	url  string
	env  []string

	storeFails bool // the store may be away for a while
}

// raceSettings are those of the race detector, for processes that have nothing else of the
// machine's environment.
func raceSettings() string { return "GORACE=" + os.Getenv("GORACE") }

// newHome is a world without a service.
func newHome(tb testing.TB) *world {
	tb.Helper()
	w := &world{tb: tb, home: tb.TempDir()}
	w.env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "WAYBILL_API_KEY=k1", "TZ=UTC"}
	return w
}

// at gives the world a service that is there already.
func (w *world) at(url string) *world {
	w.url = url
	w.env = append(w.env, "WAYBILL_BASE_URL="+url)
	return w
}

func newWorld(tb testing.TB, sandboxFlags ...string) *world {
	tb.Helper()
	w := newHome(tb)
	ready := filepath.Join(w.home, "sandbox.url")
	cmd := w.command(append([]string{"sandbox", "--addr", "127.0.0.1:0", "--ready-file", ready, "-q"}, sandboxFlags...)...)
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if code, err := ended(cmd, patience); code != 0 || err != nil {
			tb.Errorf("sandbox: ended with %d: %v: %s", code, err, cmd.Stderr)
		}
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(ready); err == nil {
			return w.at(strings.TrimSpace(string(b)))
		}
		if time.Now().After(end) {
			tb.Fatal("the sandbox was not ready in time")
		}
	}
}

// patience is how long a process may take. It is generous: what it holds off
// is a hang.
const patience = time.Minute

// ended waits for a started command and returns its exit status, -1 for one
// that was killed. One that is still there after its time shows its goroutines
// on stderr, and is an error.
func ended(cmd *exec.Cmd, limit time.Duration) (int, error) {
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = cmd.Wait()
	}()
	select {
	case <-done:
	case <-time.After(limit):
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
		return -1, fmt.Errorf("%q was still running after %v", cmd.Args, limit)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// command is one waybill process with nothing of the machine's environment.
func (w *world) command(args ...string) *exec.Cmd {
	w.tb.Helper()
	path, err := program()
	if err != nil {
		w.tb.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = w.env
	cmd.Dir = w.home
	cmd.Stdout, cmd.Stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd.WaitDelay = 5 * time.Second // for what it started itself
	return cmd
}

// run runs a command to its end and returns its exit status.
func (w *world) run(args ...string) (code int, stdout, stderr []byte) {
	w.tb.Helper()
	cmd := w.command(args...)
	if err := cmd.Start(); err != nil {
		w.tb.Fatal(err)
	}
	code, err := ended(cmd, allowed())
	if err != nil {
		w.tb.Fatalf("%v\nstderr: %s", err, cmd.Stderr)
	}
	return code, cmd.Stdout.(*bytes.Buffer).Bytes(), cmd.Stderr.(*bytes.Buffer).Bytes()
}

// createResult is the part of a create's JSON that tests look at.
type createResult struct {
	Run                                  string
	Read, New, Already                   int
	Accepted, Rejected, Unknown, Pending int
	Batches                              int
	ElapsedSeconds                       float64
}

// create runs `create FILE -o json` and more flags.
func (w *world) create(file string, flags ...string) (int, createResult) {
	w.tb.Helper()
	code, stdout, stderr := w.run(append([]string{"create", file, "-o", "json"}, flags...)...)
	var r createResult
	if err := json.Unmarshal(stdout, &r); err != nil {
		w.tb.Fatalf("create ended with %d and no result: %v\nstdout: %s\nstderr: %s", code, err, stdout, stderr)
	}
	return code, r
}

// stats is what the sandbox counted.
type stats struct {
	Requests map[string]int
	Rows     []struct {
		ReferID, RawTrackingNumber string
		Created                    int
	}
	Created, Distinct int
}

func (w *world) stats(query string) stats {
	w.tb.Helper()
	res, err := http.Get(w.url + "/_sandbox/stats" + query)
	if err != nil {
		w.tb.Fatal(err)
	}
	defer res.Body.Close()
	var s stats
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil {
		w.tb.Fatal(err)
	}
	return s
}

// parcelNumber returns a number of USPS with its check digit, since nearly all numbers in a file have the right one.
func parcelNumber(i int) string {
	body, sum := fmt.Sprintf("94001%016d", i), 0
	for n := range len(body) {
		sum += int(body[n]-'0') * (3 - n%2*2)
	}
	return body + strconv.Itoa((10-sum%10)%10)
}

// orders writes a CSV of n orders and returns its name.
func orders(tb testing.TB, dir string, n int, refer func(int) string) string {
	tb.Helper()
	path := filepath.Join(dir, fmt.Sprintf("orders-%d.csv", n))
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString("referId,rawTrackingNumber,carrierCode\n")
	for i := range n {
		fmt.Fprintf(&b, "%s,%s,usps\n", refer(i), parcelNumber(i))
		if b.Len() > 1<<16 {
			if _, err := io.Copy(f, &b); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if _, err := io.Copy(f, &b); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return path
}

func ascending(i int) string { return fmt.Sprintf("ORD-%09d", i) }
