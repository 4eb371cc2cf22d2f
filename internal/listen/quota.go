package listen

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// Bounds of counting what is kept.
const (
	recountFull  = 5 * time.Second // after which it may have become less
	recountOften = time.Minute     // after which other processes may have added to it
	share        = 8               // so much of the most may come in a minute: an eighth
)

// Allowance bounds what is kept of deliveries that did not verify: anybody may
// send them.
type Allowance struct {
	Most int64                                // bytes of headers and bodies; an eighth of it a minute
	Kept func(context.Context) (int64, error) // how many bytes of them there are
}

// quota holds an allowance. Verified deliveries don't pass it.
type quota struct {
	Allowance
	log *slog.Logger

	mu      sync.Mutex
	kept    int64     // bytes, those of deliveries that were let in since included
	counted time.Time // when it was counted
	minute  time.Time // when this minute began
	used    int64     // bytes that were let in since
	told    time.Time // that it is used up
}

// admit reports whether so many more bytes may be kept.
func (q *quota) admit(ctx context.Context, n int64) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if now.Sub(q.minute) >= time.Minute {
		q.minute, q.used = now, 0
	}
	if err := q.count(ctx, now, n); err != nil {
		return false, err
	}
	// One delivery a minute may be greater than the share of a minute.
	if q.kept+n > q.Most || (q.used > 0 && q.used+n > q.Most/share) {
		q.tell(now)
		return false, nil
	}
	q.kept += n
	q.used += n
	return true, nil
}

// count counts anew what is kept if that is long ago, or if it seems too much.
func (q *quota) count(ctx context.Context, now time.Time, n int64) error {
	old := now.Sub(q.counted)
	if old < recountFull || old < recountOften && q.kept+n <= q.Most {
		return nil
	}
	kept, err := q.Kept(ctx)
	if err == nil {
		q.kept, q.counted = kept, now
	}
	return err
}

func (q *quota) tell(now time.Time) {
	if now.Sub(q.told) < troubleAgain {
		return
	}
	q.told = now
	q.log.Warn("unverified deliveries are not taken for now, as too many came: `waybill events prune` makes room, --max-unverified allows more",
		"bytes kept", q.kept, "most", q.Most, "a minute", q.Most/share)
}

// size is how many bytes of a delivery are kept.
func size(d inbox.Delivery) int64 {
	n := len(d.Body)
	for _, f := range d.Header {
		n += len(f.Name) + len(f.Value)
	}
	return int64(n)
}
