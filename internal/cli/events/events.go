package events

import (
	"context"
	"iter"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
)

func New(f *command.Factory) *cobra.Command {
	group := &cobra.Command{
		Use:     "events",
		GroupID: command.GroupHook,
		Short:   "Look at, send again and make up events",
		Long:    "The inbox keeps every delivery that waybill listen received, byte for byte.",
	}
	group.AddCommand(
		newList(f), newShow(f), newReplay(f), newSend(f), newWait(f),
		newExport(f), newImport(f), newPrune(f), newReadmit(f),
	)
	return group
}

// findEvent finds an event by its seq, or the standing one with an eventId.
func findEvent(ctx context.Context, box inbox.Store, id string) (inbox.Event, error) {
	if seq, err := strconv.ParseInt(id, 10, 64); err == nil {
		return box.Event(ctx, seq)
	}
	next, stop := iter.Pull2(box.Events(ctx, inbox.Query{EventID: id, Marks: []inbox.Mark{inbox.Standing}, Limit: 1}))
	defer stop()
	e, err, ok := next()
	if !ok {
		return inbox.Event{}, inbox.ErrNoEvent
	}
	return e, err
}
