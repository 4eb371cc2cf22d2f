// Package pace keeps all workers together to a speed that the service bears:
// one gate that every request passes, and that learns from every answer.
//
// It begins with one request at a time and lets one more be under way for each
// full round of good answers. When the service asks for a pause, or can't be
// reached, everybody pauses, and fewer may be under way afterwards.
package pace

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Lengths of a pause that the service did not name itself. The n-th in a row
// is between shortest and shortest·2ⁿ, by chance, and never over longest.
const (
	shortest = time.Second
	longest  = 30 * time.Second
)

// Gate is what all workers of a run pass before a request. It is safe for
// concurrent use, starts no goroutine, and needs no closing.
type Gate struct {
	workers int
	every   time.Duration // between two requests; 0 for no ceiling

	mu      sync.Mutex
	line    []chan struct{} // those who wait, in the order they came
	busy    int             // passes not yet ended
	window  int             // how many passes there may be
	least   int             // the smallest window
	fine    int             // good answers since the window last changed
	next    time.Time       // nobody enters before, for the rate
	until   time.Time       // nobody enters before, for the pause
	pauses  int             // how many pauses began
	reach   time.Duration   // how long the last pause could have been; 0 after a good answer
	trouble time.Time
}

// New returns a gate that lets up to workers requests be under way, and
// begins with one. perSecond caps how many enter in a second; 0 is no ceiling.
//
// The rate is spread evenly: two requests are 1/perSecond apart however long
// nobody asked before, so there is no burst. A wake-up that came late is made
// up for by the next request alone.
func New(workers int, perSecond float64) *Gate {
	g := &Gate{workers: max(workers, 1), window: 1, least: 1}
	if perSecond > 0 {
		g.every = time.Duration(min(float64(time.Second)/perSecond, 1<<62))
	}
	return g
}

// Widen lets all workers be under way from the start, and two of them whatever
// happens, so that a request that hangs holds no other up. It is for a service
// of the user's own. It is called before the first Enter and returns g.
func (g *Gate) Widen() *Gate {
	g.window, g.least = g.workers, min(2, g.workers)
	return g
}

// Enter waits for its turn: for all who came before, for a slot of the window,
// for the end of a pause, and for the rate. The error is the cause of ctx. The
// pass must be ended by one of its methods, or its slot is never free again.
func (g *Gate) Enter(ctx context.Context) (*Pass, error) {
	turn := make(chan struct{}, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.line = append(g.line, turn)
	defer g.leave(turn)
	var due time.Time // what it waited for last; zero if for no time
	for ctx.Err() == nil {
		due = g.due(turn, due)
		if !due.IsZero() && !time.Now().Before(due) {
			return g.admit(due), nil
		}
		g.mu.Unlock()
		await(ctx, turn, due)
		g.mu.Lock()
	}
	return nil, context.Cause(ctx)
}

// due returns when the one whose turn it is may enter, or zero if that depends
// on another. A time that was waited for is kept, for its lateness to be seen.
func (g *Gate) due(turn chan struct{}, waited time.Time) time.Time {
	if g.line[0] != turn || g.busy >= g.window {
		return time.Time{}
	}
	at := g.next
	if g.until.After(at) {
		at = g.until
	}
	if now := time.Now(); at.Before(now) && (waited.IsZero() || !at.Equal(waited)) {
		at = now
	}
	return at
}

// await returns when it is worth looking again.
func await(ctx context.Context, turn <-chan struct{}, due time.Time) {
	var fires <-chan time.Time
	if !due.IsZero() {
		t := time.NewTimer(time.Until(due))
		defer t.Stop()
		fires = t.C
	}
	select {
	case <-ctx.Done():
	case <-turn:
	case <-fires:
	}
}

// admit makes a pass for one who was due at that time.
func (g *Gate) admit(due time.Time) *Pass {
	g.busy++
	now := time.Now()
	g.next = due.Add(g.every)
	if g.next.Before(now) {
		g.next = now
	}
	return &Pass{gate: g, pauses: g.pauses}
}

// leave takes one out of the line and tells the first of the others.
func (g *Gate) leave(turn chan struct{}) {
	i := slices.Index(g.line, turn)
	g.line = slices.Delete(g.line, i, i+1)
	g.wake()
}

// wake tells the first in the line that something changed.
func (g *Gate) wake() {
	if len(g.line) == 0 {
		return
	}
	select {
	case g.line[0] <- struct{}{}:
	default: // it was told already and has not looked yet
	}
}

// Window returns how many requests may be under way now.
func (g *Gate) Window() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.window
}

// Trouble returns since when nothing got through, zero if the last one did.
func (g *Gate) Trouble() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trouble
}

// pauseFor begins a pause that everybody keeps. A length of 0 is for the gate
// to choose: growing, and by chance, so that several programs that met the
// same trouble do not come back together.
func (g *Gate) pauseFor(length time.Duration) {
	g.pauses++
	g.fine = 0
	g.reach = min(max(2*g.reach, 2*shortest), longest)
	if length <= 0 {
		length = shortest + rand.N(g.reach-shortest+1) //nolint:gosec // pauses are no secret
	}
	g.pauseUntil(time.Now().Add(length))
}

// pauseUntil makes a pause reach to end, if it does not reach further already.
func (g *Gate) pauseUntil(end time.Time) {
	if end.After(g.until) {
		g.until = end
	}
}

// better counts a good answer.
func (g *Gate) better() {
	g.reach = 0
	if g.fine++; g.fine < g.window {
		return
	}
	g.fine = 0
	g.window = min(g.window+1, g.workers)
}
