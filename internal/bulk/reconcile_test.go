package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// losing loses the answers to the calls from..to, which are taken or not.
func losing(from, to int, taken bool) func(int, []tracking.Item) (bool, *tracking.Reply) {
	return func(call int, _ []tracking.Item) (bool, *tracking.Reply) {
		if from <= call && call <= to {
			return taken, lost()
		}
		return true, took()
	}
}

func TestUnknownRowsThatArePresentAreAccepted(t *testing.T) {
	for _, processing := range []bool{false, true} {
		db, f := open(t), newFake()
		f.create, f.processing = losing(2, 3, true), processing
		run := stage(t, db, ledger.Async, 10, 50)
		execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 50})
		if len(f.sizes) != 5 || f.twice() > 0 {
			t.Errorf("processing %v: %d requests, %d twice; want 5 and none", processing, len(f.sizes), f.twice())
		}
	}
}

func TestUnknownRowsThatAreAbsentTwiceGoAgain(t *testing.T) {
	db, f := open(t), newFake()
	f.create = losing(2, 3, false)
	run := stage(t, db, ledger.Async, 10, 50)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		j := proving(db, run, f)
		j.RecheckDelay = 30 * time.Second
		execute(t, j, db, ledger.Counts{Accepted: 50})
		if f.twice() > 0 || len(f.created) != 50 {
			t.Errorf("%d rows created, %d twice", len(f.created), f.twice())
		}
		if took := time.Since(began); took < j.RecheckDelay {
			t.Errorf("sent again after %s; want no sooner than %s after the first absence", took, j.RecheckDelay)
		}
	})
}

// Checks of unknown rows end in time, in the first round or a later one; the rows stay unknown.
func TestChecksEndInTime(t *testing.T) {
	for _, delay := range []time.Duration{time.Minute, 200 * time.Millisecond} {
		db, f := open(t), newFake()
		f.create = losing(2, 3, false)
		f.look = func() string { return fmt.Sprint(f.asked) } // so that each round goes on
		run := stage(t, db, ledger.Async, 10, 50)
		inTime(t, 300*time.Millisecond, func(t *testing.T, soft context.Context) {
			j := proving(db, run, f)
			j.RecheckDelay = delay
			began := time.Now()
			_, err := j.Execute(t.Context(), soft)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 20*time.Second {
				t.Errorf("%v after %s; want the end of the time", err, time.Since(began))
			}
		})
		if c := counts(t, db, run); c.Unknown != 20 || c.Sending != 0 {
			t.Errorf("%+v; want 20 unknown", c)
		}
	}
}

// slow is a service that takes its time to say that it has no such tracking.
type slow struct {
	*fake
	said time.Time // when it did so last
	gaps []time.Duration
}

func (s *slow) Evidence(ctx context.Context, q tracking.Query, it tracking.Item) tracking.Evidence {
	if s.created[it.Key()] > 0 {
		return s.fake.Evidence(ctx, q, it)
	}
	if !s.said.IsZero() {
		s.gaps = append(s.gaps, time.Since(s.said))
	}
	time.Sleep(400 * time.Millisecond)
	s.said = time.Now()
	return s.fake.Evidence(ctx, q, it)
}

func TestRecheckDelayIsCountedFromTheAnswer(t *testing.T) {
	db, s := open(t), &slow{fake: newFake()}
	s.create = losing(2, 2, false)
	j := proving(db, stage(t, db, ledger.Async, 1, 2), s)
	j.RecheckDelay, j.Workers = 300*time.Millisecond, 1 // less than the answer takes
	synctest.Test(t, func(t *testing.T) { execute(t, j, db, ledger.Counts{Accepted: 2}) })
	if len(s.gaps) != 1 || s.gaps[0] != j.RecheckDelay {
		t.Errorf("asked again %v after the first answer; want %s", s.gaps, j.RecheckDelay)
	}
}

// Whoever goes on after a kill need not begin again with the waiting.
func TestFirstAbsenceOutlivesTheCommand(t *testing.T) {
	db, f := open(t), newFake()
	f.create = losing(2, 2, false)
	run := stage(t, db, ledger.Async, 10, 20)
	inTime(t, 500*time.Millisecond, func(t *testing.T, soft context.Context) {
		j := proving(db, run, f)
		j.RecheckDelay = time.Hour
		if _, err := j.Execute(t.Context(), soft); err == nil || !errors.Is(err, soft.Err()) {
			t.Errorf("err = %v", err)
		}
	})
	n := 0
	for x, err := range db.Unknown(t.Context(), run.ID) {
		if n++; x.AbsentSince.IsZero() || err != nil {
			t.Errorf("%+v, %v", x, err)
		}
	}
	if n != 10 {
		t.Errorf("%d rows are unknown; want 10", n)
	}
	asked := f.asked
	execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 20})
	if f.asked > asked+16 {
		t.Errorf("asked %d times more; want once for each row, and for three controls before and after", f.asked-asked)
	}
	if f.twice() > 0 || len(f.created) != 20 {
		t.Errorf("%d rows created, %d twice; want 20 and none", len(f.created), f.twice())
	}
}

func TestAbsenceProvesNothingWithoutAControl(t *testing.T) {
	db, f := open(t), newFake()
	f.create = losing(1, 1, false)
	run := stage(t, db, ledger.Async, 10, 10)
	execute(t, proving(db, run, f), db, ledger.Counts{Unknown: 10})
	if len(f.sizes) != 1 {
		t.Errorf("%d requests", len(f.sizes))
	}
	for _, r := range reasons(t, db, run, ledger.Unknown) {
		if !strings.Contains(r, "without an accepted row") {
			t.Errorf("reason %q", r)
		}
	}
	// With an accepted row, and queries that find nothing at all, neither.
	one := stageItems(t, db, ledger.Plan{BatchSize: 10}, tracking.Item{ReferID: "A", Number: "1"})
	execute(t, proving(db, one, f), db, ledger.Counts{Accepted: 1})
	f.blind = true
	execute(t, proving(db, run, f), db, ledger.Counts{Unknown: 10})
	if r := reasons(t, db, run, ledger.Unknown)[0]; !strings.Contains(r, "is not found either") {
		t.Errorf("reason %q", r)
	}
	f.blind = false
	execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 10})
}

// One accepted row that is not found, before or after, is enough for no
// absence to prove anything, and for the one proven before to be forgotten.
func TestEveryControlMustBeFound(t *testing.T) {
	for name, misses := range map[string]func(ref string, nth int) bool{
		"one of three": func(ref string, _ int) bool { return ref == "known1" },
		"before":       func(ref string, nth int) bool { return ref == "known2" && nth%2 == 1 },
		"after":        func(ref string, nth int) bool { return ref == "known0" && nth%2 == 0 },
	} {
		db, f := open(t), newFake()
		known := stageItems(t, db, ledger.Plan{BatchSize: 10}, manyItems("known", 3)...)
		execute(t, proving(db, known, f), db, ledger.Counts{Accepted: 3})
		f.create = losing(2, 2, false)
		run := stageItems(t, db, ledger.Plan{BatchSize: 10}, manyItems("lost", 5)...)
		inTime(t, 300*time.Millisecond, func(t *testing.T, soft context.Context) {
			j := proving(db, run, f)
			j.RecheckDelay = time.Hour
			_, _ = j.Execute(t.Context(), soft)
		})
		f.misses = misses
		execute(t, proving(db, run, f), db, ledger.Counts{Unknown: 5})
		if r := reasons(t, db, run, ledger.Unknown)[0]; !strings.Contains(r, "is not found either") || !strings.Contains(r, "known") {
			t.Errorf("%s: reason %q; want the row that was not found", name, r)
		}
		for x, err := range db.Unknown(t.Context(), run.ID) {
			if !x.AbsentSince.IsZero() || err != nil {
				t.Errorf("%s: an absence from before still counts: %+v, %v", name, x, err)
			}
		}
		f.misses = nil
		execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 5})
		if f.twice() > 0 {
			t.Errorf("%s: %d twice", name, f.twice())
		}
	}
}

// A row that was absent and is present now shows that absences pass: those of
// the other rows count anew.
func TestAbsencesThatPassProveNothing(t *testing.T) {
	db, f := open(t), newFake()
	known := stageItems(t, db, ledger.Plan{BatchSize: 10}, manyItems("known", 3)...)
	execute(t, proving(db, known, f), db, ledger.Counts{Accepted: 3})
	f.create = losing(2, 2, true)
	// Each pass finds one more of them.
	f.misses = func(ref string, nth int) bool {
		i, lost := strings.CutPrefix(ref, "lost")
		return lost && fmt.Sprint(nth) <= i
	}
	run := stageItems(t, db, ledger.Plan{BatchSize: 10}, manyItems("lost", 5)...)
	execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 5})
	if f.twice() > 0 {
		t.Errorf("%d twice", f.twice())
	}
}

func TestAbsencesThatLookDifferentProveNothing(t *testing.T) {
	db, f := open(t), newFake()
	f.create = losing(2, 2, false)
	n := 0
	f.look = func() string { n++; return fmt.Sprint("request ", n) }
	run := stage(t, db, ledger.Async, 10, 20)
	execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 10, Unknown: 10})
}

func TestProcessingTellsNothingOfASibling(t *testing.T) {
	a, b := tracking.Item{ReferID: "R", Number: "1"}, tracking.Item{ReferID: "R", Number: "2"}
	for name, tt := range map[string]struct {
		taken []tracking.Item
		want  ledger.Counts
	}{
		"both are there":     {[]tracking.Item{a, b}, ledger.Counts{Accepted: 3}},
		"only the other one": {[]tracking.Item{b}, ledger.Counts{Accepted: 2, Unknown: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			db, f := open(t), newFake()
			f.processing = true
			f.create = func(call int, _ []tracking.Item) (bool, *tracking.Reply) {
				if call == 2 {
					f.takes(tt.taken...)
					return false, lost()
				}
				return true, took()
			}
			run := stageItems(t, db, ledger.Plan{BatchSize: 1}, tracking.Item{ReferID: "C", Number: "0"})
			execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 1})
			run = stageItems(t, db, ledger.Plan{BatchSize: 10}, a, b, tracking.Item{ReferID: "C", Number: "0"})
			inTime(t, time.Second, func(t *testing.T, soft context.Context) { // it would wait for the order to be worked out
				_, _ = proving(db, run, f).Execute(t.Context(), soft)
			})
			if got := counts(t, db, run); got != tt.want || f.twice() > 0 {
				t.Errorf("%+v, %d twice; want %+v", got, f.twice(), tt.want)
			}
		})
	}
}

func TestProcessingOfEverythingProvesNothing(t *testing.T) {
	db, f := open(t), newFake()
	f.create, f.always = losing(2, 2, false), true
	run := stage(t, db, ledger.Async, 10, 20)
	inTime(t, time.Second, func(t *testing.T, soft context.Context) { // it would wait for them to be worked out
		_, _ = proving(db, run, f).Execute(t.Context(), soft)
	})
	if c := counts(t, db, run); c != (ledger.Counts{Accepted: 10, Unknown: 10}) {
		t.Errorf("%+v; want those unknown that were lost", c)
	}
	for _, r := range reasons(t, db, run, ledger.Unknown) {
		if !strings.Contains(r, "does not exist") {
			t.Errorf("reason %q", r)
		}
	}
	f.always = false
	execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 20})
	if f.twice() > 0 {
		t.Errorf("%d twice", f.twice())
	}
}

func TestAbsentParcelOfAKnownOrderGoesAgain(t *testing.T) {
	a, b := tracking.Item{ReferID: "R", Number: "1"}, tracking.Item{ReferID: "R", Number: "2"}
	db, f := open(t), newFake()
	first := stageItems(t, db, ledger.Plan{BatchSize: 10}, a)
	execute(t, proving(db, first, f), db, ledger.Counts{Accepted: 1})
	f.create = losing(2, 2, false)
	second := stageItems(t, db, ledger.Plan{BatchSize: 10}, b)
	execute(t, proving(db, second, f), db, ledger.Counts{Accepted: 1})
	if len(f.sizes) != 3 || f.twice() > 0 {
		t.Errorf("%d requests, %d twice", len(f.sizes), f.twice())
	}
	// Where queries by number tell nothing, it stays unknown and says so.
	f.create, f.noNumbers = losing(4, 4, false), true
	third := stageItems(t, db, ledger.Plan{BatchSize: 10}, tracking.Item{ReferID: "R", Number: "3"})
	execute(t, proving(db, third, f), db, ledger.Counts{Unknown: 1})
	if r := reasons(t, db, third, ledger.Unknown)[0]; !strings.Contains(r, "names other numbers only") {
		t.Errorf("reason %q", r)
	}
}

func TestKeepAndResendAreTheUsersDecision(t *testing.T) {
	db, f := open(t), newFake()
	f.create = losing(1, 1, true)
	run := stage(t, db, ledger.Async, 10, 10)
	j := proving(db, run, f)
	j.Unknown = bulk.Keep
	execute(t, j, db, ledger.Counts{Unknown: 10})
	if f.asked > 0 {
		t.Error("the service was asked")
	}
	j = proving(db, run, f)
	j.Unknown = bulk.Resend
	execute(t, j, db, ledger.Counts{Accepted: 10})
	if f.asked > 0 || f.twice() != 10 {
		t.Errorf("asked %d times, created twice %d; want what the user decided", f.asked, f.twice())
	}
}

func TestTroubleIsAskedAboutAndGoesOn(t *testing.T) {
	db, f := open(t), newFake()
	f.create = losing(3, 8, true)
	run := stage(t, db, ledger.Async, 10, 200)
	execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 200})
	if f.twice() > 0 {
		t.Errorf("%d twice", f.twice())
	}
	f.create = losing(0, 1000, false)
	more := stageItems(t, db, ledger.Plan{BatchSize: 1}, manyItems("x", 60)...)
	_, err := proving(db, more, f).Execute(t.Context(), t.Context())
	var stop *bulk.StopError
	if !errors.As(err, &stop) || stop.Cause != tracking.OutcomeUnknown || len(f.created) != 200 {
		t.Errorf("err = %v, %d created", err, len(f.created))
	}
}

func TestCheckFirst(t *testing.T) {
	items := manyItems("c", 30)
	for name, lostLedger := range map[string]bool{"with a row known": false, "with nothing known": true} {
		db, f := open(t), newFake()
		f.takes(items[:20]...)
		if !lostLedger {
			run := stageItems(t, db, ledger.Plan{BatchSize: 10}, tracking.Item{ReferID: "known", Number: "1"})
			execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 1})
		}
		run := stageItems(t, db, ledger.Plan{BatchSize: 10, CheckFirst: true}, items...)
		execute(t, proving(db, run, f), db, ledger.Counts{Accepted: 30})
		if f.twice() > 0 || len(f.created) < 30 {
			t.Errorf("%s: %d created, %d twice", name, len(f.created), f.twice())
		}
	}
}

func manyItems(prefix string, n int) []tracking.Item {
	items := make([]tracking.Item, n)
	for i := range items {
		items[i] = tracking.Item{ReferID: fmt.Sprint(prefix, i), Number: fmt.Sprint("N", prefix, i)}
	}
	return items
}

// A row that the service can't bear is never isolated: that would send rows
// again whose outcome is unknown.
func TestRowsThatAreLostEveryTimeAreNotSentForEver(t *testing.T) {
	db, f := open(t), newFake()
	f.create = func(_ int, items []tracking.Item) (bool, *tracking.Reply) {
		if items[0].ReferID == "R10" {
			return false, lost()
		}
		return true, took()
	}
	run := stage(t, db, ledger.Async, 10, 50)
	soft, end := timeout(t, hangs)
	defer end()
	_, err := proving(db, run, f).Execute(t.Context(), soft)
	var stop *bulk.StopError
	if !errors.As(err, &stop) || stop.Cause != tracking.OutcomeUnknown || len(f.sizes) > 15 {
		t.Errorf("err = %v after %d requests", err, len(f.sizes))
	}
	if c := counts(t, db, run); c != (ledger.Counts{Accepted: 40, Unknown: 10}) {
		t.Errorf("%+v", c)
	}
}
