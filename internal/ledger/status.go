package ledger

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// TrackingStatus is a tracking and what is known of it.
type TrackingStatus struct {
	Item     tracking.Item
	State    State     // empty if it was not created from this ledger
	Run      int64     // the run that brought it in, 0 if none or pruned
	Created  time.Time // when that run began, zero if none; set by [Trackings].Statuses only
	Reason   string    // why it was rejected or is unknown
	Own      Own       // columns of its input that were not sent
	Sighting *Sighting
	Asked    time.Time // when the service last answered a query for the referId; zero if never
	Sent     time.Time // when the last request that sent it ended; zero if never

	CloseReason

	// Unverified is the number in the inbox of the latest unverified event about the tracking number, 0 if none. Such an
	// event changes nothing.
	Unverified int64
}

// Own holds the values of the input columns that are not sent: a JSON object of strings by column name; empty if none.
type Own string

func (o Own) values() map[string]string {
	values := map[string]string{}
	_ = json.Unmarshal([]byte(o), &values) // only such objects are stored
	return values
}

// String lists the columns and their values, sorted by name.
func (o Own) String() string {
	values := o.values()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, name+": "+values[name])
	}
	return strings.Join(all, "; ")
}

// Value returns the value of a column, "" if there is none. Column names are case-insensitive.
func (o Own) Value(column string) string {
	for name, value := range o.values() {
		if strings.EqualFold(name, column) {
			return value
		}
	}
	return ""
}

// Unchecked reports whether the tracking was accepted and no query or event followed.
func (st TrackingStatus) Unchecked() bool {
	return st.State == Accepted && st.Sighting == nil && st.Asked.IsZero()
}

// Unreported reports whether the tracking was accepted and nothing is known of it.
func (st TrackingStatus) Unreported() bool { return st.State == Accepted && st.Sighting == nil }

// Carrier returns the carrier code that the service reported, else the one that was sent, else "".
func (st TrackingStatus) Carrier() string {
	if st.Sighting == nil {
		return st.Item.CarrierCode
	}
	return cmp.Or(st.Sighting.CarrierCode, st.Item.CarrierCode)
}

// StuckSince reports whether the service knows the tracking, it is not delivered, and its last checkpoint, or without
// one the time when it was sent, is before at.
func (st TrackingStatus) StuckSince(at time.Time) bool {
	s := st.Sighting
	if s == nil || s.Phase == Absent || s.Delivered() {
		return false
	}
	moved := cmp.Or(s.Times.Checkpoint, st.Sent)
	return !moved.IsZero() && moved.Before(at)
}

// StatusCount counts the trackings that have one status.
type StatusCount struct {
	Phase       Phase  // empty if nothing is known of the trackings
	Status      string // JSON literal as sent, empty if none
	StatusLabel string
	StatusTrack string
	State       State // of the rows if nothing is known of the trackings, see [CloseReason.Refine]
	Trackings   int64
}

// Group counts trackings that are alike.
type Group struct {
	StatusCount
	Carrier     string    // see [TrackingStatus.Carrier]
	Run         int64     // the run that brought them in, 0 if none or pruned
	Created     time.Time // when that run began, zero if none
	TransitDays int64     // [Sighting].Transit in whole days, rounded; [UnknownTransit] if unknown
}

// UnknownTransit is the value of [Group].TransitDays if it is unknown.
const UnknownTransit = -1

// TransitDays returns a transit time in whole days, rounded, and [UnknownTransit] for 0.
func TransitDays(transit time.Duration) int64 {
	const day = 24 * time.Hour
	if transit <= 0 {
		return UnknownTransit
	}
	return int64((transit + day/2) / day)
}

// GroupOf returns the group of one tracking.
func GroupOf(st TrackingStatus) Group {
	g := Group{Carrier: st.Carrier(), Run: st.Run, Created: st.Created, TransitDays: UnknownTransit}
	g.Trackings = 1
	if s := st.Sighting; s != nil {
		g.Phase, g.TransitDays = s.Phase, TransitDays(s.Transit)
		g.Status, g.StatusLabel, g.StatusTrack = s.Status, s.StatusLabel, s.StatusTrack
		return g
	}
	g.State = st.Refine(st.State)
	return g
}
