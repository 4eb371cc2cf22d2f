package view

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
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
		ReferID: st.Item.ReferID, TrackingNumber: st.Item.Number, CarrierCode: st.Carrier(),
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
	}
	return j
}

// notCreatedHere reports whether the ledger does not hold a tracking.
func notCreatedHere(st ledger.TrackingStatus) bool { return st.State == "" && st.Item.ReferID == "" }
