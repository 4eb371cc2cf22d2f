package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// TimeOrNull returns a time in UTC for JSON, null for none.
func TimeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// Clock shows the time of day on this computer.
func Clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }

// JSONOrNull returns a JSON literal, null for an empty string; one that a store has cut becomes a string.
func JSONOrNull(s string) json.RawMessage {
	return rawJSON([]byte(cmp.Or(s, "null")))
}

// optional returns a JSON literal, left out for an empty string.
func optional(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return rawJSON([]byte(s))
}

// ErrorText returns what an error of the service says, given as its JSON literal: its message, else the literal.
func ErrorText(literal string) string {
	return cmp.Or(tracking.ReadBody([]byte(literal)).ErrorText(), Unquote(literal))
}

// Unquote returns the text of a JSON literal, also of a string that a store has cut.
func Unquote(literal string) string {
	var s string
	if json.Unmarshal([]byte(literal), &s) == nil {
		return s
	}
	if literal != "" && literal[0] == '"' {
		for n := range min(len(literal), len(`\u0000`)) { // the cut may be in an escape
			if json.Unmarshal([]byte(literal[:len(literal)-n]+`"`), &s) == nil {
				return s
			}
		}
	}
	return literal
}

// nowFor is how long a moment counts as now.
const nowFor = 5 * time.Second

// Ago shows how long ago a time is, such as "3 min ago", rounded down; one well ahead of now as is: a clock is wrong.
func Ago(t, now time.Time) string {
	switch age := now.Sub(t); {
	case t.IsZero():
		return ""
	case age < -time.Minute:
		return render.LocalMinute(t)
	case age < nowFor:
		return "now"
	default:
		return inUnit(age, time.Duration.Truncate) + " ago"
	}
}

// day is how long a day is where no zone is known.
const day = 24 * time.Hour

// Duration shows a duration in its largest unit, rounded; hours up to two days.
func Duration(d time.Duration) string { return inUnit(d, time.Duration.Round) }

func inUnit(d time.Duration, rounded func(d, unit time.Duration) time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", rounded(d, time.Second)/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", rounded(d, time.Minute)/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h", rounded(d, time.Hour)/time.Hour)
	default:
		return command.Number(int64(rounded(d, day)/day)) + " days"
	}
}

// Source names where something was learnt from.
func Source(s ledger.Source) string {
	if s == ledger.FromEvent {
		return "webhook"
	}
	return string(s)
}

// CheckpointTime shows a checkpoint by its own clock, with the offset if both times tell it; what is no time as sent.
func CheckpointTime(c tracking.Checkpoint) string {
	at, zoned := c.Time()
	switch {
	case zoned:
		return at.Format("2006-01-02 15:04 -07:00")
	case !at.IsZero():
		return at.Format("2006-01-02 15:04")
	case c.Local != "":
		return c.Local
	}
	return ServiceTime(c.UTC, render.LocalMinute)
}

// ServiceTime shows a time of the service's as one of ours; what is no time as sent.
func ServiceTime(s string, form func(time.Time) string) string {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return form(t)
	}
	return s
}

// UTCMinute shows a time of the service's as UTC to the minute; what is no time as sent.
func UTCMinute(s string) string {
	return ServiceTime(s, func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") })
}

// Sink shows a sink: its filter, and where it sends to.
func Sink(k inbox.Sink) string {
	name := Target(k)
	if k.Filter != "" {
		name = k.Filter + "=>" + name
	}
	return name
}

// Target shows the URL of a sink, with what may be a token masked.
func Target(k inbox.Sink) string {
	u, err := forward.ParseURL(k.URL)
	if err != nil {
		return redact.Mask
	}
	return forward.ShowURL(u)
}
