package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// response is a response of the service, parsed. Err says why it is missing or incomplete.
type response struct {
	Trace

	sent         bool           // a byte of the request may have left
	body         *tracking.Body // Answer, parsed; nil without a response
	unmaskedBody *tracking.Body // as received, possibly with the key: for decisions only
	cut          bool
	retryAfter   time.Duration
	began        time.Time
}

const maxRetryAfter = 100 * 365 * 24 * time.Hour

// do sends one request once, and reads its response to the end.
func (c *Client) do(ctx context.Context, r Request, limit time.Duration) response {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimedOut)
	defer cancel()
	c.opts.InFlight.Add(1)
	defer c.opts.InFlight.Add(-1)
	x := response{Trace: Trace{Operation: r.Operation, Method: r.Method, URL: r.URL, Request: r.body}, began: time.Now()}
	conn := connTrace{allowed: tracking.Allowed(ctx)}
	defer conn.release()
	req, err := c.request(httptrace.WithClientTrace(ctx, conn.clientTrace()), r)
	if err != nil {
		x.Err = err
		return x
	}
	res, err := c.http.Do(req)
	if err != nil {
		x.sent, x.Err = conn.wrote(), plainError(ctx, err)
	} else {
		x.sent, x.Status, x.Header = true, res.StatusCode, res.Header
		x.retryAfter = retryAfter(res.Header.Get("Retry-After"), time.Now())
		c.readAnswer(ctx, res, &x)
	}
	c.removeKey(&x)
	x.JSON, x.Took = x.body.JSON(), time.Since(x.began)
	for _, see := range []func(Trace){c.opts.Trace, c.opts.Observe} {
		if see != nil {
			see(x.Trace)
		}
	}
	return x
}

// removeKey masks the key in headers and the error: both are stored and shown. [Client.readAnswer] masks the body.
func (c *Client) removeKey(x *response) {
	for _, values := range x.Header {
		for i := range values {
			values[i] = c.key.String(values[i])
		}
	}
	x.Err = c.key.Error(x.Err)
}

func (c *Client) unanswered(x response) error {
	return &ConnectError{Host: c.Host(), Sent: x.sent, Err: x.Err}
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	if c.opts.Key == "" {
		return nil, errNoKey
	}
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return nil, err
	}
	req.GetBody = nil // the transport must not resend a create
	req.Header.Set("Authorization", c.opts.Key)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.opts.UserAgent)
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

type tlsConn interface{ NetConn() net.Conn }

// connTrace counts the bytes written to the connection of one request.
type connTrace struct {
	conn          atomic.Pointer[countingConn]
	writtenBefore atomic.Int64
	uncounted     atomic.Bool  // the connection's bytes can't be counted
	allowed       func() error // nil if always
}

func (t *connTrace) clientTrace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		conn := info.Conn
		for t, ok := conn.(tlsConn); ok; t, ok = conn.(tlsConn) {
			conn = t.NetConn()
		}
		counted, ok := conn.(*countingConn)
		if !ok {
			t.uncounted.Store(true)
			return
		}
		t.writtenBefore.Store(counted.written.Load())
		if t.allowed != nil {
			counted.allowed.Store(&t.allowed)
		}
		t.conn.Store(counted)
	}}
}

func (t *connTrace) release() {
	if conn := t.conn.Load(); conn != nil {
		conn.allowed.CompareAndSwap(&t.allowed, nil)
	}
}

// wrote reports whether a byte of the request may have left.
func (t *connTrace) wrote() bool {
	if t.uncounted.Load() {
		return true
	}
	conn := t.conn.Load()
	return conn != nil && conn.written.Load() > t.writtenBefore.Load()
}

// readAnswer reads the body to its end, up to [MaxAnswer]. A response that does not declare its length or end is
// complete only if it is empty or JSON.
func (c *Client) readAnswer(ctx context.Context, res *http.Response, x *response) {
	defer res.Body.Close()
	if res.StatusCode < http.StatusOK { // 101: what follows is not a response, and may never end
		return
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, MaxAnswer+1))
	if len(raw) > MaxAnswer {
		raw, x.cut = raw[:MaxAnswer], true
	}
	x.unmaskedBody = tracking.ReadBody(raw)
	x.Answer, x.body = raw, x.unmaskedBody
	if masked := c.key.Bytes(raw); !bytes.Equal(masked, raw) {
		if x.unmaskedBody.JSON() {
			masked = c.maskJSON(raw)
		}
		x.Answer, x.body = masked, tracking.ReadBody(masked)
	}
	switch {
	case err != nil:
		x.cut, x.Err = true, plainError(ctx, err)
	case res.ContentLength < 0 && len(res.TransferEncoding) == 0 && !res.Uncompressed && !x.cut &&
		len(bytes.TrimSpace(raw)) > 0 && !x.unmaskedBody.JSON():
		x.cut, x.Err = true, io.ErrUnexpectedEOF
	}
}

var scalars = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|[^\s",:\[\]{}]+`)

// maskJSON keeps JSON valid, unless a key spans several values.
func (c *Client) maskJSON(raw []byte) []byte {
	return c.key.Bytes(scalars.ReplaceAllFunc(raw, func(part []byte) []byte {
		masked := c.key.Bytes(part)
		if json.Valid(masked) {
			return masked
		}
		return []byte(`"` + redact.Mask + `"`)
	}))
}

// plainError removes method and URL: the caller names the operation, and a URL may be secret.
func plainError(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		if cause := context.Cause(ctx); errors.Is(ctx.Err(), context.DeadlineExceeded) && !errors.Is(cause, ctx.Err()) {
			return cause // the deadline of the command or of the request
		}
		return errTimedOut
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

var errTimedOut = errors.New("no response in time (--request-timeout)")

// retryAfter parses seconds or an HTTP date. Any other text, or a time in the past, is 0.
func retryAfter(s string, now time.Time) time.Duration {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.Duration(min(max(n, 0), int64(maxRetryAfter/time.Second))) * time.Second
	}
	t, err := http.ParseTime(s)
	if err != nil {
		return 0
	}
	return min(max(t.Sub(now), 0), maxRetryAfter)
}
