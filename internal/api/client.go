// Package api is the client of the shipment tracking service: its three operations, each with its own result type.
//
// It never sends a create twice, whatever happens to the connection: the caller decides whether to resend it.
package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// MaxAnswer is how much of a response body is read, in bytes. A longer body is cut.
const MaxAnswer = 32 << 20

const (
	dialTimeout = 10 * time.Second
	// idleTimeout is short: a create on a connection that the service is closing has an unknown outcome.
	idleTimeout = 5 * time.Second

	queryTimeout = 30 * time.Second
	syncTimeout  = 120 * time.Second
)

// Paths of the three operations.
//
// Interface: Endpoints.
const (
	PathCreateSync  = "/api/v1/routers/create"
	PathCreateAsync = "/api/v2/trackings/create"
	PathDetail      = "/api/v1/routers/detail"
)

// Options configure a client.
type Options struct {
	BaseURL   string // normalised: scheme, host and an optional path, no trailing slash
	Key       string // value of the Authorization header, a secret
	UserAgent string
	Workers   int    // maximum number of connections
	CAFile    string // additional certificate authorities, PEM; empty for none

	Timeout time.Duration // of one request; 0 for 30s, or 120s for a synchronous create

	NumberParam string            // query parameter for a tracking number
	Absent      []tracking.Absent // responses that mean "no such tracking", besides 404
	Accepted    []tracking.Match  // responses that mean a create succeeded; empty for the built-in signs

	// Unprocessed are statuses with which the service stored nothing, so that a create is repeated after a pause.
	Unprocessed []int

	InFlight *atomic.Int64 // counts requests in flight; may be nil

	Trace, Observe func(Trace) // called with each request and response, without the key; may be nil
}

// Operation is an operation of the service, or any other request.
type Operation string

// The operations.
//
// Interface: Endpoints.
const (
	OpCreateSync  Operation = "create-v1"
	OpCreateAsync Operation = "create-v2"
	OpDetail      Operation = "query"
	OpOther       Operation = "api"
)

// OperationOf returns the operation of a path below the base URL. It ignores case, and trailing and doubled slashes.
func OperationOf(urlPath string) Operation {
	switch strings.ToLower(path.Clean(urlPath)) {
	case PathCreateSync:
		return OpCreateSync
	case PathCreateAsync:
		return OpCreateAsync
	case PathDetail:
		return OpDetail
	}
	return OpOther
}

// Trace is one request and its response.
type Trace struct {
	Operation   Operation
	Method, URL string
	Request     []byte
	Status      int // 0 without a response
	Header      http.Header
	Answer      []byte
	JSON        bool // Answer is one complete JSON value
	Took        time.Duration
	Err         error
}

// Client sends requests to one service with one key. It is safe for concurrent use.
type Client struct {
	opts Options
	key  *redact.Redactor // removes the key from what the service answers
	base *url.URL
	http *http.Client
}

// New returns a client. It opens no connection.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("base URL: %w", err)
	}
	roots, err := Certificates(o.CAFile)
	if err != nil {
		return nil, err
	}
	o.InFlight = cmp.Or(o.InFlight, new(atomic.Int64))
	c := &Client{opts: o, base: base, key: redact.New(o.Key)}
	workers := max(o.Workers, 1)
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment, // never for loopback
		DialContext:            c.dial,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1 only
		MaxIdleConns:           workers,
		MaxIdleConnsPerHost:    workers,
		MaxConnsPerHost:        workers,
		IdleConnTimeout:        idleTimeout,
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: 1 << 20,
		OnProxyConnectResponse: refusedByProxy,
	}
	c.http = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Host returns the host that requests go to, with its port unless that is the default.
func (c *Client) Host() string { return c.base.Host }

// Certificates returns the system's authorities plus those in a PEM file; nil, for the system's alone, without a file.
func Certificates(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // nil means the system's authorities
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca_file %s: no certificate in PEM form", file)
	}
	return pool, nil
}

func (c *Client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &countingConn{Conn: conn}, nil
}

// countingConn counts the bytes written to a connection, and writes only while allowed permits it. It has no
// ReadFrom, so that all bytes pass through Write.
type countingConn struct {
	net.Conn
	written atomic.Int64
	allowed atomic.Pointer[func() error] // of the current request; nil if always
}

func (c *countingConn) Write(p []byte) (int, error) {
	if allowed := c.allowed.Load(); allowed != nil {
		if err := (*allowed)(); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// url returns the URL of target, a path below the base URL, with its query and the additional values.
func (c *Client) url(target *url.URL, query url.Values) string {
	u := *c.base
	u.RawPath = strings.TrimSuffix(u.EscapedPath(), "/") + target.EscapedPath() // keeps the escapes of both
	u.Path = strings.TrimSuffix(u.Path, "/") + target.Path
	u.RawQuery = target.RawQuery
	if more := query.Encode(); more != "" {
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+more, "&")
	}
	return u.String()
}

// CreateAsync creates up to [tracking.MaxAsyncBatch] trackings, which the service
// processes in the background. The reply is never nil.
//
// Interface: Endpoints, 2. Batch create (asynchronous, v2).
func (c *Client) CreateAsync(ctx context.Context, items []tracking.Item) *tracking.Reply {
	return c.create(ctx, PathCreateAsync, items, cmp.Or(c.opts.Timeout, queryTimeout))
}

// CreateSync creates up to [tracking.MaxSyncBatch] trackings; the response has the data that the service already
// knows. The reply is never nil.
//
// Interface: Endpoints, 1. Batch create (synchronous, v1).
func (c *Client) CreateSync(ctx context.Context, items []tracking.Item) *tracking.Reply {
	return c.create(ctx, PathCreateSync, items, cmp.Or(c.opts.Timeout, syncTimeout))
}

var errNoKey = errors.New("no API key")

// Contact describes the connection to the service, as seen by one request without the key.
type Contact struct {
	Proxy   *url.URL             // used for requests; nil for none
	Address string               // host and port connected to; empty if there was no connection
	TLS     *tls.ConnectionState // nil without TLS or without a response
	Status  int                  // 0 without a response
	Took    time.Duration        // until the response
	Err     error                // why there is no response; a [*ConnectError] unless a proxy is unusable

	// Skew is how far the service's clock is ahead, in whole seconds. HasDate is false if the response has no Date.
	Skew    time.Duration
	HasDate bool
}

// Contact sends a HEAD request without the key. A response with any status shows that the service can be reached.
func (c *Client) Contact(ctx context.Context) Contact {
	var found Contact
	var address atomic.Value // the first address that connected: several are tried at once
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{ConnectDone: func(_, to string, err error) {
		if err == nil {
			address.CompareAndSwap(nil, to)
		}
	}})
	req, err := http.NewRequestWithContext(traced, http.MethodHead, c.base.String(), nil)
	if err == nil {
		found.Proxy, err = http.ProxyFromEnvironment(req)
	}
	if err != nil {
		found.Err = err
		return found
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	began := time.Now()
	res, err := c.http.Do(req)
	found.Took = time.Since(began)
	found.Address, _ = address.Load().(string)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		found.Err = &ConnectError{Host: c.Host(), Err: err, Sent: found.Address != ""}
		return found
	}
	_ = res.Body.Close() // a response to HEAD has no body
	found.TLS, found.Status = res.TLS, res.StatusCode
	found.Skew, found.HasDate = skew(res.Header, began.Add(found.Took/2))
	return found
}

// skew returns how far the clock of a response is ahead of now, corrected by the age of a cached response.
func skew(h http.Header, now time.Time) (time.Duration, bool) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0, false
	}
	age, err := strconv.ParseInt(h.Get("Age"), 10, 32)
	if err != nil {
		age = 0
	}
	return date.Add(time.Duration(age) * time.Second).Sub(now), true
}
