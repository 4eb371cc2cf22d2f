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
	// eventPause is how long a verified event of any process goes unnoticed at most.
	eventPause = time.Second
	// hintRest is the least time between two readings, however many events come.
	hintRest = 100 * time.Millisecond
)

// wakeOnEvents takes in received events until ctx ends, from a store that may be
// made only later, and signals when there were any. stop waits for its end.
func wakeOnEvents(ctx context.Context, c *command.Call) (wake <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	signal := make(chan struct{}, 1)
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(eventPause)
		defer tick.Stop()
		for w := (eventWatch{call: c}); ; {
			some, err := w.read(ctx) // at once, so that the store's hints count from the beginning
			if err != nil && ctx.Err() == nil {
				c.IO.Detail("Received events not read: %v", err) // the service is asked all the same
			}
			if some {
				select {
				case signal <- struct{}{}:
				default:
				}
			}
			_ = pace.Sleep(ctx, hintRest) // its end is noticed below
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
	db    *app.Store      // nil until there is one
	hints <-chan struct{} // of db at what any process receives; nil if there are none
	last  int64           // number of the last event that was followed
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

// notedEvents is from how many events on it is noted that they are followed.
const notedEvents = 10_000

// CatchUp follows the new events. A store that can't be written keeps what it knows, and a warning says so.
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

// catchUp is CatchUp without a warning: unused is why the store keeps what it knows. A nil io gets no note.
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
