package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

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
	Unverified           *claimJSON        `json:"unverified,omitempty"`
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

// claimJSON is the latest event about a tracking number that did not verify.
// Nothing was learnt from it.
type claimJSON struct {
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

func newClaimJSON(e inbox.Event) *claimJSON {
	return &claimJSON{
		Seq: e.Seq, Event: e.Kind, EventTime: e.EventTime, Status: literal(e.Status), StatusLabel: e.StatusLabel, StatusTrack: e.StatusTrack,
		LatestEvent: e.LatestEvent, Verified: e.Verified, Reason: e.Reason, ReceivedAt: e.ReceivedAt.UTC(),
	}
}

// claim shows an event that did not verify, as such.
func (n names) claim(e inbox.Event) string {
	kind, what := e.Kind, n.status(e.Status, e.StatusLabel, e.StatusTrack)
	if kind == "" {
		kind = "event " + strconv.FormatInt(e.Seq, 10)
	}
	if what == "" {
		what = e.LatestEvent
	}
	if what != "" {
		kind += ": "
	}
	return fmt.Sprintf("%s%s, received %s, verified: %s", kind, what, render.LocalTime(e.ReceivedAt), verifiedMark(e))
}

// viewJSON is the answer about one REF.
type viewJSON struct {
	trackingJSON
	Ref     string          `json:"ref"`
	AskedAt *time.Time      `json:"askedAt"` // null if an event told it before the service was asked
	Others  []trackingJSON  `json:"others"`
	Message string          `json:"message,omitempty"` // the service's, or what went wrong
	Raw     json.RawMessage `json:"raw"`
}

func (n names) trackingJSON(f app.Found) trackingJSON {
	j := trackingJSON{
		ReferID: f.ReferID, TrackingNumber: f.Number, State: f.Phase,
		CarrierCode: f.CarrierCode, RouterID: f.RouterID,
		Status: literal(f.Status), StatusLabel: f.StatusLabel, StatusTrack: f.StatusTrack,
		StatusName: n[tracking.FoldStatus(unquote(f.Status))], StatusSummary: f.StatusSummary,
		LatestEvent: f.LatestEvent, LatestCheckpointTime: f.LatestTime,
		TransitTime: optional(f.TransitTime), Created: f.Created, Updated: f.Updated,
		Error: optional(f.Error), Checkpoints: []json.RawMessage{},
	}
	if !f.Learnt.IsZero() {
		at := f.Learnt.UTC()
		j.LearntAt, j.LearntFrom = &at, f.Source
	}
	if o := f.Older; o != nil {
		j.OlderAnswer = &olderJSON{literal(o.Status), o.StatusLabel, o.StatusTrack, o.LatestEvent, o.LatestTime, o.Updated}
	}
	if f.Claim != nil {
		j.Unverified = newClaimJSON(*f.Claim)
	}
	for _, c := range app.Timeline(f.Checkpoints) {
		j.Checkpoints = append(j.Checkpoints, c.Raw)
	}
	return j
}

func (n names) viewJSON(v app.View, err error) viewJSON {
	j := viewJSON{Ref: v.Ref, AskedAt: timeOrNull(v.Asked), Message: v.Answer.Message, Others: []trackingJSON{}}
	if len(v.Answer.Raw) > 0 {
		j.Raw = app.RawJSON(v.Answer.Raw)
	}
	if err != nil {
		j.Message = err.Error()
	}
	if len(v.Found) == 0 {
		j.trackingJSON = trackingJSON{ReferID: v.Ref, State: app.Undecided, Checkpoints: []json.RawMessage{}}
		return j
	}
	j.trackingJSON = n.trackingJSON(v.Found[0])
	for _, f := range v.Found[1:] {
		j.Others = append(j.Others, n.trackingJSON(f))
	}
	return j
}

func literal(s string) json.RawMessage {
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

// unquote returns the text of a JSON literal.
func unquote(literal string) string {
	var s string
	if json.Unmarshal([]byte(literal), &s) == nil {
		return s
	}
	return literal
}

// names are what the configuration calls statuses, by folded number or name.
type names map[string]string

func newNames(statuses map[string]string) names {
	n := make(names, len(statuses))
	for k, v := range statuses {
		n[tracking.FoldStatus(k)] = v
	}
	return n
}

// status shows a status: its label as sent, or what the configuration calls
// it, and the number.
func (n names) status(number, label, track string) string {
	code := unquote(number)
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

// phase shows how far the service is with a tracking.
func (n names) phase(f app.Found) string {
	switch f.Phase {
	case ledger.Processed:
		return n.status(f.Status, f.StatusLabel, f.StatusTrack)
	case ledger.Processing:
		return "Processing"
	case ledger.Absent:
		return "not found"
	default:
		return "not told"
	}
}
