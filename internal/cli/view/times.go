package view

import (
	"fmt"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// minuteForm is how a terminal shows a time: to the minute, with its offset.
const minuteForm = "2006-01-02 15:04 -07:00"

// Minute shows a time of ours on a terminal, in the zone of this computer; empty
// for the zero time.
func Minute(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(minuteForm)
}

// nowFor is how long a moment counts as now.
const nowFor = 5 * time.Second

// Ago shows how long ago a time is, such as "3 min ago", rounded down. A time
// well ahead of now is shown as it is: a clock is wrong.
func Ago(t, now time.Time) string {
	switch age := now.Sub(t); {
	case t.IsZero():
		return ""
	case age < -time.Minute:
		return Minute(t)
	case age < nowFor:
		return "now"
	default:
		return Duration(age) + " ago"
	}
}

// day is how long a day is where no zone is known.
const day = 24 * time.Hour

// Duration shows a duration in its largest unit, rounded down; hours up to two
// days.
func Duration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return Number(int64(d/day)) + " days"
	}
}

// Source names where something was learnt from.
func Source(s ledger.Source) string {
	if s == ledger.FromEvent {
		return "webhook"
	}
	return string(s)
}

// Fresh shows how old what is known is, and where it is from, such as
// "3 min ago, webhook".
func Fresh(t, now time.Time, s ledger.Source) string {
	if t.IsZero() || s == "" {
		return Ago(t, now)
	}
	return Ago(t, now) + ", " + Source(s)
}

// CheckpointTime shows when a checkpoint was, by its own clock and with its offset
// where both of its times tell it. What is no time is shown as sent.
func CheckpointTime(c tracking.Checkpoint) string {
	at, zoned := c.Time()
	switch {
	case zoned:
		return at.Format(minuteForm)
	case !at.IsZero():
		return at.Format("2006-01-02 15:04")
	case c.Local != "":
		return c.Local
	}
	return ServiceTime(c.UTC)
}

// ServiceTime shows a time of the service's, which is UTC, in the zone of this
// computer; what is no time as sent.
func ServiceTime(s string) string {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return Minute(t)
	}
	return s
}
