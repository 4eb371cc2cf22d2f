package listen_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/listen"
	"github.com/waybill-cli/waybill/internal/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const delivered = `[{"eventId":"e-1","event":"router.delivered","data":{"trackingNumber":"N1","status":1}}]`

// memory is an inbox that forgets. before is called at the start of each of
// its methods but Counts and may fail them.
type memory struct {
	before func(ctx context.Context, method string) error

	mu         sync.Mutex
	deliveries []inbox.Delivery
	rows       []inbox.Event
	refused    []inbox.Delivery
}

func (m *memory) begin(ctx context.Context, method string) error {
	if m.before == nil {
		return nil
	}
	return m.before(ctx, method)
}

func (m *memory) Put(ctx context.Context, d inbox.Delivery, rows []inbox.Event) (inbox.Receipt, error) {
	if err := m.begin(ctx, "Put"); err != nil {
		return inbox.Receipt{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d.Seq = int64(len(m.deliveries) + 1)
	m.deliveries = append(m.deliveries, d)
	receipt := inbox.Receipt{Delivery: d.Seq}
	for _, row := range rows {
		row.Delivery, row.Seq = d.Seq, int64(len(m.rows)+1)
		row.Mark = m.mark(row)
		m.rows = append(m.rows, row)
		receipt.Rows = append(receipt.Rows, inbox.Placement{Seq: row.Seq, Mark: row.Mark})
	}
	return receipt, nil
}

func (m *memory) mark(row inbox.Event) inbox.Mark {
	for _, old := range m.rows {
		switch {
		case row.Mark == inbox.Anomaly:
			return inbox.Anomaly
		case old.Mark != inbox.Current || !bytes.Equal(old.Key, row.Key):
		case bytes.Equal(old.Raw, row.Raw):
			return inbox.Duplicate
		default:
			return inbox.Conflict
		}
	}
	return row.Mark
}

func (m *memory) PutRefused(ctx context.Context, d inbox.Delivery) (int64, error) {
	if err := m.begin(ctx, "PutRefused"); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = append(m.refused, d)
	return int64(len(m.refused)), nil
}

func (m *memory) Readmitted(context.Context, int64) (int64, error) { return 0, inbox.ErrNoDelivery }

func (m *memory) Refused(context.Context, int64) iter.Seq2[inbox.Delivery, error] {
	return func(func(inbox.Delivery, error) bool) {}
}

func (m *memory) Events(ctx context.Context, q inbox.Query) iter.Seq2[inbox.Event, error] {
	return func(yield func(inbox.Event, error) bool) {
		if err := m.begin(ctx, "Events"); err != nil {
			yield(inbox.Event{}, err)
			return
		}
		m.mu.Lock()
		rows := slices.Clone(m.rows[min(int(q.After), len(m.rows)):])
		m.mu.Unlock()
		for _, row := range rows[:min(cmp.Or(q.Limit, len(rows)), len(rows))] {
			if !yield(row, nil) {
				return
			}
		}
	}
}

func (m *memory) Event(context.Context, int64) (inbox.Event, error) {
	return inbox.Event{}, inbox.ErrNoEvent
}

func (m *memory) Delivery(context.Context, int64) (inbox.Delivery, error) {
	return inbox.Delivery{}, inbox.ErrNoDelivery
}

func (m *memory) Counts(context.Context) (inbox.Counts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return inbox.Counts{Deliveries: int64(len(m.deliveries)), LastEvent: int64(len(m.rows))}, nil
}

// kept returns what is stored.
func (m *memory) kept() (deliveries, refused []inbox.Delivery) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.deliveries), slices.Clone(m.refused)
}

// reportTo writes warnings and errors to w, each a line.
func reportTo(w io.Writer) listen.Report {
	var mu sync.Mutex
	return func(level slog.Level, text string, err error) {
		mu.Lock()
		defer mu.Unlock()
		if level >= slog.LevelWarn {
			_, _ = fmt.Fprintln(w, level, text, err)
		}
	}
}

func receiver(t *testing.T, o listen.Options) *listen.Receiver {
	t.Helper()
	return listen.New(o)
}

// signing returns the verifier of signature.
func signing(t *testing.T) func(webhook.Request, time.Time) webhook.Verdict {
	t.Helper()
	v, err := webhook.NewVerifier(webhook.Scheme{}, []webhook.Secret{{Name: "env:S", Value: []byte("hunter2")}})
	if err != nil {
		t.Fatal(err)
	}
	return v.Verify
}

func signature(body string) string {
	h := hmac.New(sha256.New, []byte("hunter2"))
	h.Write([]byte(body))
	return hex.EncodeToString(h.Sum(nil))
}

// pipes is a listener without a network, for tests with a time of their own.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// server is a receiver that is being served within a bubble of fake time.
type server struct {
	t     *testing.T
	pipes *pipes
	stop  context.CancelFunc
	ended chan error
}

func serve(t *testing.T, r *listen.Receiver) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &server{t: t, pipes: newPipes(), stop: cancel, ended: make(chan error, 1)}
	go func() { s.ended <- r.Serve(ctx, s.pipes) }()
	return s
}

// end stops the server, fails the test unless it ended well, and returns how long that took.
func (s *server) end() time.Duration {
	s.t.Helper()
	start := time.Now()
	s.stop()
	if err := <-s.ended; err != nil {
		s.t.Errorf("Serve: %v; want nil", err)
	}
	took := time.Since(start)
	time.Sleep(time.Second) // of fake time: package net/http lets go of connections it closed half a second later
	return took
}

// reply is what came back on a connection.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
	after  time.Duration // from sending
}

// dial opens a connection and sends raw, byte for byte, in the background.
func (s *server) dial(raw string) (net.Conn, <-chan reply) {
	client, remote := net.Pipe()
	s.pipes.conns <- remote
	replies := make(chan reply, 1)
	start := time.Now()
	go func() { _, _ = io.WriteString(client, raw) }()
	go func() {
		replies <- readReply(client, start)
	}()
	return client, replies
}

func readReply(c net.Conn, start time.Time) reply {
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	after := time.Since(start)
	if err != nil {
		return reply{err: err, after: after}
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	return reply{status: res.StatusCode, header: res.Header, body: string(body), err: err, after: after}
}

// post is a whole request.
func post(body string, header ...string) string {
	return fmt.Sprintf("POST /hook HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n%s\r\n%s", len(body), strings.Join(append(header, ""), "\r\n"), body)
}
