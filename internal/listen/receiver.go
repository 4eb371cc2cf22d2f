// Package listen receives deliveries over HTTP. A delivery is answered with a 2xx only after the inbox has it on disk.
// Any other answer asks the sender to keep it.
//
// Readers are notified, not fed: [Receiver.Follow] continues from its own place in the inbox, so a slow or crashed
// reader loses nothing and delays nobody.
package listen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log" //nolint:depguard // package net/http takes no other
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// DefaultMaxBody is the default maximum size of a body, in bytes.
const DefaultMaxBody = 5 << 20

// Limits of a request and its cost.
const (
	maxHeader         = 32 << 10              // bytes of the request line and header together
	headerTimeout     = 5 * time.Second       // for the header
	bodyTimeout       = 15 * time.Second      // for the body, from the end of the header
	sendTimeout       = 5 * time.Second       // for the sender to take the answer
	idleTimeout       = 60 * time.Second      // between requests of a connection
	storeTimeout      = 30 * time.Second      // for the inbox to take a delivery
	evidenceTimeout   = 2 * time.Second       // for evidence of a refusal to be stored, waiting included
	maxEvidenceWrites = 8                     // concurrent writes of evidence, for each of evidenceSlots
	shutdownGrace     = 5 * time.Second       // for bodies under way when the server stops
	retryAfter        = "5"                   // seconds until a sender should retry
	maxRefusalQueue   = 256                   // refusals that are waiting to be reported
	maxQueue          = 8192                  // deliveries being stored, or waiting for that
	pageSize          = 512                   // rows read at once by a follower
	pageBytes         = 1 << 20               // and their bytes, unless the first row has more
	minRest           = 10 * time.Millisecond // minimum rest of a follower that read something
	maxRest           = 200 * time.Millisecond
	pollInterval      = time.Second / 2 // how often a follower checks what other processes stored
)

// Options control a [Receiver]. Zero fields have defaults.
type Options struct {
	Store inbox.Store // stores the deliveries; required; the receiver does not close it
	// Verify is usually [webhook.Verifier.Verify]. It is called concurrently. Nil: no scheme is known, and Unverifiable
	// is the verdict on every delivery.
	Verify       func(r webhook.Request, now time.Time) webhook.Verdict
	Unverifiable inbox.Verified // verdict on deliveries if Verify is nil; empty means [inbox.Unknown]
	Scheme       string         // name of the scheme of Verify
	Enforce      bool           // refuse what Verify does not confirm, all if it is nil; else it is kept and marked
	MaxBody      int64          // maximum size of a body, in bytes; 0 means [DefaultMaxBody]
	// Unverified limits what is kept of unverified deliveries, unless they are refused; nil means no limit.
	Unverified *UnverifiedLimit
	// MaxConns is the maximum number of connections; 0 means 12,000, or four fifths of the descriptors if less.
	MaxConns  int
	Withholds bool                        // deliveries that do not count are not forwarded, and their answers say so
	Probe     func(context.Context) error // returns why nothing can be stored now, nil if it can; nil: it always can
	Report    Report                      // receives failures; may be nil
}

// Receiver receives deliveries. It is safe for concurrent use, except for [Receiver.Serve] and [Receiver.Follow],
// which are each called once.
type Receiver struct {
	o             Options
	verification  atomic.Pointer[Options] // how deliveries are verified now
	refusals      chan inbox.Delivery     // to be reported, without headers and bodies
	stored        atomic.Int64            // deliveries stored by this receiver
	unreported    atomic.Int64            // refusals that found the queue full
	evidenceSlots map[bool]chan struct{}  // for evidence being stored, by whether the signature is well-formed
	queue         chan struct{}           // one value per delivery being stored
	subscribers   []chan struct{}         // each has a value while there is something new; the first is Follow's
	budget        memBudget               // for deliveries
	decoders      chan struct{}           // one value per body being decoded
	storeAlert    storeAlert              // of deliveries
	evidenceAlert storeAlert              // of evidence
	rejectAlert   rejectAlert
	readAlert     readAlert // of Follow
	health        health
	skew          webhook.SkewDetector
	quota         *quota // nil for none

	onStored func() // may be nil

	requests sync.WaitGroup // being handled
	mu       sync.Mutex     // guards closed, and orders requests.Add before requests.Wait
	closed   bool           // no more requests are handled
}

// New returns a receiver.
func New(o Options) *Receiver {
	o.MaxBody = cmp.Or(o.MaxBody, DefaultMaxBody)
	if o.Report == nil {
		o.Report = func(slog.Level, string, error) {}
	}
	if o.MaxConns <= 0 {
		o.MaxConns = maxConnections
		if n := descriptors(); n > 0 { // a fifth stays free for everything else
			o.MaxConns = max(1, min(maxConnections, int(n/5*4)))
		}
	}
	r := &Receiver{
		o:             o,
		subscribers:   []chan struct{}{make(chan struct{}, 1)},
		refusals:      make(chan inbox.Delivery, maxRefusalQueue),
		evidenceSlots: map[bool]chan struct{}{},
		queue:         make(chan struct{}, maxQueue),
		decoders:      make(chan struct{}, runtime.GOMAXPROCS(0)),
		storeAlert:    storeAlert{report: o.Report, begins: "deliveries can't be stored; the sender should retry"},
		evidenceAlert: storeAlert{report: o.Report, begins: "evidence of refused deliveries not stored"},
		rejectAlert:   rejectAlert{report: o.Report, byStatus: map[int]rejections{}},
		readAlert:     readAlert{report: o.Report},
	}
	r.storeAlert.ends = "deliveries are stored again"
	r.evidenceAlert.ends = "evidence of refused deliveries is stored again"
	for _, wellFormed := range []bool{false, true} {
		r.evidenceSlots[wellFormed] = make(chan struct{}, maxEvidenceWrites)
	}
	if o.Unverified != nil {
		r.quota = &quota{UnverifiedLimit: *o.Unverified, report: o.Report}
	}
	r.budget.size = max(minMemory, 2*o.MaxBody)
	r.budget.left.Store(r.budget.size)
	r.Reload(o)
	return r
}

// Reload makes r verify deliveries by o from now on: only its Verify, Unverifiable, Scheme and Enforce are read. A
// request under way is verified entirely by the options in force when it arrived.
func (r *Receiver) Reload(o Options) {
	o.Unverifiable = cmp.Or(o.Unverifiable, inbox.Unknown)
	r.verification.Store(&o)
}

// Stored returns how many deliveries this receiver stored.
func (r *Receiver) Stored() int64 { return r.stored.Load() }

// Subscribe returns a channel that has a value while there may be something new in the inbox. Each caller gets its
// own. It must be called before Serve.
func (r *Receiver) Subscribe() <-chan struct{} {
	c := make(chan struct{}, 1)
	r.subscribers = append(r.subscribers, c)
	return c
}

// OnStored makes r call fn after each delivery that it stores. fn must not block. It must be called before Serve.
func (r *Receiver) OnStored(fn func()) { r.onStored = fn }

// Wake tells all subscribers that there may be something new, stored by any process. It never blocks.
func (r *Receiver) Wake() {
	for _, c := range r.subscribers {
		pace.Notify(c)
	}
}

// beginRequest reports whether a request may be handled. If so, the caller must call requests.Done at its end.
func (r *Receiver) beginRequest() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.requests.Add(1)
	return true
}

// Serve receives deliveries on l until ctx ends. Then it accepts no more connections, gives bodies under way a few
// seconds, waits until everything that arrived is stored and answered, and returns nil. It closes l. Any other end is
// an error. It is called once.
func (r *Receiver) Serve(ctx context.Context, l net.Listener) error {
	limiter := &connLimiter{max: r.o.MaxConns, conns: map[net.Conn]*limitedConn{}}
	srv := &http.Server{
		ConnContext:       limiter.connContext,
		ConnState:         limiter.connState,
		Handler:           r.Handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       headerTimeout + bodyTimeout,                                // the handler is stricter with bodies
		WriteTimeout:      bodyTimeout + storeTimeout + evidenceTimeout + sendTimeout, // from the end of the header
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(r.o.Report, "", 0),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(reportingListener{l, &r.rejectAlert}) }()
	select {
	case err := <-ended:
		r.stop(srv, limiter)
		return fmt.Errorf("listen on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	// With a context that has ended, Shutdown closes the listener and idle connections, and does not wait for connections
	// on which nothing was ever sent.
	_ = srv.Shutdown(ctx)
	r.stop(srv, limiter)
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("listen on %s: %w", l.Addr(), err)
	}
	return nil
}

// stop waits for requests and closes connections: after a few seconds even those with a body still under way.
func (r *Receiver) stop(srv *http.Server, limiter *connLimiter) {
	late := time.AfterFunc(shutdownGrace, limiter.closeIncomplete)
	last := time.AfterFunc(shutdownGrace+storeTimeout, func() { _ = srv.Close() })
	r.mu.Lock()
	r.closed = true // new requests are refused: none is added while the others are waited for
	r.mu.Unlock()
	r.requests.Wait()
	late.Stop()
	last.Stop()
	_ = srv.Close()
}
