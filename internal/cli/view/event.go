package view

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Event is one event in our output; `listen` prints the same with its type.
type Event struct {
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

// EventType is the type of an event with a mark.
func EventType(m inbox.Mark) string {
	if m == inbox.Standing {
		return "event"
	}
	return string(m)
}

// MaskEvent is an event with the secrets in its JSON masked.
func MaskEvent(e inbox.Event, hide func(json.RawMessage) json.RawMessage) inbox.Event {
	e.Data, e.Raw = hide(e.Data), hide(e.Raw)
	return e
}

func NewEvent(e inbox.Event) Event {
	data := e.Data
	if len(data) == 0 {
		data = JSONOrNull("")
	}
	return Event{
		Type: EventType(e.Mark), Seq: e.Seq, Delivery: e.Delivery, EventID: e.EventID, Event: e.Kind, EventTime: e.EventTime,
		TrackingNumber: e.TrackingNumber, Status: JSONOrNull(e.Status), StatusTrack: e.StatusTrack, StatusLabel: e.StatusLabel,
		LatestEvent: e.LatestEvent, Verified: e.Verified, Authenticated: e.BodyAuthenticated, Reason: e.Reason, ReceivedAt: e.ReceivedAt.UTC(), Data: data, Anomaly: e.Anomaly,
	}
}

// VerifiedMark says in a word or two whether an event can be trusted.
func VerifiedMark(e inbox.Event) string {
	switch {
	case e.Verified == inbox.Yes && !e.BodyAuthenticated:
		return "yes, body not authenticated"
	case e.Verified == inbox.No:
		return "no: " + string(e.Reason)
	default:
		return string(e.Verified)
	}
}

// Deliveries is so many of them, in words.
func Deliveries[N int | int64](n N) string {
	if n == 1 {
		return "1 delivery"
	}
	return fmt.Sprintf("%d deliveries", n)
}

// SinkName is a sink for people.
func SinkName(k inbox.Sink) string {
	name := ShownTarget(k)
	if k.Filter != "" {
		name = k.Filter + "=>" + name
	}
	return name
}

// ShownTarget is where a sink sends to, without what may be a token.
func ShownTarget(k inbox.Sink) string {
	u, err := forward.ParseURL(k.URL)
	if err != nil {
		return forward.Masked
	}
	return forward.ShowURL(u)
}

func TimeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func Clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }
