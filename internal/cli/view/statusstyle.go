package view

import (
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// badWords mark statuses in which a shipment needs attention.
//
// Assumed: no status but DELIVERED is documented. A label, a track or a name from
// the configuration that has one of these words in it means what the word says.
var badWords = []string{
	"EXCEPTION", "FAIL", "ERROR", "RETURN", "LOST", "DAMAGE", "REFUSED", "REJECT", "UNDELIVER", "NOT_DELIVERED", "CANCEL", "EXPIRED",
}

// StatusStyle is the colour of a status: good if it is delivered, bad if it is
// called an exception. The colour of any other is not known.
//
// Interface: States and transitions.
func (n StatusNames) StatusStyle(number, label, track string) term.Style {
	own, _ := n.Own(number, label, track)
	for _, name := range []string{label, track, own} {
		folded := tracking.FoldStatus(name)
		if slices.ContainsFunc(badWords, func(word string) bool { return strings.Contains(folded, word) }) {
			return term.Bad
		}
	}
	if (tracking.Tracking{Status: number, StatusLabel: label, StatusTrack: track}).Delivered() {
		return term.Good
	}
	return term.Normal
}

// PhaseStyle is the colour of what [StatusNames.Phase] shows.
func (n StatusNames) PhaseStyle(f query.Tracking) term.Style {
	switch {
	case f.Superseded, !f.Dismissed.IsZero():
		return term.Faint
	case f.Phase == ledger.Processed:
		return n.StatusStyle(f.Status, f.StatusLabel, f.StatusTrack)
	}
	switch f.Phase {
	case query.Rejected, ledger.Absent, failed:
		return term.Bad
	case ledger.Phase(ledger.Unknown), ledger.Phase(NotCreated):
		return term.Caution
	case query.NotAsked, query.NotSent, query.Undecided:
		return term.Faint
	}
	return term.Normal
}

// IsProblem reports whether what was seen of a tracking is shown as a problem.
func (n StatusNames) IsProblem(s ledger.Sighting) bool {
	return n.PhaseStyle(Known(ledger.TrackingStatus{Sighting: &s})) == term.Bad
}

// staleAfter is from when on what is known of an undelivered shipment is stale.
const staleAfter = 48 * time.Hour

// FreshStyle is the colour of how old what is known of a tracking is.
func FreshStyle(f query.Tracking, now time.Time) term.Style {
	if !f.Learnt.IsZero() && !f.Delivered() && now.Sub(f.Learnt) >= staleAfter {
		return term.Caution
	}
	return term.Normal
}

// Tone names a style for a page: good, bad, caution or faint, empty for any other.
func Tone(s term.Style) string {
	switch s {
	case term.Good:
		return "good"
	case term.Bad:
		return "bad"
	case term.Caution:
		return "caution"
	case term.Faint:
		return "faint"
	}
	return ""
}
