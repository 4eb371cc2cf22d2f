package listen

import (
	"context"
	"sync"
	"time"
)

// Bounds of a probe, which anybody may cause.
const (
	probeRest    = 500 * time.Millisecond // its answer holds for so long
	probeTimeout = 2 * time.Second
)

// health knows whether deliveries can be stored.
type health struct {
	mu     sync.Mutex
	probed time.Time
	ok     bool
}

// check probes, unless that was done just now. Without a probe they can be stored.
func (h *health) check(ctx context.Context, probe func(context.Context) error) bool {
	if probe == nil {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.probed) >= probeRest {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
		defer cancel()
		h.ok = probe(ctx) == nil
		h.probed = time.Now()
	}
	return h.ok
}
