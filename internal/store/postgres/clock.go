package postgres

import (
	"cmp"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/store"
)

// serverClock is the server's clock, estimated from its last reading and the time since.
type serverClock struct {
	mu     sync.Mutex
	known  bool
	offset time.Duration // to be added to this machine's uptime
}

// observe records a reading of the server's clock, in milliseconds since 1970, that was taken between two uptimes.
func (c *serverClock) observe(sent, received time.Duration, shown int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.offset = true, time.Duration(shown)*time.Millisecond-(sent+received)/2
}

// ID is for [store.Clock].
func (c *serverClock) ID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return ""
	}
	return "server"
}

// Now is for [store.Clock].
func (c *serverClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uptime() + c.offset
}

// uptime reads a clock that can't be set.
func uptime() time.Duration { return cmp.Or(store.Uptime(), elapsed()) }

// elapsed returns the time since the first call. Between two calls it counts the longer span of two clocks, as the
// monotonic one may stop while the machine sleeps. Setting the other one makes it too long, never too short.
func elapsed() time.Duration { return stopwatch().read(time.Now()) }

var stopwatch = sync.OnceValue(func() *stopwatchSum { return &stopwatchSum{last: time.Now()} })

type stopwatchSum struct {
	mu   sync.Mutex
	last time.Time
	sum  time.Duration
}

func (s *stopwatchSum) read(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum += max(now.Sub(s.last), now.Round(0).Sub(s.last.Round(0)), 0)
	s.last = now
	return s.sum
}
