//go:build linux

package main_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/waybill-cli/waybill/internal/sandbox"
)

// tinyDisk is a small disk of its own: full before the input is staged whole,
// then filled up while batches are under way.
func tinyDisk(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		name, size, workers string // with a worker for each batch, all is staged before the first is sent
		at                  int    // the create that fills it up; 0 for none
	}{
		{"staging", "size=2m", "20", 0},
		{"feeding", "size=3m", "2", 3},
		{"first", "size=32m", "2", 1},
		{"fifth", "size=32m", "2", 5},
		{"fifteenth", "size=32m", "2", 15},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := filepath.Join(t.TempDir(), "disk")
			if err := os.Mkdir(disk, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, c.size); err != nil {
				t.Fatalf("mount a tmpfs: %v: the full form of this test needs the right to", err)
			}
			defer func() {
				if err := syscall.Unmount(disk, 0); err != nil {
					t.Errorf("unmount %s: %v", disk, err)
				}
			}()
			creates := 0
			w, box := inProcess(t, func() {
				if creates++; creates-1 == c.at && c.at > 0 {
					fillUp(t, disk)
				}
			})
			defer box.Close()
			path := filepath.Join(disk, "s.db")
			rows := append(pairs(n, parcels), w.control("--store", path))
			args := []string{"create", orders(t, w.home, n, parcels), "-o", "json", "--store", path, "--settle", "0s", "--concurrency", c.workers}
			code, stdout, stderr := w.run(args...)
			switch {
			case code == 10:
				blamesStore(t, stderr, path)
			case code != 0 || c.at == 0: // what was free within its own files may do
				t.Errorf("ended with %d\nstdout: %s\nstderr: %s", code, stdout, stderr)
			}
			if c.at == 0 && creates > 1 {
				t.Errorf("%d creates left before the input was on disk", creates-1)
			}
			_ = os.Remove(filepath.Join(disk, "filler"))
			if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=256m"); err != nil {
				t.Fatal(err)
			}
			recovers(t, w, rows, path, args)
		})
	}
}

// inProcess is a world whose sandbox is in this process, and calls created
// before it takes a create.
func inProcess(t *testing.T, created func()) (*world, *sandbox.Server) {
	t.Helper()
	box, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	w := newHome(t)
	w.at(listenAt(t, "127.0.0.1:0", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && !strings.HasPrefix(r.URL.Path, "/_") {
			mu.Lock()
			created()
			mu.Unlock()
		}
		box.ServeHTTP(rw, r)
	})).URL)
	return w, box
}

// fillUp leaves no room on a disk.
func fillUp(t *testing.T, disk string) {
	f, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
}

// spoiltCalls lets each of the first hundred writes and syncs of the store
// fail, of a store that is new and of one that is not.
func spoiltCalls(t *testing.T) {
	for _, how := range []string{"ENOSPC:when=%d+", "EIO:when=%d"} {
		for _, fresh := range []bool{false, true} {
			hits := 0
			for n := 1; n <= 100; n++ {
				t.Run(fmt.Sprintf(how+" %v", n, fresh), func(t *testing.T) {
					if spoiltCall(t, fmt.Sprintf(how, n), fresh) {
						hits++
					}
				})
			}
			if hits < 80 {
				t.Errorf("only %d of 100 met a call: the test proves too little", hits)
			}
		}
	}
}

// spoiltCall lets one call fail, or all from there on, and reports whether
// there was one.
func spoiltCall(t *testing.T, how string, fresh bool) (hit bool) {
	const n, calls = 200, "pwrite64,pwritev,write,ftruncate,fsync,fdatasync"
	w, box := inProcess(t, func() {})
	defer box.Close()
	path, log := filepath.Join(w.home, "s.db"), filepath.Join(w.home, "strace.log")
	rows := pairs(n, parcels)
	if !fresh {
		rows = append(rows, w.control("--store", path))
	}
	args := []string{"create", orders(t, w.home, n, parcels), "-o", "json", "--store", path, "--settle", "0s", "--batch-size", "20"}
	cmd := w.straced([]string{
		"-o", log, "-P", path, "-P", path + "-wal", "-P", path + "-shm",
		"-e", "trace=" + calls, "-e", "inject=" + calls + ":error=" + how,
	}, args)
	cmd.Env = append(cmd.Env, "GOMAXPROCS=1") // strace counts the calls of each thread
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	code, err := ended(cmd, allowed())
	stderr := cmd.Stderr.(*bytes.Buffer).Bytes()
	if err != nil || code != 0 && code != 10 {
		t.Errorf("ended with %d: %v\nstdout: %s\nstderr: %s", code, err, cmd.Stdout, stderr)
	}
	if code == 10 {
		blamesStore(t, stderr, path)
	}
	recovers(t, w, rows, path, args)
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(text, []byte("(INJECTED)"))
}
