package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// StatusFormatter formats statuses. It maps folded numbers and names of statuses to names from the configuration.
type StatusFormatter map[string]string

// NewStatusFormatter returns a StatusFormatter with the setting `statuses`.
func NewStatusFormatter(statuses map[string]string) StatusFormatter {
	n := make(StatusFormatter, len(statuses))
	for k, v := range statuses {
		n[tracking.FoldStatus(k)] = v
	}
	return n
}

// Status returns a status' configured name, or its label as sent, with its number.
func (n StatusFormatter) Status(number, label, track string) string {
	code, name := Unquote(number), n.label(number, label, track)
	switch {
	case name == "":
		return code
	case code == "":
		return name
	}
	return name + " (" + code + ")"
}

func (n StatusFormatter) label(number, label, track string) string {
	if own, ok := n.Custom(number, label, track); ok {
		return own
	}
	return cmp.Or(label, track)
}

// Custom returns a status' configured name.
func (n StatusFormatter) Custom(number, label, track string) (name string, ok bool) {
	if len(n) == 0 {
		return "", false
	}
	for _, key := range []string{Unquote(number), label, track} {
		if name, ok = n[tracking.FoldStatus(key)]; ok && key != "" {
			return name, true
		}
	}
	return "", false
}

// LabelOrCode returns a status' configured name, else its label or track, else its number.
func (n StatusFormatter) LabelOrCode(number, label, track string) string {
	return cmp.Or(n.label(number, label, track), Unquote(number))
}

// Matches reports whether want names a status, compared by [tracking.FoldStatus], with or without its number.
func (n StatusFormatter) Matches(want string, phase ledger.Phase, number, label, track string) bool {
	shown := []string{phaseWord(phase)}
	if phase == ledger.Processed {
		shown = []string{n.label(number, label, track), cmp.Or(n.Status(number, label, track), withoutStatus)}
	}
	want = tracking.FoldStatus(want)
	return want != "" && slices.ContainsFunc(shown, func(name string) bool { return tracking.FoldStatus(name) == want })
}

// WireValue returns the service's number or name for a configured name, or name itself.
func (n StatusFormatter) WireValue(name string) string {
	folded := tracking.FoldStatus(name)
	for _, key := range slices.Sorted(maps.Keys(n)) {
		if own := tracking.FoldStatus(n[key]); folded == own || folded == own+"_("+key+")" {
			return key
		}
	}
	if i := strings.LastIndex(name, " ("); i > 0 && strings.HasSuffix(name, ")") {
		return name[i+len(" (") : len(name)-1]
	}
	return name
}

// withoutStatus is a summary's name for processed trackings without a status.
const withoutStatus = "without status"

// Phase returns the text for a tracking's phase: its status once processed.
func (n StatusFormatter) Phase(f query.Tracking) string {
	switch phase := statusKeyOf(f).phase; phase {
	case ledger.Processed:
		return n.Status(f.Status, f.StatusLabel, f.StatusTrack)
	case ledger.Processing:
		return "Processing"
	default:
		return phaseWord(phase)
	}
}

// PhaseName is Phase without the number of a status that has a name.
func (n StatusFormatter) PhaseName(f query.Tracking) string {
	if f.Phase == ledger.Processed {
		if name := n.label(f.Status, f.StatusLabel, f.StatusTrack); name != "" {
			return name
		}
	}
	return n.Phase(f)
}

// phaseWords are the names of phases without a status. Phases that are missing here are their own name.
var phaseWords = map[ledger.Phase]string{
	ledger.Absent: "not found", otherProblems: "other problems", query.NotSent: "not sent yet",
	ledger.Phase(NotCreated): "not created", query.NotAsked: "not checked yet", query.Undecided: "not reported",
}

func phaseWord(p ledger.Phase) string { return cmp.Or(phaseWords[p], string(p)) }

// ErrorWord is the --status value for all statuses that are shown as problems.
const ErrorWord = "error"

// OpenWord is the --status value for trackings that may still be delivered: neither delivered, rejected nor shown as a
// problem, or not found by the service.
const OpenWord = "open"

// IsOpen reports whether a tracking is open, see [OpenWord].
func (n StatusFormatter) IsOpen(s ledger.Sighting) bool {
	return !s.Delivered() && (s.Phase == ledger.Absent || !n.IsProblem(s))
}

// StatusWords returns the values of --status that are not statuses of the service.
func StatusWords() []string {
	states := []string{string(ledger.Rejected), string(ledger.Unknown), string(ledger.Pending), string(ledger.NotChecked)}
	return append(states, ErrorWord, OpenWord)
}

// StateNamed returns the row state that a word of --status, tables or summaries names, or "". No word names Accepted:
// such rows have the names of their statuses.
func StateNamed(word string) ledger.State {
	states := map[string]ledger.State{
		phaseWord(query.NotSent): ledger.Pending, phaseWord(ledger.Phase(NotCreated)): NotCreated,
		phaseWord(query.NotAsked): ledger.NotChecked, phaseWord(query.Undecided): ledger.NotChecked,
	}
	for _, state := range []ledger.State{
		ledger.Pending, ledger.Sending, ledger.Rejected, ledger.Superseded, ledger.Dismissed,
		ledger.Unknown, ledger.NotChecked,
	} {
		states[string(state)] = state
	}
	for name, state := range states {
		if tracking.FoldStatus(name) == tracking.FoldStatus(word) {
			return state
		}
	}
	return ""
}

// Unverified returns the text for an unverified event.
func (n StatusFormatter) Unverified(e inbox.Event) string {
	kind := cmp.Or(e.Kind, "event "+e.ID())
	what := cmp.Or(n.Status(e.Status, e.StatusLabel, e.StatusTrack), e.LatestEvent)
	if what != "" {
		kind += ": "
	}
	return fmt.Sprintf("%s%s, received %s, verified: %s", kind, what, render.LocalTime(e.ReceivedAt), Trust(e))
}

// badWords are words of statuses in which a shipment needs attention.
//
// Assumed: only the status DELIVERED is documented. A label, a track or a configured name with one of these words in
// it means what the word says.
var badWords = []string{
	"EXCEPTION", "FAIL", "ERROR", "RETURN", "LOST", "DAMAGE", "REFUSED", "REJECT",
	"UNDELIVER", "NOT_DELIVERED", "CANCEL", "EXPIRED",
}

// StatusStyle returns the style of a status: good if delivered, bad if its name has one of [badWords], else normal.
//
// Interface: States and transitions.
func (n StatusFormatter) StatusStyle(number, label, track string) term.Style {
	own, _ := n.Custom(number, label, track)
	for _, name := range []string{label, track, own} {
		folded := tracking.FoldStatus(name)
		if slices.ContainsFunc(badWords, func(word string) bool { return strings.Contains(folded, word) }) {
			return term.Bad
		}
	}
	if (tracking.Report{Status: number, StatusLabel: label, StatusTrack: track}).Delivered() {
		return term.Good
	}
	return term.Normal
}

// PhaseStyle returns the style of [StatusFormatter.Phase].
func (n StatusFormatter) PhaseStyle(f query.Tracking) term.Style {
	switch statusKeyOf(f).phase {
	case ledger.Processed:
		return n.StatusStyle(f.Status, f.StatusLabel, f.StatusTrack)
	case query.Rejected, ledger.Absent, ledger.InError, failed, otherProblems:
		return term.Bad
	case ledger.Phase(ledger.Unknown), ledger.Phase(NotCreated):
		return term.Caution
	case query.NotAsked, query.NotSent, query.Undecided, superseded, dismissed:
		return term.Faint
	}
	return term.Normal
}

// IsProblem reports whether a tracking is shown as a problem.
func (n StatusFormatter) IsProblem(s ledger.Sighting) bool {
	return n.PhaseStyle(query.FromStore(ledger.TrackingStatus{Sighting: &s})) == term.Bad
}

// staleAfter is the age from which the status of an undelivered shipment is stale.
const staleAfter = 48 * time.Hour

// FreshStyle returns the style for the age of a tracking's status.
func FreshStyle(f query.Tracking, now time.Time) term.Style {
	if !f.Learnt.IsZero() && !f.Delivered() && now.Sub(f.Learnt) >= staleAfter {
		return term.Caution
	}
	return term.Normal
}

// Tone returns the HTML name of a style: good, bad, caution or faint, or "" for others.
func Tone(s term.Style) string {
	return map[term.Style]string{term.Good: "good", term.Bad: "bad", term.Caution: "caution", term.Faint: "faint"}[s]
}
