package pace

import "time"

// Pass is the permission to send one request. The caller calls exactly one of
// its methods when the request has ended; a second call does nothing. It is safe
// for concurrent use.
type Pass struct {
	gate   *Gate
	pauses int // pauses begun when it was given
	ended  bool
}

// Success says that an answer came that shows a healthy service. After a full
// round of such answers one more request may be under way.
func (p *Pass) Success() {
	p.end(func(g *Gate, old bool) {
		g.failingSince = time.Time{}
		if !old {
			g.countSuccess()
		}
	})
}

// Throttled says that the service asked for a pause: 429 or 503. after is its
// Retry-After, 0 if it sent none; more than an hour counts as one. Half as many may be under way when the
// pause is over.
//
// Of requests that were under way together, the first such answer decides. The
// others lengthen the pause only if their after lasts longer.
//
// Assumed: rate limits are not shown; `assume_unprocessed` sets which statuses mean a pause.
func (p *Pass) Throttled(after time.Duration) {
	after = min(after, longestAsked)
	p.end(func(g *Gate, old bool) {
		g.countFailure()
		if !old {
			g.window = max(g.window/2, g.minWindow)
			g.pauseFor(after, longestPause)
		} else if after > 0 {
			g.pauseUntil(time.Now().Add(after))
		}
	})
}

// Unconnected says that no connection was made. All workers pause, longer each
// time in a row. Then one request tries first, or two after [Gate.Widen].
func (p *Pass) Unconnected() {
	p.end(func(g *Gate, old bool) {
		g.countFailure()
		if !old {
			g.window = g.minWindow
			g.pauseFor(0, longestUnconnected)
		}
	})
}

// Release says that the request tells nothing about pace, or was never sent.
func (p *Pass) Release() { p.end(func(*Gate, bool) {}) }

// end frees the slot, once, after learn. old says that a pause began after the
// request had left: its answer is about the time before.
func (p *Pass) end(learn func(g *Gate, old bool)) {
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	g.active--
	learn(g, p.pauses != g.pauses)
	g.signalFirst()
}

func (g *Gate) countFailure() {
	if g.failingSince.IsZero() {
		g.failingSince = time.Now()
	}
}
