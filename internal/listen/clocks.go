package listen

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// recentSkews is how many deliveries that are wrong in nothing but their time
// are looked at together.
const recentSkews = 3

// clocks notices that the sender's clock and ours differ: the secret is right,
// and every delivery is refused all the same. What that takes is said by
// [webhook.Skew]. Deliveries that were not authentic say nothing of a clock.
type clocks struct {
	log *slog.Logger

	mu   sync.Mutex
	last []webhook.Verdict // wrong in their time alone, one for each time of signing
	told bool              // since the last delivery that verified
}

func (c *clocks) judged(v webhook.Verdict) {
	wrong := v.Reason == webhook.ReasonTimestampTooOld || v.Reason == webhook.ReasonTimestampInFuture
	if !wrong && !v.OK {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.OK {
		c.last, c.told = c.last[:0], false
		return
	}
	// Several of the same second are one, or a busy sender would never be told of.
	if c.told || slices.ContainsFunc(c.last, func(o webhook.Verdict) bool { return o.Timestamp.Equal(v.Timestamp) }) {
		return
	}
	if c.last = append(c.last, v); len(c.last) > recentSkews {
		c.last = slices.Delete(c.last, 0, 1)
	}
	skew, ok := webhook.Skew(c.last)
	if !ok {
		return
	}
	c.told = true
	side := "ahead of"
	if skew < 0 {
		side = "behind"
	}
	c.log.Warn(fmt.Sprintf("deliveries carry the right signature and a wrong time: the sender's clock is %v %s this computer's; set the one that is wrong",
		skew.Abs().Round(time.Second), side))
}
