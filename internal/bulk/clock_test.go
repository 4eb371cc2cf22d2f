package bulk_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// jumped is a ledger as it looks once the clock was put forward by so much:
// what it noted before is that much longer ago.
type jumped struct {
	*store.DB
	by time.Duration
}

func (l jumped) Unknown(ctx context.Context, run int64) iter.Seq2[ledger.UnknownRow, error] {
	return func(yield func(ledger.UnknownRow, error) bool) {
		for x, err := range l.DB.Unknown(ctx, run) {
			if !x.AbsentSince.IsZero() {
				x.AbsentSince = x.AbsentSince.Add(-l.by)
			}
			if !yield(x, err) {
				return
			}
		}
	}
}

// timed is a service that measures how long after the first word that it has
// no such tracking a row is sent again.
type timed struct {
	*fake
	mu     sync.Mutex
	absent map[tracking.Key]time.Time
	least  time.Duration
}

func (s *timed) Evidence(ctx context.Context, q tracking.Query, it tracking.Item) tracking.Evidence {
	e := s.fake.Evidence(ctx, q, it)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.absent[it.Key()]; !ok && e.Presence == tracking.PresenceAbsent {
		s.absent[it.Key()] = time.Now()
	}
	return e
}

func (s *timed) Create(ctx context.Context, items []tracking.Item) *tracking.Reply {
	s.mu.Lock()
	for _, it := range items {
		if since, ok := s.absent[it.Key()]; ok {
			s.least = min(s.least, time.Since(since))
		}
	}
	s.mu.Unlock()
	return s.fake.Create(ctx, items)
}

// The time between two proofs of absence is measured, not read off the clock
// on the wall.
func TestClockThatJumpsDoesNotShortenRecheckDelay(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -365 * 24 * time.Hour} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			db, f := open(t), &timed{fake: newFake(), absent: map[tracking.Key]time.Time{}, least: time.Hour}
			f.create = losing(2, 5, false) // the last of them, and so another pass, comes after the first absences
			j := proving(db, stage(t, db, ledger.Async, 10, 50), f)
			j.Ledger.UnknownRows, j.RecheckDelay, j.Workers = jumped{db, by}, 300*time.Millisecond, 1
			inTime(t, hangs, func(t *testing.T, soft context.Context) {
				if _, err := j.Execute(t.Context(), soft); err != nil {
					t.Error(err)
				}
			})
			if c := counts(t, db, j.Run); c != (ledger.Counts{Accepted: 50}) || f.twice() > 0 {
				t.Errorf("%+v, %d rows created twice", c, f.twice())
			}
			if f.least < j.RecheckDelay {
				t.Errorf("sent again %s after the first absence; want no sooner than %s", f.least, j.RecheckDelay)
			}
		})
	}
}

// An absence that an earlier command noted in what is the future now counts
// from now on, and that is said once.
func TestAbsenceInTheFutureCountsAsNow(t *testing.T) {
	db, f := open(t), newFake()
	f.create = losing(2, 2, false)
	run := stage(t, db, ledger.Async, 10, 20)
	inTime(t, 500*time.Millisecond, func(t *testing.T, soft context.Context) {
		j := proving(db, run, f)
		j.RecheckDelay = time.Hour
		_, _ = j.Execute(t.Context(), soft)
	})

	var said []string
	j := proving(db, run, f)
	j.Ledger.UnknownRows, j.RecheckDelay = jumped{db, -365 * 24 * time.Hour}, 300*time.Millisecond
	j.Note = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	inTime(t, hangs, func(t *testing.T, soft context.Context) {
		began := time.Now()
		if _, err := j.Execute(t.Context(), soft); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < j.RecheckDelay {
			t.Errorf("sent again after %s; want no sooner than %s", took, j.RecheckDelay)
		}
	})
	if c := counts(t, db, run); c != (ledger.Counts{Accepted: 20}) {
		t.Errorf("%+v", c)
	}
	if n := strings.Count(strings.Join(said, "\n"), "clock"); n != 1 {
		t.Errorf("said %d times: %q", n, said)
	}
}
