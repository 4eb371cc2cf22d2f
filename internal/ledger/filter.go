package ledger

import (
	"slices"
	"strings"
	"time"
)

// Order is the sort order of a list.
type Order string

// The orders. Ties are broken by the order of creation. Unknown values sort last, in either direction.
const (
	ByCreation   Order = ""           // rows, then trackings that were only seen, then numbers alone
	ByAsked      Order = "asked"      // time of the last answer to a query; those without one first. It has no direction
	ByReceived   Order = "received"   // when the last answer or event arrived
	ByCheckpoint Order = "checkpoint" // time of the last checkpoint
	ByReference  Order = "reference"  // referId, by its bytes
	ByNumber     Order = "number"     // tracking number, folded
	ByStatus     Order = "status"     // label, else track, else number
	ByCarrier    Order = "carrier"    // see [TrackingStatus.Carrier]
)

// Words in a [Filter] besides the row states.
const (
	Superseded State = "superseded"  // rejected, but another number of the order was accepted later
	Dismissed  State = "dismissed"   // rejected, and dismissed by the user
	NotChecked State = "not-checked" // accepted, and nothing is known of it
)

// Range is a span of time, compared in milliseconds. The zero Range holds any time, even an unknown one.
type Range struct {
	Since time.Time // inclusive; zero if unbounded
	Until time.Time // exclusive; zero if unbounded
}

// IsZero reports whether the range is unbounded.
func (r Range) IsZero() bool { return r.Since.IsZero() && r.Until.IsZero() }

// Holds reports whether at is in the range. Only the zero Range holds an unknown (zero) time.
func (r Range) Holds(at time.Time) bool {
	return r.IsZero() || !at.IsZero() && !at.Before(r.Since) && (r.Until.IsZero() || at.Before(r.Until))
}

// Filter narrows a list. The zero value matches everything.
type Filter struct {
	// Statuses, States and OrStuckSince are alternatives: a tracking has to match only one of them.
	Statuses     []string  // status numbers, labels or tracks, as [tracking.NamesStatus] compares them
	States       []State   // of the row; Rejected leaves out [Superseded] and [Dismissed] rows
	OrStuckSince time.Time // see [TrackingStatus.StuckSince]
	// NamedToo reports whether a word of Statuses names a sighting in another way: by its phase and status alone. nil
	// means no.
	NamedToo func(word string, s Sighting) bool

	Run        int64     // only rows of this run's input
	Created    Range     // when the run that brought the row in began
	Delivered  Range     // time of the last checkpoint, of delivered trackings
	Updated    Range     // see [tracking.Times.Latest]
	StuckSince time.Time // only trackings without a checkpoint since then, see [TrackingStatus.StuckSince]
	Carrier    string    // only this carrier code, in any case
	ReferIDs   []string  // only these; a trailing * matches any rest
	Own        []OwnText // only rows that match all of them
	Limit      int       // 0 means all

	Order      Order
	Descending bool
}

// OwnText is a pattern for a column that is kept but not sent. It ignores case, and * matches any text. A row without
// a value matches no pattern.
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

// TakesStatus reports whether Statuses name the status of s.
func (f Filter) TakesStatus(s Sighting) bool {
	return slices.ContainsFunc(f.Statuses, func(word string) bool {
		return s.HasStatus(word) || f.NamedToo != nil && f.NamedToo(word, s)
	})
}

// isIn reports whether the tracking's row is in a state of [Filter].States.
func (st TrackingStatus) isIn(state State) bool {
	return state == NotChecked && st.Unreported() || st.Refine(st.State) == state
}

// Matches reports whether st passes the filter. It ignores Run, Created and Limit.
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
