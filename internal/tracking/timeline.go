package tracking

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// AnomalyKind is a kind of error in a timeline.
type AnomalyKind string

// The kinds.
const (
	ImpossibleOffset AnomalyKind = "impossible_offset" // local time and UTC differ by an offset that no time zone has
	ImpossibleTime   AnomalyKind = "impossible_time"   // before there were tracking numbers, or far in the future
	UnreadableTime   AnomalyKind = "unreadable_time"   // one time can't be read, the other can
	Repeated         AnomalyKind = "repeated"          // the same time and event as a checkpoint above
)

// Anomaly is one error in a timeline.
type Anomaly struct {
	Kind    AnomalyKind
	Message string // in a few words, for people
}

// Offsets of time zones on earth, and how far ahead a checkpoint may be, since a carrier may announce one.
const (
	minOffset   = -12 * time.Hour
	maxOffset   = 14 * time.Hour
	offsetStep  = 15 * time.Minute
	firstYear   = 1990
	maxLeadTime = 366 * 24 * time.Hour
)

// anomalies returns the errors in a checkpoint by itself, learned at that time.
//
// Interface: Webhook delivery data object (`data` inside each delivered event), checkpoint object.
func (c Checkpoint) anomalies(learnt time.Time) []Anomaly {
	local, utc := readWallClock(c.Local), readTime(c.UTC)
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

// wallClocks are the formats of a local time. Fractions of a second may follow.
var wallClocks = []string{
	"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.RFC3339,
}

// readWallClock reads a local time as if it were UTC, the zero time if it can't. A zone in it is ignored: the wall
// clock counts.
func readWallClock(s string) time.Time {
	for _, form := range wallClocks {
		if t, err := time.Parse(form, s); err == nil {
			_, east := t.Zone()
			return t.UTC().Add(time.Duration(east) * time.Second)
		}
	}
	return time.Time{}
}

// isZoneOffset reports whether d is an offset on earth. One of the two times may be truncated to the minute.
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

// Entries returns the checkpoints newest first, see [Timeline], each with its anomalies. learnt is when they were
// learned, zero if unknown.
func Entries(cs []Checkpoint, learnt time.Time) []Entry {
	sorted := Timeline(cs)
	entries := make([]Entry, len(sorted))
	first := make(map[[2]string]int, len(sorted)) // by time and event
	for i, c := range sorted {
		found := c.anomalies(learnt)
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
		entries[i] = Entry{c, found}
	}
	return entries
}

// instant returns the time of c in one form, with or without a zero fraction of a second; empty if there is no time.
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

// Times say how recent the service's data on a shipment are. A zero time was not sent, or can't be read.
type Times struct {
	Checkpoint time.Time // of the latest checkpoint
	Updated    time.Time // of the service's record
}

// Times returns the times of a tracking, in milliseconds and UTC. If an answer has no latestCheckpointTime, its
// checkpoints decide.
//
// Interface: Webhook delivery data object (`data` inside each delivered event).
func (t Tracking) Times() Times {
	times := Times{Checkpoint: readTime(t.LatestTime), Updated: readTime(t.Updated)}
	if times.Checkpoint.IsZero() {
		for _, c := range t.Checkpoints {
			if at := readTime(c.UTC); at.After(times.Checkpoint) {
				times.Checkpoint = at
			}
		}
	}
	return times
}

// Compare returns 1 if t is newer than u, -1 if it is older, and 0 if that can't be told. The latest checkpoint
// decides; where the checkpoints are equal or one is unknown, the time of the record does.
//
// Assumed: a shipment's latest checkpoint never goes back in time.
func (t Times) Compare(u Times) int {
	for _, pair := range [...][2]time.Time{{t.Checkpoint, u.Checkpoint}, {t.Updated, u.Updated}} {
		if c := pair[0].Compare(pair[1]); c != 0 && !pair[0].IsZero() && !pair[1].IsZero() {
			return c
		}
	}
	return 0
}

// Latest returns the later of the times, zero if neither is known.
func (t Times) Latest() time.Time {
	if t.Updated.After(t.Checkpoint) {
		return t.Updated
	}
	return t.Checkpoint
}

// readTime parses a time as the service writes it, the zero time if it can't.
func readTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// Timeline returns the checkpoints newest first by their UTC time; those without a readable one come last.
func Timeline(cs []Checkpoint) []Checkpoint {
	sorted := slices.Clone(cs)
	slices.SortStableFunc(sorted, func(a, b Checkpoint) int {
		ta, _ := time.Parse(time.RFC3339, a.UTC) // the zero time if it can't be read
		tb, _ := time.Parse(time.RFC3339, b.UTC)
		return tb.Compare(ta)
	})
	return sorted
}

// WithOlder returns the checkpoints newest first, and after them those of older that are before the oldest of t: an
// event may omit these.
//
// Assumed: that a delivery holds the whole timeline is not shown.
func (t Tracking) WithOlder(older []Checkpoint) []Checkpoint {
	oldest := t.oldest()
	left := slices.DeleteFunc(slices.Clone(older), func(c Checkpoint) bool {
		at := readTime(c.UTC)
		return !oldest.IsZero() && !at.Before(oldest) || slices.ContainsFunc(t.Checkpoints, c.isSame)
	})
	return Timeline(slices.Concat(t.Checkpoints, left))
}

func (c Checkpoint) isSame(o Checkpoint) bool {
	return c.instant() == o.instant() && c.Event == o.Event && c.place() == o.place() && c.Local == o.Local
}

// Time returns the local time of a checkpoint. zoned says that its two times tell the offset of the zone; otherwise
// the zone means nothing. The time is zero if the local one can't be read.
func (c Checkpoint) Time() (at time.Time, zoned bool) {
	local, utc := readWallClock(c.Local), readTime(c.UTC)
	offset := local.Sub(utc)
	if local.IsZero() || utc.IsZero() || !isZoneOffset(offset) {
		return local, false
	}
	return utc.In(time.FixedZone("", int(offset.Round(offsetStep)/time.Second))), true
}

// Transit returns how long a delivered shipment was on its way, between its checkpoints; 0 if unknown.
func (t Tracking) Transit() time.Duration {
	first, last := t.oldest(), t.Times().Checkpoint
	if !t.Delivered() || first.Year() < firstYear || !last.After(first) {
		return 0
	}
	return last.Sub(first)
}

// Delivered reports whether the status is the one of a delivered shipment.
//
// Interface: States and transitions.
func (r Report) Delivered() bool { return r.HasStatus("1") || r.HasStatus("delivered") }

// oldest returns the time of the oldest checkpoint, zero if none can be read.
func (t Tracking) oldest() time.Time {
	var oldest time.Time
	for _, c := range t.Checkpoints {
		if at := readTime(c.UTC); !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest
}
