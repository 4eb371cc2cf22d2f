package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/render"
)

func (r *runner) shownEvent() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show one event with all its data",
		Long:    "ID is an event's seq or eventId, as events list shows them.",
		Example: example("waybill events show 12", "waybill events show 12 -o json --jq .data"),
		Args:    exactly(1, "an event's seq or eventId; `waybill events list` shows them"),
		RunE: r.run(func(ctx context.Context, s *app.Session, args []string) error {
			return r.showEvent(ctx, s, args[0])
		}),
	}
}

func (r *runner) showEvent(ctx context.Context, s *app.Session, id string) error {
	db, err := s.ExistingStore(ctx)
	if err != nil {
		return err
	}
	if db == nil {
		return fmt.Errorf("event %q: %w", id, inbox.ErrNoEvent)
	}
	e, err := findEvent(ctx, db, id)
	if err != nil {
		return fmt.Errorf("event %q: %w", id, err)
	}
	if r.out.machine() {
		j := newEventJSON(e)
		j.Raw = e.Raw
		return r.out.object(j)
	}
	err = r.out.fields([]render.Field{
		{Name: "Seq", Value: fmt.Sprint(e.Seq)},
		{Name: "Delivery", Value: fmt.Sprint(e.Delivery)},
		{Name: "Event ID", Value: e.EventID},
		{Name: "Event", Value: e.Kind},
		{Name: "Event time", Value: e.EventTime},
		{Name: "Received", Value: render.LocalTime(e.ReceivedAt)},
		{Name: "Verified", Value: verifiedMark(e)},
		{Name: "Mark", Value: markType(e.Mark)},
		{Name: "Anomaly", Value: e.Anomaly},
	})
	if err != nil {
		return err
	}
	if err := r.out.line(""); err != nil {
		return err
	}
	return r.out.raw(e.Raw)
}
