package command

import (
	"testing"
	"time"
)

func TestParseSince(t *testing.T) {
	now := time.Now()
	for s, want := range map[string]time.Time{
		"2026-11-20T08:00:00Z": time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC),
		"2026-11-20":           time.Date(2026, 11, 20, 0, 0, 0, 0, time.Local),
		"2h":                   now.Add(-2 * time.Hour),
		"7d":                   now.Add(-7 * 24 * time.Hour),
		"":                     {},
	} {
		got, err := ParseSince("--since", s)
		if err != nil || got.Sub(want).Abs() > time.Minute {
			t.Errorf("parseSince(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
	if _, err := ParseSince("--since", "yesterday"); err == nil {
		t.Error("yesterday was taken")
	}
}
