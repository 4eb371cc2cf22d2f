package bulk_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// poison are the referIds that a service refuses.
func poison(ids ...string) func(int, []tracking.Item) (bool, *tracking.Reply) {
	return refusing(422, ids...)
}

// conflict are the referIds that it says it has.
func conflict(ids ...string) func(int, []tracking.Item) (bool, *tracking.Reply) {
	return refusing(409, ids...)
}

func refusing(status int, ids ...string) func(int, []tracking.Item) (bool, *tracking.Reply) {
	return func(_ int, items []tracking.Item) (bool, *tracking.Reply) {
		if slices.ContainsFunc(items, func(it tracking.Item) bool { return slices.Contains(ids, it.ReferID) }) {
			return false, refused(status, tracking.OutcomeRows)
		}
		return true, took()
	}
}

func TestPoisonRowsStandAlone(t *testing.T) {
	t.Parallel()
	bad := []string{"R0", "R137", "R138", "R500", "R501", "R777", "R999"}
	db, f := open(t), newFake()
	f.create = poison(bad...)
	run := stage(t, db, ledger.Async, 1000, 1000)
	execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 993, Rejected: 7})
	if len(f.sizes) > 160 || f.twice() > 0 || len(f.created) != 993 {
		t.Errorf("%d calls, %d rows created, %d twice; want at most 160, 993 and none", len(f.sizes), len(f.created), f.twice())
	}
	for _, r := range reasons(t, db, run, ledger.Rejected) {
		if r != "refused" {
			t.Errorf("rejected because of %q", r)
		}
	}
	calls := len(f.sizes)
	execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 993, Rejected: 7})
	if len(f.sizes) != calls {
		t.Errorf("rejected rows were sent again by themselves")
	}
	f.create = nil
	j := proving(db, run, f)
	j.RetryRejected = true
	execute(t, j, db, ledger.Counts{Accepted: 1000})
	if f.twice() > 0 || len(f.created) != 1000 || len(f.sizes) != calls+1 {
		t.Errorf("%d rows created, %d twice, by %d requests more; want 1000, none and one", len(f.created), f.twice(), len(f.sizes)-calls)
	}
}

func TestMaxRejectsStops(t *testing.T) {
	t.Parallel()
	db, f := open(t), newFake()
	f.create = func(int, []tracking.Item) (bool, *tracking.Reply) { return false, refused(422, tracking.OutcomeRows) }
	run := stage(t, db, ledger.Async, 64, 640)
	j := proving(db, run, f)
	j.MaxRejects = 5
	_, err := j.Execute(t.Context(), t.Context())
	var stop *bulk.StopError
	if !errors.As(err, &stop) || !strings.Contains(stop.Why, "max-rejects") {
		t.Errorf("err = %v", err)
	}
	if c := counts(t, db, run); c.Rejected < 6 || c.Rejected > 10 || c.Pending != 640-c.Rejected {
		t.Errorf("%+v; want few rejected and the rest pending", c)
	}
}

func TestNamedRowsAreRecordedOneByOne(t *testing.T) {
	t.Parallel()
	db, f := open(t), newFake()
	f.create = func(_ int, items []tracking.Item) (bool, *tracking.Reply) {
		if i := slices.IndexFunc(items, func(it tracking.Item) bool { return it.ReferID == "R3" }); i >= 0 {
			r := refused(422, tracking.OutcomeRows)
			r.Refused = []tracking.RefusedRow{{Key: items[i].Key(), Reason: "bad number"}}
			return false, r
		}
		return true, took()
	}
	run := stage(t, db, ledger.Async, 10, 10)
	execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 9, Rejected: 1})
	if len(f.sizes) != 2 || f.sizes[1] != 9 {
		t.Errorf("requests of %v rows; want 10 and 9", f.sizes)
	}
	if got := reasons(t, db, run, ledger.Rejected); !slices.Equal(got, []string{"bad number"}) {
		t.Errorf("rejected because of %q", got)
	}
}

func TestRefusedMayMeanSomeWereTaken(t *testing.T) {
	db, f := open(t), newFake()
	f.create = func(call int, items []tracking.Item) (bool, *tracking.Reply) {
		if call == 1 {
			f.takes(items[:4]...)
			return false, refused(422, tracking.OutcomeRows)
		}
		return true, took()
	}
	known(t, db, f)
	j := distrusting(db, stage(t, db, ledger.Async, 10, 10), f)
	synctest.Test(t, func(t *testing.T) { execute(t, j, db, ledger.Counts{Accepted: 10}) })
	if f.twice() > 0 {
		t.Errorf("%d rows were created twice", f.twice())
	}
}

func TestTooLargeIsHalvedAndRemembered(t *testing.T) {
	db, f := open(t), newFake()
	f.create = func(_ int, items []tracking.Item) (bool, *tracking.Reply) {
		if len(items) > 25 {
			return false, refused(413, tracking.OutcomeTooLarge)
		}
		return true, took()
	}
	run := stage(t, db, ledger.Async, 100, 300)
	j := proving(db, run, f)
	j.Workers = 1
	execute(t, j, db, ledger.Counts{Accepted: 300})
	if len(f.sizes) != 2+12 || len(f.created) != 300 {
		t.Errorf("requests of %v rows; want two that were too large and twelve", f.sizes)
	}
	before := len(f.sizes)
	more := stageItems(t, db, ledger.Plan{BatchSize: 100}, tracking.Item{ReferID: "x", Number: "1"}, tracking.Item{ReferID: "y", Number: "2"})
	execute(t, proving(db, more, f), db, ledger.Counts{Accepted: 2})
	if n, err := db.BatchLimit(t.Context(), ledger.Async); n != 25 || err != nil || len(f.sizes) != before+1 {
		t.Errorf("limit %d, %v", n, err)
	}
	f.create = func(int, []tracking.Item) (bool, *tracking.Reply) {
		return false, refused(413, tracking.OutcomeTooLarge)
	}
	huge := stageItems(t, db, ledger.Plan{BatchSize: 100}, tracking.Item{ReferID: "z", Number: strings.Repeat("3", 5000)})
	execute(t, proving(db, huge, f), db, ledger.Counts{Rejected: 1})
}

func TestLoneConflictIsLookedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		there, others, processing bool
		want                      ledger.Counts
	}{
		"it is there":                      {there: true, want: ledger.Counts{Accepted: 1}},
		"it is not":                        {want: ledger.Counts{Rejected: 1}},
		"another number has the referId":   {others: true, want: ledger.Counts{Rejected: 1}},
		"it is there, but the order works": {there: true, processing: true, want: ledger.Counts{Accepted: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			db, f := open(t), newFake()
			it := tracking.Item{ReferID: "R", Number: "N"}
			if tt.there {
				f.takes(it)
			}
			if tt.others {
				f.takes(tracking.Item{ReferID: "R", Number: "other"})
			}
			f.processing = tt.processing
			f.create = func(int, []tracking.Item) (bool, *tracking.Reply) { return false, refused(409, tracking.OutcomeRows) }
			run := stageItems(t, db, ledger.Plan{BatchSize: 10}, it)
			execute(t, proving(db, run, f), db, tt.want)
			if len(f.sizes) != 1 {
				t.Errorf("sent %d times", len(f.sizes))
			}
		})
	}
}

func TestBadRowAmongRowsThatMayHaveBeenTaken(t *testing.T) {
	db, f := open(t), newFake()
	f.create = poison("R3")
	known(t, db, f)
	doubted(t, db, 422)
	sent := len(f.sizes)
	j := distrusting(db, stage(t, db, ledger.Async, 10, 40), f)
	synctest.Test(t, func(t *testing.T) { execute(t, j, db, ledger.Counts{Accepted: 39, Rejected: 1}) })
	if f.sizes = f.sizes[sent:]; len(f.sizes) > 15 || f.twice() > 0 {
		t.Errorf("requests of %v rows, %d twice", f.sizes, f.twice())
	}
}

// A row of ordinary size is not what is too large: the run stops, and nothing
// is remembered of it.
func TestEverythingTooLargeStops(t *testing.T) {
	for name, trusts := range map[string]bool{"halved": true, "the first row": false} {
		t.Run(name, func(t *testing.T) {
			db, f := open(t), newFake()
			f.create = func(int, []tracking.Item) (bool, *tracking.Reply) {
				return false, refused(413, tracking.OutcomeTooLarge)
			}
			run := stage(t, db, ledger.Async, 10, 200)
			j := proving(db, run, f)
			j.SkipProof = trusts
			_, err := j.Execute(t.Context(), t.Context())
			var stop *bulk.StopError
			if !errors.As(err, &stop) || stop.Cause != tracking.OutcomeTooLarge || !strings.Contains(stop.Why, "one row") {
				t.Errorf("err = %v", err)
			}
			if c := counts(t, db, run); c.Pending < 199 {
				t.Errorf("%+v; want all rows pending, or all but the first", c)
			}
			if n, err := db.BatchLimit(t.Context(), ledger.Async); n != 0 || err != nil {
				t.Errorf("limit %d, %v; want none", n, err)
			}
		})
	}
}

// The pause ends the run, so nobody may wait until it is over.
func TestLoneConflictDoesNotWaitOutALongPause(t *testing.T) {
	db := open(t)
	var calls atomic.Int32
	paused := make(chan struct{})
	j := proving(db, stage(t, db, ledger.Async, 1, 20), service(func(context.Context, []tracking.Item) *tracking.Reply {
		switch calls.Add(1) {
		case 5:
			<-paused
			time.Sleep(100 * time.Millisecond) // the other one's answer is known by then
			return refused(409, tracking.OutcomeRows)
		case 6:
			close(paused)
			r := refused(429, tracking.OutcomeThrottled)
			r.RetryAfter = time.Hour
			return r
		}
		return took()
	}))
	j.Workers, j.QueryTimeout = 2, 100*time.Millisecond
	hard, end := timeout(t, hangs)
	defer end()
	_, err := j.Execute(hard, hard)
	var stop *bulk.StopError
	if !errors.As(err, &stop) || stop.Cause != tracking.OutcomeThrottled || hard.Err() != nil {
		t.Errorf("err = %v, %v", err, hard.Err())
	}
}
