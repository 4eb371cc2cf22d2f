package tracking_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestTimesCompare(t *testing.T) {
	told := func(checkpoint, updated string) tracking.Tracking {
		return tracking.Tracking{Report: tracking.Report{LatestTime: checkpoint}, Updated: updated}
	}
	const early, late = "2026-01-05T08:00:00.000Z", "2026-01-05T09:00:00.000Z"
	list := tracking.Tracking{Checkpoints: []tracking.Checkpoint{{UTC: early}, {UTC: late}, {UTC: "soon"}}}
	for name, tt := range map[string]struct {
		a, b tracking.Tracking
		want int
	}{
		"newer checkpoint":              {told(late, ""), told(early, ""), 1},
		"checkpoint before record":      {told(late, early), told(early, late), 1},
		"equal checkpoints, newer":      {told(late, late), told(late, early), 1},
		"equal in other spelling":       {told("2026-01-05T09:00:00Z", ""), told("2026-01-05T10:00:00+01:00", ""), 0},
		"equal but for microseconds":    {told("2026-01-05T09:00:00.0001Z", ""), told(late, ""), 0},
		"no checkpoint on one side":     {told("", late), told(late, early), 1},
		"no record on one side":         {told(late, late), told(late, ""), 0},
		"nothing in common":             {told(late, ""), told("", early), 0},
		"nothing":                       {told("", ""), told("", ""), 0},
		"unreadable":                    {told("yesterday", "2026-01-05 09:00"), told(early, early), 0},
		"unreadable checkpoint":         {told("yesterday", late), told(early, early), 1},
		"list of checkpoints, newer":    {list, told(early, ""), 1},
		"list of checkpoints, the same": {list, told(late, ""), 0},
		"list beside the latest of both": {tracking.Tracking{
			Report:      tracking.Report{LatestTime: early},
			Checkpoints: list.Checkpoints,
		}, told(late, ""), -1},
	} {
		if got := tt.a.Times().Compare(tt.b.Times()); got != tt.want {
			t.Errorf("%s: %d; want %d", name, got, tt.want)
		}
		if got := tt.b.Times().Compare(tt.a.Times()); got != -tt.want {
			t.Errorf("%s, the other way round: %d; want %d", name, got, -tt.want)
		}
	}
}

func TestTransit(t *testing.T) {
	for _, c := range []struct {
		status string
		times  []string
		want   time.Duration
	}{
		{"1", []string{"2026-03-06T17:12:00Z", "2026-03-04T11:12:00Z"}, 54 * time.Hour},
		{"2", []string{"2026-03-06T17:12:00Z", "2026-03-04T11:12:00Z"}, 0}, // not delivered
		{"1", []string{"2026-03-06T17:12:00Z"}, 0},
		{"1", []string{"2026-03-06T17:12:00Z", "1970-01-01T00:00:00Z"}, 0}, // before tracking numbers
		{"1", nil, 0},
	} {
		tr := tracking.Tracking{Report: tracking.Report{Status: c.status}}
		for _, at := range c.times {
			tr.Checkpoints = append(tr.Checkpoints, tracking.Checkpoint{UTC: at})
		}
		if got := tr.Transit(); got != c.want {
			t.Errorf("status %s, %v: %v; want %v", c.status, c.times, got, c.want)
		}
	}
}

func TestWithOlderAddsWhatWasBeforeTheOldestCheckpoint(t *testing.T) {
	event := tracking.Tracking{Checkpoints: []tracking.Checkpoint{at("12", "Delivered", ""), at("11", "Departed", "Bonn"), {Event: "No time"}}}
	var got []string
	for _, c := range event.WithOlder([]tracking.Checkpoint{
		at("11", "Departed", "Rome"), at("11", "Arrived", ""), at("10", "Picked up", ""), {Event: "No time"}, {Event: "Another"},
	}) {
		got = append(got, c.Event+c.City)
	}
	if want := []string{"Delivered", "DepartedBonn", "Picked up", "No time", "Another"}; !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
	event.Checkpoints = nil
	if got := event.WithOlder([]tracking.Checkpoint{at("10", "a", ""), at("10", "a", "")}); len(got) != 2 {
		t.Errorf("an event without a timeline: %v", got)
	}
}

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
