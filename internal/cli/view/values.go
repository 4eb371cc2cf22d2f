package view

import (
	"encoding/json"
	"time"
)

// TimeOrNull returns a time in UTC for JSON, null for none.
func TimeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Clock shows the time of day on this computer.
func Clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }

// JSONOrNull returns a JSON literal, null for an empty string. A store cuts a very long
// one, so that it is none any more: it becomes a string.
func JSONOrNull(s string) json.RawMessage {
	if s == "" {
		return json.RawMessage("null")
	}
	return rawJSON([]byte(s))
}

// optional returns a JSON literal, left out for an empty string.
func optional(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// Unquote returns the text of a JSON literal.
func Unquote(literal string) string {
	var s string
	if json.Unmarshal([]byte(literal), &s) == nil {
		return s
	}
	return literal
}
