//go:build unix

package main_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/sandbox"
)

// point is where in an exchange the client dies.
type point string

const (
	beforeConnect point = "before connect"
	midRequest    point = "mid request"
	afterRequest  point = "after the full request"
	afterStatus   point = "after the status line"
	midAnswer     point = "mid answer"
	afterAnswer   point = "after the answer"
)

// executioner is a service that kills its client at one point of one create.
type executioner struct {
	box http.Handler

	mu     sync.Mutex
	point  point
	stores bool // afterRequest: before the client dies
	in     int  // creates until it strikes
	kill   func()
	struck bool
}

// strikes reports whether this request is the one.
func (e *executioner) strikes(r *http.Request) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.kill == nil || e.struck || r.Method != http.MethodPost || strings.HasPrefix(r.URL.Path, "/_") {
		return false
	}
	e.in--
	e.struck = e.in < 0
	return e.struck
}

// met reports whether it struck.
func (e *executioner) met() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.struck
}

func (e *executioner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !e.strikes(r) {
		e.box.ServeHTTP(w, r)
		return
	}
	if e.point == midRequest {
		_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
		e.kill()
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if e.point == afterRequest && !e.stores {
		e.kill()
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	e.box.ServeHTTP(answer, r)
	head := fmt.Sprintf("HTTP/1.1 %d OK\r\n", answer.Code)
	text := fmt.Sprintf("%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", head, answer.Body.Len(), answer.Body)
	switch e.point {
	case afterRequest:
		text = ""
	case afterStatus:
		text = head
	case midAnswer:
		text = text[:len(text)-answer.Body.Len()/2]
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, text)
	e.kill()
}

// Kills at every point of an exchange, by the service itself, at the one
// moment that matters.
func TestTorturePoints(t *testing.T) {
	t.Parallel()
	for _, p := range []point{midRequest, afterRequest, afterStatus, midAnswer, afterAnswer, beforeConnect} {
		for _, flags := range [][]string{{"--batch-size", "40"}, {"--sync"}} {
			for i := range either(1, 25) {
				t.Run(fmt.Sprint(p, flags[0], i), func(t *testing.T) { killAt(t, p, i, flags) })
			}
		}
	}
}

func killAt(t *testing.T, p point, i int, flags []string) {
	random := dice(t)
	box, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	e := &executioner{box: box, point: p, in: random.IntN(3), stores: i%2 == 0}
	d := openDoor(t, e)
	w := newHome(t).at("http://" + d.addr)
	rows := append(pairs(120, parcels), w.control())
	args := append([]string{"create", orders(t, w.home, 120, parcels), "-o", "json", "--settle", "0s", "--request-timeout", "2s"}, flags...)
	cmd := w.command(args...)
	if p == beforeConnect {
		d.shut()
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dead := make(chan struct{})
	e.mu.Lock()
	e.kill = func() {
		_ = cmd.Process.Kill()
		<-dead
	}
	e.mu.Unlock()
	if p == beforeConnect {
		time.AfterFunc(time.Duration(random.Int64N(int64(200*time.Millisecond))), func() { _ = cmd.Process.Kill() })
	}
	code, err := ended(cmd, allowed())
	close(dead)
	if err != nil {
		t.Fatalf("%v\nstderr: %s", err, cmd.Stderr)
	}
	if code != -1 || p != beforeConnect && !e.met() {
		t.Fatalf("ended with %d before it was killed: %s", code, cmd.Stderr)
	}
	if p == beforeConnect {
		d.open()
		if made := w.audit(rows).made; made != 1 {
			t.Errorf("%d trackings were made through a shut door", made-1)
		}
	}
	w.audit(rows)
	w.finish(5, args...)
	w.whole(rows, 0)
}

// door is a server that can be shut and opened again at the same address,
// which nobody else can take meanwhile.
type door struct {
	t    *testing.T
	addr string
	port int
	srv  *http.Server
	held int // a socket that holds the port while the door is shut
	done sync.WaitGroup
}

func openDoor(t *testing.T, h http.Handler) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{t: t, addr: l.Addr().String(), port: l.Addr().(*net.TCPAddr).Port}
	d.serve(l, h)
	t.Cleanup(func() { _ = d.srv.Close(); d.done.Wait() })
	return d
}

func (d *door) serve(l net.Listener, h http.Handler) {
	d.srv = &http.Server{Handler: h, ReadHeaderTimeout: patience}
	srv := d.srv
	d.done.Go(func() { _ = srv.Serve(l) })
}

// shut refuses connections from now on.
func (d *door) shut() {
	d.t.Helper()
	_ = d.srv.Close()
	d.done.Wait()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
		err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	}
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: d.port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		d.t.Fatalf("hold %s: %v", d.addr, err)
	}
	d.held = fd
}

// open takes connections again.
func (d *door) open() {
	d.t.Helper()
	if err := syscall.Listen(d.held, 128); err != nil {
		d.t.Fatal(err)
	}
	f := os.NewFile(uintptr(d.held), d.addr)
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		d.t.Fatal(err)
	}
	d.serve(l, d.srv.Handler)
}
