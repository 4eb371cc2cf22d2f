package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/render"
)

func (r *runner) listedEvents() *cobra.Command {
	var q eventOptions
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List received events, newest first",
		Example: example("waybill events list", "waybill events list --event router.delivered --since 24h", "waybill events list --limit 0 -o jsonl"),
		Args:    cobra.NoArgs,
		RunE: r.run(func(ctx context.Context, s *app.Session, _ []string) error {
			return r.listEvents(ctx, s, q)
		}),
	}
	f := cmd.Flags()
	f.IntVar(&q.Limit, "limit", 50, "at most `N` (0 for all)")
	f.StringVar(&q.Kind, "event", "", "only this `KIND`, such as router.delivered")
	f.StringVar(&q.Number, "tracking-number", "", "only this tracking number")
	f.StringVar(&q.Since, "since", "", "only those received since a `TIME`: RFC 3339, a date, or an age")
	f.StringVar(&q.Verified, "verified", "", "only `yes`, no or unknown")
	f.BoolVar(&q.All, "all", false, "duplicates, conflicts and anomalies too")
	return cmd
}

type eventOptions struct {
	Limit                         int
	Kind, Number, Since, Verified string
	All                           bool
}

func (o eventOptions) query() (inbox.Query, error) {
	since, err := parseSince("--since", o.Since)
	if err != nil {
		return inbox.Query{}, err
	}
	v := inbox.Verified(o.Verified)
	switch v {
	case "", inbox.Yes, inbox.No, inbox.Unknown:
	default:
		return inbox.Query{}, usagef("use yes, no or unknown", "--verified %q is neither", o.Verified)
	}
	if o.Limit < 0 {
		return inbox.Query{}, usagef("use 0 for all", "--limit %d is negative", o.Limit)
	}
	q := inbox.Query{Limit: o.Limit, Newest: true, Kind: o.Kind, TrackingNumber: o.Number, Since: since, Verified: v}
	if !o.All {
		q.Marks = []inbox.Mark{inbox.Standing}
	}
	return q, nil
}

func (r *runner) listEvents(ctx context.Context, s *app.Session, o eventOptions) error {
	q, err := o.query()
	if err != nil {
		return err
	}
	w := listing[inbox.Event]{
		out: r.out, empty: "no events; `waybill listen` receives them",
		json: func(e inbox.Event) any { return newEventJSON(e) },
		columns: []render.Column{
			{Name: "SEQ", Right: true},
			{Name: "RECEIVED", From: 130},
			{Name: "NUMBER", ID: true},
			{Name: "LATEST EVENT", Flex: true, From: 110},
			{Name: "STATUS", Flex: true, From: 90},
			{Name: "EVENT", Flex: true},
			{Name: "VERIFIED"},
		},
		cells: func(e inbox.Event) []string {
			return []string{
				fmt.Sprint(e.Seq), render.LocalTime(e.ReceivedAt), e.TrackingNumber, e.LatestEvent,
				newNames(s.Config.Statuses).status(e.Status, e.StatusLabel, e.StatusTrack), e.Kind, verifiedMark(e),
			}
		},
	}
	db, err := s.ExistingStore(ctx)
	if err != nil {
		return err
	}
	if db == nil {
		return w.print(s.IO, nil)
	}
	return w.print(s.IO, db.Events(ctx, q))
}
