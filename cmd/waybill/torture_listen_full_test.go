//go:build linux

package main_test

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A listener whose disk becomes full says 503 and when to come again, to every
// delivery; when there is room it takes them, without being started anew; and
// whatever it answered with 200, before and after, is in the store. The full
// form has a disk of 2 MB too.
func TestTortureListenFullDisk(t *testing.T) {
	t.Parallel()
	t.Run("limit", func(t *testing.T) {
		w := newHome(t)
		l, args := w.listening(filepath.Join(w.home, "inbox.db"), nil, []string{"-q"})
		l.cmd, l.out = w.command(args...), io.Discard // by a pipe, which is never full
		l.startWith(func() error { return startUnder(l.cmd) })
		fullInbox(t, l, func(full bool) {
			size := uint64(math.MaxUint64)
			if full {
				size = 0
			}
			if err := fill(l.cmd.Process.Pid, size); err != nil {
				t.Fatal(err)
			}
		})
	})
	if !full() {
		return
	}
	t.Run("tmpfs", func(t *testing.T) {
		w := newHome(t)
		disk := filepath.Join(w.home, "disk")
		if err := os.Mkdir(disk, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
			t.Fatalf("mount a tmpfs: %v: the full form of this test needs the right to", err)
		}
		defer func() {
			if err := syscall.Unmount(disk, 0); err != nil {
				t.Errorf("unmount %s: %v", disk, err)
			}
		}()
		fullInbox(t, w.listens(filepath.Join(disk, "inbox.db"), nil, "-q"), func(full bool) {
			if full {
				return // 2 MB are full by themselves
			}
			if err := syscall.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// fullInbox sends deliveries before a disk is full, while it is, and after.
func fullInbox(t *testing.T, l *listener, fill func(full bool)) {
	t.Helper()
	before, later := 20, either(40, 300)
	c, err := dial(l.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stored, n := map[string]bool{}, 0
	send := func() int {
		n++
		status, err := c.do(signed("[" + event(1, n) + "]"))
		switch {
		case err != nil:
			code, _ := ended(l.cmd, time.Second)
			t.Fatalf("delivery %d: %v; the listener ended with %d: %s", n, err, code, l.said())
		case status == 200:
			stored[eventID(1, n)] = true
		case status != 503 || c.retryAfter == "":
			t.Errorf("delivery %d: status %d, Retry-After %q; want 503 and a number", n, status, c.retryAfter)
		}
		return status
	}
	for range before {
		if status := send(); status != 200 {
			t.Fatalf("status %d while there was room", status)
		}
	}
	fill(true)
	for tries := 0; send() == 200; tries++ { // what was set aside already may take some
		if tries > 5000 {
			t.Fatal("the disk does not become full")
		}
	}
	taken := 0
	for range later {
		if send() == 200 {
			taken++
		}
	}
	if taken > later/10 {
		t.Errorf("%d of %d were taken while the disk was full: the test proves too little", taken, later)
	}
	fill(false)
	for range later {
		if status := send(); status != 200 {
			t.Errorf("status %d after there was room again", status)
		}
	}
	l.stop()
	if said := l.said(); strings.Count(said, "not stored") > 3 || !strings.Contains(said, "stored again") {
		t.Errorf("said %q; want once that storing fails, and once that it does not", said)
	}
	if err := checkStore(t, l.store); err != nil {
		t.Errorf("the store is damaged: %v", err)
	}
	_, standing := kept(t, l.store)
	for id := range stored {
		if standing[id] != 1 {
			t.Errorf("%s was answered with 200 and stands %d times", id, standing[id])
		}
	}
	if len(standing) != len(stored) {
		t.Errorf("%d events stand, and %d were answered with 200", len(standing), len(stored))
	}
	t.Logf("%d of %d deliveries stored, %d of them while the disk was full", len(stored), n, taken)
}
