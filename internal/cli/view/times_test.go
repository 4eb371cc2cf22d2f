package view_test

import (
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 22, 14, 3, 5, 0, time.UTC)
	for _, c := range []struct {
		age  time.Duration
		want string
	}{
		{-30 * time.Second, "now"},
		{4 * time.Second, "now"},
		{45 * time.Second, "45 s ago"},
		{3*time.Minute + 59*time.Second, "3 min ago"},
		{2 * time.Hour, "2 h ago"},
		{47 * time.Hour, "47 h ago"},
		{4*24*time.Hour + 23*time.Hour, "4 days ago"},
		{1200 * 24 * time.Hour, "1,200 days ago"},
	} {
		if got := view.Ago(now.Add(-c.age), now); got != c.want {
			t.Errorf("%v: %q; want %q", c.age, got, c.want)
		}
	}
	if got, want := view.Ago(now.Add(time.Hour), now), render.LocalMinute(now.Add(time.Hour)); got != want {
		t.Errorf("a time ahead is %q; want %q", got, want)
	}
	if got := view.Ago(time.Time{}, now); got != "" {
		t.Errorf("no time is %q", got)
	}
}

func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		1400 * time.Millisecond: "1 s", 90 * time.Second: "2 min", 3 * time.Hour: "3 h", 47 * time.Hour: "47 h",
		3*day + 21*time.Hour: "4 days", 54 * time.Hour: "2 days",
	} {
		if got := view.Duration(d); got != want {
			t.Errorf("%v: %q; want %q", d, got, want)
		}
	}
}

func TestCheckpointTime(t *testing.T) {
	for _, c := range []struct{ local, utc, want string }{
		{"2026-11-23T17:32:00", "2026-11-24T01:32:00Z", "2026-11-23 17:32 -08:00"},
		{"2026-11-23T17:32", "2026-11-23T11:47:30.000Z", "2026-11-23 17:32 +05:45"},
		{"2026-11-23T17:32:00", "", "2026-11-23 17:32"},
		{"2026-11-23T17:32:00", "2026-11-20T01:32:00Z", "2026-11-23 17:32"}, // no zone's offset
		{"soon", "2026-11-24T01:32:00Z", "soon"},
		{"", "2026-11-24T01:32:00Z", render.LocalMinute(time.Date(2026, 11, 24, 1, 32, 0, 0, time.UTC))},
		{"", "soon", "soon"},
		{"", "", ""},
	} {
		if got := view.CheckpointTime(tracking.Checkpoint{Local: c.local, UTC: c.utc}); got != c.want {
			t.Errorf("%q, %q: %q; want %q", c.local, c.utc, got, c.want)
		}
	}
}
