package view_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
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
				{State: ledger.Rejected, Superseded: true, Trackings: 2},
				{State: ledger.Pending, Trackings: 4},
			},
			want: "13,640 trackings: 11,902 delivered · 431 in transit · 98 processing · 3 rejected · 2 superseded · 4 not sent yet · 1,200 not checked yet",
		},
		{
			name: "each phase by its word",
			add: []query.Tracking{
				phase(ledger.Absent), phase(query.NotSent), phase(query.Undecided), phase(query.Rejected),
				{Phase: query.Rejected, Superseded: true},
				{Phase: query.Rejected, Dismissed: time.Unix(1, 0)},
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
			s := view.NewSummary(view.NewStatusNames(c.names))
			for _, n := range c.counts {
				s.AddCount(n)
			}
			for _, tr := range c.add {
				s.Add(tr)
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
	s.AddResult(query.Result{Trackings: []query.Tracking{{Phase: ledger.Processed, Tracking: tracking.Tracking{Status: "1", StatusLabel: "DELIVERED"}}}})
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
	s.Add(query.Tracking{Phase: query.Rejected, Superseded: true})
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
		"superseded":      {State: ledger.Rejected, Superseded: true},
		"dismissed":       {State: ledger.Rejected, Dismissed: at},
		"not found":       {State: ledger.Accepted, Sighting: &ledger.Sighting{Phase: ledger.Absent}},
		"DELIVERED (1)":   {State: ledger.Rejected, Superseded: true, Sighting: &ledger.Sighting{Phase: ledger.Processed, Status: "1", StatusLabel: "DELIVERED"}},
	} {
		if got := view.StatusNames(nil).Phase(view.Known(st)); got != want {
			t.Errorf("%+v is %q; want %q", st, got, want)
		}
	}
}
