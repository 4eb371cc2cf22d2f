package bulk_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// proofsOf returns what is proven of the account's asynchronous creates, by shape.
func proofsOf(t *testing.T, db *store.DB) map[string]ledger.State {
	t.Helper()
	all, err := db.Proofs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]ledger.State{}
	for _, p := range all {
		states[strings.TrimPrefix(p.Shape, "v2 ")] = p.State
	}
	return states
}

// distrusting is a run that proves what answers mean, as the program does by default.
func distrusting(db *store.DB, run ledger.Run, s bulk.Service) *bulk.Job {
	j := proving(db, run, s)
	j.SkipProof = false
	return j
}

// proven records what answers with that status mean, as an earlier run found out.
func proven(t *testing.T, db *store.DB, status int, state ledger.State, at time.Time) {
	t.Helper()
	p := ledger.Proof{Shape: "v2 " + shapeOf(status), State: state, Proven: at, Run: 1}
	if recorded, err := db.Prove(t.Context(), p, ledger.Unknown, nil); err != nil || !recorded {
		t.Fatal(recorded, err)
	}
}

// doubted records that rows of batches with that answer may have been stored.
func doubted(t *testing.T, db *store.DB, status int) {
	t.Helper()
	proven(t, db, status, ledger.Unknown, time.Now())
}

// known makes the account one with an accepted row, and a proof of how the service
// accepts.
func known(t *testing.T, db *store.DB, f *fake) {
	t.Helper()
	proven(t, db, 200, ledger.Accepted, time.Now())
	create := f.create
	f.create = nil
	run := stageItems(t, db, ledger.Plan{BatchSize: 10}, tracking.Item{ReferID: "known", Number: "K1"})
	execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 1})
	f.create, f.sizes, f.asked = create, nil, 0
	f.taken = map[string]time.Time{} // the clock of a test may be another one
}

// An account for which nothing is proven gets one row first.
func TestNewAccountGetsOneRowFirst(t *testing.T) {
	db, f := open(t), newFake()
	j := distrusting(db, stage(t, db, ledger.Async, 10, 35), f)
	j.Workers = 1
	execute(t, j, db, ledger.Counts{Accepted: 35})
	if !slices.Equal(f.sizes, []int{1, 9, 10, 10, 5}) || f.asked != 2 {
		t.Errorf("requests of %v rows, asked %d times; want one row alone, asked for before and after", f.sizes, f.asked)
	}
	if got := proofsOf(t, db); len(got) != 1 || got["200 {}"] != ledger.Accepted {
		t.Errorf("proven %v", got)
	}
}

// A known account costs four queries a run: the first row, and three of the first batch.
func TestKnownAccountCostsFourQueries(t *testing.T) {
	db, f := open(t), newFake()
	known(t, db, f)
	execute(t, distrusting(db, stage(t, db, ledger.Async, 10, 35), f), db, ledger.Counts{Accepted: 35})
	if slices.Contains(f.sizes, 1) || f.asked != 4 {
		t.Errorf("requests of %v rows, asked %d times", f.sizes, f.asked)
	}
}

// Where it is proven how the service accepts, a run begins with four workers; else with
// one, and one more after the query for its first row.
func TestKnownAccountBeginsWithFour(t *testing.T) {
	for name, tt := range map[string]struct {
		known bool
		want  int
	}{"known": {true, 4}, "new": {false, 2}} {
		t.Run(name, func(t *testing.T) {
			db, f := open(t), newFake()
			if tt.known {
				known(t, db, f)
			}
			j := distrusting(db, stage(t, db, ledger.Async, 10, 35), f)
			j.Workers, j.Gate = 8, pace.New(8, 0)
			window := 0
			f.create = func(call int, _ []tracking.Item) (bool, *tracking.Reply) {
				if call == 1 {
					window = j.Gate.Window()
				}
				return true, took()
			}
			execute(t, j, db, ledger.Counts{Accepted: 35})
			if window != tt.want {
				t.Errorf("%d requests may be under way at first; want %d", window, tt.want)
			}
		})
	}
}

// Of two rows that were refused together, each is sent alone once it is proven that
// nothing is stored of them.
func TestPairThatIsRefusedStandsAlone(t *testing.T) {
	db, f := open(t), newFake()
	known(t, db, f)
	f.create = poison("R1")
	j := distrusting(db, stage(t, db, ledger.Async, 2, 2), f)
	synctest.Test(t, func(t *testing.T) { execute(t, j, db, ledger.Counts{Accepted: 1, Rejected: 1}) })
	if !slices.Equal(f.sizes, []int{2, 1, 1}) {
		t.Errorf("requests of %v rows; want both rows, then each alone", f.sizes)
	}
}

// A proof counts for thirty days, and each run that finds its rows renews it.
func TestProofsAreForgotten(t *testing.T) {
	for days, first := range map[int]int{29: 10, 31: 1} {
		db, f := open(t), newFake()
		proven(t, db, 200, ledger.Accepted, time.Now().AddDate(0, 0, -days))
		j := distrusting(db, stage(t, db, ledger.Async, 10, 20), f)
		j.Workers = 1
		execute(t, j, db, ledger.Counts{Accepted: 20})
		all, err := db.Proofs(t.Context())
		if f.sizes[0] != first || err != nil || len(all) != 1 || time.Since(all[0].Proven) > time.Hour {
			t.Errorf("after %d days: requests of %v rows; %+v, %v", days, f.sizes, all, err)
		}
	}
}

// A proof that fails once is forgotten, and the run stops.
func TestProofThatFailsIsForgotten(t *testing.T) {
	db, f := open(t), newFake()
	known(t, db, f)
	f.create = func(int, []tracking.Item) (bool, *tracking.Reply) { return false, took() }
	run := stage(t, db, ledger.Async, 10, 20)
	synctest.Test(t, func(t *testing.T) {
		_, err := distrusting(db, run, f).Execute(t.Context(), t.Context())
		var stop *bulk.StopError
		if !errors.As(err, &stop) || !strings.Contains(stop.Why, "--absent") {
			t.Errorf("err = %v", err)
		}
	})
	if got := proofsOf(t, db); len(got) > 0 {
		t.Errorf("still proven: %v", got)
	}
}

// The first row that a run sends is queried before: a restored backup does not know all
// that was sent.
func TestRowThatTheServiceHasStopsTheRun(t *testing.T) {
	db, f := open(t), newFake()
	known(t, db, f)
	f.takes(tracking.Item{ReferID: "R0", Number: "N0"})
	run := stage(t, db, ledger.Async, 10, 20)
	_, err := distrusting(db, run, f).Execute(t.Context(), t.Context())
	var stop *bulk.StopError
	if !errors.As(err, &stop) || stop.Known == nil || stop.Known.ReferID != "R0" || len(f.sizes) > 0 {
		t.Errorf("err = %v after requests of %v rows", err, f.sizes)
	}
	j := distrusting(db, run, f)
	j.VerifyPending = true
	execute(t, j, db, ledger.Counts{Accepted: 20})
	if f.twice() > 0 {
		t.Errorf("%d twice", f.twice())
	}
}

// Rows that were sent, were not found and reach the service after all are found by the next
// run, which queries all that is left before it sends any of it.
func TestRowsThatArriveLateAreNotSentAgain(t *testing.T) {
	db, f := open(t), newFake()
	known(t, db, f)
	run := stage(t, db, ledger.Async, 10, 20)
	f.create = losing(1, 1, true)
	j := distrusting(db, run, f)
	j.Workers, j.Unknown = 1, bulk.Keep
	execute(t, j, db, ledger.Counts{Accepted: 10, Unknown: 10})
	var absent []ledger.Resolution
	for x, err := range db.Unknown(t.Context(), run.ID) {
		if err != nil {
			t.Fatal(err)
		}
		absent = append(absent, ledger.Resolution{Row: x.Row, Batch: x.Batch, State: ledger.Pending})
	}
	if n, err := db.Resolve(t.Context(), run.ID, absent); n != 10 || err != nil {
		t.Fatalf("%d rows are pending, %v", n, err)
	}
	execute(t, distrusting(db, run, f), db, ledger.Counts{Accepted: 20})
	if f.twice() > 0 || len(f.sizes) != 2 {
		t.Errorf("%d rows twice, requests of %v rows", f.twice(), f.sizes)
	}
}

// A row that another process sends while this one queries it is no sign of another store.
func TestRowThatAnotherProcessSendsMeanwhile(t *testing.T) {
	db, f := open(t), newFake()
	known(t, db, f)
	run := stage(t, db, ledger.Async, 1, 20)
	f.evidence = func(nth int) *tracking.Evidence {
		if nth > 1 {
			return nil
		}
		batches, err := db.Claim(t.Context(), run.ID, 1, 1)
		if err != nil || len(batches) != 1 {
			t.Errorf("claimed %+v, %v", batches, err)
			return nil
		}
		f.takes(batches[0].Items()...)
		if err := db.RecordOutcomes(t.Context(), []ledger.BatchOutcome{{Batch: batches[0].ID, State: ledger.Accepted, Began: time.Now()}}); err != nil {
			t.Error(err)
		}
		return nil
	}
	execute(t, distrusting(db, run, f), db, ledger.Counts{Accepted: 20})
	if f.twice() > 0 {
		t.Errorf("%d twice", f.twice())
	}
}

// lie is an answer that says little of what the service did.
type lie struct {
	status int
	body   string
	agrees bool
}

func (l lie) reply() *tracking.Reply {
	o := tracking.OutcomeOf(l.status)
	if l.status == 429 {
		o = tracking.OutcomeThrottled
	}
	r := &tracking.Reply{Outcome: o, HTTPStatus: l.status, Shape: fmt.Sprintf("%d %s", l.status, l.body), Agrees: l.agrees}
	if o != tracking.OutcomeAccepted {
		r.Err = errors.New("refused")
	}
	return r
}

// lies are answers that came while the service stored all, none, or some of the rows.
func lies() []lie {
	all := []lie{{200, `{accepted:0 rejected:all}`, false}, {207, `{errors:[rows]}`, false}, {200, `{data:[rows]}`, false}}
	for _, body := range []string{`{status:"error"}`, `{message:"Unauthorized"}`, `{data:null message:"quota exceeded"}`, `"error"`, `false`, `{redirect:string}`, `empty`} {
		all = append(all, lie{200, body, true})
	}
	for _, status := range []int{400, 401, 402, 403, 404, 405, 408, 409, 410, 411, 413, 415, 418, 422, 425, 429, 431, 451, 500, 502, 503} {
		all = append(all, lie{status, `{message:string}`, true})
	}
	return all
}

// Whatever an answer says, and whatever the service stored: no row is sent twice, and
// none is accepted that is not there.
func TestAnswersThatLie(t *testing.T) {
	stored := map[string]func(i int) bool{
		"all": func(int) bool { return true }, "none": func(int) bool { return false },
		"every second": func(i int) bool { return i%2 == 0 }, "the first half": func(i int) bool { return i < 30 },
	}
	for _, l := range lies() {
		for name, stores := range stored {
			t.Run(fmt.Sprintf("%d %s, %s", l.status, l.body, name), func(t *testing.T) {
				db, f := open(t), newFake()
				known(t, db, f)
				f.create = func(call int, items []tracking.Item) (bool, *tracking.Reply) {
					if len(items) < 60 {
						return true, took()
					}
					for i, it := range items {
						if stores(i) {
							f.takes(it)
						}
					}
					return false, l.reply()
				}
				run := stage(t, db, ledger.Async, 60, 60)
				synctest.Test(t, func(t *testing.T) {
					for range 3 {
						j := distrusting(db, run, f)
						_, err := j.Execute(t.Context(), t.Context())
						if stop := (*bulk.StopError)(nil); err != nil && !errors.As(err, &stop) {
							t.Fatal(err)
						}
					}
				})
				accepted := 0
				for row, err := range db.Rows(t.Context(), run.ID) {
					if err != nil {
						t.Fatal(err)
					}
					if row.State == ledger.Accepted {
						accepted++
						if f.created[row.Item.Key()] == 0 {
							t.Errorf("accepted, and not there: %v", row.Item)
						}
					}
				}
				if f.twice() > 0 || accepted == 0 && name == "all" {
					t.Errorf("%d rows twice, %d accepted", f.twice(), accepted)
				}
			})
		}
	}
}

// A service that stores a batch and refuses it, or asks for a pause, all the same gets no
// row twice, in a later run either.
func TestRowsStoredAllTheSameAreNotSentAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		status  int
		outcome tracking.Outcome
		stores  func(rows int) int // how many of a batch it stores
	}{
		"refused, all":      {400, tracking.OutcomeRows, func(n int) int { return n }},
		"refused, a part":   {422, tracking.OutcomeRows, func(n int) int { return (n + 1) / 2 }},
		"throttled, all":    {429, tracking.OutcomeThrottled, func(n int) int { return n }},
		"too large, a part": {413, tracking.OutcomeTooLarge, func(n int) int { return (n + 1) / 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			db, f := open(t), newFake()
			known(t, db, f)
			f.create = func(call int, items []tracking.Item) (bool, *tracking.Reply) {
				if call%3 != 2 {
					return true, took()
				}
				f.takes(items[:tt.stores(len(items))]...)
				return false, refused(tt.status, tt.outcome)
			}
			first, later := stage(t, db, ledger.Async, 10, 60), stageItems(t, db, ledger.Plan{BatchSize: 10}, manyItems("more", 10)...)
			j := distrusting(db, first, f)
			warnings := 0
			j.Warn = func(string, ...any) { warnings++ }
			synctest.Test(t, func(t *testing.T) { execute(t, j, db, ledger.Counts{Accepted: 60}) })
			if f.twice() > 0 || len(f.created) != 61 {
				t.Errorf("%d rows created, %d of them twice", len(f.created), f.twice())
			}
			if got := proofsOf(t, db); len(got) != 2 || got[shapeOf(tt.status)] != ledger.Unknown || warnings != 1 {
				t.Errorf("proven %v with %d warnings; want that rows may be stored, said once", got, warnings)
			}
			calls, asked := len(f.sizes), f.asked
			f.create = func(call int, items []tracking.Item) (bool, *tracking.Reply) {
				return true, map[bool]*tracking.Reply{true: refused(tt.status, tt.outcome), false: took()}[call == calls+1]
			}
			synctest.Test(t, func(t *testing.T) {
				execute(t, distrusting(db, later, f), db, ledger.Counts{Accepted: 10})
			})
			if f.twice() > 0 || f.asked-asked < f.sizes[calls] {
				t.Errorf("in a later run %d twice, asked %d times; want every row asked for", f.twice(), f.asked-asked)
			}
		})
	}
}

// A service that shows what it stored some time later is given that time.
func TestRowsThatAreShownLateAreNotSentAgain(t *testing.T) {
	for name, isKnown := range map[string]bool{"known account": true, "new account": false} {
		t.Run(name, func(t *testing.T) {
			db, f := open(t), newFake()
			if isKnown {
				known(t, db, f)
			}
			f.lag = 4 * time.Second
			f.create = func(call int, items []tracking.Item) (bool, *tracking.Reply) {
				if call == 2 {
					f.takes(items...)
					return false, refused(400, tracking.OutcomeRows)
				}
				return true, took()
			}
			j := distrusting(db, stage(t, db, ledger.Async, 10, 40), f)
			j.QueryTimeout = 15 * time.Second
			synctest.Test(t, func(t *testing.T) { execute(t, j, db, ledger.Counts{Accepted: 40}) })
			if f.twice() > 0 {
				t.Errorf("%d twice", f.twice())
			}
		})
	}
}

// Where nothing is stored of a refused batch, that is proven once.
func TestRefusalIsProvenOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		status   int
		create   func(ids ...string) func(int, []tracking.Item) (bool, *tracking.Reply)
		rejected int64
		later    int // queries in a later run, beside those of a known account
	}{
		"refused":   {422, poison, 2, 0},
		"conflict":  {409, conflict, 2, 1}, // a lone conflict is always asked for
		"throttled": {429, throttling, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			db, f := open(t), newFake()
			known(t, db, f)
			f.create = tt.create("R30", "R50")
			j := distrusting(db, stage(t, db, ledger.Async, 20, 100), f)
			synctest.Test(t, func(t *testing.T) {
				execute(t, j, db, ledger.Counts{Accepted: 100 - tt.rejected, Rejected: tt.rejected})
			})
			if f.twice() > 0 || f.asked > 4+4+2 {
				t.Errorf("asked %d times, %d twice", f.asked, f.twice())
			}
			if got := proofsOf(t, db); len(got) != 2 || got[shapeOf(tt.status)] != ledger.Pending {
				t.Errorf("proven %v; want that nothing is stored", got)
			}
			asked := f.asked
			f.create = tt.create("x3")
			next := distrusting(db, stageItems(t, db, ledger.Plan{BatchSize: 10}, manyItems("x", 20)...), f)
			synctest.Test(t, func(t *testing.T) {
				if _, err := next.Execute(t.Context(), t.Context()); err != nil {
					t.Error(err)
				}
			})
			if f.asked-asked > 4+tt.later {
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

// A new account whose first row is throttled goes on with the next, which proves what the
// first answer meant.
func TestThrottledFirstRow(t *testing.T) {
	db, f := open(t), newFake()
	f.create = throttling("R0")
	j := distrusting(db, stage(t, db, ledger.Async, 10, 30), f)
	synctest.Test(t, func(t *testing.T) { execute(t, j, db, ledger.Counts{Accepted: 30}) })
	if f.twice() > 0 {
		t.Errorf("%d twice", f.twice())
	}
}

// A row that is there after a conflict may have been there before.
func TestAConflictIsNoProofThatTheBatchWasStored(t *testing.T) {
	db, f := open(t), newFake()
	known(t, db, f)
	f.takes(tracking.Item{ReferID: "R5", Number: "N5"})
	f.create = func(_ int, items []tracking.Item) (bool, *tracking.Reply) {
		if slices.ContainsFunc(items, func(it tracking.Item) bool { return f.created[it.Key()] > 0 }) {
			return false, refused(409, tracking.OutcomeRows)
		}
		return true, took()
	}
	j := distrusting(db, stage(t, db, ledger.Async, 10, 30), f)
	synctest.Test(t, func(t *testing.T) { execute(t, j, db, ledger.Counts{Accepted: 30}) })
	if got := proofsOf(t, db); len(got) != 1 || f.twice() > 0 {
		t.Errorf("proven %v, %d twice; want nothing of conflicts", got, f.twice())
	}
}

// Rows stay unknown while the service can't be asked for them.
func TestNothingIsProvenWithoutAnAnswer(t *testing.T) {
	db, f := open(t), newFake()
	known(t, db, f)
	f.create = poison("R3")
	f.evidence = func(asked int) *tracking.Evidence {
		if asked == 1 {
			return nil
		}
		return &tracking.Evidence{Err: errors.New("away"), Failure: tracking.Failure{Temporary: true, Unconnected: true}}
	}
	run := stage(t, db, ledger.Async, 10, 10)
	j := distrusting(db, run, f)
	j.QueryTimeout = 0
	synctest.Test(t, func(t *testing.T) {
		if _, err := j.Execute(t.Context(), t.Context()); err == nil {
			t.Error("no error")
		}
	})
	if c := counts(t, db, run); c != (ledger.Counts{Unknown: 10}) || len(f.sizes) != 1 {
		t.Errorf("%+v after %d requests", c, len(f.sizes))
	}
	f.evidence = nil
	synctest.Test(t, func(t *testing.T) {
		execute(t, distrusting(db, run, f), db, ledger.Counts{Accepted: 9, Rejected: 1})
	})
	if f.twice() > 0 {
		t.Errorf("%d twice", f.twice())
	}
}

// An answer that tells nothing is no reason to send rows again.
func TestRefusalThatCannotBeProven(t *testing.T) {
	db, f := open(t), newFake()
	known(t, db, f)
	f.create = poison("R3")
	f.evidence = func(int) *tracking.Evidence { return &tracking.Evidence{Why: "tells nothing"} }
	synctest.Test(t, func(t *testing.T) {
		execute(t, distrusting(db, stage(t, db, ledger.Async, 10, 10), f), db, ledger.Counts{Unknown: 10})
	})
	if got := proofsOf(t, db); len(got) != 1 || len(f.sizes) != 1 {
		t.Errorf("proven %v after %d requests", got, len(f.sizes))
	}
}

// A row that another process resolved meanwhile proves nothing.
func TestRowResolvedByOthersProvesNothing(t *testing.T) {
	db, f := open(t), newFake()
	known(t, db, f)
	run := stage(t, db, ledger.Async, 10, 10)
	f.create = func(call int, items []tracking.Item) (bool, *tracking.Reply) {
		if call > 1 {
			return true, took()
		}
		return false, refused(429, tracking.OutcomeThrottled)
	}
	f.evidence = func(asked int) *tracking.Evidence {
		if asked == 2 { // of the proof: the other process finds that the rows are not there, and sends them
			resend(t, db, f, run)
		}
		return nil
	}
	j := distrusting(db, run, f)
	j.Warn = func(format string, args ...any) { t.Errorf("warned: "+format, args...) }
	synctest.Test(t, func(t *testing.T) { execute(t, j, db, ledger.Counts{Accepted: 10}) })
	if got := proofsOf(t, db); got[shapeOf(429)] != "" || f.twice() > 0 {
		t.Errorf("proven %v, %d twice", got, f.twice())
	}
}

// resend does what another process may: it makes the run's unknown rows pending, and
// sends them.
func resend(t *testing.T, db *store.DB, f *fake, run ledger.Run) {
	t.Helper()
	if _, err := db.Reopen(t.Context(), run.ID, ledger.Unknown, ""); err != nil {
		t.Fatal(err)
	}
	batches, err := db.Claim(t.Context(), run.ID, 9, 10)
	if err != nil {
		t.Fatal(err)
	}
	var all []ledger.BatchOutcome
	for _, b := range batches {
		f.takes(b.Items()...)
		all = append(all, ledger.BatchOutcome{Batch: b.ID, State: ledger.Accepted, HTTPStatus: 200, Began: time.Now()})
	}
	if err := db.RecordOutcomes(t.Context(), all); err != nil {
		t.Fatal(err)
	}
}

// A row that was refused alone, and is there, is not rejected.
func TestARowRefusedAloneMayBeStored(t *testing.T) {
	db, f := open(t), newFake()
	f.create = func(int, []tracking.Item) (bool, *tracking.Reply) { return true, refused(400, tracking.OutcomeRows) }
	execute(t, distrusting(db, stage(t, db, ledger.Async, 10, 1), f), db, ledger.Counts{Accepted: 1})
}
