package postgres

import (
	"context"
	"sync"
	"time"
)

// Bounds of trying again while the server is away.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 250 * time.Millisecond
	forgetful  = 10 * time.Second // without a try after which an outage is taken for another one
)

// outage is the time in which no connection can be made.
type outage struct {
	mu    sync.Mutex
	began time.Time // zero: there is none
	last  time.Time // the last try
	pause time.Duration
}

// record records how a try to connect ended.
func (o *outage) record(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil:
		o.began, o.pause = time.Time{}, 0
		return
	case o.began.IsZero(), now.Sub(o.last) > forgetful:
		o.began, o.pause = now, firstPause
	default:
		o.pause = min(2*o.pause, lastPause)
	}
	o.last = now
}

// lasts reports whether the last try failed.
func (o *outage) lasts() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.began.IsZero()
}

// isYoung reports whether the outage, if there is one, is younger than that.
func (o *outage) isYoung(patience time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.began.IsZero() || time.Since(o.began) < patience
}

// wait waits before the next try. It returns false if ctx ended.
func (o *outage) wait(ctx context.Context) bool {
	o.mu.Lock()
	pause := max(o.pause, firstPause)
	o.mu.Unlock()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
