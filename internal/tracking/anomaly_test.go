package tracking_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// shown is a timeline in a few words: each event with what is marked.
func shown(entries []tracking.Entry) []string {
	var all []string
	for _, e := range entries {
		s := e.Event
		for _, a := range e.Anomalies {
			s += ", " + string(a.Kind) + ": " + a.Message
		}
		all = append(all, s)
	}
	return all
}

func TestEntriesMarkTimes(t *testing.T) {
	learnt := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct{ local, utc, want string }{
		"nothing":                {"", "", ""},
		"west":                   {"2026-02-28T22:00:00", "2026-03-01T10:00:00Z", ""},
		"further west":           {"2026-02-28T21:45:00", "2026-03-01T10:00:00Z", "impossible_offset: offset -12:15 impossible"},
		"east":                   {"2026-03-02T00:00:00", "2026-03-01T10:00:00Z", ""},
		"further east":           {"2026-03-02T00:15:00", "2026-03-01T10:00:00Z", "impossible_offset: offset +14:15 impossible"},
		"Nepal":                  {"2026-03-01T15:45:00", "2026-03-01T10:00:00.000Z", ""},
		"ten minutes":            {"2026-03-01T10:10:00", "2026-03-01T10:00:00Z", "impossible_offset: offset +00:10 impossible"},
		"half a minute":          {"2026-03-01T10:01:30", "2026-03-01T10:00:00Z", "impossible_offset: offset +00:01:30 impossible"},
		"cut to the minute":      {"2026-03-01 11:00", "2026-03-01T10:00:59.500Z", ""},
		"a day":                  {"2026-03-02T12:00:00", "2026-03-01T10:00:00Z", "impossible_offset: offset +26:00 impossible"},
		"with its zone":          {"2026-03-01T11:00:00+01:00", "2026-03-01T10:00:00Z", ""},
		"with an impossible one": {"2026-03-02T12:00:00Z", "2026-03-01T10:00:00Z", "impossible_offset: offset +26:00 impossible"},
		"UTC unreadable":         {"2026-03-01T11:00:00", "01.03.2026", "unreadable_time: UTC time unreadable"},
		"local unreadable":       {"noon", "2026-03-01T10:00:00Z", "unreadable_time: local time unreadable"},
		"both unreadable":        {"noon", "midnight", ""},
		"local alone":            {"2026-03-01T11:00:00", "", ""},
		"long ago":               {"1970-01-01T00:00:00", "1970-01-01T00:00:00Z", "impossible_time: before 1990"},
		"announced":              {"", "2026-12-24T00:00:00Z", ""},
		"far ahead":              {"", "2062-03-01T00:00:00Z", "impossible_time: over a year in the future"},
	} {
		t.Run(name, func(t *testing.T) {
			got := shown(tracking.Entries([]tracking.Checkpoint{{Event: "e", Local: tt.local, UTC: tt.utc}}, learnt))
			want := "e"
			if tt.want != "" {
				want += ", " + tt.want
			}
			if len(got) != 1 || got[0] != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// at is a checkpoint: its hour, event and city.
func at(hour, event, city string) tracking.Checkpoint {
	return tracking.Checkpoint{Event: event, City: city, UTC: "2026-03-01T" + hour + ":00:00Z"}
}

func TestEntriesMarkRepeatedOnes(t *testing.T) {
	form := at("10", "Arrived", "Bonn")
	form.UTC = "2026-03-01T10:00:00.000Z"
	got := shown(tracking.Entries([]tracking.Checkpoint{
		at("09", "Picked up", "Köln"), at("10", "Arrived", "Bonn"), form, at("10", "Arrived", "Rome"), at("10", "Sorted", "Bonn"), {}, {},
	}, time.Time{}))
	want := []string{"Arrived", "Arrived, repeated: repeated", "Arrived, repeated: repeated with another place", "Sorted", "Picked up", "", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
