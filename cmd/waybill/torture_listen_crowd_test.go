//go:build unix

package main_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// crowdSizes returns how many idle and slow connections a listener is to have.
// Where the system allows too few descriptors it is less than was promised,
// which the full form does not let pass.
func crowdSizes(t *testing.T) (idle, slow int) {
	t.Helper()
	idle, slow = either(500, 10_000), either(50, 1000)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	// The listener takes four fifths of what it may have.
	if most := int(limit.Cur) / 5 * 4; idle+slow+100 > most {
		if full() {
			t.Errorf("%d descriptors allow no %d connections: raise the limit (ulimit -n 20000)", limit.Cur, idle+slow)
		}
		t.Logf("LOWERED: %d descriptors allow no %d connections", limit.Cur, idle+slow)
		idle, slow = max(0, (most-100)*10/11), max(0, (most-100)/11)
	}
	return idle, slow
}

// A listener with a crowd of idle connections, and of such that send their
// header or body byte by byte: honest deliveries wait for none of them, the slow
// ones are closed, the idle ones are not, and memory stays within bounds.
func TestTortureListenCrowd(t *testing.T) {
	t.Parallel()
	idle, slow := crowdSizes(t)
	w := newHome(t)
	l := w.listens(filepath.Join(w.home, "inbox.db"), nil, "-q")
	idlers := idlers(t, l.addr, idle)
	c := crowd{size: int64(slow)}
	var all sync.WaitGroup
	for i := range slow {
		// A body may take three times as long as a header: only the full form waits for that.
		all.Go(func() { c.trickle(t, l.addr, full() && i%2 == 0) })
	}
	done := make(chan struct{})
	go func() { defer close(done); all.Wait() }()
	sent := c.honest(t, l, done)
	<-done
	if !c.passed.Load() {
		t.Errorf("no %d of %d honest deliveries were answered before a slow connection was closed", inARow, sent)
	}
	if begun := c.begun.Load(); c.closed.Load() != begun {
		t.Errorf("%d of %d slow connections were closed", c.closed.Load(), begun)
	}
	if c.tooSlow.Load() != c.bodies.Load() {
		t.Errorf("%d slow bodies were answered with 408; want %d", c.tooSlow.Load(), c.bodies.Load())
	}
	gone := 0
	for _, c := range idlers {
		if status, err := c.do([]byte("GET / HTTP/1.1\r\nHost: h\r\n\r\n")); status != 200 || err != nil {
			gone++
		}
		_ = c.Close()
	}
	if gone > 0 {
		t.Errorf("%d of %d idle connections were closed", gone, idle)
	}
	mb := l.stop()
	if mb > 260 {
		t.Errorf("the listener had %.0f MB; want 260 at most", mb)
	}
	if _, standing := kept(t, l.store); len(standing) != sent {
		t.Errorf("%d deliveries are stored; want %d", len(standing), sent)
	}
	t.Logf("%d idle and %d slow connections: %d deliveries, %.0f MB", idle, slow, sent, mb)
}

// idlers are connections that have had an answer and say no more.
func idlers(t *testing.T, addr string, n int) []*wire {
	t.Helper()
	all := make([]*wire, n)
	var next atomic.Int64
	var opening sync.WaitGroup
	for range 16 {
		opening.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				c, err := dial(addr)
				if err != nil {
					t.Error(err)
					return
				}
				if status, err := c.do([]byte("GET / HTTP/1.1\r\nHost: h\r\n\r\n")); status != 200 || err != nil {
					t.Errorf("idle connection %d: status %d, %v", i, status, err)
				}
				all[i] = c
			}
		})
	}
	opening.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// inARow is how many deliveries are to be answered while no slow connection is closed.
const inARow = 5

// crowd is senders so slow that the listener closes their connections.
type crowd struct {
	size                           int64
	begun, closed, bodies, tooSlow atomic.Int64 // connections; those with a body, and those answered with 408
	passed                         atomic.Bool  // so many deliveries were answered inARow
}

// trickle sends a header, or a body, of which there is no end in time. It does so
// again until honest deliveries have passed: on a busy machine none may do so at first.
// It ends before idle connections do.
func (c *crowd) trickle(t *testing.T, addr string, body bool) {
	for end := time.Now().Add(patience / 2); ; {
		c.trickleOnce(t, addr, body)
		if c.passed.Load() || t.Failed() || time.Now().After(end) {
			return
		}
	}
}

// trickleOnce counts whether the connection was closed, and whether it was told why.
func (c *crowd) trickleOnce(t *testing.T, addr string, body bool) {
	to, err := dial(addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer to.Close()
	begin := "POST / HTTP/1.1\r\nHost: h\r\nX-Long: "
	if body {
		begin = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n["
		c.bodies.Add(1)
	}
	if _, err := io.WriteString(to, begin); err != nil {
		t.Error(err)
		return
	}
	c.begun.Add(1)
	answered := make(chan int, 1)
	go func() {
		status, _ := to.answer() // a header too slow gets none
		answered <- status
	}()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		select {
		case status := <-answered:
			c.closed.Add(1)
			if status == 408 {
				c.tooSlow.Add(1)
			}
			return
		case <-time.After(500 * time.Millisecond):
			_, _ = to.Write([]byte(" ")) // how it ends shows in the answer
		}
	}
}

// honest sends deliveries, one at a time and each over a connection of its own,
// until done closes, and returns how many. They pass once some of them in a row were
// answered while all slow connections were open.
func (c *crowd) honest(t *testing.T, l *listener, done <-chan struct{}) (sent int) {
	t.Helper()
	closed, row := int64(0), 0
	for {
		select {
		case <-done:
			return sent
		case <-time.After(50 * time.Millisecond):
		}
		if now := c.closed.Load(); now != closed || c.begun.Load()-now != c.size {
			closed, row = now, -1 // this one does not count
		}
		to, err := dial(l.addr)
		if err == nil {
			err = to.SetDeadline(time.Now().Add(patience))
		}
		if err != nil {
			t.Error(err)
			return sent
		}
		if status, err := to.do(signed("[" + event(1, sent) + "]")); status != 200 || err != nil {
			t.Errorf("delivery %d: status %d, %v", sent, status, err)
			return sent
		}
		_ = to.Close()
		sent++
		if row++; row >= inARow && c.closed.Load() == closed && c.begun.Load()-closed == c.size {
			c.passed.Store(true)
		}
	}
}

// A body of a gigabyte in chunks is refused when it has passed the limit, and
// not read on.
func TestTortureListenEndlessBody(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	l := w.listens(filepath.Join(w.home, "inbox.db"), nil, "-q")
	c, err := dial(l.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int64
	chunk := append([]byte("10000\r\n"), make([]byte, 1<<16+2)...)
	copy(chunk[len(chunk)-2:], "\r\n")
	ended := make(chan error, 1)
	go func() {
		for sent.Load() < 1<<30 {
			if _, err := c.Write(chunk); err != nil {
				ended <- err
				return
			}
			sent.Add(1 << 16)
		}
		ended <- nil
	}()
	status, err := c.answer()
	read := sent.Load()
	if status != 413 || err != nil {
		t.Errorf("status %d, %v; want 413", status, err)
	}
	if read > 64<<20 {
		t.Errorf("413 after %d MiB; want it once 5 MiB have passed, but for what is on its way", read>>20)
	}
	if err := <-ended; !broken(err) && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.As(err, new(*net.OpError)) {
		t.Errorf("the sender could go on to its end: %v", err)
	}
	if mb := l.stop(); mb > 100 {
		t.Errorf("the listener had %.0f MB; want 100 at most", mb)
	}
	if all, _ := kept(t, l.store); len(all) != 0 {
		t.Errorf("%d events are stored; want none", len(all))
	}
}
