package tracking_test

import (
	"bytes"
	"strings"
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

func TestDigest(t *testing.T) {
	base := tracking.Tracking{Status: "1", StatusLabel: "DELIVERED", Checkpoints: []tracking.Checkpoint{at("10", "a", "x"), at("11", "b", "y")}}
	same := base
	same.Updated, same.Checkpoints = "later", []tracking.Checkpoint{base.Checkpoints[1], base.Checkpoints[0]}
	if got, want := string(same.Digest()), string(base.Digest()); got != want || len(got) != 16 {
		t.Errorf("in another order: %x, want %x", got, want)
	}
	status, text, twice := base, base, base
	status.Status = "2"
	text.Checkpoints = []tracking.Checkpoint{base.Checkpoints[0], at("11", "B", "y")}
	twice.Checkpoints = append([]tracking.Checkpoint{base.Checkpoints[0]}, base.Checkpoints...)
	for name, other := range map[string]tracking.Tracking{"status": status, "text": text, "twice": twice} {
		if bytes.Equal(other.Digest(), base.Digest()) {
			t.Errorf("%s: the same digest", name)
		}
	}
	one, two := base, base
	one.Number, two.Number = "N-1", "N2"
	order, again := tracking.Answer{Trackings: []tracking.Tracking{one, two, {Number: "N3"}}}, tracking.Answer{Trackings: []tracking.Tracking{two, one}}
	if !bytes.Equal(order.Digest(), again.Digest()) || bytes.Equal(order.Digest(), tracking.Answer{Trackings: order.Trackings[:1]}.Digest()) {
		t.Error("the digest of an answer is not that of the trackings it knows")
	}
	if d := (tracking.Answer{Processing: true}).Digest(); d != nil {
		t.Errorf("an answer that knows nothing: %x", d)
	}
	if d := (tracking.Tracking{Number: "n", Processing: true}).Digest(); d != nil {
		t.Errorf("nothing known: %x", d)
	}
}

// version is what an answer or, with a +, an event said: a status and a timeline
// of checkpoints "10 event city".
func version(n int, status string, checkpoints ...string) tracking.Version {
	v := tracking.Version{Learnt: time.Date(2026, 3, 2, n, 0, 0, 0, time.UTC)}
	v.StatusLabel, v.Event = strings.CutPrefix(status, "+")
	v.Processing = v.StatusLabel == "processing"
	if v.Processing {
		v.StatusLabel = ""
	}
	for _, c := range checkpoints {
		parts := strings.SplitN(c, " ", 3)
		v.Checkpoints = append(v.Checkpoints, at(parts[0], parts[1], parts[2]))
	}
	return v
}

// change is a change in a few words.
func change(c tracking.Change) string {
	var all []string
	add := func(is bool, s string) {
		if is {
			all = append(all, s)
		}
	}
	add(c.First, "first")
	add(c.Older, "older")
	add(c.Status, "status")
	for _, a := range c.Added {
		add(true, "+"+a.Event)
	}
	for _, r := range c.Removed {
		add(true, "-"+r.Event)
	}
	for _, r := range c.Rewritten {
		add(true, r.Was.Event+">"+r.Is.Event)
	}
	for _, a := range c.Anomalies {
		add(true, string(a.Kind))
	}
	for _, e := range c.Marked {
		add(true, e.Event+":"+string(e.Anomalies[0].Kind))
	}
	add(c.None(), "none")
	return strings.Join(all, " ")
}

func TestVersionLog(t *testing.T) {
	full := []string{"10 A x", "11 B y", "12 C z"}
	for name, tt := range map[string]struct {
		versions []tracking.Version
		changes  []string
		entries  []string
		state    []string
	}{
		"grows": {
			[]tracking.Version{version(1, "MOVING", full[:1]...), version(2, "MOVING", full...), version(3, "DELIVERED", "12 C z", "11 B y", "10 A x")},
			[]string{"first +A", "+B +C", "status"},
			[]string{"C", "B", "A"},
			nil,
		},
		"removed, rewritten, repeated": {
			[]tracking.Version{version(1, "MOVING", full...), version(2, "MOVING", "10 A x", "12 D z", "10 A x"), version(3, "MOVING", "10 A x", "12 D z", "10 A x")},
			[]string{"first +A +B +C", "+A -B C>D A:repeated", "none"},
			[]string{"D, rewritten: was: C", "B, removed: removed", "A", "A, repeated: repeated"},
			nil,
		},
		"the newest removed": {
			[]tracking.Version{version(1, "MOVING", full...), version(2, "MOVING", full[:2]...), version(3, "MOVING", full[:2]...)},
			[]string{"first +A +B +C", "-C time_back", "none"},
			[]string{"C, removed: removed", "B", "A"},
			[]string{"time_back: latest checkpoint was at 2026-03-01T12:00:00Z"},
		},
		"removed and restored": {
			[]tracking.Version{version(1, "MOVING", full...), version(2, "MOVING", full[1:]...), version(3, "MOVING", full...)},
			[]string{"first +A +B +C", "-A", "+A"},
			[]string{"C", "B", "A"},
			nil,
		},
		"other place": {
			[]tracking.Version{version(1, "MOVING", "10 A x"), version(2, "MOVING", "10 A y")},
			[]string{"first +A", "A>A"},
			[]string{"A, rewritten: was: x"},
			nil,
		},
		"delivered no more": {
			[]tracking.Version{version(1, "DELIVERED", full...), version(2, "MOVING", full...), version(3, "LOST", full...)},
			[]string{"first +A +B +C", "status status_back", "status"},
			[]string{"C", "B", "A"},
			[]string{"status_back: was DELIVERED"},
		},
		"delivered again": {
			[]tracking.Version{version(1, "delivered", full...), version(2, "MOVING", full...), version(3, "DELIVERED", full...)},
			[]string{"first +A +B +C", "status status_back", "status"},
			[]string{"C", "B", "A"},
			nil,
		},
		"processing again": {
			[]tracking.Version{version(1, "DELIVERED", full...), version(2, "processing")},
			[]string{"first +A +B +C", "status status_back"},
			[]string{"C", "B", "A"},
			[]string{"status_back: was DELIVERED"},
		},
		"an order of statuses is not known": {
			[]tracking.Version{version(1, "OUT_FOR_DELIVERY", full...), version(2, "REGISTERED", full...)},
			[]string{"first +A +B +C", "status"},
			[]string{"C", "B", "A"},
			nil,
		},
		"an event with its own checkpoint alone": {
			[]tracking.Version{version(1, "MOVING", full[:2]...), version(2, "+DELIVERED", full[2:]...), version(3, "DELIVERED", full...)},
			[]string{"first +A +B", "status +C", "none"},
			[]string{"C", "B", "A"},
			nil,
		},
		"an event that leaves one out between": {
			[]tracking.Version{version(1, "MOVING", full[:2]...), version(2, "+DELIVERED", full[0], full[2])},
			[]string{"first +A +B", "status +C -B"},
			[]string{"C", "B, removed: removed", "A"},
			nil,
		},
		"an event without a status": {
			[]tracking.Version{version(1, "DELIVERED", full...), version(2, "+", full...)},
			[]string{"first +A +B +C", "none"},
			[]string{"C", "B", "A"},
			nil,
		},
		"an answer older than the event": {
			[]tracking.Version{version(1, "+DELIVERED", full...), version(2, "MOVING", full[:2]...), version(3, "processing")},
			[]string{"first +A +B +C", "older", "older"},
			[]string{"C", "B", "A"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log tracking.VersionLog
			var changes, state []string
			for _, v := range tt.versions {
				changes = append(changes, change(log.Add(v)))
			}
			for _, a := range log.Anomalies() {
				state = append(state, string(a.Kind)+": "+a.Message)
			}
			if diff := cmp.Diff(tt.changes, changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.entries, shown(log.Entries())); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.state, state); diff != "" {
				t.Errorf("anomalies (-want +got):\n%s", diff)
			}
		})
	}
}
