package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

var errNobody = errors.New("cannot connect to host: connection refused")

// nobody is a service that can't be reached before it is there.
type nobody struct {
	*fake
	there time.Time // zero for never
}

func (s nobody) away() bool { return s.there.IsZero() || time.Now().Before(s.there) }

func (s nobody) Create(ctx context.Context, items []tracking.Item) *tracking.Reply {
	if s.away() {
		return &tracking.Reply{Outcome: tracking.OutcomeNotSent, Err: errNobody}
	}
	return s.fake.Create(ctx, items)
}

func (s nobody) Evidence(ctx context.Context, q tracking.Query, it tracking.Item) tracking.Evidence {
	if s.away() {
		return tracking.Evidence{Err: errNobody, Failure: tracking.Failure{Temporary: true, Unconnected: true}}
	}
	return s.fake.Evidence(ctx, q, it)
}

// A service that can't be reached is said at once and once, is a problem until it can be, and
// ends the run with its own cause: after the patience for connections, or at the end of the
// time.
func TestNoConnection(t *testing.T) {
	for name, tt := range map[string]struct {
		proves  bool
		away    time.Duration // 0 for ever
		within  time.Duration // of the whole run; 0 for no limit
		said    string
		longest time.Duration
	}{
		"never, first query":  {proves: true, said: "15s", longest: 19 * time.Second},
		"never, first create": {said: "15s", longest: 19 * time.Second},
		"end of the time":     {within: 3 * time.Second, said: "3s", longest: 3 * time.Second},
		"back in time":        {away: 9 * time.Second, said: "15s", longest: 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			db, s := open(t), nobody{fake: newFake()}
			run := stage(t, db, ledger.Async, 10, 20)
			synctest.Test(t, func(t *testing.T) {
				var said []string
				var problems []error
				j := proving(db, run, &s)
				j.SkipProof, j.ConnectFor, j.QueryTimeout = !tt.proves, 15*time.Second, 15*time.Second
				j.Note = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
				j.Failing = func(err error) { problems = append(problems, err) }
				soft, began := t.Context(), time.Now()
				if tt.away > 0 {
					s.there = began.Add(tt.away)
				}
				if tt.within > 0 {
					var cancel context.CancelFunc
					soft, cancel = context.WithTimeoutCause(t.Context(), tt.within, errors.New("the end"))
					defer cancel()
				}
				_, err := j.Execute(t.Context(), soft)
				if want := []string{errNobody.Error() + "; retrying for " + tt.said}; !slices.Equal(said, want) {
					t.Errorf("said %q; want %q", said, want)
				}
				if took := time.Since(began); took > tt.longest {
					t.Errorf("took %s; want %s at most", took, tt.longest)
				}
				var stop *bulk.StopError
				switch {
				case tt.away > 0 && (err != nil || problems[len(problems)-1] != nil):
					t.Errorf("%v, problems %v; want the end of the problem", err, problems)
				case tt.away == 0 && (!errors.As(err, &stop) || stop.Cause != tracking.OutcomeNotSent || len(problems) == 0 || problems[len(problems)-1] == nil):
					t.Errorf("%v, problems %v; want a stop without a connection", err, problems)
				}
			})
		})
	}
}
