package listen

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

const repeatAlert = time.Minute // between two reports of a lasting failure

// Report receives messages, without secrets, bodies and headers, and their cause, nil if nothing failed. The level is
// [slog.LevelDebug] for logs of package net/http, [slog.LevelError] for failures to store, else [slog.LevelWarn]. It
// is called concurrently.
type Report func(level slog.Level, text string, err error)

// Write reports a line of a log. It implements [io.Writer].
func (f Report) Write(line []byte) (int, error) {
	f(slog.LevelDebug, string(bytes.TrimSuffix(line, []byte("\n"))), nil)
	return len(line), nil
}

// storeAlert reports a failing store: when it begins to fail, once a minute while it lasts, and when it is over. With
// a full disk under load, a thousand deliveries fail per second.
type storeAlert struct {
	report       Report
	begins, ends string // messages

	mu       sync.Mutex
	reported time.Time // zero while the store works
	failed   int64     // deliveries since it began to fail
}

// update takes the error of storing a delivery, nil if it is stored.
func (t *storeAlert) update(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if err != nil {
		t.failed++
	}
	switch {
	case err == nil && !t.reported.IsZero():
		t.report(slog.LevelWarn, fmt.Sprintf("%s; not stored: %d", t.ends, t.failed), nil)
		t.reported, t.failed = time.Time{}, 0
	case err != nil && now.Sub(t.reported) >= repeatAlert:
		t.reported = now
		t.report(slog.LevelError, fmt.Sprintf("%s; deliveries: %d", t.begins, t.failed), err)
	}
}

// readAlert reports at most once a minute, since one cause may come and go, and the end of each reported failure.
type readAlert struct {
	report   Report
	reported time.Time
	lasts    bool // the reported failure lasts
}

func (a *readAlert) update(err error) {
	switch now := time.Now(); {
	case err == nil && a.lasts:
		a.lasts = false
		a.report(slog.LevelWarn, "received events are read again", nil)
	case err != nil && !a.lasts && now.Sub(a.reported) >= repeatAlert:
		a.reported, a.lasts = now, true
		a.report(slog.LevelWarn, "received events can't be read, trying again", err)
	}
}

// rejectAdvice says how to make requests acceptable, by the status of their answer.
var rejectAdvice = map[int]string{
	http.StatusBadRequest:                  "check the sender, and the tunnel or proxy before this listener",
	http.StatusRequestTimeout:              fmt.Sprintf("it must arrive within %v", bodyTimeout),
	http.StatusMethodNotAllowed:            "a delivery has a body",
	http.StatusRequestEntityTooLarge:       "raise --max-body",
	http.StatusUnsupportedMediaType:        "turn compression off at the sender or tunnel",
	http.StatusRequestHeaderFieldsTooLarge: fmt.Sprintf("at most %d bytes are read", maxHeader),
}

// rejectAlert reports requests that are answered without being stored, at most once a minute per status: the sender
// may be the service, and gets the same answer every time.
type rejectAlert struct {
	report Report

	mu       sync.Mutex
	byStatus map[int]rejections
}

type rejections struct {
	reported time.Time
	count    int64 // since the receiver was made
}

func (a *rejectAlert) update(status int, text, from string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.byStatus[status]
	r.count++
	if now := time.Now(); now.Sub(r.reported) >= repeatAlert {
		r.reported = now
		a.report(slog.LevelWarn, fmt.Sprintf("a request was answered %d and not stored: %s; %s; from: %s; requests: %d",
			status, text, rejectAdvice[status], from, r.count), nil)
	}
	a.byStatus[status] = r
}

// reportSkew reports that a clock is wrong: the secret is right, but every delivery is refused.
func (f Report) reportSkew(skew time.Duration) {
	side := "ahead of"
	if skew < 0 {
		side = "behind"
	}
	f(slog.LevelWarn, fmt.Sprintf("deliveries carry the right signature and a wrong time: the sender's clock is "+
		"%v %s this computer's; set the one that is wrong", webhook.FormatSkew(skew), side), nil)
}

// reportingListener accepts connections that report answers that package net/http gives before any handler is called:
// 400 to what is not a request, 431 to a header that is far too large.
type reportingListener struct {
	net.Listener
	alert *rejectAlert
}

// Accept implements [net.Listener].
func (l reportingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &reportingConn{conn, l.alert}, nil
}

type reportingConn struct {
	net.Conn
	alert *rejectAlert
}

// Write implements [net.Conn]. Answers of handlers have the header X-Content-Type-Options, see [answer].
func (c *reportingConn) Write(b []byte) (int, error) {
	line, ok := bytes.CutPrefix(b, []byte("HTTP/1.1 "))
	if ok && len(line) > 0 && line[0] >= '4' && !bytes.Contains(line, []byte("X-Content-Type-Options")) {
		line, _, _ = bytes.Cut(line, []byte("\r\n"))
		code, text, _ := bytes.Cut(line, []byte(" "))
		if status, err := strconv.Atoi(string(code)); err == nil {
			c.alert.update(status, string(bytes.ToLower(text)), c.RemoteAddr().String())
		}
	}
	return c.Conn.Write(b)
}

// CloseWrite closes one direction, as package net/http does after answering a request that it has not read completely.
func (c *reportingConn) CloseWrite() error {
	if conn, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return conn.CloseWrite()
	}
	return nil
}
