package listen

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// How often the stored bytes are counted, and the share of a minute.
const (
	recountWhenFull = 5 * time.Second // after which it may have become less
	recountInterval = time.Minute     // after which other processes may have added to it
	minuteShare     = 8               // so much of the most may come in a minute: an eighth
)

// UnverifiedLimit bounds what is kept of deliveries that did not verify: anybody may send them.
type UnverifiedLimit struct {
	MaxBytes   int64                                // as [inbox.Retention.UnverifiedBytes] counts; an eighth a minute
	CountBytes func(context.Context) (int64, error) // how many bytes of them there are
}

var errUnverifiedLimit = errors.New("too many unverified deliveries")

// quota applies an UnverifiedLimit. Verified deliveries are not counted.
type quota struct {
	UnverifiedLimit
	log *slog.Logger

	mu       sync.Mutex
	bytes    int64     // bytes, those of deliveries that were let in since included
	counted  time.Time // when it was counted
	minute   time.Time // when this minute began
	inMinute int64     // bytes that were let in since
	warned   time.Time // that it is used up
}

func (q *quota) admit(ctx context.Context, n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if now.Sub(q.minute) >= time.Minute {
		q.minute, q.inMinute = now, 0
	}
	if err := q.count(ctx, now, n); err != nil {
		return err
	}
	// One delivery a minute may be greater than the share of a minute.
	if q.bytes+n > q.MaxBytes || (q.inMinute > 0 && q.inMinute+n > q.MaxBytes/minuteShare) {
		if now.Sub(q.warned) >= repeatAlert {
			q.warned = now
			q.log.Warn("too many unverified deliveries, refusing more: "+
				"free space with `waybill store prune`, or raise --max-unverified",
				"bytes kept", q.bytes, "most", q.MaxBytes, "a minute", q.MaxBytes/minuteShare)
		}
		return errUnverifiedLimit
	}
	q.bytes += n
	q.inMinute += n
	return nil
}

// count reads the stored bytes again after recountInterval, and earlier if they seem too many.
func (q *quota) count(ctx context.Context, now time.Time, n int64) error {
	old := now.Sub(q.counted)
	if old < recountWhenFull || old < recountInterval && q.bytes+n <= q.MaxBytes {
		return nil
	}
	kept, err := q.CountBytes(ctx)
	if err == nil {
		q.bytes, q.counted = kept, now
	}
	return err
}

func storedSize(d inbox.Delivery, rows int) int64 {
	n := len(d.Path) + len(d.RawQuery) + len(d.Body) + rows*inbox.RowBytes
	for _, f := range d.Header {
		n += len(f.Name) + len(f.Value)
	}
	return int64(n)
}
