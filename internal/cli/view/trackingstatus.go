package view

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
)

// TrackingStatus is a line of the list in our output.
type TrackingStatus struct {
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
	Foreign              bool            `json:"foreign,omitempty"`  // not created here: known from events alone
}

// NewTrackingStatus returns what the store knows of a tracking.
func NewTrackingStatus(st ledger.TrackingStatus) TrackingStatus {
	j := TrackingStatus{
		ReferID: st.Item.ReferID, TrackingNumber: st.Item.Number, CarrierCode: st.Item.CarrierCode,
		State: st.State, Reason: st.Reason, Status: JSONOrNull(""), Foreign: notCreatedHere(st),
	}
	if st.Run != 0 {
		j.Run = strconv.FormatInt(st.Run, 10)
	}
	if st.Unchecked() {
		j.Phase = query.NotAsked
	}
	if seen := st.Sighting; seen != nil {
		j.Phase, j.Status, j.StatusLabel, j.StatusTrack = seen.Phase, JSONOrNull(seen.Status), seen.StatusLabel, seen.StatusTrack
		j.LatestEvent, j.LatestCheckpointTime, j.LearntAt, j.LearntFrom = seen.LatestEvent, seen.LatestTime, TimeOrNull(seen.Seen), seen.Source
		j.AsOf, j.SharedBy = TimeOrNull(seen.AsOf), seen.Shared
		if j.CarrierCode == "" {
			j.CarrierCode = seen.CarrierCode
		}
	}
	return j
}

// notCreatedHere reports whether the ledger does not hold a tracking.
func notCreatedHere(st ledger.TrackingStatus) bool { return st.State == "" && st.Item.ReferID == "" }

// stateColumnFrom is the narrowest terminal that shows the state of rows.
const stateColumnFrom = 90

// Columns returns the columns of the list on a terminal of that width, 0 elsewhere. On
// a narrow one, without a column for the state, the status shows what is unusual in it.
func (n StatusNames) Columns(width int) []command.Column[ledger.TrackingStatus] {
	narrow := width > 0 && width < stateColumnFrom
	return []command.Column[ledger.TrackingStatus]{
		{Column: render.Column{Name: "REFERENCE", ID: true}, Cell: func(st ledger.TrackingStatus) string { return st.Item.ReferID }},
		{Column: render.Column{Name: "NUMBER", ID: true}, Cell: func(st ledger.TrackingStatus) string { return st.Item.Number }},
		{Column: render.Column{Name: "STATE", Extra: narrow}, Cell: func(st ledger.TrackingStatus) string {
			if notCreatedHere(st) {
				return elsewhere
			}
			return string(st.State)
		}},
		{Column: render.Column{Name: "LATEST EVENT", Flex: true, Rank: 3}, Cell: func(st ledger.TrackingStatus) string {
			if st.Sighting != nil && st.Sighting.LatestEvent != "" {
				return st.Sighting.LatestEvent
			}
			return st.Reason
		}},
		{Column: render.Column{Name: "STATUS", Flex: true}, Cell: func(st ledger.TrackingStatus) string {
			if narrow && notCreatedHere(st) {
				return n.listed(st) + ", " + elsewhere
			}
			return n.listed(st)
		}},
		{Column: render.Column{Name: "LEARNT", Rank: 1}, Time: func(st ledger.TrackingStatus) time.Time {
			if st.Sighting == nil {
				return time.Time{}
			}
			return st.Sighting.Seen
		}},
		{Column: render.Column{Name: "FROM", Rank: 2}, Cell: learntFrom},
	}
}

// elsewhere is shown in place of the state of what was not created here.
const elsewhere = "not created here"

// listed is the status in a line of the list.
func (n StatusNames) listed(st ledger.TrackingStatus) string {
	switch seen := st.Sighting; {
	case seen != nil && seen.Phase != ledger.Processed:
		return string(seen.Phase)
	case seen != nil:
		return n.Status(seen.Status, seen.StatusLabel, seen.StatusTrack)
	case st.State != ledger.Accepted:
		return string(st.State) // a narrow terminal shows no other
	case st.Unchecked():
		return n.Phase(query.Tracking{Phase: query.NotAsked})
	}
	return ""
}

func learntFrom(st ledger.TrackingStatus) string {
	switch {
	case st.Sighting == nil:
		return ""
	case st.Sighting.Shared > 1:
		return fmt.Sprintf("event, of %d with this number", st.Sighting.Shared)
	}
	return string(st.Sighting.Source)
}
