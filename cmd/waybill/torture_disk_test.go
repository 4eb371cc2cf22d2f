//go:build linux

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/waybill-cli/waybill/internal/sandbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// startUnder starts a command for which a disk can be full that has room for
// others: a limit on the size of files, which any user may set on any file
// system. Growing past it is an error then, and not the signal that ends the
// process.
func startUnder(cmd *exec.Cmd) error {
	var old, set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGXFSZ - 1)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old); err != nil {
		return err
	}
	err := cmd.Start() // what it starts has the mask of this thread
	if e := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); e != nil && err == nil {
		return e
	}
	return err
}

// fill lets no file of a process grow past size any more.
func fill(pid int, size uint64) error {
	return unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}, nil)
}

// A disk that is full from the start, or becomes so while a batch is under
// way, stops a create with the path and what to do. When there is room again
// the same command goes on, and nothing is lost or doubled. The full form adds
// a disk that is full for everybody, and calls that fail.
func TestTortureFullDisk(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{"--batch-size", "20"}, {"--sync"}} {
		for at := range either(4, 40) { // the create that finds it full; 0: before the first
			t.Run(fmt.Sprint(flags[0], " ", at), func(t *testing.T) { fullDisk(t, at, flags) })
		}
	}
	if full() {
		t.Run("tmpfs", tinyDisk)
		t.Run("calls", spoiltCalls)
	}
}

func fullDisk(t *testing.T, at int, flags []string) {
	n := either(200, 2000)
	box, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	var pid, creates atomic.Int64
	var once sync.Once
	w := newHome(t)
	w.at(listenAt(t, "127.0.0.1:0", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && pid.Load() > 0 && creates.Add(1) == int64(at) {
			once.Do(func() {
				if err := fill(int(pid.Load()), 0); err != nil {
					t.Error(err)
				}
			})
		}
		box.ServeHTTP(rw, r)
	})).URL)
	path := filepath.Join(w.home, "full.db")
	rows := append(pairs(n, parcels), w.control("--store", path))
	args := append([]string{"create", orders(t, w.home, n, parcels), "-o", "json", "--store", path, "--settle", "0s", "--concurrency", "2"}, flags...)
	cmd := w.command(args...)
	if at == 0 {
		cmd.Args = append([]string{"/bin/sh", "-c", `ulimit -S -f 0; exec "$@"`, "sh"}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
		cmd.Path = "/bin/sh"
	}
	if err := startUnder(cmd); err != nil {
		t.Fatal(err)
	}
	pid.Store(int64(cmd.Process.Pid))
	code, err := ended(cmd, allowed())
	if err != nil {
		t.Fatalf("%v: %s", err, cmd.Stderr)
	}
	pid.Store(0)
	stderr := cmd.Stderr.(*bytes.Buffer).Bytes()
	if code != 10 {
		t.Errorf("ended with %d; want 10\nstdout: %s\nstderr: %s", code, cmd.Stdout, stderr)
	}
	blamesStore(t, stderr, path)
	if at == 0 && creates.Load() > 0 {
		t.Errorf("%d creates left while nothing could be written", creates.Load())
	}
	recovers(t, w, rows, path, args)
}

// blamesStore checks that the last error names the store's file and says what
// to do.
func blamesStore(t *testing.T, stderr []byte, path string) {
	t.Helper()
	lines := slices.Collect(bytes.Lines(bytes.TrimSpace(stderr)))
	if len(lines) == 0 {
		t.Fatal("nothing is said of the disk")
	}
	var e struct{ Type, Code, Message, Hint string }
	if err := json.Unmarshal(lines[len(lines)-1], &e); err != nil || e.Type != "error" || e.Code != "store" || e.Hint == "" || !strings.Contains(e.Message, path) {
		t.Errorf("the last word on the disk is not an error with the path and a hint: %v: %s", err, lines[len(lines)-1])
	}
}

// recovers checks that a store is sound, and that the same command comes to
// its end with each row in the service once.
func recovers(t *testing.T, w *world, rows []pair, path string, args []string) {
	t.Helper()
	if err := checkStore(t, path); err != nil {
		t.Errorf("the store is damaged: %v", err)
	}
	w.audit(rows, "--store", path)
	w.finish(5, args...)
	w.whole(rows, 0, "--store", path)
	if err := checkStore(t, path); err != nil {
		t.Errorf("the store is damaged afterwards: %v", err)
	}
}

func checkStore(t *testing.T, path string) error {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, store.Options{MustExist: true})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Check(t.Context())
}
