package render

import "time"

// LocalTime returns t for people, in the machine's zone and with its offset,
// such as "2025-11-21 14:03:05 +01:00". It is empty for the zero time.
func LocalTime(t time.Time) string { return timeIn(t, time.Local) }

func timeIn(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return t.In(zone).Format("2006-01-02 15:04:05 -07:00")
}

// LocalMinute is [LocalTime] without seconds.
func LocalMinute(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(time.Local).Format("2006-01-02 15:04 -07:00")
}
