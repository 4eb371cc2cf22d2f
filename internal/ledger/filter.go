package ledger

import (
	"slices"
	"strings"
	"time"
)

// Order is what a list is sorted by.
type Order string

// The orders. Trackings that are alike are in the order of creation. What is not known is last, in either direction.
const (
	ByCreation   Order = ""           // rows, then what was only seen, then numbers alone
	ByAsked      Order = "asked"      // when the service last answered a query: never first. No direction
	ByReceived   Order = "received"   // when the last answer or event came
	ByCheckpoint Order = "checkpoint" // time of the last checkpoint
	ByReference  Order = "reference"  // referId, by its bytes
	ByNumber     Order = "number"     // tracking number, folded
	ByStatus     Order = "status"     // label, else track, else number
	ByCarrier    Order = "carrier"    // see [TrackingStatus.Carrier]
)

// Words in a [Filter] beside the states of rows.
const (
	Superseded State = "superseded"  // rejected, and another number of the order was accepted since
	Dismissed  State = "dismissed"   // rejected, and settled by the user
	NotChecked State = "not-checked" // accepted, and nothing is known of it
)

// Range is a span of time, in milliseconds. The zero Range holds any time, and none.
type Range struct {
	Since time.Time // zero for no beginning
	Until time.Time // after the span; zero for no end
}

// IsZero reports whether the range has neither beginning nor end.
func (r Range) IsZero() bool { return r.Since.IsZero() && r.Until.IsZero() }

// Holds reports whether a time, if it is known, is in the range.
func (r Range) Holds(at time.Time) bool {
	return r.IsZero() || !at.IsZero() && !at.Before(r.Since) && (r.Until.IsZero() || at.Before(r.Until))
}

// Filter narrows a list. Its zero value takes everything.
type Filter struct {
	// Statuses, States and OrStuckSince are what a tracking may be: any of them is enough.
	Statuses     []string  // status numbers, labels or tracks, as [tracking.NamesStatus] compares them
	States       []State   // of the row; Rejected leaves out what is [Superseded] or [Dismissed]
	OrStuckSince time.Time // see [TrackingStatus.StuckSince]
	// NamedToo says whether a word of Statuses names what was seen in another way: by
	// its phase and status alone. nil for no.
	NamedToo func(word string, s Sighting) bool

	Run        int64     // only rows of this run's input
	Created    Range     // when the run that brought the row in began
	Delivered  Range     // the last checkpoint of what was delivered
	Updated    Range     // see [tracking.Times.Latest]
	StuckSince time.Time // only those without a checkpoint at or after, see [TrackingStatus.StuckSince]
	Carrier    string    // only those of this carrier code, in any case
	ReferIDs   []string  // only those with one of these, of which a * at the end stands for any rest
	Own        []OwnText // only rows of which all of these hold
	Limit      int       // 0 means all

	Order      Order
	Descending bool
}

// OwnText is what a column that is kept and not sent holds, in any case; a * stands for any text.
// A row without a value has none that fits.
type OwnText struct{ Column, Pattern string }

func (o OwnText) matches(own Own) bool {
	whole, parts := strings.ToLower(own.Value(o.Column)), strings.Split(strings.ToLower(o.Pattern), "*")
	last := len(parts) - 1
	value, ok := strings.CutPrefix(whole, parts[0])
	if last == 0 || !ok || whole == "" {
		return ok && value == "" && whole != ""
	}
	for _, part := range parts[1:last] {
		if _, value, ok = strings.Cut(value, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(value, parts[last])
}

// TakesStatus reports whether Statuses name the status that was seen.
func (f Filter) TakesStatus(s Sighting) bool {
	return slices.ContainsFunc(f.Statuses, func(word string) bool {
		return s.HasStatus(word) || f.NamedToo != nil && f.NamedToo(word, s)
	})
}

// isIn reports whether the tracking's row is in a state as [Filter] names it.
func (st TrackingStatus) isIn(state State) bool {
	switch {
	case state == NotChecked:
		return st.Unreported()
	case st.State != Rejected:
	case st.Superseded:
		return state == Superseded
	case !st.Dismissed.IsZero():
		return state == Dismissed
	}
	return st.State == state
}

// Matches reports whether st is one of the list, but for Run, Created and Limit.
func (f Filter) Matches(st TrackingStatus) bool {
	s := st.Sighting
	wanted := s != nil && f.TakesStatus(*s) || slices.ContainsFunc(f.States, st.isIn) || st.StuckSince(f.OrStuckSince)
	switch {
	case !wanted && (f.Statuses != nil || f.States != nil || !f.OrStuckSince.IsZero()),
		!f.Updated.IsZero() && (s == nil || !f.Updated.Holds(s.Times.Latest())),
		!f.Delivered.IsZero() && (s == nil || !s.Delivered() || !f.Delivered.Holds(s.Times.Checkpoint)),
		!f.StuckSince.IsZero() && !st.StuckSince(f.StuckSince),
		f.Carrier != "" && !strings.EqualFold(st.Carrier(), f.Carrier),
		slices.ContainsFunc(f.Own, func(o OwnText) bool { return !o.matches(st.Own) }):
		return false
	}
	return len(f.ReferIDs) == 0 || slices.ContainsFunc(f.ReferIDs, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return st.Item.ReferID == pattern || open && st.Item.ReferID != "" && strings.HasPrefix(st.Item.ReferID, prefix)
	})
}
