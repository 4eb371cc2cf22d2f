package query

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestChanged(t *testing.T) {
	of := func(phase ledger.Phase, t tracking.Tracking) Tracking {
		t.Number = "N-1"
		return Tracking{Tracking: t, Phase: phase, Source: ledger.FromQuery}
	}
	whole := of(ledger.Processed, tracking.Tracking{Report: tracking.Report{
		Status:      "7",
		StatusLabel: "MOVING", StatusTrack: "moving", LatestEvent: "Left", LatestTime: "t",
	}})
	unasked := of(ledger.Processed, tracking.Tracking{Report: tracking.Report{Status: "1"}})
	unasked.Source = ""
	for _, tt := range []struct {
		was, now Tracking
		want     bool
	}{
		{whole, whole, false},
		// What a response lacks is no difference.
		{whole, of(ledger.Processed, tracking.Tracking{Report: tracking.Report{Status: "7", LatestEvent: "Left"}}), false},
		{of(ledger.Processed, tracking.Tracking{Report: tracking.Report{Status: "7"}}), whole, false},
		{whole, of(ledger.Processed, tracking.Tracking{Report: tracking.Report{Status: "1"}}), true},
		{whole, of(ledger.Processed, tracking.Tracking{Report: tracking.Report{StatusLabel: "DONE"}}), true},
		{whole, of(ledger.Processed, tracking.Tracking{Report: tracking.Report{StatusTrack: "delivered"}}), true},
		{whole, of(ledger.Processed, tracking.Tracking{Report: tracking.Report{Status: "7", LatestEvent: "Arrived"}}), true},
		{whole, of(ledger.Processed, tracking.Tracking{Report: tracking.Report{LatestTime: "u"}}), true},
		{whole, unasked, false},
		{of(ledger.Processing, tracking.Tracking{}), whole, true},
		{of(Undecided, tracking.Tracking{}), whole, false},
		{whole, of(NotAsked, tracking.Tracking{}), false},
		{whole, of(ledger.Absent, tracking.Tracking{}), true},
	} {
		target := &Target{First: []Known{KnownOf(tt.was)}}
		target.First[0].Number = "n1" // the same number
		other := Tracking{Tracking: told("N2", "NEW"), Phase: ledger.Processed, Source: ledger.FromQuery}
		if got := target.Changed(Result{Trackings: []Tracking{other, tt.now}}); got != tt.want {
			t.Errorf("changed from %+v to %+v: %v; want %v", tt.was, tt.now, got, tt.want)
		}
		if len(target.First) != 2 || target.First[1] != KnownOf(other) || target.Changed(Result{Trackings: []Tracking{other}}) {
			t.Errorf("known at first: %+v; want what was new too", target.First)
		}
	}
}

// The service is not asked about what it surely does not have.
func TestTargetsThatSkipQueries(t *testing.T) {
	is := func(number string, state ledger.State, reason string) ledger.TrackingStatus {
		r := row("R", number, "")
		r.State, r.Reason, r.Run = state, reason, 4
		return r
	}
	dismissed := is("N9", ledger.Rejected, "bad")
	dismissed.Dismissed = at
	for name, tt := range map[string]struct {
		rows             []ledger.TrackingStatus
		chosen           []string
		want             bool
		err              error
		message          string
		rejected         int64 // run of rejected rows
		known, submitted bool
	}{
		"nothing kept":    {},
		"not sent":        {rows: []ledger.TrackingStatus{is("N1", ledger.Pending, "")}, want: true, err: ErrNotSent, known: true},
		"one of two sent": {rows: []ledger.TrackingStatus{is("N1", ledger.Pending, ""), is("N2", ledger.Accepted, "")}, known: true, submitted: true},
		"unknown":         {rows: []ledger.TrackingStatus{is("N1", ledger.Unknown, "")}, known: true, submitted: true},
		"the other is chosen": {
			rows: []ledger.TrackingStatus{is("N1", ledger.Pending, ""), is("N2", ledger.Accepted, "")}, chosen: []string{"n 1"}, want: true, err: ErrNotSent, known: true,
		},
		"rejected":          {rows: []ledger.TrackingStatus{dismissed, is("N1", ledger.Rejected, "bad"), is("N2", ledger.Rejected, "worse")}, want: true, err: ErrRejected, message: ErrRejected.Error() + ": bad", rejected: 4, known: true},
		"without a reason":  {rows: []ledger.TrackingStatus{is("N1", ledger.Rejected, "")}, want: true, err: ErrRejected, message: ErrRejected.Error(), rejected: 4, known: true},
		"rejected, pending": {rows: []ledger.TrackingStatus{is("N1", ledger.Rejected, "bad"), is("N2", ledger.Pending, "")}, want: true, err: ErrNotSent, rejected: 4, known: true},
		"dismissed":         {rows: []ledger.TrackingStatus{dismissed}, want: true, known: true},
	} {
		target := &Target{rows: tt.rows, Chosen: tt.chosen}
		got, err := target.skipsQuery()
		if got != tt.want || !errors.Is(err, tt.err) || tt.err == nil && err != nil || tt.message != "" && err.Error() != tt.message {
			t.Errorf("%s: %v, %v; want %v, %v %s", name, got, err, tt.want, tt.err, tt.message)
		}
		if target.RunOf(ledger.Rejected) != tt.rejected || target.IsKnown() != tt.known || target.Accepted() != tt.submitted {
			t.Errorf("%s: rejected in run %d, known %v, accepted %v", name, target.RunOf(ledger.Rejected), target.IsKnown(), target.Accepted())
		}
	}
}

// What is not chosen is left out, unless the answer has nothing that is.
func TestNarrowedTargets(t *testing.T) {
	one, two := Tracking{Tracking: told("N1", "")}, Tracking{Tracking: told("N2", "")}
	for name, tt := range map[string]struct {
		chosen    []string
		all, want []Tracking
	}{
		"all":        {nil, []Tracking{one, two}, []Tracking{one, two}},
		"the second": {[]string{"n-2"}, []Tracking{one, two}, []Tracking{two}},
		"others":     {[]string{"N3"}, []Tracking{one, two}, []Tracking{one, two}},
	} {
		target := &Target{Chosen: tt.chosen}
		got := target.narrow(slices.Clone(tt.all))
		if !slices.EqualFunc(got, tt.want, func(a, b Tracking) bool { return a.Number == b.Number }) {
			t.Errorf("%s: %+v; want %+v", name, got, tt.want)
		}
	}
	late, other := row("R", "N1", ""), row("Q", "N1", "")
	late.Asked = at.Add(time.Hour)
	other.Asked = at
	target := &Target{rows: []ledger.TrackingStatus{late, other}}
	if got := target.lastAsked(); !got.Equal(late.Asked) || target.orderOf() != "" {
		t.Errorf("last asked %s, order %q", got, target.orderOf())
	}
	if got := target.RowOf(Tracking{Tracking: tracking.Tracking{ReferID: "Q", Number: "n1"}}); got != &target.rows[1] || target.RowOf(two) != nil {
		t.Errorf("row %+v", got)
	}
	if got := (&Target{rows: target.rows[:1]}).orderOf(); got != "R" {
		t.Errorf("order %q; want R", got)
	}
}
