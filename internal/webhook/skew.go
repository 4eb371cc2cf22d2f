package webhook

import (
	"slices"
	"time"
)

// How many refusals in a row say that a clock is wrong, and how far apart
// what they say of it may be.
const (
	skewVerdicts = 3
	skewSpread   = time.Minute
)

// Skew reports whether the last verdicts, oldest first, show that a clock is
// wrong, and by how much: above 0 the sender's is ahead. It takes three
// authentic deliveries in a row, signed at different times, refused for their
// timestamps alone and by about the same skew. Repeats of one delivery, as of a
// queue or an attacker, show nothing.
func Skew(last []Verdict) (time.Duration, bool) {
	if len(last) < skewVerdicts {
		return 0, false
	}
	last = last[len(last)-skewVerdicts:]
	var skews []time.Duration
	signed := map[int64]bool{}
	for _, v := range last {
		if v.OK || (v.Reason != ReasonTimestampTooOld && v.Reason != ReasonTimestampInFuture) {
			return 0, false
		}
		skews = append(skews, v.Skew)
		signed[v.Timestamp.UnixNano()] = true
	}
	slices.Sort(skews)
	if len(signed) < skewVerdicts || skews[len(skews)-1]-skews[0] > skewSpread {
		return 0, false
	}
	return skews[len(skews)/2], true
}
