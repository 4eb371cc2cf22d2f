package track

import (
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// Shares of transit times are of the trackings that have one.
func TestSharesOfTransitTimes(t *testing.T) {
	groups := []ledger.Group{
		{StatusCount: ledger.StatusCount{Phase: ledger.Processed, Status: "1", Trackings: 3}, TransitDays: 2},
		{StatusCount: ledger.StatusCount{Phase: ledger.Processed, Status: "7", Trackings: 9}, TransitDays: ledger.UnknownTransit},
	}
	want := map[string]int64{"status": 12, "transit time": 3}
	all := newSums(nil)
	all.add(groups, time.Now())
	for _, s := range all.sections() {
		if s.of != want[s.title] {
			t.Errorf("shares of %s are of %d trackings; want %d", s.title, s.of, want[s.title])
		}
	}
}
