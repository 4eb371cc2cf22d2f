package track

import (
	"context"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/term"
)

const (
	// eventPause is the maximum delay until a verified event of another process is noticed.
	eventPause = time.Second
	// hintRest is the minimum time between two reads, however many events arrive.
	hintRest = 100 * time.Millisecond
)

// wakeOnEvents applies received events until ctx ends, and signals when there were any. The store may be created
// meanwhile. stop waits for the end.
func wakeOnEvents(ctx context.Context, c *command.Call) (wake <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	signal := make(chan struct{}, 1)
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(eventPause)
		defer tick.Stop()
		for w := (eventWatch{call: c}); ; {
			some, err := w.read(ctx) // first, so that no hint of the store is missed
			if err != nil && ctx.Err() == nil {
				c.IO.Detail("Received events not read: %v", err) // the service is queried anyway
			}
			if some {
				select {
				case signal <- struct{}{}:
				default:
				}
			}
			_ = pace.Sleep(ctx, hintRest) // the end of ctx is noticed below
			select {
			case <-ctx.Done():
				return
			case <-w.hints:
			case <-tick.C:
			}
		}
	})
	return signal, func() {
		cancel()
		watching.Wait()
	}
}

type eventWatch struct {
	call  *command.Call
	db    *app.Store      // nil until the store exists
	hints <-chan struct{} // signals of db about received events; nil if it has none
	last  int64           // number of the last event applied
}

func (w *eventWatch) read(ctx context.Context) (some bool, err error) {
	if w.db == nil {
		if w.db, err = w.call.StoreIfAny(ctx); err != nil || w.db == nil {
			return false, err
		}
		w.hints = w.db.Changes.Watch(ctx)
	}
	_, last, err := w.db.Events.Followed(ctx)
	if err != nil || last == w.last {
		return false, err
	}
	if err := w.db.Follower().CatchUp(ctx); err != nil {
		return false, err
	}
	w.last = last
	return true, nil
}

// notedEvents is the number of events from which applying them is announced.
const notedEvents = 10_000

// CatchUp applies new events to trackings. If the store can't be written, it only warns.
func CatchUp(ctx context.Context, c *command.Call) error {
	db, err := c.StoreIfAny(ctx)
	if err != nil || db == nil {
		return err
	}
	unused, err := catchUp(ctx, db, c.IO)
	if unused != nil {
		c.IO.Warning("webhook events not applied: %v", unused)
	}
	return err
}

// catchUp is CatchUp without a warning: unused is why events were not applied. io may be nil for no note.
func catchUp(ctx context.Context, db *app.Store, io *term.IO) (unused, err error) {
	at, last, err := db.Events.Followed(ctx)
	if err != nil || at >= last {
		return nil, err
	}
	if unused := db.DB.Writable(); unused != nil {
		return unused, nil
	}
	if events := last - at; io != nil && events >= notedEvents {
		io.Note("Applying %d new webhook events", events)
	}
	err = db.Follower().CatchUp(ctx)
	if ctx.Err() == nil && inbox.IsTemporary(err) {
		return err, nil
	}
	return nil, err
}
