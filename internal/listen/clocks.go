package listen

import (
	"log/slog"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// timely is how many deliveries in a row must be wrong in nothing but their
// time before that is told.
const timely = 3

// clocks notices that the sender's clock and ours differ: the secret is right,
// and every delivery is refused all the same.
type clocks struct {
	log *slog.Logger

	mu    sync.Mutex
	inRow int
}

func (c *clocks) judged(v webhook.Verdict) {
	wrong := v.Reason == webhook.ReasonTimestampTooOld || v.Reason == webhook.ReasonTimestampInFuture
	if !wrong && !v.OK {
		return // it tells nothing of a clock
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !wrong {
		c.inRow = 0
		return
	}
	if c.inRow++; c.inRow == timely {
		c.log.Warn("deliveries carry the right signature and a wrong time: compare this computer's clock with the sender's",
			"in a row", c.inRow, "theirs differs by", v.Skew.Round(time.Second))
	}
}
