package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Tracking is a tracking in JSON output, with the service's names. Members that are not known are null or omitted.
type Tracking struct {
	ReferID        string          `json:"referId"`
	TrackingNumber string          `json:"trackingNumber"`
	State          ledger.State    `json:"state"` // of the row; empty if not created here
	Run            string          `json:"run,omitempty"`
	Phase          ledger.Phase    `json:"phase"`
	CarrierCode    string          `json:"carrierCode,omitempty"`
	RouterID       string          `json:"routerId,omitempty"`
	Status         json.RawMessage `json:"status"`
	StatusLabel    string          `json:"statusLabel"`
	StatusTrack    string          `json:"statusTrack"`
	StatusName     string          `json:"statusName,omitempty"` // from `statuses` in the configuration
	Reason         string          `json:"reason,omitempty"`     // why the service rejected it
	ledger.CloseReason
	LatestEvent          string          `json:"latestEvent"`
	LatestCheckpointTime string          `json:"latestCheckpointTime,omitempty"`
	Error                json.RawMessage `json:"error,omitempty"`    // as sent, of phase error
	LearntAt             *time.Time      `json:"learntAt"`           // null if the service was never asked
	LearntFrom           ledger.Source   `json:"learntFrom"`         // query, create or event
	AsOf                 *time.Time      `json:"asOf,omitempty"`     // of an event: when it was so, if earlier
	SharedBy             int64           `json:"sharedBy,omitempty"` // of an event about several trackings: how many
	Foreign              bool            `json:"foreign,omitempty"`  // not created here: known from events alone
	Own                  json.RawMessage `json:"own,omitempty"`      // columns of the input that were kept, by name
}

// QueriedTracking is a tracking with the members that only responses have.
type QueriedTracking struct {
	Tracking
	StatusSummary string            `json:"statusSummary,omitempty"`
	TransitTime   json.RawMessage   `json:"transitTime,omitempty"`
	Created       string            `json:"created,omitempty"`
	Updated       string            `json:"updated,omitempty"`
	Checkpoints   []json.RawMessage `json:"checkpoints"`
	Anomalies     []anomalyJSON     `json:"anomalies,omitempty"` // what cannot be right in them
	OlderAnswer   *olderJSON        `json:"olderAnswer,omitempty"`
	Unverified    *unverifiedJSON   `json:"unverified,omitempty"`
}

// olderJSON is a response that is older than an event about the tracking, and therefore ignored.
type olderJSON struct {
	Status               json.RawMessage `json:"status"`
	StatusLabel          string          `json:"statusLabel"`
	StatusTrack          string          `json:"statusTrack"`
	LatestEvent          string          `json:"latestEvent"`
	LatestCheckpointTime string          `json:"latestCheckpointTime,omitempty"`
	Updated              string          `json:"updated,omitempty"`
}

// unverifiedJSON is the latest event about a number if it did not verify; it is not applied.
type unverifiedJSON struct {
	ID          string          `json:"id"`
	Seq         int64           `json:"seq"`
	Event       string          `json:"event"`
	EventTime   string          `json:"eventTime"`
	Status      json.RawMessage `json:"status"`
	StatusLabel string          `json:"statusLabel"`
	StatusTrack string          `json:"statusTrack"`
	LatestEvent string          `json:"latestEvent"`
	Verified    inbox.Verified  `json:"verified"`
	Reason      webhook.Reason  `json:"reason,omitempty"`
	Synthetic   bool            `json:"synthetic"` // made up by `events send`
	ReceivedAt  time.Time       `json:"receivedAt"`
}

// Answer is the JSON output for one REF.
type Answer struct {
	QueriedTracking
	Ref     string            `json:"ref"`
	AskedAt *time.Time        `json:"askedAt"` // null if it is known from an event alone
	Others  []QueriedTracking `json:"others"`
	Message string            `json:"message,omitempty"` // of the service, or what went wrong
	Raw     json.RawMessage   `json:"raw"`
}

// Tracking returns the JSON form of a line.
func (n StatusFormatter) Tracking(l *Line) Tracking {
	st := l.row()
	j := Tracking{
		ReferID: l.ReferID, TrackingNumber: l.Number, State: st.State, Run: l.run(), Phase: l.Phase,
		CarrierCode: l.CarrierCode, RouterID: l.RouterID, Reason: l.Reason, CloseReason: l.CloseReason,
		Status: JSONOrNull(l.Status), StatusLabel: l.StatusLabel, StatusTrack: l.StatusTrack,
		LatestEvent: l.LatestEvent, LatestCheckpointTime: l.LatestTime, Error: optional(l.Error),
		LearntAt: TimeOrNull(l.Learnt), LearntFrom: l.Source, Own: json.RawMessage(st.Own),
		Foreign: l.Row != nil && notCreatedHere(st),
	}
	j.StatusName, _ = n.Custom(l.Status, l.StatusLabel, l.StatusTrack)
	if seen := st.Sighting; seen != nil && l.Source == ledger.FromEvent {
		j.AsOf, j.SharedBy = TimeOrNull(seen.AsOf), seen.Shared
	}
	return j
}

// Queried returns the JSON form of a line with what the response says.
func (n StatusFormatter) Queried(f *Line) QueriedTracking {
	j := QueriedTracking{
		Tracking: n.Tracking(f), StatusSummary: f.StatusSummary, TransitTime: optional(f.TransitTime),
		Created: f.Created, Updated: f.Updated, Checkpoints: []json.RawMessage{},
	}
	if o := f.Older; o != nil {
		j.OlderAnswer = &olderJSON{JSONOrNull(o.Status), o.StatusLabel, o.StatusTrack, o.LatestEvent, o.LatestTime, o.Updated}
	}
	if e := f.Unverified; e != nil {
		j.Unverified = &unverifiedJSON{
			ID: e.ID(), Seq: e.Seq, Event: e.Kind, EventTime: e.EventTime, LatestEvent: e.LatestEvent,
			Status: JSONOrNull(e.Status), StatusLabel: e.StatusLabel, StatusTrack: e.StatusTrack,
			Verified: e.Verified, Reason: e.Reason, Synthetic: e.Synthetic, ReceivedAt: e.ReceivedAt.UTC(),
		}
	}
	for i, e := range f.Timeline() {
		j.Checkpoints = append(j.Checkpoints, e.Raw)
		for _, a := range e.Anomalies {
			j.Anomalies = append(j.Anomalies, anomalyJSON{a.Kind, a.Message, i})
		}
	}
	return j
}

// Answer returns the JSON form of a result. lines has a line for each of its trackings.
func (n StatusFormatter) Answer(res query.Result, lines []Line) Answer {
	ref := cmp.Or(res.Ref, res.Query.Ref())
	j := Answer{Ref: ref, AskedAt: TimeOrNull(res.Asked), Message: res.Answer.Message, Others: []QueriedTracking{}}
	if len(res.Answer.Raw) > 0 {
		j.Raw = rawJSON(res.Answer.Raw)
	}
	if res.Err != nil {
		j.Message = res.Err.Error()
	}
	if len(res.Trackings) == 0 {
		j.Tracking = Tracking{ReferID: res.Query.Ref(), Phase: query.Undecided}
		j.Checkpoints = []json.RawMessage{}
		return j
	}
	j.QueriedTracking = n.Queried(&lines[0])
	for i := range lines[1:] {
		j.Others = append(j.Others, n.Queried(&lines[1+i]))
	}
	return j
}

// TimeOrNull returns a time in UTC for JSON, or nil, which is null, for the zero time.
func TimeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// JSONOrNull returns a JSON literal, or null for "". A literal that the store has cut becomes a string.
func JSONOrNull(s string) json.RawMessage {
	return rawJSON([]byte(cmp.Or(s, "null")))
}

// optional returns a JSON literal, or nil, which is omitted, for "".
func optional(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return rawJSON([]byte(s))
}

// ErrorText returns the message of a service error given as a JSON literal, or the literal.
func ErrorText(literal string) string {
	return cmp.Or(tracking.ReadBody([]byte(literal)).ErrorText(), Unquote(literal))
}

// Unquote returns the text of a JSON literal, also of a string that the store has cut.
func Unquote(literal string) string {
	var s string
	if json.Unmarshal([]byte(literal), &s) == nil {
		return s
	}
	if literal != "" && literal[0] == '"' {
		for n := range min(len(literal), len(`\u0000`)) { // the cut may be in an escape
			if json.Unmarshal([]byte(literal[:len(literal)-n]+`"`), &s) == nil {
				return s
			}
		}
	}
	return literal
}

// rawJSON returns raw unchanged if it is JSON, else as a JSON string.
func rawJSON(raw []byte) json.RawMessage {
	if json.Valid(raw) {
		return raw
	}
	s, _ := json.Marshal(string(raw)) //nolint:errchkjson // a string can't fail
	return s
}

type anomalyJSON struct {
	Kind       tracking.AnomalyKind `json:"kind"`
	Message    string               `json:"message"`
	Checkpoint int                  `json:"checkpoint"` // place in checkpoints
}

// Anomalies joins the messages of anomalies.
func Anomalies(all []tracking.Anomaly) string {
	return strings.Join(command.Texts(len(all), func(i int) string { return all[i].Message }), "; ")
}

// AnomalyKinds lists the kinds of anomalies.
func AnomalyKinds(all []tracking.Anomaly) string {
	var kinds []string
	for _, a := range all {
		if kind := strings.ReplaceAll(string(a.Kind), "_", " "); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, ", ")
}

// Checkpoint formats a checkpoint as a line: time as sent, event and place.
func Checkpoint(c tracking.Checkpoint) string {
	return joined(cmp.Or(c.UTC, c.Local), c.Event, c.City, c.State, c.ZIP)
}

// Place formats the place of a checkpoint, such as "Munich, BY 80331".
func Place(c tracking.Checkpoint) string {
	return joined(c.City, strings.TrimSpace(c.State+" "+c.ZIP))
}

func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), ", ")
}

func notCreatedHere(st ledger.TrackingStatus) bool { return st.State == "" && st.Item.ReferID == "" }
