package events

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
)

type listOptions struct {
	Limit                                                 int
	Kind, Number, ReferID, Since, After, Verified, Filter string
	All, Dead, Pending, Refused                           bool
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
if a response had it. --after ID lists what was recorded after that event, oldest
first, so that a script reads on where it stopped: --limit 0 for all of it. An event
that was verified late comes once more.

--pending lists deliveries that are not forwarded yet: their target, what they wait
for (another delivery of the same number, or the next attempt), the attempts so far
and the last response. --dead lists deliveries that were given up. --refused lists
deliveries that were answered 401, with their IDs, the sender's address and why.`,
		Example: command.Example("waybill events list", "waybill events list --event router.delivered --since 24h",
			"waybill events list --filter 'status=1,number=1Z*'", "waybill events list --refer-id ORD-1001",
			"waybill events list --limit 0 -o jsonl", "waybill events list --pending", "waybill events list --dead",
			"waybill events list --refused"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error { return runList(ctx, c, o) }),
	}
	flags := cmd.Flags()
	command.LimitFlag(flags, &o.Limit, 50)
	flags.StringVar(&o.Kind, "event", "", "only this `KIND`, such as router.delivered")
	flags.StringVar(&o.Number, "tracking-number", "", "only this tracking `NUMBER`")
	flags.StringVar(&o.ReferID, "refer-id", "", "only those about the trackings of this `REF`")
	filterFlag(cmd, &o.Filter)
	sinceFlag(cmd, &o.Since)
	afterFlag(cmd, &o.After)
	verifiedFlag(cmd, &o.Verified)
	flags.BoolVar(&o.All, "all", false, "duplicates, conflicts and anomalies too")
	flags.BoolVar(&o.Pending, "pending", false, "deliveries that wait to be forwarded")
	deadFlag(cmd, &o.Dead)
	flags.BoolVar(&o.Refused, "refused", false, "deliveries that were refused")
	command.ColumnsFlag(cmd, eventColumns(view.StatusFormatter{}, listOptions{All: true}))
	command.ColumnsWith(cmd, "refused", refusedColumns())
	command.ColumnsWith(cmd, "pending", pendingColumns(nil, time.Time{}))
	command.ColumnsWith(cmd, "dead", deadColumns(nil))
	return cmd
}

func (o listOptions) query() (inbox.Query, error) {
	since, err := command.ParseSince("--since", o.Since)
	if err != nil {
		return inbox.Query{}, err
	}
	q := inbox.Query{Newest: true, Kind: o.Kind, TrackingNumber: o.Number, Since: since}
	if o.Verified != "" {
		q.Verified = []inbox.Verified{inbox.Verified(o.Verified)}
	}
	if !o.All {
		q.Marks = []inbox.Mark{inbox.Current}
	}
	return q, nil
}

// readOn makes q read the rows after the event of --after, oldest first. For an event that verified late, it starts at
// the event's first row: some rows may be read twice, none is missed.
func (o listOptions) readOn(ctx context.Context, db *app.Store, q *inbox.Query) error {
	delivery, index, err := parseAfter(o.After)
	if delivery == 0 || err != nil {
		return err
	}
	for e, err := range db.Inbox.Events(ctx, inbox.Query{Delivery: delivery}) {
		if err != nil || e.Index == index {
			q.Newest, q.After = false, e.Seq
			return err
		}
	}
	return fmt.Errorf("--after %s: %w", o.After, inbox.ErrNoEvent)
}

// ParseFilter parses a filter of events. It accepts configured names of statuses.
func ParseFilter(names view.StatusFormatter, s string) (forward.Filter, error) {
	parts := strings.Split(s, ",")
	for i, part := range parts {
		if status, ok := strings.CutPrefix(part, "status="); ok {
			parts[i] = "status=" + names.WireValue(status)
		}
	}
	return forward.ParseFilter(strings.Join(parts, ","))
}

func parseFilter(c *command.Call, s string) (forward.Filter, error) {
	f, err := ParseFilter(view.NewStatusFormatter(c.Config.OwnStatuses), s)
	if err != nil {
		return f, command.Usagef("such as --filter 'event=router.delivered,number=1Z*'", "--filter: %w", err)
	}
	return f, nil
}

func eventsAbout(ctx context.Context, trackings ledger.Trackings, referID string) (*inbox.TrackingKeys, error) {
	rows, err := trackings.Find(ctx, referID, "")
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		err := fmt.Errorf("no tracking with referId %q in the store", referID)
		return nil, &command.ExitError{Code: command.NotFound, Err: err, Hint: "list created trackings with `waybill list`"}
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
	empty := command.CheckNotEmpty(c.Cmd, "event", "tracking-number", "refer-id", "filter", "since")
	if err := cmp.Or(command.CheckLimit(o.Limit), empty); err != nil {
		return err
	}
	switch {
	case o.After != "" && (o.Dead || o.Pending || o.Refused):
		return command.Usagef("leave one of them out", "--after and --dead, --pending or --refused exclude each other")
	case o.Dead, o.Pending:
		return runListOutbox(ctx, c, o)
	case o.Refused:
		return runListRefused(ctx, c, o)
	default:
		return runListEvents(ctx, c, o)
	}
}

func runListEvents(ctx context.Context, c *command.Call, o listOptions) error {
	q, queryErr := o.query()
	filter, err := parseFilter(c, o.Filter)
	if err := cmp.Or(queryErr, err); err != nil {
		return err
	}
	db, err := c.StoreToList(ctx, "event")
	if err != nil {
		return err
	}
	counts, err := db.Received().Counts(ctx)
	if err != nil {
		return err
	}
	listing := eventListing(c, o)
	listing.Empty = emptyText(c, o, counts)
	if db == nil {
		return listing.PrintAll(nil)
	}
	if o.Filter == "" && !o.All {
		q.Limit = o.Limit
	}
	if o.ReferID != "" {
		if q.Trackings, err = eventsAbout(ctx, db.Trackings, o.ReferID); err != nil {
			return err
		}
	}
	if err := o.readOn(ctx, db, &q); err != nil {
		return err
	}
	found := command.Filter(replay.LatestRows(ctx, db.Inbox, q), filter.Match, o.Limit)
	if err := listing.Print(found); err != nil {
		return err
	}
	if counts.Refused > 0 && (o.All || o.Verified == string(inbox.No)) {
		refused := command.Plural(counts.Refused, "refused delivery")
		c.IO.Note("Not listed: %s; `waybill events list --refused` lists them", refused)
	}
	return nil
}

func emptyText(c *command.Call, o listOptions, n inbox.Counts) string {
	var filters []string
	for _, name := range []string{"event", "tracking-number", "refer-id", "filter", "since", "after", "verified"} {
		if f := c.Cmd.Flags().Lookup(name); f.Changed {
			filters = append(filters, "--"+name+" "+shell.Word(f.Value.String()))
		}
	}
	switch deliveries := command.Plural(n.Deliveries, "delivery"); {
	case len(filters) > 0 && n.LastEvent > 0:
		return fmt.Sprintf("No event matches %s (%s received)", strings.Join(filters, " "), deliveries)
	case n.LastEvent > 0 && !o.All:
		return "No events; `waybill events list --all` lists what can't be read"
	case n.Refused > 0:
		return "No events; `waybill events list --refused` lists " + command.Plural(n.Refused, "refused delivery")
	default:
		return "No events. Receive them with `waybill listen`."
	}
}

func eventListing(c *command.Call, o listOptions) command.Listing[inbox.Event] {
	hide := c.SecretMasker()
	return command.Listing[inbox.Event]{
		Out: c.Out, Columns: eventColumns(view.NewStatusFormatter(c.Config.Statuses), o),
		JSON: func(e inbox.Event) any { return view.NewEvent(view.MaskEvent(e, hide)) },
	}
}

// eventColumns returns the columns of events, with --all also the column for duplicates, conflicts and anomalies.
func eventColumns(names view.StatusFormatter, o listOptions) []command.Column[inbox.Event] {
	type event = inbox.Event
	typeStyles := map[inbox.Mark]term.Style{inbox.Conflict: term.Bad, inbox.Anomaly: term.Caution}
	return []command.Column[event]{
		{Name: "ID", Cell: event.ID},
		{
			Name: "TYPE", Extra: !o.All, Cell: func(e event) string { return view.EventType(e.Mark) },
			Style: func(e event) term.Style { return typeStyles[e.Mark] },
		},
		{Name: "RECEIVED", CSV: "receivedAt", Rank: 1, Time: func(e event) time.Time { return e.ReceivedAt }},
		view.Identifier("NUMBER", "trackingNumber", func(e event) string { return e.TrackingNumber }),
		{Name: "LATEST EVENT", Flex: true, Rank: 3, Cell: func(e event) string {
			if e.Mark == inbox.Anomaly {
				return e.Anomaly
			}
			_, latest, _ := names.EventTexts(e)
			return latest
		}, CSVCell: func(e event) string { return e.LatestEvent }},
		{Name: "STATUS", CSV: "-", Flex: true, Cell: func(e event) string {
			status, _, _ := names.EventTexts(e)
			return status
		}, Style: func(e event) term.Style {
			_, _, style := names.EventTexts(e)
			return style
		}},
		{Name: "EVENT", Flex: true, Rank: 4, Cell: func(e event) string { return e.Kind }},
		{Name: "VERIFIED", Rank: 2, Cell: view.Trust, CSVCell: func(e event) string { return string(e.Verified) }},
		{Name: "DELIVERY", Right: true, Extra: true, Cell: func(e event) string { return fmt.Sprint(e.Delivery) }},
		{Name: "EVENT ID", ID: true, Extra: true, Cell: func(e event) string { return e.EventID }},
		{Name: "EVENT TIME", Extra: true, Cell: func(e event) string { return e.EventTime }},
		view.CSVOnly("STATUS NUMBER", "status", func(e event) string { return view.Unquote(e.Status) }),
		view.CSVOnly("STATUS LABEL", "statusLabel", func(e event) string { return e.StatusLabel }),
		view.CSVOnly("STATUS TRACK", "statusTrack", func(e event) string { return e.StatusTrack }),
		view.CSVOnly("REASON", "reason", func(e event) string { return string(e.Reason) }),
		view.CSVOnly("ANOMALY", "anomaly", func(e event) string { return e.Anomaly }),
	}
}

func runListRefused(ctx context.Context, c *command.Call, o listOptions) error {
	since, db, err := o.ofDeliveries(ctx, c)
	if err != nil {
		return err
	}
	w := command.Listing[inbox.Delivery]{
		Out: c.Out, Empty: "Nothing was refused", Columns: refusedColumns(),
		JSON: func(d inbox.Delivery) any { return view.NewRefused(d) },
	}
	var all []inbox.Delivery
	for d, err := range db.Received().Refused(ctx, 0) {
		if err != nil {
			return err
		}
		d.Body = nil
		all = append(all, d)
	}
	slices.Reverse(all)
	isLate := func(d inbox.Delivery) bool { return !d.ReceivedAt.Before(since) }
	return w.Print(command.Filter(command.Values(all), isLate, o.Limit))
}

func refusedColumns() []command.Column[inbox.Delivery] {
	return []command.Column[inbox.Delivery]{
		{Name: "ID", Cell: view.RefusedID},
		{Name: "RECEIVED", CSV: "receivedAt", Time: func(d inbox.Delivery) time.Time { return d.ReceivedAt }},
		{Name: "FROM", Cell: func(d inbox.Delivery) string { return d.RemoteAddr }},
		{
			Name: "WHY", CSV: "reason", Cell: func(d inbox.Delivery) string { return string(d.Reason) },
			Style: func(inbox.Delivery) term.Style { return term.Bad },
		},
		{Name: "PATH", Flex: true, Rank: 1, Cell: func(d inbox.Delivery) string { return d.Path }},
	}
}
