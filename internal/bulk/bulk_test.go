package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *store.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "waybill.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// rows yields n entries.
func rows(n int) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for i := range n {
			e := ledger.Entry{Line: i + 2, Item: tracking.Item{ReferID: fmt.Sprintf("R%d", i), Number: fmt.Sprintf("N%d", i)}}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func stage(t *testing.T, db *store.DB, mode ledger.Mode, size, n int) ledger.Run {
	t.Helper()
	run, err := bulk.Stage(t.Context(), db, ledger.Plan{Files: []string{"orders.csv"}, Mode: mode, BatchSize: size}, rows(n), bulk.StageChecks{})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// service answers creates as a test wants, and tells of nothing else.
type service func(ctx context.Context, items []tracking.Item) *tracking.Reply

func (s service) Create(ctx context.Context, items []tracking.Item) *tracking.Reply {
	return s(ctx, items)
}

func (s service) Evidence(context.Context, tracking.Query, tracking.Item) tracking.Evidence {
	return tracking.Evidence{Why: "tells nothing"}
}

// contracts hands out a store as a run asks for it.
func contracts(db *store.DB) bulk.Store {
	return bulk.Store{Queue: db, UnknownRows: db, Accounts: db, Trackings: db}
}

// job is a run to be executed by one worker that leaves unknown rows alone.
func job(db *store.DB, run ledger.Run, s bulk.Service) *bulk.Job {
	return &bulk.Job{
		Ledger: contracts(db), Service: s, Gate: pace.New(8, 0), Run: run,
		Policy: bulk.Policy{Unknown: bulk.Keep, SkipProof: true, Workers: 1},
	}
}

func replies(o tracking.Outcome) service {
	return func(context.Context, []tracking.Item) *tracking.Reply {
		r := &tracking.Reply{Outcome: o}
		if o != tracking.OutcomeAccepted {
			r.Err = errors.New(o.String())
		}
		return r
	}
}

func counts(t *testing.T, db *store.DB, run ledger.Run) ledger.Counts {
	t.Helper()
	c, err := db.CountRows(context.WithoutCancel(t.Context()), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryOutcomeIsRecorded(t *testing.T) {
	tests := []struct {
		outcome  tracking.Outcome
		want     ledger.Counts
		requests int64
		stops    bool
	}{
		{tracking.OutcomeAccepted, ledger.Counts{Accepted: 50}, 5, false},
		{tracking.OutcomeUnknown, ledger.Counts{Unknown: 30, Pending: 20}, 3, true},
		{tracking.OutcomeUnauthorized, ledger.Counts{Pending: 50}, 1, true},
		{tracking.OutcomeRefused, ledger.Counts{Pending: 50}, 1, true},
		{tracking.OutcomeThrottled, ledger.Counts{Pending: 50}, 1, true},
		{tracking.OutcomeNotSent, ledger.Counts{Pending: 50}, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.outcome.String(), func(t *testing.T) {
			db := open(t)
			run := stage(t, db, ledger.Async, 10, 50)
			requests, err := job(db, run, replies(tt.outcome)).Execute(t.Context(), t.Context())
			var stop *bulk.StopError
			if errors.As(err, &stop) != tt.stops || (err != nil) != tt.stops {
				t.Errorf("err = %v; want a StopError: %v", err, tt.stops)
			}
			if stop != nil && stop.Cause != tt.outcome {
				t.Errorf("stopped because of %v", stop.Cause)
			}
			if got := counts(t, db, run); got != tt.want || requests != tt.requests {
				t.Errorf("%+v after %d requests; want %+v after %d", got, requests, tt.want, tt.requests)
			}
		})
	}
}

func TestRowsAreSendingBeforeAndRecordedBeforeAnybodyHears(t *testing.T) {
	for _, mode := range []ledger.Mode{ledger.Async, ledger.Sync} {
		db := open(t)
		run := stage(t, db, mode, 10, 40)
		j := job(db, run, service(func(_ context.Context, items []tracking.Item) *tracking.Reply {
			for _, it := range items {
				if state, _, err := db.Lookup(t.Context(), it.Key()); state != ledger.Sending || err != nil {
					t.Errorf("%s on its way is %s (%v)", it.ReferID, state, err)
				}
			}
			return &tracking.Reply{Outcome: tracking.OutcomeAccepted}
		}))
		done := 0
		j.Recorded = func(b ledger.Batch, _ *tracking.Reply) {
			for _, it := range b.Items() {
				done++
				if state, _, err := db.Lookup(t.Context(), it.Key()); state != ledger.Accepted || err != nil {
					t.Errorf("%s, reported, is %s (%v)", it.ReferID, state, err)
				}
			}
		}
		if _, err := j.Execute(t.Context(), t.Context()); err != nil || done != 40 {
			t.Errorf("err = %v, %d rows reported; want 40", err, done)
		}
	}
}

func TestNoBatchIsSentTwiceByManyWorkers(t *testing.T) {
	for _, mode := range []ledger.Mode{ledger.Async, ledger.Sync} {
		db := open(t)
		run := stage(t, db, mode, 7, 2000)
		var mu sync.Mutex
		seen := map[string]int{}
		j := job(db, run, service(func(_ context.Context, items []tracking.Item) *tracking.Reply {
			mu.Lock()
			defer mu.Unlock()
			for _, it := range items {
				seen[it.ReferID]++
			}
			return &tracking.Reply{Outcome: tracking.OutcomeAccepted}
		}))
		j.Workers = 8
		if _, err := j.Execute(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		for refer, n := range seen {
			if n != 1 {
				t.Errorf("%s: %s sent %d times", mode, refer, n)
			}
		}
		if len(seen) != 2000 {
			t.Errorf("%s: %d rows sent; want 2000", mode, len(seen))
		}
	}
}

func TestSoftEndLetsRequestsEndAndGivesTheRestBack(t *testing.T) {
	db := open(t)
	run := stage(t, db, ledger.Sync, 5, 100)
	stopped := errors.New("stopped by its user")
	soft, stop := context.WithCancelCause(t.Context())
	_, err := job(db, run, service(func(ctx context.Context, _ []tracking.Item) *tracking.Reply {
		stop(stopped)
		if ctx.Err() != nil {
			t.Error("the request under way was ended")
		}
		return &tracking.Reply{Outcome: tracking.OutcomeAccepted}
	})).Execute(t.Context(), soft)
	if !errors.Is(err, stopped) {
		t.Errorf("err = %v; want the cause", err)
	}
	if c := counts(t, db, run); c != (ledger.Counts{Accepted: 5, Pending: 95}) {
		t.Errorf("%+v; want 5 accepted and 95 pending", c)
	}
}

func TestHardEndIsStillRecorded(t *testing.T) {
	db := open(t)
	run := stage(t, db, ledger.Async, 5, 10)
	hard, stop := context.WithCancel(t.Context())
	_, err := job(db, run, service(func(ctx context.Context, _ []tracking.Item) *tracking.Reply {
		stop()
		return &tracking.Reply{Outcome: tracking.OutcomeUnknown, Err: ctx.Err()}
	})).Execute(hard, hard)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if c := counts(t, db, run); c != (ledger.Counts{Unknown: 5, Pending: 5}) {
		t.Errorf("%+v; want 5 unknown and 5 pending", c)
	}
}

func TestRefusedRowsOfAnAcceptedBatch(t *testing.T) {
	db := open(t)
	run := stage(t, db, ledger.Async, 10, 10)
	if _, err := job(db, run, service(func(_ context.Context, items []tracking.Item) *tracking.Reply {
		return &tracking.Reply{Outcome: tracking.OutcomeAccepted, Refused: []tracking.RefusedRow{{Key: items[3].Key(), Reason: "bad number"}}}
	})).Execute(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	for row, err := range db.Rows(t.Context(), run.ID) {
		if err != nil {
			t.Fatal(err)
		}
		want, reason := ledger.Accepted, ""
		if row.Item.ReferID == "R3" {
			want, reason = ledger.Rejected, "bad number"
		}
		if row.State != want || row.Reason != reason {
			t.Errorf("%s is %s (%q); want %s (%q)", row.Item.ReferID, row.State, row.Reason, want, reason)
		}
	}
}

// Where the answer may mean one row or another, neither is taken for accepted;
// of a refused batch, neither is taken for the bad one.
func TestAmbiguousRowsOfABatch(t *testing.T) {
	for outcome, want := range map[tracking.Outcome]ledger.Counts{
		tracking.OutcomeAccepted: {Accepted: 7, Unknown: 2, Rejected: 1},
		tracking.OutcomeRows:     {Accepted: 9, Rejected: 1},
	} {
		db := open(t)
		run := stage(t, db, ledger.Async, 10, 10)
		j := job(db, run, service(func(_ context.Context, items []tracking.Item) *tracking.Reply {
			if len(items) < 10 {
				return &tracking.Reply{Outcome: tracking.OutcomeAccepted}
			}
			return &tracking.Reply{Outcome: outcome, Refused: []tracking.RefusedRow{
				{Key: items[3].Key(), Reason: "bad number"}, {Key: items[4].Key(), Ambiguous: true}, {Key: items[5].Key(), Ambiguous: true},
			}}
		}))
		j.MaxRejects = 2
		if _, err := j.Execute(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		if c := counts(t, db, run); c != want {
			t.Errorf("%v: %+v; want %+v", outcome, c, want)
		}
	}
}

// fullDisk is a ledger that can't record outcomes.
type fullDisk struct{ *store.DB }

func (fullDisk) RecordOutcomes(context.Context, []ledger.BatchOutcome) error { return store.ErrFull }

func TestNobodyGoesOnWhenOutcomesAreNotRecorded(t *testing.T) {
	db := open(t)
	run := stage(t, db, ledger.Async, 10, 100)
	calls := 0
	j := job(db, run, service(func(context.Context, []tracking.Item) *tracking.Reply {
		calls++
		return &tracking.Reply{Outcome: tracking.OutcomeThrottled, RetryAfter: 30 * time.Second, Err: errors.New("throttled")}
	}))
	j.Ledger.Queue, j.GiveUpAfter = fullDisk{db}, time.Minute
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if _, err := j.Execute(t.Context(), t.Context()); !errors.Is(err, store.ErrFull) || calls != 1 {
			t.Errorf("err = %v after %d requests", err, calls)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// fillingDisk is a ledger that can record so many outcomes.
type fillingDisk struct {
	*store.DB
	room int
}

func (f *fillingDisk) RecordOutcomes(ctx context.Context, outcomes []ledger.BatchOutcome) error {
	if f.room -= len(outcomes); f.room < 0 {
		return store.ErrFull
	}
	return f.DB.RecordOutcomes(ctx, outcomes)
}

func TestFullDiskWinsOverTrouble(t *testing.T) {
	db := open(t)
	j := job(db, stage(t, db, ledger.Async, 10, 100), replies(tracking.OutcomeUnknown))
	j.Ledger.Queue, j.Unknown = &fillingDisk{db, 2}, bulk.Reconcile
	soft, stop := timeout(t, hangs)
	defer stop()
	if requests, err := j.Execute(t.Context(), soft); !errors.Is(err, store.ErrFull) || requests != 3 {
		t.Errorf("err = %v after %d requests", err, requests)
	}
}

// A process that was stopped holds what it was sending for as long as it is
// not ended; nobody else can tell what became of that.
func TestSomebodyElsesRowsAreNotWaitedForForEver(t *testing.T) {
	db := open(t)
	run := stage(t, db, ledger.Async, 10, 20)
	if _, err := db.Claim(t.Context(), run.ID, 1, 10); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		j := job(db, run, replies(tracking.OutcomeAccepted))
		_, err := j.Execute(t.Context(), t.Context())
		if took := time.Since(began); err != nil || took < time.Minute || took > time.Hour {
			t.Errorf("gave up after %s: %v", took, err)
		}
	})
	if c := counts(t, db, run); c != (ledger.Counts{Accepted: 10, Sending: 10}) {
		t.Errorf("%+v", c)
	}
}

// Rows that another process records while this one sends are counted meanwhile.
func TestRowsThatOthersRecordAreCounted(t *testing.T) {
	db := open(t)
	run := stage(t, db, ledger.Async, 10, 50)
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		var counted []ledger.Counts
		j := job(db, run, service(func(ctx context.Context, _ []tracking.Item) *tracking.Reply {
			if calls++; calls == 2 {
				claimed, err := db.Claim(ctx, run.ID, 1, 10)
				if err == nil {
					err = db.RecordOutcomes(ctx, []ledger.BatchOutcome{{Batch: claimed[0].ID, State: ledger.Accepted}})
				}
				if err != nil {
					t.Error(err)
				}
				time.Sleep(5 * time.Second)
			}
			if calls == 3 {
				time.Sleep(time.Millisecond) // the second one is recorded and counted meanwhile
			}
			return took()
		}))
		j.Counted = func(c ledger.Counts) { counted = append(counted, c) }
		if _, err := j.Execute(t.Context(), t.Context()); err != nil {
			t.Error(err)
		}
		if len(counted) < 2 || counted[0].Accepted != 30 || counted[len(counted)-1] != (ledger.Counts{Accepted: 50}) {
			t.Errorf("counted %+v; want 30 accepted after this one's second request, 50 in the end", counted)
		}
	})
}

func TestStageLeavesNothingBehindWhenItFails(t *testing.T) {
	boom := errors.New("boom")
	failing := func(yield func(ledger.Entry, error) bool) {
		for e, err := range rows(3000) {
			if !yield(e, err) {
				return
			}
		}
		yield(ledger.Entry{}, boom)
	}
	contradicting := func(yield func(ledger.Entry, error) bool) {
		for e, err := range rows(3000) {
			if !yield(e, err) {
				return
			}
		}
		yield(ledger.Entry{Line: 9999, Item: tracking.Item{ReferID: "R7", Number: "N7", CarrierCode: "dhl"}}, nil)
	}
	db := open(t)
	plan := ledger.Plan{Files: []string{"orders.csv"}, Mode: ledger.Async, BatchSize: 1000}
	if _, err := bulk.Stage(t.Context(), db, plan, failing, bulk.StageChecks{}); !errors.Is(err, boom) {
		t.Errorf("err = %v; want boom", err)
	}
	var conflicts []ledger.Conflict
	vetting := bulk.StageChecks{
		Conflict: func(c ledger.Conflict) error { conflicts = append(conflicts, c); return nil },
		Staged:   func() error { return boom },
	}
	if _, err := bulk.Stage(t.Context(), db, plan, contradicting, vetting); !errors.Is(err, boom) || len(conflicts) != 1 || conflicts[0].First.Line != 9 {
		t.Errorf("err = %v (%+v); want boom after one conflict with line 9", err, conflicts)
	}
	vetting.Conflict = func(ledger.Conflict) error { return errLost }
	if _, err := bulk.Stage(t.Context(), db, plan, contradicting, vetting); !errors.Is(err, errLost) {
		t.Errorf("err = %v; want that of the conflict", err)
	}
	for run, err := range db.Runs(t.Context(), 0) {
		t.Errorf("left behind: %+v, %v", run, err)
	}
	if _, found, err := db.Lookup(t.Context(), tracking.Key{ReferID: "R1", Number: "N1"}); found || err != nil {
		t.Errorf("a row was left behind (%v)", err)
	}
}
