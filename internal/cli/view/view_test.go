package view_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func count(number, label, track string, n int64) ledger.StatusCount {
	return ledger.StatusCount{Phase: ledger.Processed, Status: number, StatusLabel: label, StatusTrack: track, Trackings: n}
}

func phase(p ledger.Phase) query.Tracking { return query.Tracking{Phase: p} }

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		name   string
		names  map[string]string
		counts []ledger.StatusCount
		add    []query.Tracking
		want   string
	}{
		{
			name: "statuses by count, then the other phases in their order",
			counts: []ledger.StatusCount{
				{State: ledger.Accepted, Trackings: 1200},
				{Phase: ledger.Processing, Trackings: 98},
				count("2", "IN_TRANSIT", "in_transit", 431), count("1", "DELIVERED", "delivered", 11902),
				{State: ledger.Rejected, Trackings: 3},
				{State: ledger.Superseded, Trackings: 2},
				{State: ledger.Pending, Trackings: 4},
			},
			want: "13,640 trackings: 11,902 delivered · 431 in transit · 98 processing · 3 rejected · 2 superseded · 4 not sent yet · 1,200 not checked yet",
		},
		{
			name: "each phase by its word",
			add: []query.Tracking{
				phase(ledger.Absent), phase(query.NotSent), phase(query.Undecided), phase(query.Rejected),
				{Phase: query.Rejected, CloseReason: ledger.CloseReason{Superseded: true}},
				{Phase: query.Rejected, CloseReason: ledger.CloseReason{Dismissed: time.Unix(1, 0)}},
			},
			want: "6 trackings: 1 rejected · 1 superseded · 1 dismissed · 1 not found · 1 not sent yet · 1 not reported",
		},
		{
			name:   "the configuration's name first",
			names:  map[string]string{"7": "awaiting pickup"},
			counts: []ledger.StatusCount{count("7", "AP", "ap", 1)},
			want:   "1 tracking: 1 awaiting pickup",
		},
		{
			name:   "a status without a label by its number",
			counts: []ledger.StatusCount{count("42", "", "", 2), count(`"x"`, "", "", 1)},
			want:   "3 trackings: 2 42 · 1 x",
		},
		{
			name:   "a label and its track are one name",
			counts: []ledger.StatusCount{count("1", "DELIVERED", "delivered", 2), count("1", "", "delivered", 3)},
			want:   "5 trackings: 5 delivered",
		},
		{
			name:   "labels that would read alike stay as sent",
			counts: []ledger.StatusCount{count("2", "IN_TRANSIT", "", 2), count("2", "IN TRANSIT", "", 1)},
			want:   "3 trackings: 2 IN_TRANSIT · 1 IN TRANSIT",
		},
		{
			name:   "a label with two numbers shows them",
			counts: []ledger.StatusCount{count("1", "DELIVERED", "", 2), count("11", "DELIVERED", "", 1)},
			want:   "3 trackings: 2 delivered (1) · 1 delivered (11)",
		},
		{
			name:   "a status that is called as a phase is stays as sent",
			counts: []ledger.StatusCount{count("9", "REJECTED", "", 2), {Phase: query.Rejected, Trackings: 1}},
			want:   "3 trackings: 2 REJECTED · 1 rejected",
		},
		{
			name:   "hostile labels are made visible, and cut",
			counts: []ledger.StatusCount{count("3", "A\x1b[31m\n\u202eB"+strings.Repeat("x", 100), "", 1)},
			want:   `1 tracking: 1 a\u{1b}[31m\n\u{202e}bxxxxxxxxxxxxxxxxx…`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := view.NewSummary(view.NewStatusFormatter(c.names))
			for _, n := range c.counts {
				s.AddCount(n)
			}
			for _, tr := range c.add {
				s.AddResult(query.Result{Trackings: []query.Tracking{tr}})
			}
			if got := s.String(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestSummaryOfAFailedResult(t *testing.T) {
	s := view.NewSummary(nil)
	s.AddResult(query.Result{Err: errors.New("timeout")})
	s.AddResult(query.Result{Trackings: []query.Tracking{{
		Phase:    ledger.Processed,
		Tracking: tracking.Tracking{Report: tracking.Report{Status: "1", StatusLabel: "DELIVERED"}},
	}}})
	if got, want := s.String(), "2 trackings: 1 delivered · 1 failed"; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}

func TestSummaryTakesConstantMemory(t *testing.T) {
	s := view.NewSummary(nil)
	for i := range 100_000 {
		s.AddCount(count(fmt.Sprint(i), fmt.Sprint("S", i), "", 1))
	}
	j := s.JSON()
	if len(j.ByStatus) > 300 || j.Trackings != 100_000 {
		t.Fatalf("%d statuses of %d trackings", len(j.ByStatus), j.Trackings)
	}
	if last := j.ByStatus[len(j.ByStatus)-1]; last.Name != "other" || last.Trackings < 99_000 {
		t.Errorf("the last is %+v; want the others", last)
	}
	if got := s.String(); len(got) > 400 || !strings.HasSuffix(got, " other") {
		t.Errorf("the line is %q", got)
	}
}

func TestSummaryJSON(t *testing.T) {
	s := view.NewSummary(nil)
	s.AddCount(ledger.StatusCount{Phase: ledger.Absent, Trackings: 1})
	s.AddCount(count("1", "DELIVERED", "delivered", 2))
	closed := query.Tracking{Phase: query.Rejected, CloseReason: ledger.CloseReason{Superseded: true}}
	s.AddResult(query.Result{Trackings: []query.Tracking{closed}})
	got, err := json.Marshal(s.JSON())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"trackings":4,"byStatus":[` +
		`{"phase":"processed","status":1,"statusLabel":"DELIVERED","statusTrack":"delivered","name":"delivered","trackings":2},` +
		`{"phase":"rejected","status":null,"statusLabel":"","statusTrack":"","name":"superseded","trackings":1},` +
		`{"phase":"absent","status":null,"statusLabel":"","statusTrack":"","name":"not found","trackings":1}]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestKnown(t *testing.T) {
	at := time.Unix(1, 0)
	for want, st := range map[string]ledger.TrackingStatus{
		"not checked yet": {State: ledger.Accepted},
		"not reported":    {State: ledger.Accepted, Asked: at},
		"not sent yet":    {State: ledger.Pending},
		"sending":         {State: ledger.Sending},
		"unknown":         {State: ledger.Unknown},
		"rejected":        {State: ledger.Rejected},
		"superseded":      {State: ledger.Rejected, CloseReason: ledger.CloseReason{Superseded: true}},
		"dismissed":       {State: ledger.Rejected, CloseReason: ledger.CloseReason{Dismissed: at}},
		"not found":       {State: ledger.Accepted, Sighting: &ledger.Sighting{Phase: ledger.Absent}},
		"DELIVERED (1)": {
			State: ledger.Rejected, CloseReason: ledger.CloseReason{Superseded: true},
			Sighting: &ledger.Sighting{Phase: ledger.Processed, Report: tracking.Report{Status: "1", StatusLabel: "DELIVERED"}},
		},
	} {
		if got := view.StatusFormatter(nil).Phase(query.FromStore(st)); got != want {
			t.Errorf("%+v is %q; want %q", st, got, want)
		}
	}
}

// cell returns what a column of trackings shows.
func cell(t *testing.T, name string, terminal bool, now time.Time, l view.Line) string {
	t.Helper()
	for _, c := range (view.StatusFormatter{}).Columns(view.Reader{IsPerson: terminal, Now: now}) {
		if c.Name == name {
			return c.Cell(&l)
		}
	}
	t.Fatalf("no column %s", name)
	return ""
}

func TestLine(t *testing.T) {
	now := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
	at := time.Date(2026, 3, 6, 17, 12, 0, 0, time.UTC)
	seen := &ledger.Sighting{
		Phase:  ledger.Processed,
		Report: tracking.Report{Status: "2", StatusLabel: "MOVING"},
		Seen:   now.Add(-3 * time.Minute), Source: ledger.FromEvent, Shared: 2, Times: tracking.Times{Checkpoint: at},
	}
	known := view.KnownLine(&ledger.TrackingStatus{Item: tracking.Item{ReferID: "A", Number: "N"}, State: ledger.Accepted, Run: 7, Sighting: seen})
	asked := view.Line{Tracking: query.Tracking{Phase: ledger.Processed, Tracking: tracking.Tracking{Checkpoints: []tracking.Checkpoint{{UTC: "2026-03-05T00:00:00Z"}, {UTC: "2026-03-06T17:12:00Z"}}}}}
	elsewhere := view.KnownLine(&ledger.TrackingStatus{Item: tracking.Item{Number: "N"}, Sighting: seen})
	unnamed := view.Line{Tracking: query.Tracking{
		Phase:    ledger.Processed,
		Tracking: tracking.Tracking{Report: tracking.Report{Status: "2"}},
	}}
	failed := view.FailedLine(query.Result{Query: tracking.Query{ReferID: "B"}, Err: tracking.ErrUndecided})
	for _, c := range []struct {
		column   string
		terminal bool
		line     view.Line
		want     string
	}{
		{"STATUS", false, known, "MOVING (2)"},
		{"STATUS", true, known, "MOVING"},
		{"STATUS", true, unnamed, "2"},
		{"STATUS NUMBER", false, known, "2"},
		{"STATE", false, known, "accepted"},
		{"RUN", false, known, "7"},
		{"SOURCE", false, known, "webhook, of 2 with this number"},
		{"RECEIVED", true, known, "3 min ago, webhook, of 2 with this number"},
		{"CHECKPOINT", false, known, "2026-03-06T17:12:00.000Z"},
		{"CHECKPOINT", false, asked, "2026-03-06T17:12:00.000Z"},
		{"CHECKPOINT", true, asked, "18 h ago"},
		{"RECEIVED", true, asked, ""},
		{"STATE", false, asked, ""},
		{"STATE", false, elsewhere, "not created here"},
		{"STATUS", false, failed, "failed"},
		{"LATEST EVENT", false, failed, tracking.ErrUndecided.Error()},
		{"CHECKPOINT", true, failed, ""},
	} {
		if got := cell(t, c.column, c.terminal, now, c.line); got != c.want {
			t.Errorf("%s is %q; want %q", c.column, got, c.want)
		}
	}
}

// At 80 columns a list has what became of each order: its status, when it moved last,
// and what is wrong. STATE is there for what is not accepted.
func TestListAtEightyColumns(t *testing.T) {
	now := time.Now()
	seen := &ledger.Sighting{
		Phase: ledger.Processed,
		Report: tracking.Report{
			Status: "9002", StatusLabel: "SANDBOX_IN_TRANSIT",
			LatestEvent: "Arrived at the sorting hub",
		},
		CarrierCode: "dhl",
		Seen:        now.Add(-3 * time.Minute),
		Source:      ledger.FromEvent, Times: tracking.Times{Checkpoint: now.Add(-50 * time.Hour)},
	}
	line := view.KnownLine(&ledger.TrackingStatus{Item: tracking.Item{ReferID: "ORD-10000", Number: "9400111899223000001001"}, State: ledger.Accepted, Sighting: seen})
	shared := *seen
	shared.Shared = 2
	other := view.KnownLine(&ledger.TrackingStatus{Item: tracking.Item{ReferID: "ORD-10001", Number: "9400111899223000001002"}, State: ledger.Accepted, Sighting: &shared})
	if got := table(t, "100", now, &line, &other); !strings.HasSuffix(got, "3 min ago, webhook, of 2 with th…") {
		t.Errorf("with a number of two: %q", got)
	}
	rejected := view.KnownLine(&ledger.TrackingStatus{Item: tracking.Item{ReferID: "ORD-2", Number: "N2"}, State: ledger.Rejected, Reason: "no such carrier"})
	known := "ORD-10000 9400111899223000001001 SANDBOX_IN_TRANSIT 2 days ago"
	for _, c := range []struct {
		columns, want string
		lines         []*view.Line
	}{
		{"80", "REFERENCE NUMBER STATUS CHECKPOINT " + known, []*view.Line{&line}},
		{"80", "REFERENCE NUMBER STATUS CHECKPOINT ERROR " + strings.Replace(known, "TRANSIT", "TRAN…", 1) + " ORD-2 N2 rejected no such carrier", []*view.Line{&line, &rejected}},
		{"100", "REFERENCE NUMBER STATUS CHECKPOINT RECEIVED " + known + " 3 min ago, webhook", []*view.Line{&line}},
		{"200", "REFERENCE NUMBER CARRIER STATUS LATEST EVENT CHECKPOINT RECEIVED ORD-10000 9400111899223000001001 dhl SANDBOX_IN_TRANSIT Arrived at the sorting hub 2 days ago 3 min ago, webhook", []*view.Line{&line}},
		{"200", "REFERENCE NUMBER CARRIER STATE STATUS LATEST EVENT CHECKPOINT RECEIVED ERROR ORD-2 N2 rejected rejected no such carrier", []*view.Line{&rejected}},
	} {
		if got := table(t, c.columns, now, c.lines...); got != c.want {
			t.Errorf("%s columns: %q; want %q", c.columns, got, c.want)
		}
	}
}

// table returns the words of a table on a terminal of so many columns.
func table(t *testing.T, columns string, now time.Time, lines ...*view.Line) string {
	t.Helper()
	var buf bytes.Buffer
	io := term.New(nil, &buf, &buf, term.Facts{OutTerminal: true, Env: map[string]string{"NO_COLOR": "1", "COLUMNS": columns}})
	if err := command.PrintTable((&command.Output{}).On(io.Out), view.StatusFormatter{}.Columns(view.Reader{IsPerson: true, Now: now}), lines...); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(buf.String()), " ")
}

func TestPhaseStyle(t *testing.T) {
	n := view.NewStatusFormatter(map[string]string{"77": "returned to us", "78": "at the depot"})
	processed := func(number, label, track string) query.Tracking {
		return query.Tracking{Phase: ledger.Processed, Tracking: tracking.Tracking{Report: tracking.Report{
			Status:      number,
			StatusLabel: label, StatusTrack: track,
		}}}
	}
	for _, c := range []struct {
		tracking query.Tracking
		want     term.Style
	}{
		{processed("1", "DELIVERED", "delivered"), term.Good},
		{processed("1", "", ""), term.Good},
		{processed("", "", "delivered"), term.Good},
		{processed("2", "IN_TRANSIT", "in_transit"), term.Normal},
		{processed("5", "EXCEPTION", "exception"), term.Bad},
		{processed("6", "", "delivery_failed"), term.Bad},
		{processed("8", "UNDELIVERED", ""), term.Bad},
		{processed("9", "RETURN_TO_SENDER", ""), term.Bad},
		{processed("77", "", ""), term.Bad},
		{processed("78", "", ""), term.Normal},
		{query.Tracking{Phase: query.Rejected}, term.Bad},
		{query.Tracking{Phase: query.Rejected, CloseReason: ledger.CloseReason{Superseded: true}}, term.Faint},
		{query.Tracking{Phase: ledger.Absent}, term.Bad},
		{query.Tracking{Phase: ledger.Processing}, term.Normal},
		{query.Tracking{Phase: query.NotAsked}, term.Faint},
	} {
		if got := n.PhaseStyle(c.tracking); got != c.want {
			t.Errorf("%+v: style %d; want %d", c.tracking, got, c.want)
		}
	}
}

func TestFreshStyle(t *testing.T) {
	now := time.Now()
	old := query.Tracking{Learnt: now.Add(-49 * time.Hour)}
	if got := view.FreshStyle(old, now); got != term.Caution {
		t.Errorf("a stale one has style %d", got)
	}
	if old.Status = "1"; view.FreshStyle(old, now) != term.Normal {
		t.Error("a delivered one is never stale")
	}
	if got := view.FreshStyle(query.Tracking{}, now); got != term.Normal {
		t.Errorf("one of which nothing is known has style %d", got)
	}
}

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

// A store cuts what is very long: a literal that was cut is a text.
func TestLiteralsThatWereCut(t *testing.T) {
	for literal, want := range map[string]string{
		"":              `null`,
		"1":             `1`,
		`"DELIVERED"`:   `"DELIVERED"`,
		`"a very lo`:    `"\"a very lo"`,
		"\"cut \\u00":   `"\"cut \\u00"`,
		`{"a":1} and x`: `"{\"a\":1} and x"`,
	} {
		got, err := json.Marshal(view.JSONOrNull(literal))
		if err != nil || string(got) != want {
			t.Errorf("%s became %s, %v; want %s", literal, got, err, want)
		}
	}
}

func TestTextsThatWereCut(t *testing.T) {
	for literal, want := range map[string]string{
		`"a"`: "a", `7`: "7", `{"a":1`: `{"a":1`, `"`: "", `"a very lo`: "a very lo", `"\u003cb\u003e\u003`: "<b>", `"a\\`: `a\`, `"a\\\`: `a\`,
	} {
		if got := view.Unquote(literal); got != want {
			t.Errorf("%s became %q; want %q", literal, got, want)
		}
	}
}

// However many statuses there are, a sum never counts a problem among others.
func TestSumsHideNoProblem(t *testing.T) {
	s := view.NewSummary(nil)
	add := func(label string, n int64) {
		s.AddCount(ledger.StatusCount{Phase: ledger.Processed, StatusLabel: label, Trackings: n})
	}
	for i := range 300 {
		add(fmt.Sprint("STEP_", i), 10)
	}
	add("LOST", 1)
	s.AddCount(ledger.StatusCount{Phase: ledger.InError, Trackings: 2})
	for i := range 20 {
		add(fmt.Sprint("EXCEPTION_", i), 1)
	}
	line := s.String()
	if !strings.Contains(line, "23 other problems") || strings.Contains(line, "2 error") {
		t.Errorf("beyond what is counted: %s", line)
	}
	few := view.NewSummary(nil)
	for i := range 15 {
		few.AddCount(ledger.StatusCount{Phase: ledger.Processed, StatusLabel: fmt.Sprint("STEP_", i), Trackings: 10})
	}
	few.AddCount(ledger.StatusCount{Phase: ledger.Processed, StatusLabel: "LOST", Trackings: 1})
	few.AddCount(ledger.StatusCount{Phase: ledger.InError, Trackings: 2})
	if line := few.String(); !strings.Contains(line, "1 lost") || !strings.Contains(line, "2 error") || !strings.Contains(line, "30 other") {
		t.Errorf("beyond what is named: %s", line)
	}
}

// What a report says reaches JSON by way of a sighting: a field that somebody forgot to pass on would be missing.
func TestEveryFieldOfAReportIsShown(t *testing.T) {
	var report tracking.Report
	fields := reflect.ValueOf(&report).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetString(fmt.Sprint(1001 + i)) // a text, and a JSON literal
	}
	item := tracking.Item{ReferID: "R", Number: "N"}
	seen := ledger.NewSighting(tracking.Tracking{Report: report},
		ledger.Processed, item.Key(), time.Unix(1, 0), ledger.FromQuery)
	line := view.KnownLine(&ledger.TrackingStatus{Item: item, State: ledger.Accepted, Sighting: &seen})
	shown, err := json.Marshal(view.NewStatusFormatter(nil).Tracking(&line))
	if err != nil {
		t.Fatal(err)
	}
	for i := range fields.NumField() {
		if !strings.Contains(string(shown), fields.Field(i).String()) {
			t.Errorf("%s is missing in %s", fields.Type().Field(i).Name, shown)
		}
	}
}
