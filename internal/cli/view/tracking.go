package view

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// TrackingStatusJSON is a line of the list in our output.
type TrackingStatusJSON struct {
	ReferID              string          `json:"referId"`
	TrackingNumber       string          `json:"trackingNumber"`
	CarrierCode          string          `json:"carrierCode,omitempty"`
	State                ledger.State    `json:"state"` // of the row; empty if not created here
	Run                  string          `json:"run,omitempty"`
	Reason               string          `json:"reason,omitempty"`
	Phase                ledger.Phase    `json:"phase,omitempty"`
	Status               json.RawMessage `json:"status"`
	StatusLabel          string          `json:"statusLabel"`
	StatusTrack          string          `json:"statusTrack"`
	LatestEvent          string          `json:"latestEvent"`
	LatestCheckpointTime string          `json:"latestCheckpointTime,omitempty"`
	LearntAt             *time.Time      `json:"learntAt"`           // null if the service was never asked
	LearntFrom           ledger.Source   `json:"learntFrom"`         // query, create or event
	AsOf                 *time.Time      `json:"asOf,omitempty"`     // of an event: when it was so, if earlier
	SharedBy             int64           `json:"sharedBy,omitempty"` // of an event about several trackings: how many
	Foreign              bool            `json:"foreign,omitempty"`  // the ledger does not hold it: only events tell of it
}

func NewTrackingStatusJSON(st ledger.TrackingStatus) TrackingStatusJSON {
	j := TrackingStatusJSON{
		ReferID: st.Item.ReferID, TrackingNumber: st.Item.Number, CarrierCode: st.Item.CarrierCode,
		State: st.State, Reason: st.Reason, Status: JSONOrNull(""), Foreign: notCreatedHere(st),
	}
	if st.Run != 0 {
		j.Run = strconv.FormatInt(st.Run, 10)
	}
	if seen := st.Sighting; seen != nil {
		at := seen.Seen.UTC()
		j.Phase, j.Status, j.StatusLabel, j.StatusTrack = seen.Phase, JSONOrNull(seen.Status), seen.StatusLabel, seen.StatusTrack
		j.LatestEvent, j.LatestCheckpointTime, j.LearntAt, j.LearntFrom = seen.LatestEvent, seen.LatestTime, &at, seen.Source
		j.AsOf, j.SharedBy = TimeOrNull(seen.AsOf), seen.Shared
		if j.CarrierCode == "" {
			j.CarrierCode = seen.CarrierCode
		}
	}
	return j
}

// notCreatedHere reports whether the ledger does not hold a tracking.
func notCreatedHere(st ledger.TrackingStatus) bool { return st.State == "" && st.Item.ReferID == "" }

// StateColumnFrom is the narrowest terminal that shows the state of rows.
const StateColumnFrom = 90

// TrackingCells are the cells of a line of the list. On a narrow terminal, which
// has no room for the state, the status says what is odd about that.
func (n StatusNames) TrackingCells(st ledger.TrackingStatus, narrow bool) []string {
	cells := []string{st.Item.ReferID, st.Item.Number, string(st.State), st.Reason, "", "", ""}
	if st.State != ledger.Accepted {
		cells[4] = string(st.State) // a narrow terminal shows no other
	}
	if seen := st.Sighting; seen != nil {
		cells[4] = n.Status(seen.Status, seen.StatusLabel, seen.StatusTrack)
		if seen.Phase != ledger.Processed {
			cells[4] = string(seen.Phase)
		}
		if seen.LatestEvent != "" {
			cells[3] = seen.LatestEvent
		}
		cells[5], cells[6] = render.LocalTime(seen.Seen), string(seen.Source)
		if seen.Shared > 1 {
			cells[6] = fmt.Sprintf("event, of %d with this number", seen.Shared)
		}
	}
	if notCreatedHere(st) {
		cells[2] = "not created here"
		if narrow {
			cells[4] += ", " + cells[2]
		}
	}
	return cells
}

// trackingJSON is a tracking in our output: the service's names where it has
// one. What the answer did not hold is null or left out.
type trackingJSON struct {
	ReferID              string            `json:"referId"`
	TrackingNumber       string            `json:"trackingNumber"`
	State                ledger.Phase      `json:"state"`
	CarrierCode          string            `json:"carrierCode,omitempty"`
	RouterID             string            `json:"routerId,omitempty"`
	Status               json.RawMessage   `json:"status"`
	StatusLabel          string            `json:"statusLabel"`
	StatusTrack          string            `json:"statusTrack"`
	StatusName           string            `json:"statusName,omitempty"` // from `statuses` in the configuration
	StatusSummary        string            `json:"statusSummary,omitempty"`
	LatestEvent          string            `json:"latestEvent"`
	LatestCheckpointTime string            `json:"latestCheckpointTime,omitempty"`
	TransitTime          json.RawMessage   `json:"transitTime,omitempty"`
	Created              string            `json:"created,omitempty"`
	Updated              string            `json:"updated,omitempty"`
	Error                json.RawMessage   `json:"error,omitempty"`
	Checkpoints          []json.RawMessage `json:"checkpoints"`
	LearntAt             *time.Time        `json:"learntAt,omitempty"`
	LearntFrom           ledger.Source     `json:"learntFrom,omitempty"` // query, create or event
	OlderAnswer          *olderJSON        `json:"olderAnswer,omitempty"`
	Unverified           *unverifiedJSON   `json:"unverified,omitempty"`
}

// olderJSON is what the service's answer said of a tracking of which an event
// had told what is newer. Nothing was learnt from it.
type olderJSON struct {
	Status               json.RawMessage `json:"status"`
	StatusLabel          string          `json:"statusLabel"`
	StatusTrack          string          `json:"statusTrack"`
	LatestEvent          string          `json:"latestEvent"`
	LatestCheckpointTime string          `json:"latestCheckpointTime,omitempty"`
	Updated              string          `json:"updated,omitempty"`
}

// unverifiedJSON is the latest event about a tracking number that did not verify.
// Nothing was learnt from it.
type unverifiedJSON struct {
	Seq         int64           `json:"seq"`
	Event       string          `json:"event"`
	EventTime   string          `json:"eventTime"`
	Status      json.RawMessage `json:"status"`
	StatusLabel string          `json:"statusLabel"`
	StatusTrack string          `json:"statusTrack"`
	LatestEvent string          `json:"latestEvent"`
	Verified    inbox.Verified  `json:"verified"`
	Reason      webhook.Reason  `json:"reason,omitempty"`
	ReceivedAt  time.Time       `json:"receivedAt"`
}

func newUnverifiedJSON(e inbox.Event) *unverifiedJSON {
	return &unverifiedJSON{
		Seq: e.Seq, Event: e.Kind, EventTime: e.EventTime, Status: JSONOrNull(e.Status), StatusLabel: e.StatusLabel, StatusTrack: e.StatusTrack,
		LatestEvent: e.LatestEvent, Verified: e.Verified, Reason: e.Reason, ReceivedAt: e.ReceivedAt.UTC(),
	}
}

// Unverified shows an event that did not verify, as such.
func (n StatusNames) Unverified(e inbox.Event) string {
	kind, what := e.Kind, n.Status(e.Status, e.StatusLabel, e.StatusTrack)
	if kind == "" {
		kind = "event " + strconv.FormatInt(e.Seq, 10)
	}
	if what == "" {
		what = e.LatestEvent
	}
	if what != "" {
		kind += ": "
	}
	return fmt.Sprintf("%s%s, received %s, verified: %s", kind, what, render.LocalTime(e.ReceivedAt), VerifiedMark(e))
}

// Answer is the answer about one REF.
type Answer struct {
	trackingJSON
	Ref     string          `json:"ref"`
	AskedAt *time.Time      `json:"askedAt"` // null if an event told it before the service was asked
	Others  []trackingJSON  `json:"others"`
	Message string          `json:"message,omitempty"` // the service's, or what went wrong
	Raw     json.RawMessage `json:"raw"`
}

func (n StatusNames) trackingJSON(f query.Tracking) trackingJSON {
	j := trackingJSON{
		ReferID: f.ReferID, TrackingNumber: f.Number, State: f.Phase,
		CarrierCode: f.CarrierCode, RouterID: f.RouterID,
		Status: JSONOrNull(f.Status), StatusLabel: f.StatusLabel, StatusTrack: f.StatusTrack,
		StatusName: n[tracking.FoldStatus(Unquote(f.Status))], StatusSummary: f.StatusSummary,
		LatestEvent: f.LatestEvent, LatestCheckpointTime: f.LatestTime,
		TransitTime: optional(f.TransitTime), Created: f.Created, Updated: f.Updated,
		Error: optional(f.Error), Checkpoints: []json.RawMessage{},
	}
	if !f.Learnt.IsZero() {
		at := f.Learnt.UTC()
		j.LearntAt, j.LearntFrom = &at, f.Source
	}
	if o := f.Older; o != nil {
		j.OlderAnswer = &olderJSON{JSONOrNull(o.Status), o.StatusLabel, o.StatusTrack, o.LatestEvent, o.LatestTime, o.Updated}
	}
	if f.Unverified != nil {
		j.Unverified = newUnverifiedJSON(*f.Unverified)
	}
	for _, c := range tracking.Timeline(f.Checkpoints) {
		j.Checkpoints = append(j.Checkpoints, c.Raw)
	}
	return j
}

// Answer returns a result in our output.
func (n StatusNames) Answer(res query.Result) Answer {
	j := Answer{Ref: res.Query.Ref(), AskedAt: TimeOrNull(res.Asked), Message: res.Answer.Message, Others: []trackingJSON{}}
	if len(res.Answer.Raw) > 0 {
		j.Raw = rawJSON(res.Answer.Raw)
	}
	if res.Err != nil {
		j.Message = res.Err.Error()
	}
	if len(res.Trackings) == 0 {
		j.trackingJSON = trackingJSON{ReferID: res.Query.Ref(), State: query.Undecided, Checkpoints: []json.RawMessage{}}
		return j
	}
	j.trackingJSON = n.trackingJSON(res.Trackings[0])
	for _, f := range res.Trackings[1:] {
		j.Others = append(j.Others, n.trackingJSON(f))
	}
	return j
}

func JSONOrNull(s string) json.RawMessage {
	if s == "" {
		return json.RawMessage("null")
	}
	return json.RawMessage(s)
}

func optional(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// Unquote returns the text of a JSON literal.
func Unquote(literal string) string {
	var s string
	if json.Unmarshal([]byte(literal), &s) == nil {
		return s
	}
	return literal
}

// StatusNames are what the configuration calls statuses, by folded number or name.
type StatusNames map[string]string

func NewStatusNames(statuses map[string]string) StatusNames {
	n := make(StatusNames, len(statuses))
	for k, v := range statuses {
		n[tracking.FoldStatus(k)] = v
	}
	return n
}

// Status shows a status: its label as sent, or what the configuration calls
// it, and the number.
func (n StatusNames) Status(number, label, track string) string {
	code := Unquote(number)
	name := label
	if name == "" {
		name = track
	}
	for _, key := range []string{code, label, track} {
		if own, ok := n[tracking.FoldStatus(key)]; ok && key != "" {
			name = own
			break
		}
	}
	switch {
	case name == "":
		return code
	case code == "":
		return name
	}
	return name + " (" + code + ")"
}

// Phase shows how far the service is with a tracking.
func (n StatusNames) Phase(f query.Tracking) string {
	switch f.Phase {
	case ledger.Processed:
		return n.Status(f.Status, f.StatusLabel, f.StatusTrack)
	case ledger.Processing:
		return "Processing"
	case ledger.Absent:
		return "not found"
	default:
		return "not told"
	}
}

// rawJSON returns an answer as a member of our own JSON: as it is if it is
// JSON, else as a string.
func rawJSON(raw []byte) json.RawMessage {
	if json.Valid(raw) {
		return raw
	}
	s, err := json.Marshal(string(raw))
	if err != nil {
		return json.RawMessage("null")
	}
	return s
}
