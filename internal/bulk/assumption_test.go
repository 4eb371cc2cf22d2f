package bulk_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// recorded returns what is recorded of the account's assumptions.
func recorded(t *testing.T, db *store.DB) map[ledger.Assumption]bool {
	t.Helper()
	checked, err := db.Assumptions(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	all := map[ledger.Assumption]bool{}
	for _, c := range checked {
		all[c.Assumption] = c.Holds
	}
	return all
}

// holding records that assumptions hold, as an earlier run found out.
func holding(t *testing.T, db *store.DB) {
	t.Helper()
	for _, a := range []ledger.Assumption{ledger.RefusedNotStored, ledger.ConflictNotStored, ledger.ThrottledNotStored} {
		if err := db.RecordAssumption(t.Context(), account, ledger.CheckedAssumption{Assumption: a, Holds: true}); err != nil {
			t.Fatal(err)
		}
	}
}

// A service that stores a batch and refuses it, or asks for a pause, all the
// same gets no row twice.
func TestRowsStoredAllTheSameAreNotSentAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		assumption ledger.Assumption
		status     int
		outcome    tracking.Outcome
		stores     func(rows int) int // how many of a batch it stores
	}{
		"refused, all":    {ledger.RefusedNotStored, 400, tracking.OutcomeRows, func(n int) int { return n }},
		"refused, a part": {ledger.RefusedNotStored, 422, tracking.OutcomeRows, func(n int) int { return (n + 1) / 2 }},
		"throttled":       {ledger.ThrottledNotStored, 429, tracking.OutcomeThrottled, func(n int) int { return n }},
	} {
		t.Run(name, func(t *testing.T) {
			db, f := open(t), newFake()
			f.create = func(call int, items []tracking.Item) (bool, *tracking.Reply) {
				if call%3 != 2 {
					return true, took()
				}
				f.takes(items[:tt.stores(len(items))]...)
				return false, refused(tt.status, tt.outcome)
			}
			first, later := stage(t, db, ledger.Async, 10, 60), stageItems(t, db, ledger.Plan{BatchSize: 10}, manyItems("more", 10)...)
			j := proving(db, first, f)
			warnings := 0
			j.Canary, j.Warn = true, func(string, ...any) { warnings++ }
			synctest.Test(t, func(t *testing.T) { execute(t, j, db, ledger.Counts{Accepted: 60}) })
			if f.twice() > 0 || len(f.created) != 60 {
				t.Errorf("%d rows created, %d of them twice", len(f.created), f.twice())
			}
			if got := recorded(t, db); len(got) != 1 || got[tt.assumption] || warnings != 1 {
				t.Errorf("recorded %v with %d warnings; want that it fails, said once", got, warnings)
			}
			calls, asked := len(f.sizes), f.asked
			f.create = func(call int, items []tracking.Item) (bool, *tracking.Reply) {
				return true, map[bool]*tracking.Reply{true: refused(tt.status, tt.outcome), false: took()}[call == calls+1]
			}
			synctest.Test(t, func(t *testing.T) { execute(t, proving(db, later, f), db, ledger.Counts{Accepted: 10}) })
			if f.twice() > 0 || f.asked-asked < 10 {
				t.Errorf("in a later run %d twice, asked %d times; want every row asked for", f.twice(), f.asked-asked)
			}
		})
	}
}

// A service that shows what it stored some time later is given that time: as
// much as it is known to need, and some seconds where nothing is known.
func TestRowsThatAreShownLateAreNotSentAgain(t *testing.T) {
	for name, canary := range map[string]bool{"known by the first row": true, "not known": false} {
		t.Run(name, func(t *testing.T) {
			db, f := open(t), newFake()
			f.lag = 4 * time.Second
			f.create = func(call int, items []tracking.Item) (bool, *tracking.Reply) {
				if call == 2 {
					f.takes(items...)
					return false, refused(400, tracking.OutcomeRows)
				}
				return true, took()
			}
			j := proving(db, stage(t, db, ledger.Async, 10, 40), f)
			j.Canary, j.QueryTimeout = canary, 15*time.Second
			synctest.Test(t, func(t *testing.T) { execute(t, j, db, ledger.Counts{Accepted: 40}) })
			if f.twice() > 0 || len(f.created) != 40 {
				t.Errorf("%d rows created, %d of them twice", len(f.created), f.twice())
			}
		})
	}
}

// Where an assumption holds, it costs three queries, once.
func TestAnAssumptionThatHoldsCostsThreeQueries(t *testing.T) {
	for name, tt := range map[string]struct {
		assumption ledger.Assumption
		create     func(ids ...string) func(int, []tracking.Item) (bool, *tracking.Reply)
		rejected   int64
		asked      int
	}{
		"refused":   {ledger.RefusedNotStored, poison, 2, 3},
		"conflict":  {ledger.ConflictNotStored, conflict, 2, 3 + 2}, // a lone conflict is always asked for
		"throttled": {ledger.ThrottledNotStored, throttling, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			db, f := open(t), newFake()
			f.create = tt.create("R30", "R50")
			j := proving(db, stage(t, db, ledger.Async, 20, 100), f)
			j.Canary = true
			synctest.Test(t, func(t *testing.T) {
				execute(t, j, db, ledger.Counts{Accepted: 100 - tt.rejected, Rejected: tt.rejected})
			})
			if f.asked != 1+tt.asked || f.twice() > 0 {
				t.Errorf("asked %d times, %d twice; want the first row and %d more", f.asked, f.twice(), tt.asked)
			}
			if got := recorded(t, db); len(got) != 1 || !got[tt.assumption] {
				t.Errorf("recorded %v; want that it holds", got)
			}
			asked := f.asked
			f.create = tt.create("x3")
			next := proving(db, stageItems(t, db, ledger.Plan{BatchSize: 10}, manyItems("x", 20)...), f)
			synctest.Test(t, func(t *testing.T) {
				if _, err := next.Execute(t.Context(), t.Context()); err != nil {
					t.Error(err)
				}
			})
			if most := map[bool]int{true: 1}[tt.assumption == ledger.ConflictNotStored]; f.asked-asked > most {
				t.Errorf("asked %d times in the next run", f.asked-asked)
			}
		})
	}
}

// throttling asks for a pause the first time that it gets a row.
func throttling(ids ...string) func(int, []tracking.Item) (bool, *tracking.Reply) {
	met := map[string]bool{}
	return func(_ int, items []tracking.Item) (bool, *tracking.Reply) {
		for _, it := range items {
			if slices.Contains(ids, it.ReferID) && !met[it.ReferID] {
				met[it.ReferID] = true
				return false, refused(429, tracking.OutcomeThrottled)
			}
		}
		return true, took()
	}
}

// A row that is there after a conflict may have been there before.
func TestAConflictIsNoProofThatTheBatchWasStored(t *testing.T) {
	t.Parallel()
	db, f := open(t), newFake()
	f.takes(tracking.Item{ReferID: "R0", Number: "N0"})
	f.create = func(_ int, items []tracking.Item) (bool, *tracking.Reply) {
		if slices.ContainsFunc(items, func(it tracking.Item) bool { return f.created[it.Key()] > 0 }) {
			return false, refused(409, tracking.OutcomeRows)
		}
		return true, took()
	}
	execute(t, proving(db, stage(t, db, ledger.Async, 10, 30), f), db, ledger.Counts{Accepted: 30})
	if got := recorded(t, db); len(got) != 0 || f.twice() > 0 {
		t.Errorf("recorded %v, %d twice; want nothing", got, f.twice())
	}
}

// Rows stay unknown while the service can't be asked for them.
func TestAnAssumptionIsCheckedBeforeRowsGoAgain(t *testing.T) {
	t.Parallel()
	db, f := open(t), newFake()
	f.create = poison("R3")
	f.evidence = func(int) *tracking.Evidence {
		return &tracking.Evidence{Err: errors.New("away"), Passing: true, Unconnected: true}
	}
	run := stage(t, db, ledger.Async, 10, 10)
	j := proving(db, run, f)
	j.QueryTimeout = 0
	if _, err := j.Execute(t.Context(), t.Context()); err == nil {
		t.Error("no error")
	}
	if c := counts(t, db, run); c != (ledger.Counts{Unknown: 10}) || len(f.sizes) != 1 {
		t.Errorf("%+v after %d requests", c, len(f.sizes))
	}
	f.evidence = nil
	execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 9, Rejected: 1})
	if f.twice() > 0 {
		t.Errorf("%d twice", f.twice())
	}
}

// Without a row that was ever shown, an answer that tells nothing is no reason
// to send rows again.
func TestAnAssumptionThatCannotBeCheckedDoesNotHold(t *testing.T) {
	t.Parallel()
	db, f := open(t), newFake()
	f.create = poison("R3")
	f.evidence = func(int) *tracking.Evidence { return &tracking.Evidence{Why: "tells nothing"} }
	execute(t, proving(db, stage(t, db, ledger.Async, 10, 10), f), db, ledger.Counts{Unknown: 10})
	if got := recorded(t, db); len(got) != 0 || len(f.sizes) != 1 {
		t.Errorf("recorded %v after %d requests", got, len(f.sizes))
	}
	// Such an answer does tell something beside one that shows a row.
	db, f = open(t), newFake()
	f.create = poison("R30")
	f.evidence = func(asked int) *tracking.Evidence {
		if asked == 1 {
			return nil
		}
		return &tracking.Evidence{Why: "tells nothing"}
	}
	j := proving(db, stage(t, db, ledger.Async, 10, 40), f)
	j.Canary = true
	execute(t, j, db, ledger.Counts{Accepted: 39, Rejected: 1})
}

// A row that was refused alone, and is there, is not rejected.
func TestARowRefusedAloneMayBeStored(t *testing.T) {
	db, f := open(t), newFake()
	f.create = func(int, []tracking.Item) (bool, *tracking.Reply) { return true, refused(400, tracking.OutcomeRows) }
	execute(t, proving(db, stage(t, db, ledger.Async, 10, 1), f), db, ledger.Counts{Accepted: 1})
}
