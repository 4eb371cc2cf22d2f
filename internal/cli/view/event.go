// Package view formats events, headers, rows and trackings as tables and JSON. It does not query the service.
package view

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/jsonscan"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/render"
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

// EventType returns the type of an event with this mark.
func EventType(m inbox.Mark) string {
	if m == inbox.Current {
		return "event"
	}
	return string(m)
}

// MaskEvent returns an event with the secrets in its JSON masked.
func MaskEvent(e inbox.Event, hide func(json.RawMessage) json.RawMessage) inbox.Event {
	e.Data, e.Raw = hide(e.Data), hide(e.Raw)
	return e
}

// NewEvent returns the JSON form of a stored event.
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

// eventError returns the error that an event reports about its tracking, or nil.
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

// EventTexts returns an event's status, text and style in tables. An error comes first in the status, and is the text.
func (n StatusFormatter) EventTexts(e inbox.Event) (status, latest string, style term.Style) {
	status, style = n.Status(e.Status, e.StatusLabel, e.StatusTrack), n.StatusStyle(e.Status, e.StatusLabel, e.StatusTrack)
	if fault := eventError(e); fault != nil {
		return joined(string(ledger.InError), status), ErrorText(string(fault)), term.Bad
	}
	return status, e.LatestEvent, style
}

// RefusedID returns the ID of a refused delivery, or "" if no evidence of it is kept.
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

// NewDeliveryName returns the name for an ID, with the delivery's number parsed from it.
func NewDeliveryName(id string) DeliveryName {
	number, _ := strconv.ParseInt(strings.TrimPrefix(id, replay.RefusedPrefix), 10, 64) // a place in a file is no number
	return DeliveryName{id, number}
}

// NewRefused returns a refused delivery as an event.
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

// MadeUp is the mark of events made up by `events send`.
const MadeUp = "made up"

// Trust returns [VerifiedMark] and, where it applies, [MadeUp].
func Trust(e inbox.Event) string {
	if e.Synthetic {
		return MadeUp + "; " + VerifiedMark(e)
	}
	return VerifiedMark(e)
}

// VerifiedMark returns a short text that says whether an event's delivery verified.
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

// Masker masks deliveries: webhook secrets and the API key anywhere, and values with names of credentials.
type Masker struct {
	JSON func(json.RawMessage) json.RawMessage // masks JSON, see [app.Session.SecretMasker]

	secrets   []string        // in every encoding a delivery may use, longest first
	tokens    map[string]bool // lower-case names of headers that hold tokens
	signature string          // query parameter with the signature of the scheme in force; empty for none
}

// NewMasker returns a masker for the scheme in force and others. It returns an error if a secret can't be read.
func NewMasker(s *app.Session, others ...webhook.Scheme) (Masker, error) {
	m := Masker{JSON: s.SecretMasker(), tokens: map[string]bool{}}
	secrets, err := s.AnyWebhookSecrets()
	if err != nil {
		return m, err
	}
	if key, ok := s.APIKeySecret(); ok {
		secrets = append(secrets, key)
	}
	if scheme, err := s.Scheme(s.Config.Webhook.Scheme); err == nil {
		others = append(others, scheme)
		name, ok := strings.CutPrefix(scheme.WithDefaults().Signature.From, "query:")
		if ok && scheme.Kind != webhook.KindToken {
			m.signature = name
		}
	}
	for _, scheme := range others {
		secrets = scheme.InClear(secrets)
		if scheme.Kind == webhook.KindToken {
			m.tokens[strings.ToLower(strings.TrimPrefix(scheme.Signature.From, "header:"))] = true
		}
	}
	for _, one := range secrets {
		if len(one.Value) > 0 {
			m.secrets = append(m.secrets, string(one.Value))
		}
	}
	// Longest first: masking a secret inside another one would leave the rest of it visible.
	slices.SortFunc(m.secrets, func(a, b string) int { return len(b) - len(a) })
	return m, nil
}

// Text masks a text.
func (m Masker) Text(text string) string {
	for _, secret := range m.secrets {
		text = strings.ReplaceAll(text, secret, redact.Mask)
	}
	return text
}

// Query masks parameters that hold secrets or have names of credentials, except the signature in force.
func (m Masker) Query(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, escaped, _ := strings.Cut(pair, "=")
		value, err := url.PathUnescape(escaped)
		holds := slices.ContainsFunc(m.secrets, func(s string) bool { return err != nil || strings.Contains(value, s) })
		if holds || escaped != "" && name != m.signature && redact.IsCredentialParameter(name) {
			pairs[i] = name + "=" + redact.Mask
		}
	}
	return strings.Join(pairs, "&")
}

// Headers masks headers.
func (m Masker) Headers(header []webhook.Field) []webhook.Field {
	shown := append([]webhook.Field{}, header...)
	for i, h := range shown {
		if shown[i].Value = redact.Header(h.Name, m.Text(h.Value)); m.tokens[strings.ToLower(h.Name)] {
			shown[i].Value = redact.Mask
		}
	}
	return shown
}

// HeaderOptions say how headers are shown: unmasked with Reveal.
type HeaderOptions struct{ Reveal bool }

// ShownHeaders returns headers masked by [NewMasker], or unmasked with Reveal.
func ShownHeaders(s *app.Session, h []webhook.Field, o HeaderOptions, more ...webhook.Scheme) ([]webhook.Field, error) {
	if o.Reveal {
		return append([]webhook.Field{}, h...), nil
	}
	m, err := NewMasker(s, more...)
	return m.Headers(h), err
}

// PrintHeaders prints headers as in an HTTP request, or as CSV.
func PrintHeaders(out *command.Output, hs []webhook.Field) error {
	if out.IsCSV() {
		fs := make([]render.Field, len(hs))
		for i, h := range hs {
			fs[i] = render.Field{Name: h.Name, Value: h.Value}
		}
		return out.Fields(fs)
	}
	for _, h := range hs {
		if err := out.Line("%s: %s", h.Name, h.Value); err != nil {
			return err
		}
	}
	return nil
}

// Sink returns a text for a sink: its target and filter.
func Sink(k inbox.Sink) string {
	name := Target(k)
	if k.Filter != "" {
		name = k.Filter + "=>" + name
	}
	return name
}

// Target returns the URL of a sink, with possible tokens masked.
func Target(k inbox.Sink) string {
	u, err := forward.ParseURL(k.URL)
	if err != nil {
		return redact.Mask
	}
	return forward.ShowURL(u)
}
