package pace

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses between tries of a query that failed for a while.
const (
	firstRetry   = 250 * time.Millisecond
	longestRetry = 4 * time.Second
)

// Backoff is pauses that grow: the first is First, each next one twice as long,
// up to Max. Each is shortened by up to a quarter, by chance, so that what
// failed together does not come back together.
type Backoff struct {
	First time.Duration `json:"first"`
	Max   time.Duration `json:"max"`
}

// Next returns the pause that is due, and makes the next one longer.
func (b *Backoff) Next() time.Duration {
	d := b.First
	b.First = min(2*d, b.Max)
	return d - rand.N(d/4+1) //nolint:gosec // pauses are no secret
}

// Retry is the tries of one query.
type Retry struct {
	Backoff
	patience time.Duration
	began    time.Time
}

// NewRetry begins the tries of a query, which go on for as long as patience.
func NewRetry(patience time.Duration) *Retry {
	return &Retry{Backoff{firstRetry, longestRetry}, patience, time.Now()}
}

// Restart begins to count patience anew.
func (r *Retry) Restart() { r.began = time.Now() }

// Wait waits for a growing pause, or for as long as the service asked if that is longer.
// It is false, at once, if patience is over before, and when ctx ends.
func (r *Retry) Wait(ctx context.Context, retryAfter time.Duration) bool {
	wait := max(r.Next(), retryAfter)
	return time.Since(r.began)+wait <= r.patience && Sleep(ctx, wait) == nil
}

// Sleep waits, or returns the cause of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
