package tracking

import (
	"slices"
	"time"
)

// Times are when the service knew something of a shipment, by its own word. A
// zero time was not sent, or can't be read.
type Times struct {
	Checkpoint time.Time // of the latest checkpoint
	Updated    time.Time // of the service's record
}

// Times returns the times of a tracking, in milliseconds and UTC. An answer
// without latestCheckpointTime may have checkpoints all the same.
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

// Compare returns 1 if t is newer than u, -1 if it is older, and 0 if they do
// not tell. The latest checkpoint decides, and the time of the record where the
// checkpoints are equal or one is not known.
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

// readTime reads a time as the service writes it, the zero time if it can't.
func readTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// Timeline returns the checkpoints newest first by their UTC time; those
// without a readable one keep their place after the others.
func Timeline(cs []Checkpoint) []Checkpoint {
	sorted := slices.Clone(cs)
	slices.SortStableFunc(sorted, func(a, b Checkpoint) int {
		ta, _ := time.Parse(time.RFC3339, a.UTC) // the zero time if it can't be read
		tb, _ := time.Parse(time.RFC3339, b.UTC)
		return tb.Compare(ta)
	})
	return sorted
}

// WithOlder returns the checkpoints newest first, and after them those of older that
// are before the oldest of them: an event may leave these out.
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

// isSame reports whether two checkpoints say the same.
func (c Checkpoint) isSame(o Checkpoint) bool {
	return c.instant() == o.instant() && c.Event == o.Event && c.place() == o.place() && c.Local == o.Local
}

// Time returns when a checkpoint was by the clock on its wall. zoned says that the
// two times tell the clock's offset; without it, the zone means nothing. The time
// is zero if the local one can't be read.
func (c Checkpoint) Time() (at time.Time, zoned bool) {
	local, utc := readWallClock(c.Local), readTime(c.UTC)
	offset := local.Sub(utc)
	if local.IsZero() || utc.IsZero() || !isZoneOffset(offset) {
		return local, false
	}
	return utc.In(time.FixedZone("", int(offset.Round(offsetStep)/time.Second))), true
}

// Transit returns how long a delivered shipment was on its way, from its first to
// its last checkpoint; 0 if that is not known.
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
func (t Tracking) Delivered() bool { return t.HasStatus("1") || t.HasStatus("delivered") }

// oldest returns the time of the oldest checkpoint, zero if there is none that
// can be read.
func (t Tracking) oldest() time.Time {
	var oldest time.Time
	for _, c := range t.Checkpoints {
		if at := readTime(c.UTC); !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest
}
