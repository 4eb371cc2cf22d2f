package events

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/term"
)

type listOptions struct {
	Limit                                          int
	Kind, Number, ReferID, Since, Verified, Filter string
	All, Dead, Pending                             bool
}

func newList(f *command.Factory) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List received events, newest first",
		Long: `list prints the current events, newest first; with --all also duplicates, conflicts
and data that can't be read as an event. Other commands accept the ID. Events of
"events send" are marked "made up". --filter has the form of listen --forward-to:
KEY=VALUE[,KEY=VALUE], where all must match; keys are event, status, statusTrack,
number and JSON pointers, VALUE may end with a *. --refer-id finds events by the
tracking numbers of a referId, and by the service's own identifier of a tracking
if a response had it.

--pending lists deliveries that are not forwarded yet: their target, what they wait
for (another delivery of the same number, or the next attempt), the attempts so far
and the last response. --dead lists deliveries that were given up.`,
		Example: command.Example("waybill events list", "waybill events list --event router.delivered --since 24h", "waybill events list --filter 'status=1,number=1Z*'",
			"waybill events list --refer-id ORD-1001", "waybill events list --limit 0 -o jsonl", "waybill events list --pending", "waybill events list --dead"),
		Args: cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			if err := command.CheckLimit(o.Limit); err != nil {
				return err
			}
			if err := command.CheckNotEmpty(c.Cmd, "event", "tracking-number", "refer-id", "filter", "since"); err != nil {
				return err
			}
			switch {
			case o.Dead:
				return runListDead(ctx, c, o)
			case o.Pending:
				return runListPending(ctx, c, o)
			}
			return runList(ctx, c, o)
		}),
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Limit, "limit", 50, "at most `N` (0 for all)")
	flags.StringVar(&o.Kind, "event", "", "only this `KIND`, such as router.delivered")
	flags.StringVar(&o.Number, "tracking-number", "", "only this tracking `NUMBER`")
	flags.StringVar(&o.ReferID, "refer-id", "", "only those about the trackings of this `REF`")
	flags.StringVar(&o.Filter, "filter", "", "only what matches `FILTER`, such as 'status=1,number=1Z*'")
	flags.StringVar(&o.Since, "since", "", "only those received since a `TIME`: RFC 3339, a date, or an age")
	command.Choice(flags, &o.Verified, "verified", "", "only those with verification `RESULT`", string(inbox.Yes), string(inbox.No), string(inbox.Unknown))
	flags.BoolVar(&o.All, "all", false, "duplicates, conflicts and anomalies too")
	flags.BoolVar(&o.Pending, "pending", false, "deliveries that wait to be forwarded")
	flags.BoolVar(&o.Dead, "dead", false, "deliveries that were given up forwarding")
	command.ColumnsFlag(cmd, eventColumns(view.StatusNames{}))
	command.ColumnsFlag(cmd, pendingColumns(time.Time{}))
	command.ColumnsFlag(cmd, deadColumns(nil))
	return cmd
}

func (o listOptions) query() (inbox.Query, error) {
	since, err := command.ParseSince("--since", o.Since)
	if err != nil {
		return inbox.Query{}, err
	}
	q := inbox.Query{Newest: true, Kind: o.Kind, TrackingNumber: o.Number, Since: since, Verified: inbox.Verified(o.Verified)}
	if !o.All {
		q.Marks = []inbox.Mark{inbox.Current}
	}
	return q, nil
}

// parseFilter reads --filter.
func parseFilter(s string) (forward.Filter, error) {
	f, err := forward.ParseFilter(s)
	if err != nil {
		return f, command.Usagef("such as --filter 'event=router.delivered,number=1Z*'", "--filter: %w", err)
	}
	return f, nil
}

// eventsAbout returns what the ledger knows of a referId that events may name.
func eventsAbout(ctx context.Context, s *app.Session, trackings ledger.Trackings, referID string) (*inbox.TrackingKeys, error) {
	rows, err := trackings.Find(ctx, s.Account(ctx), referID, "")
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, &command.ExitError{Code: command.NotFound, Err: fmt.Errorf("no tracking with referId %q in the store", referID), Hint: "list created trackings with `waybill list`"}
	}
	a := &inbox.TrackingKeys{}
	for _, row := range rows {
		if row.Item.Number != "" {
			a.Numbers = append(a.Numbers, row.Item.Number)
		}
		if row.Sighting != nil && row.Sighting.RouterID != "" {
			a.RouterIDs = append(a.RouterIDs, row.Sighting.RouterID)
		}
	}
	return a, nil
}

func runList(ctx context.Context, c *command.Call, o listOptions) error {
	q, err := o.query()
	if err != nil {
		return err
	}
	filter, err := parseFilter(o.Filter)
	if err != nil {
		return err
	}
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	listing := eventListing(c, "No events. Receive them with `waybill listen`.")
	if db == nil {
		return listing.Print(c.IO, nil)
	}
	if o.Filter == "" && !o.All {
		q.Limit = o.Limit
	}
	if o.ReferID != "" {
		if q.Trackings, err = eventsAbout(ctx, c.Session, db.Trackings, o.ReferID); err != nil {
			return err
		}
	}
	return listing.Print(c.IO, command.Filter(replay.LatestRows(ctx, db.Inbox, q), filter.Match, o.Limit))
}

// eventListing prints events, one line each.
func eventListing(c *command.Call, empty string) command.Listing[inbox.Event] {
	hide := c.SecretMasker()
	return command.Listing[inbox.Event]{
		Out: c.Out, Empty: empty, Columns: eventColumns(view.NewStatusNames(c.Config.Statuses)),
		JSON: func(e inbox.Event) any { return view.NewEvent(view.MaskEvent(e, hide)) },
	}
}

// eventColumns returns the columns of events.
func eventColumns(names view.StatusNames) []command.Column[inbox.Event] {
	return []command.Column[inbox.Event]{
		{Column: render.Column{Name: "ID"}, Cell: inbox.Event.ID},
		{Column: render.Column{Name: "RECEIVED", Rank: 5}, Time: func(e inbox.Event) time.Time { return e.ReceivedAt }},
		{Column: render.Column{Name: "NUMBER", ID: true}, Cell: func(e inbox.Event) string { return e.TrackingNumber }},
		{Column: render.Column{Name: "LATEST EVENT", Flex: true, Rank: 4}, Cell: func(e inbox.Event) string { return e.LatestEvent }},
		{
			Column: render.Column{Name: "STATUS", Flex: true, Rank: 2},
			Cell:   func(e inbox.Event) string { return names.Status(e.Status, e.StatusLabel, e.StatusTrack) },
			Style:  func(e inbox.Event) term.Style { return names.StatusStyle(e.Status, e.StatusLabel, e.StatusTrack) },
		},
		{Column: render.Column{Name: "EVENT", Flex: true}, Cell: func(e inbox.Event) string { return e.Kind }},
		{Column: render.Column{Name: "VERIFIED"}, Cell: view.Trust},
		{Column: render.Column{Name: "DELIVERY", Right: true, Extra: true}, Cell: func(e inbox.Event) string { return fmt.Sprint(e.Delivery) }},
		{Column: render.Column{Name: "EVENT ID", ID: true, Extra: true}, Cell: func(e inbox.Event) string { return e.EventID }},
		{Column: render.Column{Name: "EVENT TIME", Extra: true}, Cell: func(e inbox.Event) string { return e.EventTime }},
	}
}
