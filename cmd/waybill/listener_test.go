package main_test

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// hookKey is what test deliveries are signed with, under the preset
// hmac-body-hex.
const hookKey = "a secret of tests"

// listener is `waybill listen` in a process of its own.
type listener struct {
	*world

	env   []string // beside the world's
	ready string   // file that says when it is ready
	cmd   *exec.Cmd
	out   io.Writer // for what it prints; nil for the system's null device
	addr  string
	store string
}

// listens starts a listener on a store, verifying by hmac-body-hex and
// enforcing it unless env says otherwise. What it prints goes nowhere.
func (w *world) listens(path string, env []string, flags ...string) *listener {
	w.tb.Helper()
	l, args := w.listening(path, env, flags)
	l.cmd = w.command(args...)
	l.start()
	return l
}

// listensTraced is listens with the system's calls written to a log. It must
// end by itself.
func (w *world) listensTraced(path, log string, flags ...string) *listener {
	w.tb.Helper()
	l, args := w.listening(path, nil, flags)
	l.cmd = w.straced([]string{"-s", "32", "-e", "trace=" + writes, "-o", log}, args)
	l.start()
	return l
}

// listening is a listener that is not started yet, and its line.
func (w *world) listening(path string, env, flags []string) (*listener, []string) {
	w.tb.Helper()
	l := &listener{world: w, store: path, ready: filepath.Join(w.tb.TempDir(), "listen.url")}
	l.env = append([]string{"WAYBILL_WEBHOOK_SCHEME=hmac-body-hex", "WAYBILL_WEBHOOK_SECRET=" + hookKey}, env...)
	return l, append([]string{"listen", "--addr", "127.0.0.1:0", "--ready-file", l.ready, "--store", path, "-o", "jsonl"}, flags...)
}

// start starts the process and waits for its address.
func (l *listener) start() {
	l.tb.Helper()
	l.startWith(func() error { return l.cmd.Start() })
}

func (l *listener) startWith(start func() error) {
	l.tb.Helper()
	l.cmd.Env = append(slices.Clone(l.world.env), l.env...)
	l.cmd.Stdout = l.out
	if err := start(); err != nil {
		l.tb.Fatal(err)
	}
	l.tb.Cleanup(func() {
		if l.cmd.ProcessState == nil {
			_ = l.cmd.Process.Kill()
			_ = l.cmd.Wait()
		}
	})
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		if b, err := os.ReadFile(l.ready); err == nil && len(b) > 0 {
			l.addr = strings.TrimPrefix(strings.TrimSpace(string(b)), "http://")
			return
		}
		if time.Now().After(end) {
			l.tb.Fatalf("the listener was not ready in time: %s", l.cmd.Stderr)
		}
	}
}

// stop ends it as a user would, and returns the most memory it had, in MB.
func (l *listener) stop() float64 {
	l.tb.Helper()
	mb := memory(l.cmd.Process.Pid)
	_ = l.cmd.Process.Signal(syscall.SIGTERM)
	if code, err := ended(l.cmd, patience); code != 0 || err != nil {
		l.tb.Errorf("listen ended with %d: %v: %s", code, err, l.cmd.Stderr)
	}
	return mb
}

// said is what it wrote to stderr, once it has ended.
func (l *listener) said() string { return l.cmd.Stderr.(*bytes.Buffer).String() }

// memory returns the most memory that a process had, in MB; 0 where the system
// does not tell.
func memory(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	m := highWater.FindSubmatch(text)
	if m == nil {
		return 0
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return float64(kb) / 1024
}

// signed is a request with a body and its signature.
func signed(body string) []byte {
	m := hmac.New(sha256.New, []byte(hookKey))
	m.Write([]byte(body))
	return request(body, "X-Signature", hex.EncodeToString(m.Sum(nil)))
}

// request is a request with a body and header fields: name and value by turns.
func request(body string, header ...string) []byte {
	b := []byte("POST /hook HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
	for i := 0; i < len(header); i += 2 {
		b = fmt.Appendf(b, "%s: %s\r\n", header[i], header[i+1])
	}
	return fmt.Appendf(b, "Content-Length: %d\r\n\r\n%s", len(body), body)
}

// eventID is the eventId of the n-th event of a series.
func eventID(series, n int) string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", series, n)
}

// event is one event of about 1.2 kB.
func event(series, n int) string {
	return fmt.Sprintf(`{"eventId":%q,"event":"router.delivered","eventTime":"2026-03-05T03:10:00Z","data":{"routerId":"r-%d","trackingNumber":"94001%016d7",`+
		`"status":1,"statusTrack":"1-DELIVERED","summary":{"trackingNumber":"94001%016d7","status":1,"statusLabel":"DELIVERED","latestEvent":"Delivered, front door"},`+
		`"detail":{"trackingNumber":"94001%016d7","trackingEvents":[{"eventType":"Delivered, front door","eventCity":"MEMPHIS","eventState":"TN","eventZIPCode":"38118",`+
		`"eventTimestamp":"2026-03-04 21:10:00","GMTTimestamp":"2026-03-05T03:10:00Z"},{"eventType":"Out for delivery","eventCity":"MEMPHIS","eventState":"TN",`+
		`"eventZIPCode":"38118","eventTimestamp":"2026-03-04 09:10:00","GMTTimestamp":"2026-03-04T15:10:00Z"},{"eventType":"Arrived at post office","eventCity":"MEMPHIS",`+
		`"eventState":"TN","eventZIPCode":"38118","eventTimestamp":"2026-03-04 05:10:00","GMTTimestamp":"2026-03-04T11:10:00Z"},{"eventType":"Departed from facility",`+
		`"eventCity":"NASHVILLE","eventState":"TN","eventZIPCode":"37201","eventTimestamp":"2026-03-03 23:40:00","GMTTimestamp":"2026-03-04T05:40:00Z"}]}}}`,
		eventID(series, n), n, n, n, n)
}

// wire is a kept-alive connection that sends requests which are made already,
// and makes as little of the answers as can be.
type wire struct {
	net.Conn

	in         *bufio.Reader
	retryAfter string // of the last answer
	closing    bool   // the last answer ends the connection
}

func dial(addr string) (*wire, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	return &wire{Conn: c, in: bufio.NewReaderSize(c, 512)}, nil
}

// do sends a request and returns the status of the answer.
func (c *wire) do(request []byte) (int, error) {
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	return c.answer()
}

var contentLength, retryAfter = []byte("Content-Length: "), []byte("Retry-After: ")

// answer reads an answer whose header says how long it is.
func (c *wire) answer() (int, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 12 {
		return 0, fmt.Errorf("no status line: %q", line)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, err
	}
	length := 0
	c.retryAfter, c.closing = "", false
	for {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			return 0, err
		}
		if len(line) == 2 {
			break
		}
		if n, ok := bytes.CutPrefix(line, contentLength); ok {
			if length, err = strconv.Atoi(string(n[:len(n)-2])); err != nil {
				return 0, err
			}
		}
		if after, ok := bytes.CutPrefix(line, retryAfter); ok {
			c.retryAfter = string(bytes.TrimSpace(after))
		}
		c.closing = c.closing || bytes.EqualFold(line, []byte("Connection: close\r\n"))
	}
	_, err = c.in.Discard(length)
	return status, err
}

// load sends all requests over so many connections, each as soon as the one
// before is answered, and returns how long each took and the whole.
func load(tb testing.TB, addr string, conns int, requests [][]byte) ([]time.Duration, time.Duration) {
	tb.Helper()
	took := make([]time.Duration, len(requests))
	var next atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range conns {
		all.Go(func() {
			c, err := dial(addr)
			if err != nil {
				tb.Error(err)
				return
			}
			defer c.Close()
			for i := next.Add(1) - 1; i < int64(len(requests)); i = next.Add(1) - 1 {
				at := time.Now()
				if status, err := c.do(requests[i]); status != 200 || err != nil {
					tb.Errorf("delivery %d: status %d, %v", i, status, err)
					return
				}
				took[i] = time.Since(at)
			}
		})
	}
	all.Wait()
	return took, time.Since(began)
}

// kept returns how often each eventId stands in a store, its mark left out of
// account, and how often standing ones do.
func kept(tb testing.TB, path string) (all, standing map[string]int) {
	tb.Helper()
	db, err := sqlite.Open(tb.Context(), path, store.Options{MustExist: true})
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	all, standing = map[string]int{}, map[string]int{}
	for e, err := range db.Events(tb.Context(), inbox.Query{}) {
		if err != nil {
			tb.Fatal(err)
		}
		all[e.EventID]++
		if e.Mark == inbox.Current {
			standing[e.EventID]++
		}
	}
	return all, standing
}

// broken reports whether a connection ended by itself.
func broken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
