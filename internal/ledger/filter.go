package ledger

import (
	"slices"
	"strings"
	"time"
)

// Order is what a list is sorted by.
type Order string

// The orders. Trackings that are alike are in the order of creation. What is not
// known is last, in either direction.
const (
	ByCreation   Order = ""           // rows, then what was only seen, then numbers without an account
	ByAsked      Order = "asked"      // when the service last answered a query: never first. No direction
	ByUpdated    Order = "updated"    // when the last answer or event came
	ByCheckpoint Order = "checkpoint" // time of the last checkpoint
	ByReference  Order = "reference"  // referId, by its bytes
	ByNumber     Order = "number"     // tracking number, folded
	ByStatus     Order = "status"     // label, else track, else number
	ByCarrier    Order = "carrier"    // see [TrackingStatus.Carrier]
)

// Words for rejected rows that need nothing more, beside the states in a [Filter].
const (
	Superseded State = "superseded" // another number of the order was accepted since
	Dismissed  State = "dismissed"
)

// Filter narrows a list. Its zero value takes everything.
type Filter struct {
	Status     string              // status number, label or track, as [tracking.NamesStatus] compares them
	NamedToo   func(Sighting) bool // whether Status names what was seen in another way: by its phase and status alone. nil for no
	Run        int64               // only rows of this run's input
	SeenSince  time.Time           // only trackings seen at or after
	States     []State             // only rows in one of these; Rejected leaves out what is [Superseded] or [Dismissed]
	StaleSince time.Time           // only those accepted before, without an answer or event at or after, and not delivered
	StuckSince time.Time           // only those without a checkpoint at or after, see [TrackingStatus.StuckSince]
	Carrier    string              // only those of this carrier code, in any case
	ReferIDs   []string            // only those with one of these, of which a * at the end stands for any rest
	Unreported bool                // only accepted rows of which nothing is known
	Limit      int                 // 0 means all

	Order      Order
	Descending bool
}

// TakesStatus reports whether Status names the status that was seen.
func (f Filter) TakesStatus(s Sighting) bool {
	return s.HasStatus(f.Status) || f.NamedToo != nil && f.NamedToo(s)
}

// listed is the state of a tracking's row as [Filter] names it.
func (st TrackingStatus) listed() State {
	switch {
	case st.State != Rejected:
	case st.Superseded:
		return Superseded
	case !st.Dismissed.IsZero():
		return Dismissed
	}
	return st.State
}

// Matches reports whether st is one of the list, but for Run and Limit.
func (f Filter) Matches(st TrackingStatus) bool {
	s := st.Sighting
	switch {
	case f.Status != "" && (s == nil || !f.TakesStatus(*s)),
		!f.SeenSince.IsZero() && (s == nil || s.Seen.Before(f.SeenSince)),
		len(f.States) > 0 && !slices.Contains(f.States, st.listed()),
		!f.StaleSince.IsZero() && !st.staleSince(f.StaleSince),
		!f.StuckSince.IsZero() && !st.StuckSince(f.StuckSince),
		f.Carrier != "" && !strings.EqualFold(st.Carrier(), f.Carrier),
		f.Unreported && !st.Unreported():
		return false
	}
	return len(f.ReferIDs) == 0 || slices.ContainsFunc(f.ReferIDs, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return st.Item.ReferID == pattern || open && st.Item.ReferID != "" && strings.HasPrefix(st.Item.ReferID, prefix)
	})
}
