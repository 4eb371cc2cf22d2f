package query

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Target is one REF on its way through a [Scheduler]. Its exported fields are saved while it waits.
type Target struct {
	Pos   int64          // position among the requested REFs, from 0
	Ref   string         // as the user gave it
	Query tracking.Query // the query to send
	Exact bool           // Query is final, even if the store knows Ref as a number
	// Chosen are the numbers of the trackings that are shown, counted and waited for; nil for all. Data about the others
	// is only recorded.
	Chosen []string `json:",omitempty"`

	Began   time.Time    // time of the first query, zero if none
	Phase   ledger.Phase // phase in the last answer, for a REF that is not in the store
	First   []Known      // what was known about its trackings at first, if the [Scheduler] keeps it
	Counted []Counted    // how its trackings were last counted, for the counter

	rows   []ledger.TrackingStatus // as last loaded
	failed error                   // error of the last query, nil if it was answered
	erased bool                    // the store had it once
}

// Counted says how a tracking was counted.
type Counted struct {
	Number string `json:"n"` // of the tracking
	Kind   int    `json:"k"` // which count it is in
}

// Known has the fields by which a tracking is compared.
type Known struct {
	tracking.Report

	Number string
	Phase  ledger.Phase
}

// KnownOf returns the fields by which a tracking is compared.
func KnownOf(t Tracking) Known {
	t.RouterID, t.Error = "", "" // not compared
	return Known{t.Report, t.Number, t.Phase}
}

// Differs reports whether a field differs between two states of a tracking. A field that only one of them has does
// not count: events and answers have different fields.
func (k Known) Differs(now Known) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	decided := func(p ledger.Phase) bool { return p != Undecided && p != NotAsked }
	return k.Phase != now.Phase && decided(k.Phase) && decided(now.Phase) ||
		differ(k.Status, now.Status) || differ(k.StatusLabel, now.StatusLabel) || differ(k.StatusTrack, now.StatusTrack) ||
		differ(k.LatestEvent, now.LatestEvent) || differ(k.LatestTime, now.LatestTime)
}

// Changed reports whether a tracking differs from what was known at first. It adds unknown trackings to First.
func (t *Target) Changed(res Result) bool {
	for _, now := range res.Trackings {
		i := slices.IndexFunc(t.First, func(was Known) bool {
			return was.Number == now.Number || tracking.SameNumber(was.Number, now.Number)
		})
		switch {
		case now.Source == "":
		case i < 0:
			t.First = append(t.First, KnownOf(now))
		case t.First[i].Differs(KnownOf(now)):
			return true
		}
	}
	return false
}

func (t *Target) chose(number string) bool {
	return t.Chosen == nil || slices.ContainsFunc(t.Chosen, func(n string) bool { return tracking.SameNumber(n, number) })
}

func (t *Target) chosenRows() []ledger.TrackingStatus {
	if t.Chosen == nil {
		return t.rows
	}
	return slices.DeleteFunc(slices.Clone(t.rows), func(r ledger.TrackingStatus) bool { return !t.chose(r.Item.Number) })
}

func (t *Target) narrow(all []Tracking) []Tracking {
	if t.Chosen == nil || !slices.ContainsFunc(all, func(tr Tracking) bool { return t.chose(tr.Number) }) {
		return all
	}
	return slices.DeleteFunc(all, func(tr Tracking) bool { return !t.chose(tr.Number) })
}

// Accepted reports whether a row of the target was sent and may be at the service.
func (t *Target) Accepted() bool {
	return slices.ContainsFunc(t.chosenRows(), func(r ledger.TrackingStatus) bool {
		return r.State == ledger.Accepted || r.State == ledger.Unknown
	})
}

// Rows returns the stored rows of the target, as last read.
func (t *Target) Rows() []ledger.TrackingStatus { return t.rows }

// IsKnown reports whether the store has any row of the target.
func (t *Target) IsKnown() bool { return len(t.rows) > 0 }

// RunOf returns the run that added the target's first row in a state, 0 if there is none. Superseded and dismissed
// rows do not count as rejected.
func (t *Target) RunOf(state ledger.State) int64 {
	for _, r := range t.chosenRows() {
		if r.Refine(r.State) == state {
			return r.Run
		}
	}
	return 0
}

// RowOf returns the target's row of a tracking, or nil.
func (t *Target) RowOf(tr Tracking) *ledger.TrackingStatus {
	if i := slices.IndexFunc(t.rows, tr.isOf); i >= 0 {
		return &t.rows[i]
	}
	return nil
}

func (t *Target) lastAsked() time.Time {
	var last time.Time
	for _, r := range t.rows {
		if r.Asked.After(last) {
			last = r.Asked
		}
	}
	return last
}

func (t *Target) byEvent() bool { return slices.ContainsFunc(t.rows, byEvent) }

// skipsQuery reports whether no query is needed: the service rejected all rows, or none was sent. The error says so; it
// is nil if all are superseded or dismissed.
func (t *Target) skipsQuery() (bool, error) {
	reason, sent, open := "", true, false
	for _, r := range t.chosenRows() {
		switch {
		case r.State == ledger.Pending:
			sent = false
		case r.State != ledger.Rejected:
			return false, nil
		case r.Refine(r.State) == ledger.Rejected:
			open, reason = true, cmp.Or(reason, r.Reason)
		}
	}
	switch {
	case len(t.rows) == 0:
		return false, nil
	case !sent:
		return true, ErrNotSent
	case !open:
		return true, nil
	case reason == "":
		return true, ErrRejected
	}
	return true, fmt.Errorf("%w: %s", ErrRejected, reason)
}

// orderOf returns the common referId of all rows, or "" if they differ.
func (t *Target) orderOf() string {
	ref := t.Query.ReferID
	for _, r := range t.rows {
		if ref != "" && r.Item.ReferID != ref {
			return ""
		}
		ref = r.Item.ReferID
	}
	return ref
}
