// Package inspect serves a page that is embedded in the program, to browsers on this computer. It knows nothing about
// the contents of the page: they come as values from routes.
//
// It keeps out all others that can connect to a loopback address, every program and every website in a browser: see
// [Server] for what a request must have. Everything that a route returns is sent as JSON, or as a download.
package inspect

import (
	"cmp"
	"context"
	"crypto/rand"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// APIPrefix precedes the pattern of every route.
const APIPrefix = "/api/v1"

// Limits of what comes from outside.
const (
	maxHeader      = 32 << 10         // bytes of the request line and header together
	maxBody        = 16 << 20         // bytes of a request's body
	maxWrite       = 64 << 10         // bytes of an answer that a reader must take within writeTimeout
	maxConnections = 128              // open at once; further ones are closed
	maxStreams     = 32               // open at once; further ones are refused
	maxChanges     = 4                // concurrent requests that change something
	headerTimeout  = 5 * time.Second  // for the header of a request
	bodyTimeout    = 15 * time.Second // for its body
	writeTimeout   = 10 * time.Second // for a reader to take an answer, or a part of a stream
	idleTimeout    = 60 * time.Second // between requests of a connection
	shutdownGrace  = 5 * time.Second  // for changes under way when the server stops
	heartbeat      = 10 * time.Second // between signs of life in a stream
)

// Route is one kind of request that the page makes.
type Route struct {
	// Method is GET, or POST for changes, which a read-only server refuses.
	Method  string
	Pattern string // for [http.ServeMux], without method and [APIPrefix]: /deliveries/{id}
	// Serve returns a value for JSON, or a [File]. Its error is an [*Error], or one for [Options.Explain]. The context
	// ends when the client leaves or the server stops; that of a change outlives both for a few seconds. The body of a
	// change was read completely before.
	Serve func(*http.Request) (any, error)
}

// File is a download with any bytes.
type File struct {
	Name string // suggested to the browser; characters except letters, digits, ., _ and - become _
	Body []byte
}

// Error is sent to the page instead of a value.
type Error struct {
	Status  int    `json:"-"` // HTTP status
	Message string `json:"error"`
	Hint    string `json:"hint"` // what the user can do about it
	Code    string `json:"code"` // a word for programs
}

func (e *Error) Error() string { return e.Message }

// Stream sends events until ctx ends. after is the number of the last event that the client has, 0 if none. It must
// call send soon, even if nothing is new: until then the page does not know that the stream is open. id is what the
// client sends when it reconnects, negative for none; event is the type of the event for the page, "" for a plain
// message. The first error of send ends the stream. An error before the first event is answered like that of a
// [Route], a later one is sent as an event named problem. The page reconnects after both.
type Stream func(ctx context.Context, r *http.Request, after int64,
	send func(id int64, event string, v any) error) error

// Options control a [Server].
type Options struct {
	// Routes are the requests that the page may make, besides /session and /stream.
	Routes []Route
	// Session returns what the page needs first, with token for its further requests. It is required.
	Session func(ctx context.Context, token string) (any, error)
	// Token is a second token, besides the one in the URL, that outlives the process: tabs with it continue when a server
	// at the same address is started again. If it is empty, tabs use the token of the URL.
	Token string
	// Stream serves /stream. If it is nil, there is no such route.
	Stream Stream
	// Explain says what an error of a route means. It is required.
	Explain func(error) *Error
	// Hide removes secrets from JSON, everything sent except downloads, and returns valid JSON. It is required.
	Hide func([]byte) []byte
	// ReadOnly refuses all routes that change something.
	ReadOnly bool
	// Log receives failures, without secrets and bodies. It is required.
	Log func(text string)
}

// Server serves the page at one address. A request must
//   - name that address as its Host, so that no foreign name leads here,
//   - come from the page itself as far as the browser says (Origin, Sec-Fetch-Site),
//   - have a token in a header, unless it is for the page's own files, which hold no data,
//   - have JSON as its body if it changes something.
type Server struct {
	o        Options
	listener net.Listener
	hosts    []string // hosts that a request may name, with the port
	api      *http.ServeMux
	streams  chan struct{} // one value per open stream
	changes  chan struct{} // one value per change under way
	token    string        // of the URL, new for each process

	requests sync.WaitGroup
	mu       sync.Mutex // guards closed, and orders requests.Add before requests.Wait
	closed   bool
}

// New returns a server for connections of l, which has a loopback address and is closed by [Server.Serve].
func New(l net.Listener, o Options) (*Server, error) {
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("%s is no loopback address", l.Addr())
	}
	s := &Server{
		o: o, listener: l, hosts: []string{tcp.String(), net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))},
		streams: make(chan struct{}, maxStreams), changes: make(chan struct{}, maxChanges),
		token: NewToken(),
	}
	if tcp.Port == 80 { // browsers leave the port out
		s.hosts = append(s.hosts, tcp.IP.String(), "localhost")
	}
	s.api = http.NewServeMux()
	s.route(Route{Method: http.MethodGet, Pattern: "/session", Serve: func(r *http.Request) (any, error) {
		return o.Session(r.Context(), cmp.Or(o.Token, s.token))
	}})
	if o.Stream != nil {
		s.api.HandleFunc(APIPrefix+"/stream", s.serveStream)
	}
	for _, route := range o.Routes {
		s.route(route)
	}
	return s, nil
}

// NewToken returns a token that nobody can guess.
func NewToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// URL returns the address of the page, without its token.
func (s *Server) URL() string { return "http://" + s.hosts[0] + "/" }

// SecretURL returns the URL that opens the page: whoever knows it can see and do everything that the page can.
// Browsers do not send the part after # to servers.
func (s *Server) SecretURL() string { return s.URL() + "#token=" + s.token }

// Serve serves until ctx ends. Then streams and reading requests end at once, changes under way and answers to slow
// readers within a few seconds, and it returns nil. Any other end is an error. It is called once.
func (s *Server) Serve(ctx context.Context) error {
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	log := slog.NewTextHandler(logWriter(s.o.Log), &slog.HandlerOptions{ReplaceAttr: messageOnly})
	srv := &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return context.WithValue(ctx, workKey{}, work) },
		ConnState:         limitConnections(maxConnections),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader - 4096, // the library adds these
		ErrorLog:          slog.NewLogLogger(log, slog.LevelInfo),

		DisableGeneralOptionsHandler: true,
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(s.listener) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = srv.Shutdown(ctx) // closes the listener; it does not wait, since ctx has ended
		err = <-ended
	}
	defer time.AfterFunc(shutdownGrace, stopWork).Stop()
	defer time.AfterFunc(shutdownGrace+time.Second, func() { _ = srv.Close() }).Stop() // slow readers get no more
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.requests.Wait()
	_ = srv.Close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("inspector at %s: %w", s.hosts[0], err)
}

type logWriter func(string)

func (l logWriter) Write(b []byte) (int, error) {
	l("inspector: " + strings.TrimSpace(string(b)))
	return len(b), nil
}

// messageOnly leaves out the time and the level of a log record.
func messageOnly(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.MessageKey {
		return a
	}
	return slog.Attr{}
}

// workKey is the context key of the context for requests that change something.
type workKey struct{}

// beginRequest reports whether a request may be handled. If so, the caller must call requests.Done at its end.
func (s *Server) beginRequest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.requests.Add(1)
	return true
}

// limitConnections returns a function that closes connections beyond most. It is a [http.Server.ConnState].
func limitConnections(most int64) func(net.Conn, http.ConnState) {
	var open atomic.Int64
	return func(conn net.Conn, state http.ConnState) {
		switch {
		case state == http.StateClosed:
			open.Add(-1)
		case state == http.StateNew && open.Add(1) > most:
			_ = conn.Close() // the server notices that
		}
	}
}

//go:embed page
var page embed.FS

// contentTypes has the content type of each kind of file of the page.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// readFile returns the page's file for the path of a request, and false if there is none. The index is at / only.
func readFile(at string) (body []byte, contentType string, ok bool) {
	name := at
	if at == "/" {
		name = "/index.html"
	}
	body, err := page.ReadFile("page" + name)
	return body, contentTypes[path.Ext(name)], err == nil && at != "/index.html"
}
