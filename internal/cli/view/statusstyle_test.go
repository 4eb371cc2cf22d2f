package view_test

import (
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestPhaseStyle(t *testing.T) {
	n := view.NewStatusNames(map[string]string{"77": "returned to us", "78": "at the depot"})
	processed := func(number, label, track string) query.Tracking {
		return query.Tracking{Phase: ledger.Processed, Tracking: tracking.Tracking{Status: number, StatusLabel: label, StatusTrack: track}}
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
		{query.Tracking{Phase: query.Rejected, Superseded: true}, term.Faint},
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
