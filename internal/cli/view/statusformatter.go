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

// StatusFormatter shows statuses by what the configuration calls them, by folded number or name.
type StatusFormatter map[string]string

// NewStatusFormatter returns one with the names of `statuses` in the configuration.
func NewStatusFormatter(statuses map[string]string) StatusFormatter {
	n := make(StatusFormatter, len(statuses))
	for k, v := range statuses {
		n[tracking.FoldStatus(k)] = v
	}
	return n
}

// Status shows a label as sent, or what the configuration calls it, and the number.
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

// Custom returns what the configuration calls a status.
func (n StatusFormatter) Custom(number, label, track string) (name string, ok bool) {
	for _, key := range []string{Unquote(number), label, track} {
		if name, ok = n[tracking.FoldStatus(key)]; ok && key != "" {
			return name, true
		}
	}
	return "", false
}

// LabelOrCode is what a status is called: by the configuration, else by the service, else its number.
func (n StatusFormatter) LabelOrCode(number, label, track string) string {
	return cmp.Or(n.label(number, label, track), Unquote(number))
}

// Matches reports whether want is what a status is called, as [tracking.FoldStatus] folds, with or without its number.
func (n StatusFormatter) Matches(want string, phase ledger.Phase, number, label, track string) bool {
	shown := []string{phaseWord(phase)}
	if phase == ledger.Processed {
		shown = []string{n.label(number, label, track), cmp.Or(n.Status(number, label, track), withoutStatus)}
	}
	want = tracking.FoldStatus(want)
	return want != "" && slices.ContainsFunc(shown, func(name string) bool { return tracking.FoldStatus(name) == want })
}

// WireValue returns the number or name of the service for a status that tables show as name, else name itself.
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

// withoutStatus is what a summary calls processed trackings that have none.
const withoutStatus = "without status"

// Phase shows how far the service is with a tracking.
func (n StatusFormatter) Phase(f query.Tracking) string {
	switch {
	case f.Superseded:
		return Superseded
	case !f.Dismissed.IsZero():
		return Dismissed
	case f.Phase == ledger.Processed:
		return n.Status(f.Status, f.StatusLabel, f.StatusTrack)
	case f.Phase == ledger.Processing:
		return "Processing"
	}
	return phaseWord(f.Phase)
}

// PhaseName is Phase with a status as its name alone, if it has any.
func (n StatusFormatter) PhaseName(f query.Tracking) string {
	if f.Phase == ledger.Processed {
		if name := n.label(f.Status, f.StatusLabel, f.StatusTrack); name != "" {
			return name
		}
	}
	return n.Phase(f)
}

// phaseWords name phases in which the service reports no status; rejected, processing and others are the word itself.
var phaseWords = map[ledger.Phase]string{
	ledger.Absent: "not found", otherProblems: "other problems", query.NotSent: "not sent yet",
	ledger.Phase(NotCreated): "not created", query.NotAsked: "not checked yet", query.Undecided: "not reported",
}

func phaseWord(p ledger.Phase) string { return cmp.Or(phaseWords[p], string(p)) }

// ErrorWord is the word of --status for every status that is shown as a problem.
const ErrorWord = "error"

// OpenWord is the word of --status for what may be delivered yet: what is not delivered,
// rejected or shown as a problem, and what the service does not find.
const OpenWord = "open"

// IsOpen reports whether what was seen of a tracking is open, see [OpenWord].
func (n StatusFormatter) IsOpen(s ledger.Sighting) bool {
	return !s.Delivered() && (s.Phase == ledger.Absent || !n.IsProblem(s))
}

// StatusWords are the words of --status beside the statuses of the service.
func StatusWords() []string {
	states := []string{string(ledger.Rejected), string(ledger.Unknown), string(ledger.Pending), string(ledger.NotChecked)}
	return append(states, ErrorWord, OpenWord)
}

// StateNamed returns the state of rows that a word names, as --status, tables or summaries
// do; empty for none. Accepted rows are named by what the service says of them.
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

// Unverified shows an event that did not verify, as such.
func (n StatusFormatter) Unverified(e inbox.Event) string {
	kind := cmp.Or(e.Kind, "event "+e.ID())
	what := cmp.Or(n.Status(e.Status, e.StatusLabel, e.StatusTrack), e.LatestEvent)
	if what != "" {
		kind += ": "
	}
	return fmt.Sprintf("%s%s, received %s, verified: %s", kind, what, render.LocalTime(e.ReceivedAt), Trust(e))
}

// badWords mark statuses in which a shipment needs attention.
//
// Assumed: no status but DELIVERED is documented. A label, a track or a name from
// the configuration that has one of these words in it means what the word says.
var badWords = []string{
	"EXCEPTION", "FAIL", "ERROR", "RETURN", "LOST", "DAMAGE", "REFUSED", "REJECT",
	"UNDELIVER", "NOT_DELIVERED", "CANCEL", "EXPIRED",
}

// StatusStyle is the colour of a status: good if it is delivered, bad if it is
// called an exception. The colour of any other is not known.
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
	if (tracking.Tracking{Status: number, StatusLabel: label, StatusTrack: track}).Delivered() {
		return term.Good
	}
	return term.Normal
}

// PhaseStyle is the colour of what [StatusFormatter.Phase] shows.
func (n StatusFormatter) PhaseStyle(f query.Tracking) term.Style {
	if f.Superseded || !f.Dismissed.IsZero() {
		return term.Faint
	}
	switch f.Phase {
	case ledger.Processed:
		return n.StatusStyle(f.Status, f.StatusLabel, f.StatusTrack)
	case query.Rejected, ledger.Absent, ledger.InError, failed, otherProblems:
		return term.Bad
	case ledger.Phase(ledger.Unknown), ledger.Phase(NotCreated):
		return term.Caution
	case query.NotAsked, query.NotSent, query.Undecided:
		return term.Faint
	}
	return term.Normal
}

// IsProblem reports whether what was seen of a tracking is shown as a problem.
func (n StatusFormatter) IsProblem(s ledger.Sighting) bool {
	return n.PhaseStyle(query.FromStore(ledger.TrackingStatus{Sighting: &s})) == term.Bad
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
	return map[term.Style]string{term.Good: "good", term.Bad: "bad", term.Caution: "caution", term.Faint: "faint"}[s]
}
