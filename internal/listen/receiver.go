// Package listen receives deliveries over HTTP. A delivery is answered with a
// 2xx only after the inbox has it on disk; whatever else happens, the sender
// is told to keep it.
//
// Whoever wants to know what arrived is woken, not fed: [Receiver.Follow] reads
// on from its own place in the inbox, so a slow or crashed reader loses nothing
// and holds nobody up.
package listen

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// DefaultMaxBody is the greatest body that is taken unless set otherwise, in bytes.
const DefaultMaxBody = 5 << 20

// Limits of a request and of what it may cost.
const (
	maxHeader      = 32 << 10              // bytes of the request line and header together
	headerTimeout  = 5 * time.Second       // for the header
	bodyTimeout    = 15 * time.Second      // for the body, from the end of the header
	sendTimeout    = 5 * time.Second       // for the answer to be taken by the sender
	idleTimeout    = 60 * time.Second      // between requests of a connection
	storeTimeout   = 30 * time.Second      // for the inbox to take a delivery
	evidenceTime   = 2 * time.Second       // for evidence of a refusal to be stored, waiting included
	evidenceAtOnce = 8                     // pieces of evidence being stored at once, of those with a well-formed signature and again of the others
	grace          = 5 * time.Second       // for bodies on their way when the server stops
	retryAfter     = "5"                   // seconds until a sender should try again
	untoldRefusals = 256                   // refusals that wait to be told
	queued         = 8192                  // deliveries that are being stored, or wait for that
	page           = 128                   // rows read at once by a follower
	leastRest      = 10 * time.Millisecond // of a follower that read something, and mostRest
	mostRest       = 200 * time.Millisecond
	storePoll      = time.Second / 2 // after which a follower looks whether another process stored something
)

// Options say what a [Receiver] does. Fields left zero have defaults.
type Options struct {
	// Store keeps what arrives. It is required and stays the caller's.
	Store inbox.Store
	// Verify says whether a delivery is authentic, usually
	// [webhook.Verifier.Verify]. It is called concurrently. Nil: no scheme is
	// known, and every delivery is neither verified nor not.
	Verify func(r webhook.Request, now time.Time) webhook.Verdict
	// Scheme is the name of the scheme that Verify follows.
	Scheme string
	// Enforce refuses deliveries that Verify does not confirm. Otherwise they
	// are kept and marked.
	Enforce bool
	// MaxBody is the greatest body that is taken, in bytes; 0 is [DefaultMaxBody].
	MaxBody int64
	// Unverified bounds what is kept of deliveries that Verify does not
	// confirm, unless they are refused anyway. Nil: nothing does.
	Unverified *Allowance
	// MaxConns is how many connections there may be; 0 is 12,000, or four
	// fifths of the descriptors that the process may have if that is less.
	MaxConns int
	// Log is told of what failed. Nil: nobody is. It gets no secrets, no
	// bodies and no headers.
	Log *slog.Logger
}

// Receiver takes deliveries in. It is safe for concurrent use, but for
// [Receiver.Serve] and [Receiver.Follow], which are each called once.
type Receiver struct {
	o        Options
	refusals chan inbox.Delivery    // to be told, without headers and bodies
	missed   atomic.Int64           // refusals that were not told
	evidence map[bool]chan struct{} // by whether the signature is well-formed: one value for each piece of evidence being stored
	queue    chan struct{}          // one value for each delivery being stored
	sinks    []chan struct{}        // each holds a value while there is something new; the first is Follow's
	room     room                   // for bodies
	trouble  trouble                // of the store
	clocks   clocks
	quota    *quota // nil for none

	answerWith func(context.Context, int64) int // nil: deliveries are answered once they are stored

	handled sync.WaitGroup // requests that are being handled
	gate    sync.Mutex     // guards closed, and handled against being waited for too early
	closed  bool           // no more requests are handled
}

// New returns a receiver. It fails if there is no store, or if it is to enforce
// what it cannot verify.
func New(o Options) (*Receiver, error) {
	switch {
	case o.Store == nil:
		return nil, errors.New("listen: there is no inbox to store deliveries in")
	case o.Enforce && o.Verify == nil:
		return nil, errors.New("listen: cannot enforce signatures without a scheme")
	case o.MaxBody < 0:
		return nil, errors.New("listen: the greatest body is less than nothing")
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxConns <= 0 {
		o.MaxConns = connections()
	}
	r := &Receiver{
		o:        o,
		sinks:    []chan struct{}{make(chan struct{}, 1)},
		refusals: make(chan inbox.Delivery, untoldRefusals),
		evidence: map[bool]chan struct{}{false: make(chan struct{}, evidenceAtOnce), true: make(chan struct{}, evidenceAtOnce)},
		queue:    make(chan struct{}, queued),
		trouble:  trouble{log: o.Log},
		clocks:   clocks{log: o.Log},
	}
	if o.Unverified != nil {
		r.quota = &quota{Allowance: *o.Unverified, log: o.Log}
	}
	r.room.left.Store(max(heldAtAll, 2*o.MaxBody))
	return r, nil
}

// Woken returns a channel that holds a value while there may be something new
// in the inbox: one of its own for each caller. It must be called before Serve.
func (r *Receiver) Woken() <-chan struct{} {
	c := make(chan struct{}, 1)
	r.sinks = append(r.sinks, c)
	return c
}

// wake tells followers that there is something new. It never blocks.
func (r *Receiver) wake() {
	for _, c := range r.sinks {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// enter reports whether a request may be handled; if so, handled must be told
// when it is done.
func (r *Receiver) enter() bool {
	r.gate.Lock()
	defer r.gate.Unlock()
	if r.closed {
		return false
	}
	r.handled.Add(1)
	return true
}

// close lets no more requests in and waits for those that are being handled.
func (r *Receiver) close() {
	r.gate.Lock()
	r.closed = true
	r.gate.Unlock()
	r.handled.Wait()
}
