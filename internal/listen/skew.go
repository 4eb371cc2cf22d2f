package listen

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// skewSamples is how many deliveries with a right signature and a wrong time
// are compared.
const skewSamples = 3

// skewDetector detects that the sender's clock and ours differ: the secret is
// right, and every delivery is refused all the same. [webhook.Skew] decides.
// Deliveries that are not authentic are not used.
type skewDetector struct {
	log *slog.Logger

	mu     sync.Mutex
	recent []webhook.Verdict // wrong in their time alone, one for each time of signing
	warned bool              // since the last delivery that verified
}

func (c *skewDetector) observe(v webhook.Verdict) {
	wrong := v.Reason == webhook.ReasonTimestampTooOld || v.Reason == webhook.ReasonTimestampInFuture
	if !wrong && !v.OK {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.OK {
		c.recent, c.warned = c.recent[:0], false
		return
	}
	// Several of the same second count once: they must not fill all samples.
	if c.warned || slices.ContainsFunc(c.recent, func(o webhook.Verdict) bool { return o.Timestamp.Equal(v.Timestamp) }) {
		return
	}
	if c.recent = append(c.recent, v); len(c.recent) > skewSamples {
		c.recent = slices.Delete(c.recent, 0, 1)
	}
	skew, ok := webhook.Skew(c.recent)
	if !ok {
		return
	}
	c.warned = true
	side := "ahead of"
	if skew < 0 {
		side = "behind"
	}
	c.log.Warn(fmt.Sprintf("deliveries carry the right signature and a wrong time: the sender's clock is %v %s this computer's; set the one that is wrong",
		webhook.FormatSkew(skew), side))
}
