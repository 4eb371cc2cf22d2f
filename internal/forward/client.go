package forward

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// ErrUnreachable says that no connection to the target was made: nothing was sent.
var ErrUnreachable = errors.New("no connection")

// Limits of an exchange with a target.
const (
	dialTimeout  = 5 * time.Second
	replyTimeout = 2 * time.Second  // for the body of the answer, once its header is there
	idleTimeout  = 30 * time.Second // an idle connection is kept for the next request
	maxIdle      = 16               // idle connections of all targets
	maxAnswer    = 64 << 10         // bytes of an answer's header, and again of its body
	maxReply     = 1 << 10          // bytes of an answer's body that are kept
)

// DefaultTimeout is how long an exchange may take by default.
const DefaultTimeout = 30 * time.Second

// ClientOptions control how a client talks to targets.
type ClientOptions struct {
	Timeout        time.Duration  // of a whole exchange; 0 means [DefaultTimeout]
	Roots          *x509.CertPool // nil for the system's authorities
	AllowForbidden bool           // also connect to forbidden addresses, see [ErrForbidden]
	InFlight       *atomic.Int64  // counts requests under way; may be nil
}

// Client sends requests unchanged: header names keep their case and order, only Host and Content-Length are added,
// redirects are not followed and proxies are not used. It is safe for concurrent use. The caller closes it.
type Client struct {
	o      ClientOptions
	dialer net.Dialer

	mu   sync.Mutex
	idle []*targetConn
}

type targetConn struct {
	net.Conn
	target    string // scheme and address
	limit     *io.LimitedReader
	r         *bufio.Reader
	reused    bool
	idleSince time.Time // since when it has been idle
}

// NewClient returns a client. It opens no connection.
func NewClient(o ClientOptions) *Client {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	o.InFlight = cmp.Or(o.InFlight, new(atomic.Int64))
	c := &Client{o: o, dialer: net.Dialer{Timeout: dialTimeout}}
	if !o.AllowForbidden {
		c.dialer.Control = refuseForbidden
	}
	return c
}

// Close closes idle connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.idle {
		_ = w.Conn.Close()
	}
	c.idle = nil
}

// Answer is the answer of a target.
type Answer struct {
	Status     int
	Location   string        // of a redirect, which was not followed
	RetryAfter time.Duration // how long it asked to wait; 0 if it did not
	Reply      []byte        // start of the body
	Took       time.Duration
}

// Send sends a request and returns the answer, whatever its status. Errors are [ErrUnreachable], [ErrForbidden],
// [ErrUnsendable], those of ctx, and others after which it is unknown whether the target has the request.
func (c *Client) Send(ctx context.Context, to *url.URL, m webhook.Request) (Answer, error) {
	began := time.Now()
	head, err := encodeHead(m, to.Host)
	if err != nil {
		return Answer{}, err
	}
	c.o.InFlight.Add(1)
	defer c.o.InFlight.Add(-1)
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	for {
		w, err := c.connect(ctx, to)
		if err != nil {
			return Answer{Took: time.Since(began)}, err
		}
		reused := w.reused
		a, stale, err := c.roundTrip(ctx, w, m.Method, head, m.Body)
		a.Took = time.Since(began)
		if reused && stale && ctx.Err() == nil {
			continue // the target had closed the connection meanwhile
		}
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("no answer in time: %w", context.Cause(ctx))
		}
		return a, err
	}
}

func (c *Client) connect(ctx context.Context, to *url.URL) (*targetConn, error) {
	name := to.Scheme + "://" + address(to)
	if w := c.takeIdle(name); w != nil {
		return w, nil
	}
	conn, err := c.dial(ctx, to)
	if err != nil {
		return nil, err
	}
	if to.Scheme == "https" {
		secure := tls.Client(conn, &tls.Config{
			ServerName: to.Hostname(), RootCAs: c.o.Roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		})
		shaking, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		if err := secure.HandshakeContext(shaking); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, errors.Join(err, conn.Close()))
		}
		conn = secure
	}
	limit := &io.LimitedReader{R: conn}
	return &targetConn{Conn: conn, target: name, limit: limit, r: bufio.NewReader(limit)}, nil
}

func (c *Client) dial(ctx context.Context, to *url.URL) (net.Conn, error) {
	conn, err := c.dialer.DialContext(ctx, "tcp", address(to))
	if err != nil && !errors.Is(err, ErrForbidden) {
		err = fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return conn, err
}

func (c *Client) takeIdle(name string) *targetConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, w := range slices.Backward(c.idle) {
		if w.target != name {
			continue
		}
		c.idle = slices.Delete(c.idle, i, i+1)
		if time.Since(w.idleSince) < idleTimeout {
			return w
		}
		_ = w.Conn.Close()
	}
	return nil
}

func (c *Client) putIdle(w *targetConn) {
	_ = w.SetDeadline(time.Time{})
	w.reused, w.idleSince = true, time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, w)
	if len(c.idle) > maxIdle {
		_ = c.idle[0].Conn.Close()
		c.idle = c.idle[1:]
	}
}

// roundTrip sends a request on w. stale is true if the connection ended without a byte of an answer.
func (c *Client) roundTrip(
	ctx context.Context, w *targetConn, method string, head, body []byte,
) (a Answer, stale bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = w.SetDeadline(time.Unix(1, 0)) }) // an error: the connection is gone
	defer stop()
	parts := net.Buffers{head, body}
	_, writeErr := parts.WriteTo(w.Conn)
	// Even after a failed write there may be an answer, such as 413.
	w.limit.N = maxAnswer
	if _, err := w.r.Peek(1); err != nil {
		return a, true, errors.Join(fmt.Errorf("no answer: %w", endOf(err, writeErr)), w.Conn.Close())
	}
	res, err := readAnswer(w.r, method) //nolint:bodyclose // the connection is kept or closed as a whole
	if err != nil {
		return a, false, errors.Join(fmt.Errorf("not an HTTP answer: %w", err), w.Conn.Close())
	}
	a = Answer{Status: res.StatusCode, Location: res.Header.Get("Location")}
	a.RetryAfter = retryAfter(res.Header.Get("Retry-After"))
	_ = w.SetReadDeadline(time.Now().Add(replyTimeout))
	w.limit.N = maxAnswer
	a.Reply, _ = io.ReadAll(io.LimitReader(res.Body, maxReply)) // the status is what counts
	_, err = io.Copy(io.Discard, res.Body)
	// Bytes after an answer must not be taken for the next one.
	if err != nil || writeErr != nil || res.Close || w.limit.N <= 0 || w.r.Buffered() > 0 || !stop() {
		_ = w.Conn.Close() // there is an answer: how the connection ends changes nothing
		return a, false, nil
	}
	c.putIdle(w)
	return a, false, nil
}

// endOf returns why a connection ended before an answer, in one line.
func endOf(readErr, writeErr error) error {
	var errno syscall.Errno
	switch {
	case errors.As(readErr, &errno), errors.As(writeErr, &errno):
		return errno
	case errors.Is(readErr, io.EOF):
		return errors.New("the target closed the connection")
	}
	return readErr
}

// readAnswer reads the header of the final answer, past informational ones (1xx).
func readAnswer(r *bufio.Reader, method string) (*http.Response, error) {
	for {
		res, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil || res.StatusCode/100 != 1 {
			return res, err
		}
		if res.StatusCode == http.StatusSwitchingProtocols {
			return nil, errors.New("the target wants another protocol")
		}
	}
}

// retryAfter parses how long an answer asks to wait, 0 for not at all.
func retryAfter(value string) time.Duration {
	if n, err := strconv.Atoi(value); err == nil && n > 0 {
		return min(time.Duration(min(n, 1<<20))*time.Second, maxRetryDelay)
	}
	if t, err := http.ParseTime(value); err == nil {
		return min(max(time.Until(t), 0), maxRetryDelay)
	}
	return 0
}

// Check connects to a target without sending anything. Its errors are [ErrUnreachable] and [ErrForbidden].
func (c *Client) Check(ctx context.Context, to *url.URL) error {
	conn, err := c.dial(ctx, to)
	if err != nil {
		return err
	}
	return conn.Close()
}

// ErrForbidden says that a target's name led to an address that deliveries are not sent to: a link-local one, or the
// metadata service of a cloud, which hands out credentials.
var ErrForbidden = errors.New("the address is link-local or a metadata service, and refused without --allow-target")

// metadataNetworks lists the networks of metadata services that are not link-local.
func metadataNetworks() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("fd00:ec2::/32"),      // AWS: metadata, credentials, keys
		netip.MustParsePrefix("fd20:ce::/32"),       // Google Cloud
		netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
		netip.MustParsePrefix("168.63.129.16/32"),   // Azure
		netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	}
}

// refuseForbidden checks the address of the connection, whatever name or alias led there.
func refuseForbidden(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if isForbidden(to.Addr()) {
		return fmt.Errorf("%s: %w", to.Addr(), ErrForbidden)
	}
	return nil
}

func isForbidden(ip netip.Addr) bool {
	ip = ip.WithZone("").Unmap()
	if inner, ok := embeddedIPv4(ip); ok && isForbidden(inner) {
		return true
	}
	if ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return true
	}
	return slices.ContainsFunc(metadataNetworks(), func(p netip.Prefix) bool { return p.Contains(ip) })
}

// embeddedIPv4 returns the IPv4 address inside a translated one (NAT64, SIIT, 6to4) or the old compatible form.
func embeddedIPv4(ip netip.Addr) (netip.Addr, bool) {
	if !ip.Is6() {
		return ip, false
	}
	b := ip.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(ip), netip.MustParsePrefix("64:ff9b:1::/48").Contains(ip),
		netip.MustParsePrefix("::ffff:0:0:0/96").Contains(ip),
		netip.MustParsePrefix("::/96").Contains(ip) && b[12] != 0:
		return netip.AddrFrom4([4]byte(b[12:])), true
	case netip.MustParsePrefix("2002::/16").Contains(ip):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return ip, false
}
