package bulk_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func timeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

func TestFirstContactIsOneRowAlone(t *testing.T) {
	db, f := open(t), newFake()
	run := stage(t, db, ledger.Async, 10, 35)
	j := proving(db, run, f)
	j.Canary, j.Workers = true, 1
	carry(t, j, db, ledger.Counts{Accepted: 35})
	if !slices.Equal(f.sizes, []int{1, 9, 10, 10, 5}) || f.asked != 1 {
		t.Errorf("requests of %v rows, asked %d times; want one alone, asked for", f.sizes, f.asked)
	}
	// An account that was in contact, and a single batch, need none.
	j = proving(db, stageItems(t, db, ledger.Plan{BatchSize: 10}, manyItems("x", 20)...), f)
	j.Canary = true
	carry(t, j, db, ledger.Counts{Accepted: 20})
	db, f = open(t), newFake()
	j = proving(db, stage(t, db, ledger.Async, 10, 10), f)
	j.Canary = true
	carry(t, j, db, ledger.Counts{Accepted: 10})
	if len(f.sizes) != 1 {
		t.Errorf("requests of %v rows; want one", f.sizes)
	}
}

func TestFirstRowThatIsNotShownStopsTheRun(t *testing.T) {
	db, f := open(t), newFake()
	f.blind = true
	run := stage(t, db, ledger.Async, 10, 35)
	j := proving(db, run, f)
	j.Canary, j.Query = true, time.Second
	_, err := j.Carry(t.Context(), t.Context())
	var stop *bulk.StopError
	if !errors.As(err, &stop) || stop.Cause != tracking.OutcomeUnknown {
		t.Errorf("err = %v", err)
	}
	if c := counts(t, db, run); c != (ledger.Counts{Accepted: 1, Pending: 34}) {
		t.Errorf("%+v", c)
	}
	// The next try asks for that row, and sends no other one first.
	f.blind = false
	j = proving(db, run, f)
	j.Canary, j.Workers = true, 1
	carry(t, j, db, ledger.Counts{Accepted: 35})
	if !slices.Equal(f.sizes[:2], []int{1, 9}) {
		t.Errorf("requests of %v rows", f.sizes)
	}
}

func TestRejectedFirstRowIsNotTheLastTry(t *testing.T) {
	db, f := open(t), newFake()
	f.create = poison("R0", "R1")
	j := proving(db, stage(t, db, ledger.Async, 10, 35), f)
	j.Canary = true
	carry(t, j, db, ledger.Counts{Accepted: 33, Rejected: 2})
	if !slices.Equal(f.sizes[:3], []int{1, 1, 1}) {
		t.Errorf("requests of %v rows", f.sizes)
	}
}

func TestFirstRowOfUnknownOutcomeIsAskedFor(t *testing.T) {
	db, f := open(t), newFake()
	f.create = losing(1, 1, true)
	j := proving(db, stage(t, db, ledger.Async, 10, 35), f)
	j.Canary = true
	carry(t, j, db, ledger.Counts{Accepted: 35})
	if f.twice() > 0 || f.sizes[1] == 1 {
		t.Errorf("requests of %v rows, %d twice", f.sizes, f.twice())
	}
}

func TestPauseBeyondPatienceStops(t *testing.T) {
	for status, o := range map[int]tracking.Outcome{429: tracking.OutcomeThrottled, 503: tracking.OutcomeUnknown} {
		db, f := open(t), newFake()
		f.create = func(int, []tracking.Item) (bool, *tracking.Reply) {
			r := refused(status, o)
			r.RetryAfter = time.Hour
			return false, r
		}
		soft, end := timeout(t, 10*time.Second)
		_, err := proving(db, stage(t, db, ledger.Async, 10, 50), f).Carry(t.Context(), soft)
		end()
		var stop *bulk.StopError
		if !errors.As(err, &stop) || stop.Cause != o {
			t.Errorf("%d: err = %v", status, err)
		}
	}
}
