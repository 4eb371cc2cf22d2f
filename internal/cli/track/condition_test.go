package track

import (
	"testing"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestConditions(t *testing.T) {
	found := func(phase ledger.Phase, t tracking.Tracking) query.Tracking {
		return query.Tracking{Tracking: t, Phase: phase}
	}
	done := found(ledger.Processed, tracking.Tracking{Status: "1", StatusLabel: "DELIVERED", StatusTrack: "delivered"})
	moving := found(ledger.Processed, tracking.Tracking{Status: "7", StatusLabel: "MOVING"})
	tests := []struct {
		condition string
		found     []query.Tracking
		want      bool
	}{
		{"processed", []query.Tracking{done}, true},
		{"processed", []query.Tracking{done, found(ledger.Processing, tracking.Tracking{})}, false},
		{"processed", nil, false},
		{"status=1", []query.Tracking{done}, true},
		{"status=Delivered", []query.Tracking{done}, true},
		{"status=DELIVERED", []query.Tracking{done, moving}, false},
		{"status=7", []query.Tracking{moving}, true},
		{"event=x", []query.Tracking{done}, true}, // as far as a result shows
		{"change", []query.Tracking{done}, true},
	}
	for _, tt := range tests {
		c, err := parseCondition(nil, "--for", tt.condition)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Met(query.Result{Trackings: tt.found}); got != tt.want {
			t.Errorf("%s met by %+v: %v; want %v", tt.condition, tt.found, got, tt.want)
		}
	}
	for _, s := range []string{"", "status=", "delivered", "event=", "changes"} {
		if _, err := parseCondition(nil, "--for", s); err == nil {
			t.Errorf("--for %q was taken", s)
		}
	}
}

func TestChanged(t *testing.T) {
	at := func(phase ledger.Phase, t tracking.Tracking) query.Tracking {
		return query.Tracking{Tracking: t, Phase: phase}
	}
	whole := at(ledger.Processed, tracking.Tracking{Status: "7", StatusLabel: "MOVING", StatusTrack: "moving", LatestEvent: "Left", LatestTime: "t"})
	for _, tt := range []struct {
		was, now query.Tracking
		want     bool
	}{
		{whole, whole, false},
		{whole, at(ledger.Processed, tracking.Tracking{Status: "7", LatestEvent: "Left"}), false}, // has less
		{at(ledger.Processed, tracking.Tracking{Status: "7"}), whole, false},
		{whole, at(ledger.Processed, tracking.Tracking{Status: "1"}), true},
		{whole, at(ledger.Processed, tracking.Tracking{Status: "7", LatestEvent: "Arrived"}), true},
		{at(ledger.Processing, tracking.Tracking{}), whole, true},
		{at(query.Undecided, tracking.Tracking{}), whole, false},
		{whole, at(ledger.Absent, tracking.Tracking{}), true},
	} {
		if got := query.KnownOf(tt.was).Differs(query.KnownOf(tt.now)); got != tt.want {
			t.Errorf("changed from %+v to %+v: %v; want %v", tt.was, tt.now, got, tt.want)
		}
	}
}
