package webhook

import (
	"strconv"
	"time"
)

// maxSeconds is the last second that a timestamp may name: the end of the year
// 9999.
const maxSeconds = 253402300799

// parseTime reads a timestamp in one of the units. Those of seconds and
// milliseconds are digits and nothing else.
func parseTime(s, unit string) (time.Time, bool) {
	switch unit {
	case UnitRFC3339:
		t, err := time.Parse(time.RFC3339, s)
		return t, err == nil
	case UnitRFC2822:
		return parseRFC2822(s)
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return time.Time{}, false
	}
	if unit == UnitMilliseconds {
		return time.UnixMilli(int64(n)), n <= maxSeconds*1000+999
	}
	return time.Unix(int64(n), 0), n <= maxSeconds
}

// parseRFC2822 reads a date as in mail. Of zones by name it knows those that
// mean UTC: of others, package time would make up the offset.
func parseRFC2822(s string) (time.Time, bool) {
	for _, layout := range []string{
		"Mon, 2 Jan 2006 15:04:05 -0700",
		"2 Jan 2006 15:04:05 -0700",
		"Mon, 2 Jan 2006 15:04:05 GMT",
		"2 Jan 2006 15:04:05 GMT",
		"Mon, 2 Jan 2006 15:04:05 UT",
		"Mon, 2 Jan 2006 15:04:05 UTC",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// formatTime is the reverse of parseTime.
func formatTime(t time.Time, unit string) string {
	switch unit {
	case UnitRFC3339:
		return t.UTC().Format(time.RFC3339)
	case UnitRFC2822:
		return t.UTC().Format("Mon, 2 Jan 2006 15:04:05 +0000")
	case UnitMilliseconds:
		return strconv.FormatInt(t.UnixMilli(), 10)
	default:
		return strconv.FormatInt(t.Unix(), 10)
	}
}
