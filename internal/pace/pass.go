package pace

import "time"

// Pass is the leave to send one request. Exactly one of its methods is to be
// called when the request has ended; a second call does nothing. It is safe
// for concurrent use.
type Pass struct {
	gate   *Gate
	pauses int // how many had begun when it was given
	ended  bool
}

// Fine says that an answer came that shows a healthy service. After a full
// round of such answers one more request may be under way.
func (p *Pass) Fine() {
	p.end(func(g *Gate, old bool) {
		g.trouble = time.Time{}
		if !old {
			g.better()
		}
	})
}

// Troubled says that the service asked for a pause: 429 or 503. after is what
// its Retry-After said, 0 if nothing. Half as many may be under way when the
// pause is over.
//
// Of the requests that were under way together, the first such answer decides.
// The others lengthen its pause only if their after reaches further.
//
// Assumed: rate limits are not shown; `assume_unprocessed` sets which statuses mean a pause.
func (p *Pass) Troubled(after time.Duration) {
	p.end(func(g *Gate, old bool) {
		g.meetTrouble()
		if !old {
			g.window = max(g.window/2, g.least)
			g.pauseFor(after)
		} else if after > 0 {
			g.pauseUntil(time.Now().Add(after))
		}
	})
}

// Unconnected says that no connection came about. Everybody pauses, longer
// each time in a row, and the fewest try first: one alone, unless [Gate.Widen]
// was called.
func (p *Pass) Unconnected() {
	p.end(func(g *Gate, old bool) {
		g.meetTrouble()
		if !old {
			g.window = g.least
			g.pauseFor(0)
		}
	})
}

// Neither says that the request tells nothing about pace, or was never sent.
func (p *Pass) Neither() { p.end(func(*Gate, bool) {}) }

// end frees the slot, once, after learning what there is to learn. old is true
// if a pause began after the request had left: its answer tells of the time
// before.
func (p *Pass) end(learn func(g *Gate, old bool)) {
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	g.busy--
	learn(g, p.pauses != g.pauses)
	g.wake()
}

// meetTrouble notes since when nothing got through.
func (g *Gate) meetTrouble() {
	if g.trouble.IsZero() {
		g.trouble = time.Now()
	}
}
