package cli

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/inbox"
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

// hidden is an event with the secrets in its JSON masked.
func hidden(e inbox.Event, hide func(json.RawMessage) json.RawMessage) inbox.Event {
	e.Data, e.Raw = hide(e.Data), hide(e.Raw)
	return e
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
		Short:   "Look at, send again and make up events",
		Long:    "The inbox keeps every delivery that waybill listen received, byte for byte.",
	}
	group.AddCommand(
		r.listedEvents(), r.shownEvent(), r.replayEvents(), r.sendEvents(), r.waitEvents(),
		r.exportEvents(), r.importEvents(), r.pruneEvents(), r.readmitEvents(),
	)
	return group
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
