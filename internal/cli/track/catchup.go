package track

import (
	"context"

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
	at, last, err := db.Events.Followed(ctx)
	if err != nil || at >= last {
		return err
	}
	if last-at >= notedEvents {
		c.IO.Note("Reading %d events received since then", last-at)
	}
	err = db.Follower().CatchUp(ctx)
	if ctx.Err() == nil && inbox.IsTemporary(err) {
		c.IO.Warning("received events are not used: %v", err)
		return nil
	}
	return err
}
