package track

import (
	"context"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
)

// notedEvents is from how many events on it is noted that they are followed.
const notedEvents = 10_000

// CatchUp follows the events that any process received and none has followed
// yet. A store that can't be written keeps what it knows, and a warning says
// so.
func CatchUp(ctx context.Context, c *command.Call) error {
	db, err := c.StoreIfAny(ctx)
	if err != nil || db == nil {
		return err
	}
	begin := func(events int64) {
		if events >= notedEvents {
			c.IO.Note("Reading %d events received since then", events)
		}
	}
	unused, err := catchUp(ctx, db, begin)
	if unused != nil {
		c.IO.Warning("received events are not used: %v", unused)
	}
	return err
}

// catchUp is CatchUp that prints nothing: unused is why the store keeps what it knows,
// nil if it does not. begin is called with the number of events.
func catchUp(ctx context.Context, db *app.Store, begin func(events int64)) (unused, err error) {
	at, last, err := db.Events.Followed(ctx)
	if err != nil || at >= last {
		return nil, err
	}
	if unused := db.DB.Writable(); unused != nil {
		return unused, nil
	}
	begin(last - at)
	err = db.Follower().CatchUp(ctx)
	if ctx.Err() == nil && inbox.IsTemporary(err) {
		return err, nil
	}
	return nil, err
}
