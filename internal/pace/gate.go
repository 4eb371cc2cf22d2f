// Package pace limits how many requests all workers send at once, and how often. All requests pass one gate, which
// adapts to each response.
//
// The gate starts with one request at a time, or with more: see [Gate.Begin]. A full round of successes allows one
// more. When the service asks for a pause or can't be reached, all workers pause, and fewer requests may be in
// flight afterwards.
package pace

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Lengths of pauses that the service did not specify. The n-th consecutive pause is a random time between
// shortestPause and shortestPause·2ⁿ, at most longestPause.
const (
	shortestPause = time.Second
	longestPause  = 30 * time.Second
	// longestUnconnected is short: longer pauses do not relieve a service that can't be reached.
	longestUnconnected = 4 * time.Second
	longestAsked       = time.Hour // the longest pause that the service may ask for
)

// Gate admits requests of all workers. It is safe for concurrent use, and needs no closing.
type Gate struct {
	workers  int
	interval time.Duration // between two requests; 0 for no limit

	mu           sync.Mutex
	queue        []chan struct{} // waiting callers of Enter, in order of arrival
	active       int             // passes not yet ended
	window       int             // how many passes may be active
	minWindow    int             // the smallest window
	successes    int             // since the window last changed
	earliest     time.Time       // of the next pass, for the rate
	pausedUntil  time.Time       // no pass before
	pauses       int             // pauses begun
	maxPause     time.Duration   // of the last pause; 0 after a success
	failingSince time.Time       // zero after a success
}

// New returns a gate that lets up to workers requests be in flight, and begins with one. perSecond limits how many
// enter per second; 0 for no limit.
//
// The rate is spread evenly: two requests are 1/perSecond apart, even after an idle time. Only the next request makes
// up for a late wake-up.
func New(workers int, perSecond float64) *Gate {
	g := &Gate{workers: max(workers, 1), window: 1, minWindow: 1}
	if perSecond > 0 {
		g.interval = time.Duration(min(float64(time.Second)/perSecond, 1<<62))
	}
	return g
}

// Widen allows all workers from the start, and two at any time, so that a request that hangs does not block the
// others: for the user's own service. Call it before the first Enter. It returns g.
func (g *Gate) Widen() *Gate {
	g.window, g.minWindow = g.workers, min(2, g.workers)
	return g
}

// Begin lets n requests, or all workers if they are fewer, be in flight from the start, before the first Enter. It
// returns g.
func (g *Gate) Begin(n int) *Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.window = max(g.window, min(n, g.workers))
	return g
}

// Enter waits for earlier callers, for a slot of the window, for the end of a pause, and for the rate. The error is
// the cause of ctx. Callers must end the pass to free its slot.
func (g *Gate) Enter(ctx context.Context) (*Pass, error) {
	turn := make(chan struct{}, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, turn)
	defer g.leave(turn)
	var due time.Time // the time it waited for last; zero if for a slot
	for ctx.Err() == nil {
		due = g.due(turn, due)
		if !due.IsZero() && !time.Now().Before(due) {
			return g.admit(due), nil
		}
		g.mu.Unlock()
		Wait(ctx, turn, due)
		g.mu.Lock()
	}
	return nil, context.Cause(ctx)
}

// EnterAll waits like Enter, and then returns all free passes, at least one.
func (g *Gate) EnterAll(ctx context.Context) ([]*Pass, error) {
	first, err := g.Enter(ctx)
	if err != nil {
		return nil, err
	}
	passes := []*Pass{first}
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.queue) == 0 && g.active < g.window {
		now := time.Now()
		if g.earliest.After(now) || g.pausedUntil.After(now) {
			break
		}
		passes = append(passes, g.admit(now))
	}
	return passes, nil
}

// due returns when turn may enter, zero if after another pass. It keeps a time that was waited for, for admit.
func (g *Gate) due(turn chan struct{}, waited time.Time) time.Time {
	if g.queue[0] != turn || g.active >= g.window {
		return time.Time{}
	}
	at := g.earliest
	if g.pausedUntil.After(at) {
		at = g.pausedUntil
	}
	if now := time.Now(); at.Before(now) && (waited.IsZero() || !at.Equal(waited)) {
		at = now
	}
	return at
}

// Notify gives signal, which has room for one value, a value unless it has one. It never blocks.
func Notify(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// Wait returns when signal has a value, at due unless it is zero, or when ctx ends. It reports whether signal had one.
func Wait(ctx context.Context, signal <-chan struct{}, due time.Time) bool {
	var fires <-chan time.Time
	if !due.IsZero() {
		fires = time.After(time.Until(due))
	}
	select {
	case <-ctx.Done():
	case <-signal:
		return true
	case <-fires:
	}
	return false
}

// admit returns the pass of a caller that was due at the given time.
func (g *Gate) admit(due time.Time) *Pass {
	g.active++
	now := time.Now()
	g.earliest = due.Add(g.interval)
	if g.earliest.Before(now) {
		g.earliest = now
	}
	return &Pass{gate: g, pauses: g.pauses}
}

func (g *Gate) leave(turn chan struct{}) {
	i := slices.Index(g.queue, turn)
	g.queue = slices.Delete(g.queue, i, i+1)
	g.signalFirst()
}

func (g *Gate) signalFirst() {
	if len(g.queue) > 0 {
		Notify(g.queue[0])
	}
}

// Window returns how many requests may currently be in flight.
func (g *Gate) Window() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.window
}

// FailingSince returns the time of the first failure since the last success, zero if the last request succeeded.
func (g *Gate) FailingSince() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failingSince
}

// pauseFor begins a pause of all workers. For length 0 it is random, from a range that grows up to longest, so that
// programs that failed together do not resume together.
func (g *Gate) pauseFor(length, longest time.Duration) {
	g.pauses++
	g.successes = 0
	g.maxPause = min(max(2*g.maxPause, 2*shortestPause), longest)
	if length <= 0 {
		length = shortestPause + rand.N(g.maxPause-shortestPause+1) //nolint:gosec // pauses are no secret
	}
	g.pauseUntil(time.Now().Add(length))
}

// pauseUntil extends the pause until end, unless it already lasts longer.
func (g *Gate) pauseUntil(end time.Time) {
	if end.After(g.pausedUntil) {
		g.pausedUntil = end
	}
}

// Pass is the permission to send one request. Callers must end it when the request has ended; further ends do
// nothing. It is safe for concurrent use.
type Pass struct {
	gate   *Gate
	pauses int // pauses begun when it was given
	ended  bool
}

// Signal tells the gate how a request's end affects the pace of the next ones.
type Signal int

// The signals.
//
// Assumed: the interface does not show rate limits; `assume_unprocessed` sets which statuses mean a pause.
const (
	NoSignal Signal = iota
	// Success says that the service is healthy. After a full round one more request may be in flight.
	Success
	// Throttled says that the service asked for a pause: 429 or 503. Half as many requests may be in flight after the
	// pause. Of requests that were in flight together, the first such answer decides. The others only lengthen the pause
	// if they ask for a longer one.
	Throttled
	// Unconnected says that no connection was made. All workers pause, longer each
	// time in a row. Then one request tries first, or two after [Gate.Widen].
	Unconnected
)

// End tells the gate how the request ended. after is the Retry-After of [Throttled], 0 for none; it is capped at one
// hour.
func (p *Pass) End(s Signal, after time.Duration) {
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	g.active--
	switch s {
	case Success:
		g.failingSince = time.Time{}
	case Throttled, Unconnected:
		g.failingSince = cmp.Or(g.failingSince, time.Now())
	}
	after = min(after, longestAsked)
	if p.pauses == g.pauses {
		g.adapt(s, after)
	} else if s == Throttled && after > 0 { // a pause began while the request was in flight
		g.pauseUntil(time.Now().Add(after))
	}
	g.signalFirst()
}

// Release ends the pass of a request that says nothing about pace, or was never sent.
func (p *Pass) Release() { p.End(NoSignal, 0) }

// adapt changes the window after a signal, and begins a pause after a failure.
func (g *Gate) adapt(s Signal, after time.Duration) {
	switch s {
	case Success:
		g.maxPause = 0
		if g.successes++; g.successes >= g.window {
			g.successes, g.window = 0, min(g.window+1, g.workers)
		}
	case Throttled:
		g.window = max(g.window/2, g.minWindow)
		g.pauseFor(after, longestPause)
	case Unconnected:
		g.window = g.minWindow
		g.pauseFor(0, longestUnconnected)
	}
}

// Pauses between retries of a query after a temporary error.
const (
	firstRetry   = 250 * time.Millisecond
	longestRetry = 4 * time.Second
)

// Backoff yields growing pauses: the first is First, each next one twice as long, up to Max. Each is shortened by a
// random part of up to a quarter, so that requests that failed together do not retry together.
type Backoff struct {
	First time.Duration `json:"first"`
	Max   time.Duration `json:"max"`
}

// Next returns the current pause, and makes the next one longer.
func (b *Backoff) Next() time.Duration {
	d := b.First
	b.First = min(2*d, b.Max)
	return d - rand.N(d/4+1) //nolint:gosec // pauses are no secret
}

// Retry paces the retries of one query.
type Retry struct {
	Backoff
	patience time.Duration
	began    time.Time
}

// NewRetry returns a Retry that gives up once patience has passed.
func NewRetry(patience time.Duration) *Retry {
	return &Retry{Backoff{firstRetry, longestRetry}, patience, time.Now()}
}

// Restart restarts the clock for patience.
func (r *Retry) Restart() { r.began = time.Now() }

// Wait waits for a growing pause, or for retryAfter if that is longer. It returns false when ctx ends, and at once if
// patience would run out first.
func (r *Retry) Wait(ctx context.Context, retryAfter time.Duration) bool {
	wait := max(r.Next(), retryAfter)
	return time.Since(r.began)+wait <= r.patience && Sleep(ctx, wait) == nil
}

// Sleep waits for d. If ctx ends first, it returns the cause of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	Wait(ctx, nil, time.Now().Add(d))
	return context.Cause(ctx)
}
