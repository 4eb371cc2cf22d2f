package bulk_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// feed begins to stage rows in batches of ten.
func feed(t *testing.T, db *store.DB, src iter.Seq2[ledger.Entry, error]) *bulk.Feed {
	t.Helper()
	plan := ledger.Plan{Files: []string{"orders.csv"}, Mode: ledger.Async, BatchSize: 10}
	f, err := bulk.BeginFeed(t.Context(), t.Context(), db, plan, src, bulk.StageChecks{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// feeding is a run that is executed while it is staged.
func feeding(db *store.DB, f *bulk.Feed, s bulk.Service) *bulk.Job {
	j := proving(db, f.Run(), s)
	j.Feed = f
	return j
}

// after yields n rows; before the one with that index it waits for sent, and then
// yields err if there is one.
func after(t *testing.T, n, index int, sent <-chan struct{}, err error) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		i := 0
		for e, none := range rows(n) {
			if i == index {
				select {
				case <-sent:
				case <-t.Context().Done():
				}
				if err != nil {
					yield(e, err)
					return
				}
			}
			if i++; !yield(e, none) {
				return
			}
		}
	}
}

// signals is a fake that closes sent with its first request.
func signals(f *fake, answer func(call int) *tracking.Reply) <-chan struct{} {
	sent := make(chan struct{})
	f.create = func(call int, _ []tracking.Item) (bool, *tracking.Reply) {
		if call == 1 {
			close(sent)
		}
		reply := answer(call)
		return reply.Outcome == tracking.OutcomeAccepted, reply
	}
	return sent
}

// The rest of an input is staged once the first batch has been sent, and every
// row is created once, at its place.
func TestSendingBeginsBeforeStagingEnds(t *testing.T) {
	for _, trusts := range []bool{false, true} {
		db, f := open(t), newFake()
		sent := signals(f, func(int) *tracking.Reply { return took() })
		const n = 20_000 // more than one portion
		j := feeding(db, feed(t, db, after(t, n, 55, sent, nil)), f)
		j.SkipProof = trusts
		execute(t, j, db, ledger.Counts{Accepted: n})
		if len(f.created) != n || f.twice() > 0 {
			t.Errorf("trusts %v: %d created, %d twice", trusts, len(f.created), f.twice())
		}
		if j.Partial() || j.Run.Tally.New != n {
			t.Errorf("trusts %v: partial %v, %+v", trusts, j.Partial(), j.Run.Tally)
		}
		line := 2
		for row, err := range db.Rows(t.Context(), j.Run.ID) {
			if err != nil || row.Line != line {
				t.Fatalf("line %d: %+v, %v", line, row, err)
			}
			line++
		}
	}
}

// What stops the sending does not stop the staging: the run keeps all its rows.
func TestStoppedFeedKeepsAllRows(t *testing.T) {
	db, f := open(t), newFake()
	const n = 500
	sent := signals(f, func(int) *tracking.Reply { return refused(401, tracking.OutcomeUnauthorized) })
	j := feeding(db, feed(t, db, after(t, n, 55, sent, nil)), f)
	_, err := j.Execute(t.Context(), t.Context())
	if stop := (*bulk.StopError)(nil); !errors.As(err, &stop) || stop.Cause != tracking.OutcomeUnauthorized || j.Partial() {
		t.Errorf("err = %v, partial %v", err, j.Partial())
	}
	if c := counts(t, db, j.Run); c != (ledger.Counts{Pending: n}) {
		t.Errorf("%+v", c)
	}
	// So does the first signal.
	db, f = open(t), newFake()
	soft, stop := context.WithCancelCause(t.Context())
	sent = signals(f, func(int) *tracking.Reply { stop(errStopped); return took() })
	j = feeding(db, feed(t, db, after(t, n, 55, sent, nil)), f)
	j.Workers = 1
	if _, err := j.Execute(t.Context(), soft); !errors.Is(err, errStopped) || j.Partial() {
		t.Errorf("err = %v, partial %v", err, j.Partial())
	}
	if c := counts(t, db, j.Run); c != (ledger.Counts{Accepted: 10, Pending: n - 10}) {
		t.Errorf("%+v", c)
	}
}

var errStopped = errors.New("stopped")

// An input that can't be read to its end leaves what was staged, and says so;
// the same input again adds the rest and creates nothing twice.
func TestFeedThatFailsIsContinuedByTheSameInput(t *testing.T) {
	db, f := open(t), newFake()
	sent := signals(f, func(int) *tracking.Reply { return took() })
	failed := errors.New("it can't be read")
	j := feeding(db, feed(t, db, after(t, 20_000, 16_500, sent, failed)), f)
	if _, err := j.Execute(t.Context(), t.Context()); !errors.Is(err, failed) || !j.Partial() {
		t.Errorf("err = %v, partial %v", err, j.Partial())
	}
	sum, err := db.Run(t.Context(), j.Run.ID)
	if err != nil || !sum.Partial || sum.Counts.Accepted == 0 {
		t.Errorf("%+v, %v", sum, err)
	}
	j = feeding(db, feed(t, db, rows(20_000)), f)
	execute(t, j, db, ledger.Counts{Accepted: 20_000})
	if len(f.created) != 20_000 || f.twice() > 0 {
		t.Errorf("%d created, %d twice", len(f.created), f.twice())
	}
}

// Nothing is left of an input that fails before its first batch is full.
func TestFeedThatFailsAtOnceLeavesNothing(t *testing.T) {
	db := open(t)
	failed := errors.New("it can't be read")
	none := make(chan struct{})
	close(none)
	plan := ledger.Plan{Files: []string{"orders.csv"}, Mode: ledger.Async, BatchSize: 10}
	src := after(t, 100, 5, none, failed)
	if _, err := bulk.BeginFeed(t.Context(), t.Context(), db, plan, src, bulk.StageChecks{}); !errors.Is(err, failed) {
		t.Errorf("err = %v", err)
	}
	for sum, err := range db.Runs(t.Context(), 0) {
		t.Errorf("%+v, %v", sum, err)
	}
}

// A service that takes smaller batches only, and one that loses answers, get
// every row once too.
func TestFedRowsMeetTheSameOutcomes(t *testing.T) {
	for name, create := range map[string]func(call int, items []tracking.Item) (bool, *tracking.Reply){
		"too large": func(_ int, items []tracking.Item) (bool, *tracking.Reply) {
			if len(items) > 4 {
				return false, refused(413, tracking.OutcomeTooLarge)
			}
			return true, took()
		},
		"lost": func(call int, _ []tracking.Item) (bool, *tracking.Reply) {
			if call%7 == 3 {
				return call%2 == 0, lost()
			}
			return true, took()
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, f := open(t), newFake()
			f.create = create
			j := feeding(db, feed(t, db, rows(400)), f)
			execute(t, j, db, ledger.Counts{Accepted: 400})
			if len(f.created) != 400 || f.twice() > 0 {
				t.Errorf("%d created, %d twice", len(f.created), f.twice())
			}
		})
	}
}
