package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// hangs ends what hangs: a busy machine must not reach it.
const hangs = time.Minute

func timeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

// inTime calls f with a context that ends after d of fake time, which passes only
// while the job waits.
func inTime(t *testing.T, d time.Duration, f func(*testing.T, context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		soft, stop := timeout(t, d)
		defer stop()
		f(t, soft)
	})
}

// What a run notes is noted once, however often a request is repeated.
func TestNotesOfARun(t *testing.T) {
	first := "First run for this account: sending one row first"
	for name, tt := range map[string]struct {
		proves bool
		create func(nth int, items []tracking.Item) (bool, *tracking.Reply)
		want   []string
	}{
		"throttled first row": {true, func(nth int, _ []tracking.Item) (bool, *tracking.Reply) {
			if nth == 1 {
				return false, refused(429, tracking.OutcomeThrottled)
			}
			return true, took()
		}, []string{first}},
		"lost first row": {true, func(nth int, _ []tracking.Item) (bool, *tracking.Reply) {
			if nth == 1 {
				return true, lost()
			}
			return true, took()
		}, []string{first, "The first row got no answer; checking it"}},
		"lost requests": {false, func(nth int, _ []tracking.Item) (bool, *tracking.Reply) {
			if nth <= 3 {
				return true, lost()
			}
			return true, took()
		}, []string{"3 requests got no answer; checking those rows"}},
		"failed requests": {false, func(nth int, _ []tracking.Item) (bool, *tracking.Reply) {
			if nth <= 3 {
				return true, refused(502, tracking.OutcomeUnknown)
			}
			return true, took()
		}, []string{"3 requests failed; checking those rows"}},
		"pause of ten seconds": {false, pauseFirst(10 * time.Second), []string{"refused; waiting 10s, as it asked"}},
		"shorter pause":        {false, pauseFirst(9 * time.Second), nil},
	} {
		t.Run(name, func(t *testing.T) {
			db, f := open(t), newFake()
			f.create = tt.create
			j := proving(db, stage(t, db, ledger.Async, 10, 40), f)
			j.SkipProof, j.Workers, j.GiveUpAfter = !tt.proves, 1, time.Minute
			var notes []string
			j.Note = func(format string, args ...any) {
				if note := fmt.Sprintf(format, args...); !strings.HasSuffix(note, "checking that nothing was created") {
					notes = append(notes, note)
				}
			}
			synctest.Test(t, func(t *testing.T) { execute(t, j, db, ledger.Counts{Accepted: 40}) })
			if !slices.Equal(notes, tt.want) {
				t.Errorf("notes %q; want %q", notes, tt.want)
			}
		})
	}
}

// pauseFirst asks for a pause the first time, and takes everything then.
func pauseFirst(after time.Duration) func(int, []tracking.Item) (bool, *tracking.Reply) {
	return func(nth int, _ []tracking.Item) (bool, *tracking.Reply) {
		if nth > 1 {
			return true, took()
		}
		r := refused(429, tracking.OutcomeThrottled)
		r.RetryAfter = after
		return false, r
	}
}

// After a signal no check is announced: none follows.
func TestInterruptedRunAnnouncesNoCheck(t *testing.T) {
	db, f := open(t), newFake()
	interrupted := errors.New("interrupted")
	soft, stop := context.WithCancelCause(t.Context())
	f.create = func(nth int, _ []tracking.Item) (bool, *tracking.Reply) {
		if nth == 3 {
			stop(interrupted)
		}
		return true, lost()
	}
	j := proving(db, stage(t, db, ledger.Async, 10, 40), f)
	j.Workers = 1
	var notes []string
	j.Note = func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	_, err := j.Execute(t.Context(), soft)
	if !errors.Is(err, interrupted) || len(notes) > 0 {
		t.Errorf("%v, notes %q; want the interruption and no note", err, notes)
	}
}

func TestFirstRowThatIsNotShownStopsTheRun(t *testing.T) {
	db, f := open(t), newFake()
	f.blind = true
	run := stage(t, db, ledger.Async, 10, 35)
	j := proving(db, run, f)
	j.SkipProof, j.QueryTimeout = false, time.Second
	_, err := j.Execute(t.Context(), t.Context())
	var stop *bulk.StopError
	if !errors.As(err, &stop) || stop.Cause != tracking.OutcomeUnknown {
		t.Errorf("err = %v", err)
	}
	if c := counts(t, db, run); c != (ledger.Counts{Unknown: 1, Pending: 34}) {
		t.Errorf("%+v", c)
	}
	// The next try asks for that row, and sends no other one first.
	f.blind = false
	j = proving(db, run, f)
	j.SkipProof, j.Workers = false, 1
	execute(t, j, db, ledger.Counts{Accepted: 35})
	if !slices.Equal(f.sizes[:2], []int{1, 9}) {
		t.Errorf("requests of %v rows", f.sizes)
	}
}

func TestRejectedFirstRowIsNotTheLastTry(t *testing.T) {
	db, f := open(t), newFake()
	f.create = poison("R0", "R1")
	j := proving(db, stage(t, db, ledger.Async, 10, 35), f)
	j.SkipProof = false
	execute(t, j, db, ledger.Counts{Accepted: 33, Rejected: 2})
	if !slices.Equal(f.sizes[:3], []int{1, 1, 1}) {
		t.Errorf("requests of %v rows", f.sizes)
	}
}

func TestFirstRowOfUnknownOutcomeIsAskedFor(t *testing.T) {
	db, f := open(t), newFake()
	f.create = losing(1, 1, true)
	j := proving(db, stage(t, db, ledger.Async, 10, 35), f)
	j.SkipProof = false
	execute(t, j, db, ledger.Counts{Accepted: 35})
	if f.twice() > 0 || f.sizes[1] == 1 {
		t.Errorf("requests of %v rows, %d twice", f.sizes, f.twice())
	}
}

func TestPauseBeyondPatienceStops(t *testing.T) {
	for status, o := range map[int]tracking.Outcome{429: tracking.OutcomeThrottled, 503: tracking.OutcomeOverloaded} {
		db, f := open(t), newFake()
		f.create = func(int, []tracking.Item) (bool, *tracking.Reply) {
			r := refused(status, o)
			r.RetryAfter = time.Hour
			return false, r
		}
		soft, end := timeout(t, hangs)
		_, err := proving(db, stage(t, db, ledger.Async, 10, 50), f).Execute(t.Context(), soft)
		end()
		var stop *bulk.StopError
		if !errors.As(err, &stop) || stop.Cause != o {
			t.Errorf("%d: err = %v", status, err)
		}
	}
}

// Pauses that the service asks for between queries are waited for as long as
// those between creates: not as long as one query may take.
func TestPausesBetweenQueriesAreWaitedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		create func(int, []tracking.Item) (bool, *tracking.Reply)
		proves bool
		size   int
		want   ledger.Counts
	}{
		"first contact":        {proves: true, size: 10, want: ledger.Counts{Accepted: 20}},
		"unknown rows":         {create: losing(1, 1, true), size: 10, want: ledger.Counts{Accepted: 20}},
		"a row refused alone":  {create: poison("R0"), size: 1, want: ledger.Counts{Accepted: 19, Rejected: 1}},
		"a row that conflicts": {create: conflict("R0"), size: 1, want: ledger.Counts{Accepted: 19, Rejected: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			db, f := open(t), newFake()
			run := stage(t, db, ledger.Async, tt.size, 20)
			f.create = tt.create
			f.evidence = func(asked int) *tracking.Evidence {
				if asked <= 3 {
					return &tracking.Evidence{Err: errors.New("429"), Failure: tracking.Failure{Temporary: true, Throttled: true, RetryAfter: 30 * time.Second}}
				}
				return nil
			}
			synctest.Test(t, func(t *testing.T) {
				j := proving(db, run, f)
				j.SkipProof, j.QueryTimeout, j.GiveUpAfter = !tt.proves, 15*time.Second, 2*time.Minute
				execute(t, j, db, tt.want)
			})
		})
	}
}

// A service that never stops asking for pauses ends the run with the rows as
// they were.
func TestPausesBetweenQueriesEnd(t *testing.T) {
	db, f := open(t), newFake()
	run := stage(t, db, ledger.Async, 10, 20)
	f.create = losing(1, 1, true)
	f.evidence = func(int) *tracking.Evidence {
		return &tracking.Evidence{Err: errors.New("429"), Failure: tracking.Failure{Temporary: true, Throttled: true}}
	}
	synctest.Test(t, func(t *testing.T) {
		j := proving(db, run, f)
		j.QueryTimeout, j.GiveUpAfter = 15*time.Second, 2*time.Minute
		began := time.Now()
		_, err := j.Execute(t.Context(), t.Context())
		var stop *bulk.StopError
		if took := time.Since(began); !errors.As(err, &stop) || stop.Cause != tracking.OutcomeThrottled || took < j.GiveUpAfter || took > 2*j.GiveUpAfter {
			t.Errorf("stopped after %s: %v", took, err)
		}
	})
	if c := counts(t, db, run); c != (ledger.Counts{Accepted: 10, Unknown: 10}) {
		t.Errorf("%+v", c)
	}
}
