package render

import "time"

// withOffset is the layout of a time whose zone is seen.
const withOffset = "2006-01-02 15:04:05 -07:00"

// LocalTime returns t for people, in the machine's zone and with its offset,
// such as "2025-11-21 14:03:05 +01:00". It is empty for the zero time.
func LocalTime(t time.Time) string { return timeIn(t, time.Local, withOffset) }

// UTCTime returns t in RFC 3339 and UTC: the same on every machine. It is empty for the
// zero time.
func UTCTime(t time.Time) string { return timeIn(t, time.UTC, time.RFC3339) }

// LocalMinute is [LocalTime] without seconds.
func LocalMinute(t time.Time) string { return timeIn(t, time.Local, "2006-01-02 15:04 -07:00") }

// LocalDateTime is [LocalTime] without the offset, as a spreadsheet takes it for a time.
func LocalDateTime(t time.Time) string { return timeIn(t, time.Local, time.DateTime) }

func timeIn(t time.Time, zone *time.Location, layout string) string {
	if t.IsZero() {
		return ""
	}
	return t.In(zone).Format(layout)
}
