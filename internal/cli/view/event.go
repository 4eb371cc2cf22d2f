// Package view shows what the program knows, in tables and in JSON: events, headers, rows and
// trackings. It makes no queries.
package view

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/jsonscan"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Event is one event in our output; `listen` prints the same with its type.
type Event struct {
	Type           string          `json:"type"` // event, duplicate, conflict, anomaly or refused
	ID             string          `json:"id"`   // DELIVERY or DELIVERY.N; refused:N of a refused delivery
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
	Synthetic      bool            `json:"synthetic"` // made up by `events send`
	ReceivedAt     time.Time       `json:"receivedAt"`
	Data           json.RawMessage `json:"data"`

	StatusLabel string          `json:"statusLabel,omitempty"`
	LatestEvent string          `json:"latestEvent,omitempty"`
	Error       json.RawMessage `json:"error,omitempty"` // that the event reports of the tracking
	Anomaly     string          `json:"anomaly,omitempty"`
	From        string          `json:"from,omitempty"` // of a refused delivery: the sender's address

	Raw json.RawMessage `json:"raw,omitempty"` // events show

	WouldHaveRefused int64 `json:"wouldHaveRefused,omitempty"` // listen: deliveries so far, this one included
	Of               int64 `json:"of,omitempty"`               // listen: of so many that were not made up
}

// EventType is the type of an event with a mark.
func EventType(m inbox.Mark) string {
	if m == inbox.Current {
		return "event"
	}
	return string(m)
}

// MaskEvent is an event with the secrets in its JSON masked.
func MaskEvent(e inbox.Event, hide func(json.RawMessage) json.RawMessage) inbox.Event {
	e.Data, e.Raw = hide(e.Data), hide(e.Raw)
	return e
}

// NewEvent returns an event as it is stored.
func NewEvent(e inbox.Event) Event {
	data := e.Data
	if len(data) == 0 {
		data = JSONOrNull("")
	}
	return Event{
		Type: EventType(e.Mark), ID: e.ID(), Seq: e.Seq, Delivery: e.Delivery, Synthetic: e.Synthetic, Anomaly: e.Anomaly,
		EventID: e.EventID, Event: e.Kind, EventTime: e.EventTime, TrackingNumber: e.TrackingNumber, Data: data,
		Status: JSONOrNull(e.Status), StatusTrack: e.StatusTrack, StatusLabel: e.StatusLabel, LatestEvent: e.LatestEvent,
		Verified: e.Verified, Authenticated: e.BodyAuthenticated, Reason: e.Reason, ReceivedAt: e.ReceivedAt.UTC(),
		Error: eventError(e),
	}
}

// eventError returns the error that an event reports of its tracking, nil if none.
//
// Interface: Errors, 2.
func eventError(e inbox.Event) json.RawMessage {
	if len(e.Data) == 0 {
		return nil
	}
	literal, _ := jsonscan.Pointer{"error"}.Find(e.Data)
	if string(literal) == "null" {
		return nil
	}
	return literal
}

// EventTexts returns an event's status as tables show it, its style and what it tells; an error goes before both.
func (n StatusFormatter) EventTexts(e inbox.Event) (status, latest string, style term.Style) {
	status, style = n.Status(e.Status, e.StatusLabel, e.StatusTrack), n.StatusStyle(e.Status, e.StatusLabel, e.StatusTrack)
	if fault := eventError(e); fault != nil {
		return joined(string(ledger.InError), status), ErrorText(string(fault)), term.Bad
	}
	return status, e.LatestEvent, style
}

// RefusedID is the number of a refused delivery, empty if no evidence of it is kept.
func RefusedID(d inbox.Delivery) string {
	if d.Seq == 0 {
		return ""
	}
	return replay.Delivery{Delivery: d, Refused: true}.ID()
}

// DeliveryName is how a delivery is named in our output.
type DeliveryName struct {
	ID       string `json:"id,omitempty"`       // as commands take it; of a file, its place there
	Delivery int64  `json:"delivery,omitempty"` // its number; 0 if it is not of the store
}

// NewDeliveryName returns the name with the number in it.
func NewDeliveryName(id string) DeliveryName {
	number, _ := strconv.ParseInt(strings.TrimPrefix(id, replay.RefusedPrefix), 10, 64) // a place in a file has none
	return DeliveryName{id, number}
}

// NewRefused returns a refused delivery in the form of an event.
func NewRefused(d inbox.Delivery) Event {
	e := Event{
		Type: "refused", ID: RefusedID(d), Status: JSONOrNull(""), Data: JSONOrNull(""), Synthetic: d.IsSynthetic(),
		Verified: inbox.No, Reason: d.Reason, ReceivedAt: d.ReceivedAt.UTC(), From: d.RemoteAddr,
	}
	if d.Body != nil {
		e.Raw = rawJSON(d.Body)
	}
	return e
}

// MadeUp marks what `events send` made up.
const MadeUp = "made up"

// Trust is [VerifiedMark], and whether the event was made up.
func Trust(e inbox.Event) string {
	if e.Synthetic {
		return MadeUp + "; " + VerifiedMark(e)
	}
	return VerifiedMark(e)
}

// VerifiedMark shows in few words whether an event's delivery verified.
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
