package bulk

import (
	"context"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// longPause is how long a pause is, at least, that the user hears of at once.
const longPause = 10 * time.Second

// failures are consecutive requests that reached nobody, or were answered by asking for a
// pause only.
type failures struct {
	mu   sync.Mutex
	last *StopError // the latest failure; nil after another answer
}

func (j *Job) lastFailure() *StopError {
	j.failures.mu.Lock()
	defer j.failures.mu.Unlock()
	return j.failures.last
}

// countFailure takes the outcome of each request. It returns why the run stops, if no
// request had another outcome for as long as the run's patience, or none can have before the
// pause that the service asks for, or ctx, ends.
func (j *Job) countFailure(ctx context.Context, o tracking.Outcome, err error, retryAfter time.Duration) error {
	j.failures.mu.Lock()
	defer j.failures.mu.Unlock()
	if o.Meaning().Stop != tracking.StopOnFailures {
		if j.failures.last != nil {
			j.Failing(nil)
		}
		j.failures.last = nil
		return nil
	}
	left := j.GiveUpAfter
	if o == tracking.OutcomeNotSent {
		left = j.ConnectFor
	}
	if since := j.Gate.FailingSince(); !since.IsZero() { // else another request succeeded meanwhile
		left -= time.Since(since)
	}
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	first := j.failures.last == nil
	j.failures.last = stopFor(o, err)
	if left <= retryAfter {
		return j.failures.last
	}
	j.Failing(err)
	switch {
	case !first:
	case o == tracking.OutcomeNotSent:
		j.Note("%v; retrying for %s", err, left.Round(time.Second))
	case retryAfter >= longPause:
		j.Note("%v; waiting %s, as it asked", err, retryAfter)
	}
	return nil
}
