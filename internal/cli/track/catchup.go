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
		changes, applied := app.ChangeWatch{Session: c.Session}, int64(0)
		for {
			last, err := applyEvents(ctx, c, applied)
			if err != nil && ctx.Err() == nil {
				c.IO.Detail("Received events not read: %v", err) // the service is queried anyway
			}
			if err == nil && last != applied {
				applied = last
				pace.Notify(signal)
			}
			if changes.Wait(ctx, hintRest, eventPause) != nil {
				return
			}
		}
	})
	return signal, func() {
		cancel()
		watching.Wait()
	}
}

// applyEvents applies events unless applied is the last one. It returns the last one's number; 0 without a store.
func applyEvents(ctx context.Context, c *command.Call, applied int64) (last int64, err error) {
	db, err := c.StoreIfAny(ctx)
	if err != nil || db == nil {
		return 0, err
	}
	if _, last, err = db.Events.Followed(ctx); err == nil && last != applied {
		err = db.Follower().CatchUp(ctx)
	}
	return last, err
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
