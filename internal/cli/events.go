package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// eventJSON is one event in our output; `listen` prints the same with its type.
type eventJSON struct {
	Type           string          `json:"type"` // event, duplicate, conflict, anomaly or refused
	Seq            int64           `json:"seq"`
	Delivery       int64           `json:"delivery"`
	EventID        string          `json:"eventId"`
	Event          string          `json:"event"`
	EventTime      string          `json:"eventTime"`
	TrackingNumber string          `json:"trackingNumber"`
	Status         json.RawMessage `json:"status"`
	StatusTrack    string          `json:"statusTrack"`
	Verified       inbox.Verified  `json:"verified"`
	Authenticated  bool            `json:"bodyAuthenticated"` // verified, and the signature covers the body
	Reason         webhook.Reason  `json:"reason"`
	ReceivedAt     time.Time       `json:"receivedAt"`
	Data           json.RawMessage `json:"data"`

	StatusLabel string `json:"statusLabel,omitempty"`
	LatestEvent string `json:"latestEvent,omitempty"`
	Anomaly     string `json:"anomaly,omitempty"`
	From        string `json:"from,omitempty"` // of a refused delivery: the sender's address

	Raw json.RawMessage `json:"raw,omitempty"` // events show
}

// markType is the type of an event with a mark.
func markType(m inbox.Mark) string {
	if m == inbox.Standing {
		return "event"
	}
	return string(m)
}

func newEventJSON(e inbox.Event) eventJSON {
	data := e.Data
	if len(data) == 0 {
		data = literal("")
	}
	return eventJSON{
		Type: markType(e.Mark), Seq: e.Seq, Delivery: e.Delivery, EventID: e.EventID, Event: e.Kind, EventTime: e.EventTime,
		TrackingNumber: e.TrackingNumber, Status: literal(e.Status), StatusTrack: e.StatusTrack, StatusLabel: e.StatusLabel,
		LatestEvent: e.LatestEvent, Verified: e.Verified, Authenticated: e.BodyAuthenticated, Reason: e.Reason, ReceivedAt: e.ReceivedAt.UTC(), Data: data, Anomaly: e.Anomaly,
	}
}

func (r *runner) events() *cobra.Command {
	group := &cobra.Command{
		Use:     "events",
		GroupID: groupHook,
		Short:   "Look at received events",
		Long:    "The inbox keeps every delivery that waybill listen received, byte for byte.",
	}
	var q eventOptions
	list := &cobra.Command{
		Use:     "list",
		Short:   "List received events, newest first",
		Example: example("waybill events list", "waybill events list --event router.delivered --since 24h", "waybill events list --limit 0 -o jsonl"),
		Args:    cobra.NoArgs,
		RunE: r.run(func(ctx context.Context, s *app.Session, _ []string) error {
			return r.listEvents(ctx, s, q)
		}),
	}
	f := list.Flags()
	f.IntVar(&q.Limit, "limit", 50, "at most `N` (0 for all)")
	f.StringVar(&q.Kind, "event", "", "only this `KIND`, such as router.delivered")
	f.StringVar(&q.Number, "tracking-number", "", "only this tracking number")
	f.StringVar(&q.Since, "since", "", "only those received since a `TIME`: RFC 3339, a date, or an age")
	f.StringVar(&q.Verified, "verified", "", "only `yes`, no or unknown")
	f.BoolVar(&q.All, "all", false, "duplicates, conflicts and anomalies too")
	show := &cobra.Command{
		Use:     "show ID",
		Short:   "Show one event with all its data",
		Long:    "ID is an event's seq or eventId, as events list shows them.",
		Example: example("waybill events show 12", "waybill events show 12 -o json --jq .data"),
		Args:    exactly(1, "an event's seq or eventId; `waybill events list` shows them"),
		RunE: r.run(func(ctx context.Context, s *app.Session, args []string) error {
			return r.showEvent(ctx, s, args[0])
		}),
	}
	group.AddCommand(list, show, r.pruneEvents(), r.readmitEvents())
	return group
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

// verifiedMark says in a word or two whether an event can be trusted.
func verifiedMark(e inbox.Event) string {
	switch {
	case e.Verified == inbox.Yes && !e.BodyAuthenticated:
		return "yes, body not authenticated"
	case e.Verified == inbox.No:
		return "no: " + string(e.Reason)
	default:
		return string(e.Verified)
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

// findEvent finds an event by its seq, or the standing one with an eventId.
func findEvent(ctx context.Context, db *store.DB, id string) (inbox.Event, error) {
	if seq, err := strconv.ParseInt(id, 10, 64); err == nil {
		return db.Event(ctx, seq)
	}
	next, stop := iter.Pull2(db.Events(ctx, inbox.Query{EventID: id, Marks: []inbox.Mark{inbox.Standing}, Limit: 1}))
	defer stop()
	e, err, ok := next()
	if !ok {
		return inbox.Event{}, inbox.ErrNoEvent
	}
	return e, err
}
