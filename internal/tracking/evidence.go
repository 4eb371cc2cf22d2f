package tracking

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Presence is what one answer proves about one tracking.
type Presence string

// The presences. The zero value proves nothing.
const (
	PresenceUndecided  Presence = ""
	PresenceNamed      Presence = "named"      // the answer shows the tracking itself
	PresenceProcessing Presence = "processing" // the service is working on what was queried, but names no number
	PresenceAbsent     Presence = "absent"     // the service says that there is no such tracking
)

// Evidence is what one query showed about one tracking. It is for reconciling: anything ambiguous is undecided.
type Evidence struct {
	Presence Presence
	Own      bool   // the answer names the tracking with the item's referId
	Why      string // why the answer is undecided; printable

	// Fingerprint identifies an absence, see [Body.AbsenceFingerprint].
	Fingerprint string

	// Err says that no usable answer came; Presence is then undecided. The fields below say what it means.
	Err          error
	Unauthorized bool // the key was refused
	Failure
}

// Outcome returns the row of the query in the table of outcomes: [OutcomeAccepted] if a usable answer came.
func (e Evidence) Outcome() Outcome {
	switch {
	case e.Err == nil:
		return OutcomeAccepted
	case e.Unconnected:
		return OutcomeNotSent
	case e.Throttled:
		return OutcomeThrottled
	}
	return OutcomeUnknown
}

// Evidence returns what a complete 2xx answer proves about item: that it exists, that the service is working on it, or
// nothing. The caller checks for absence first.
//
// An answer that only repeats the query proves nothing: a tracking is shown by data that only the service can know,
// and without an error on it.
//
// Assumed: the shape of an answer to a query is not shown.
func (b *Body) Evidence(item Item) Evidence {
	undecided := func(why string) Evidence { return Evidence{Why: why} }
	switch {
	case !b.JSON():
		return undecided(b.kindOfText())
	case b.Wrong():
		return undecided("sign of error: " + shorten(b.ErrorText(), 100))
	}
	a, why := b.Answer(), ""
	for _, t := range a.Trackings {
		switch {
		case !SameNumber(t.Number, item.Number):
		case t.ReferID != "" && t.ReferID != item.ReferID:
			why = "names the number under another referId"
		case t.Error != "":
			why = "names the number with an error: " + shorten(t.Error, 100)
		case !t.provesPresence():
			why = "names the number, but has no data of the tracking"
		default:
			return Evidence{Presence: PresenceNamed, Own: t.ReferID != ""}
		}
	}
	switch {
	case why != "":
		return undecided(why)
	case b.namesOther(item):
		return undecided("names other numbers only")
	case a.Processing:
		return Evidence{Presence: PresenceProcessing}
	case len(a.Trackings) > 0:
		return undecided("shows a tracking without its number")
	}
	return undecided("has no data of a tracking")
}

// provesPresence looks for data that no echo of a query has. A status alone may be the envelope's.
func (t Tracking) provesPresence() bool {
	return t.Processing || t.StatusLabel != "" || t.StatusTrack != "" || t.LatestEvent != "" || len(t.Checkpoints) > 0 ||
		(t.RouterID != "" && t.Status != "")
}

func (b *Body) namesOther(item Item) bool {
	other := false
	for _, k := range b.Answer().Named {
		if SameNumber(k.Number, item.Number) && (k.ReferID == "" || k.ReferID == item.ReferID) {
			return false
		}
		other = other || k.Number != "" || k.ReferID != item.ReferID
	}
	return other
}

// AbsenceFingerprint returns what two answers that say "no such tracking" have in common: HTTP status and text,
// without the references that were queried. It is short and printable.
func (b *Body) AbsenceFingerprint(status int, references ...string) string {
	words := b.ErrorText()
	switch {
	case !b.JSON():
		words = b.kindOfText()
	case words == "":
		words = outline(b.root)
	}
	for _, r := range references {
		words = removeWord(words, r)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, shorten(words, 160)))
}

func (b *Body) kindOfText() string {
	if b == nil {
		return "empty"
	}
	text := bytes.TrimSpace(b.raw)
	switch {
	case len(text) == 0:
		return "empty"
	case text[0] == '<':
		return "HTML"
	}
	return "text: " + shorten(string(text[:min(len(text), 400)]), 100)
}

func outline(root *value) string {
	switch {
	case root.kind == list && len(root.items) == 0:
		return "[]"
	case root.kind == list:
		return "[…]"
	case root.kind == scalar:
		return string(root.raw)
	}
	names := make([]string, len(root.members))
	for i, m := range root.members {
		names[i] = m.name
		switch {
		case m.value.null():
			names[i] += ":null"
		case m.value.kind != scalar && len(m.value.members)+len(m.value.items) == 0:
			names[i] += ":" + string(m.value.raw[0]) + string(m.value.raw[len(m.value.raw)-1])
		}
	}
	return "{" + strings.Join(names, ",") + "}"
}

// removeWord replaces reference by an ellipsis wherever it is a whole word, in any case.
func removeWord(s, reference string) string {
	if reference == "" {
		return s
	}
	const before, after = `(^|[^\pL\p{Nd}])`, `([^\pL\p{Nd}]|$)`
	word := regexp.MustCompile(`(?i)` + before + regexp.QuoteMeta(strings.ToValidUTF8(reference, "\ufffd")) + after)
	for range 2 { // a match consumes the character that the next one begins with
		s = word.ReplaceAllString(s, "$1…$2")
	}
	return s
}

// shorten returns the first characters of foreign text, on one line and with invisible ones escaped.
func shorten(s string, most int) string {
	var out strings.Builder
	n := 0
	for _, r := range strings.Join(strings.Fields(s), " ") {
		if n == most {
			out.WriteRune('…')
			break
		}
		if n++; unicode.IsGraphic(r) && r != utf8.RuneError {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, `\u{%x}`, r)
		}
	}
	return out.String()
}
