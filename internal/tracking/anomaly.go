package tracking

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// AnomalyKind is what cannot be right in a timeline.
type AnomalyKind string

// The kinds.
const (
	ImpossibleOffset AnomalyKind = "impossible_offset" // local time and UTC differ by no zone's offset
	ImpossibleTime   AnomalyKind = "impossible_time"   // before tracking numbers, or far in the future
	UnreadableTime   AnomalyKind = "unreadable_time"   // one time can't be read, the other can
	Repeated         AnomalyKind = "repeated"          // the same time and event as a checkpoint above
)

// Anomaly is one thing that cannot be right.
type Anomaly struct {
	Kind    AnomalyKind
	Message string // in a few words, for people
}

// Offsets of zones on earth, and how far ahead a checkpoint may lie: a carrier
// may announce one.
const (
	minOffset   = -12 * time.Hour
	maxOffset   = 14 * time.Hour
	offsetStep  = 15 * time.Minute
	firstYear   = 1990
	maxLeadTime = 366 * 24 * time.Hour
)

// anomalies returns what cannot be right in a checkpoint by itself, learnt at
// that time; utc is its time.
//
// Interface: Webhook delivery data object (`data` inside each delivered event), checkpoint object.
func (c Checkpoint) anomalies(utc, learnt time.Time) []Anomaly {
	local := readWallClock(c.Local)
	var found []Anomaly
	add := func(kind AnomalyKind, format string, args ...any) {
		found = append(found, Anomaly{Kind: kind, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case utc.IsZero() && c.UTC != "" && !local.IsZero():
		add(UnreadableTime, "UTC time unreadable")
	case local.IsZero() && c.Local != "" && !utc.IsZero():
		add(UnreadableTime, "local time unreadable")
	case !utc.IsZero() && !local.IsZero() && !isZoneOffset(local.Sub(utc)):
		add(ImpossibleOffset, "offset %s impossible", offsetText(local.Sub(utc)))
	}
	switch {
	case utc.IsZero():
	case utc.Year() < firstYear:
		add(ImpossibleTime, "before %d", firstYear)
	case !learnt.IsZero() && utc.Sub(learnt) > maxLeadTime:
		add(ImpossibleTime, "over a year in the future")
	}
	return found
}

// wallClocks are the forms of a local time. Fractions of a second may follow.
var wallClocks = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.RFC3339}

// readWallClock reads a local time as if it were UTC, the zero time if it can't.
// A zone that is there after all is not read: the clock on the wall counts.
func readWallClock(s string) time.Time {
	for _, form := range wallClocks {
		if t, err := time.Parse(form, s); err == nil {
			_, east := t.Zone()
			return t.UTC().Add(time.Duration(east) * time.Second)
		}
	}
	return time.Time{}
}

// isZoneOffset reports whether d is the offset of a zone on earth. One of the
// two times may be cut to the minute.
func isZoneOffset(d time.Duration) bool {
	nearest := d.Round(offsetStep)
	return (d-nearest).Abs() < time.Minute && nearest >= minOffset && nearest <= maxOffset
}

// offsetText writes an offset as +26:00, with seconds where there are any.
func offsetText(d time.Duration) string {
	sign := '+'
	if d < 0 {
		sign = '-'
	}
	seconds := int64(d.Abs() / time.Second)
	s := fmt.Sprintf("%c%02d:%02d", sign, seconds/3600, seconds/60%60)
	if seconds%60 != 0 {
		s += fmt.Sprintf(":%02d", seconds%60)
	}
	return s
}

// Entry is a checkpoint as a timeline shows it.
type Entry struct {
	Checkpoint
	Anomalies []Anomaly
}

// Entries returns the checkpoints newest first, see [Timeline], each with what
// cannot be right in it. learnt is when they were learnt, zero if it is not
// known.
func Entries(cs []Checkpoint, learnt time.Time) []Entry {
	type timed struct {
		Checkpoint
		utc time.Time
	}
	all := make([]timed, len(cs))
	for i, c := range cs {
		all[i] = timed{c, readTime(c.UTC)}
	}
	slices.SortStableFunc(all, func(a, b timed) int { return b.utc.Compare(a.utc) })
	entries := make([]Entry, len(all))
	first := make(map[[2]string]int, len(all)) // by time and event
	for i, c := range all {
		found := c.anomalies(c.utc, learnt)
		key := [2]string{c.instant(), c.Event}
		switch before, again := first[key]; {
		case key == [2]string{}:
		case !again:
			first[key] = i
		case entries[before].place() == c.place():
			found = append(found, Anomaly{Kind: Repeated, Message: "repeated"})
		default:
			found = append(found, Anomaly{Kind: Repeated, Message: "repeated with another place"})
		}
		entries[i] = Entry{c.Checkpoint, found}
	}
	return entries
}

// instant names the time of a checkpoint, so that the same time with and without
// fractions of a second is the same; empty if it has none.
func (c Checkpoint) instant() string {
	whole, fraction, ok := strings.Cut(c.UTC, ".")
	if fraction, utc := strings.CutSuffix(fraction, "Z"); ok && utc {
		if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
			whole += "." + fraction
		}
		return whole + "Z"
	}
	return cmp.Or(c.UTC, c.Local)
}

func (c Checkpoint) place() [3]string { return [3]string{c.City, c.State, c.ZIP} }
