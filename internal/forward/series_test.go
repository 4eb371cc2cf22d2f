package forward_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// series sends bodies "0", "1", … to a target and keeps the results.
type series struct {
	forward.Series
	results []forward.Result
}

func newSeries(t *testing.T, to *url.URL) *series {
	t.Helper()
	s := &series{Series: forward.Series{Client: client(t, forward.ClientOptions{}), Gate: pace.New(1, 0), Expect: forward.Statuses{"2xx"}}}
	s.Load = func(_ context.Context, step forward.Sending) (forward.Request, error) {
		return forward.Request{URL: to, Message: webhook.Request{Method: "POST", Path: "/", Body: fmt.Append(nil, step.Index)}}, nil
	}
	s.OnResult = func(r forward.Result) error {
		s.results = append(s.results, r)
		return nil
	}
	return s
}

// answers sets how the target answers.
func (a *app) answers(how func(body, attempt string) int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = how
}

// tried returns what came since the last call: attempt and body.
func (a *app) tried() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	tries := a.tries
	a.tries = nil
	return tries
}

func TestSeriesSendsItsPlan(t *testing.T) {
	a := newApp(t)
	a.answers(func(body, _ string) int {
		if body == "1" {
			return 500
		}
		return 204
	})
	s := newSeries(t, parse(t, a.URL))
	s.Faults = forward.Faults{Duplicate: 1, Reorder: true, Seed: 1}
	tally, err := s.Run(t.Context(), t.Context(), 3)
	if want := (forward.Tally{Planned: 6, Expected: 4, Unexpected: 2}); err != nil || tally != want {
		t.Errorf("%+v, %v; want %+v", tally, err, want)
	}
	var want []string
	for _, step := range s.Faults.Plan(3) {
		want = append(want, fmt.Sprintf(" %d", step.Index))
	}
	if got := a.tried(); !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}

func TestSeriesEndsWhenNobodyIsThere(t *testing.T) {
	s := newSeries(t, parse(t, "http://127.0.0.1:1"))
	tally, err := s.Run(t.Context(), t.Context(), 10)
	if want := (forward.Tally{Planned: 10, Unreachable: 3}); !errors.Is(err, forward.ErrUnreachable) || tally != want {
		t.Errorf("%+v, %v; want %+v", tally, err, want)
	}
	// A plan that is through has not stopped early.
	if tally, err := s.Run(t.Context(), t.Context(), 3); err != nil || tally.Unreachable != 3 {
		t.Errorf("%+v, %v", tally, err)
	}
}

func TestSeriesEndsAtAForbiddenTarget(t *testing.T) {
	s := newSeries(t, parse(t, "http://169.254.169.254"))
	tally, err := s.Run(t.Context(), t.Context(), 2)
	if !errors.Is(err, forward.ErrForbidden) || tally.Unsent != 1 || len(s.results) != 1 || !s.results[0].Unsent() {
		t.Errorf("%+v, %v", tally, err)
	}
}

func TestSeriesGoesOnPastOneDelivery(t *testing.T) {
	a := newApp(t)
	s := newSeries(t, parse(t, a.URL))
	load := s.Load
	s.Load = func(ctx context.Context, step forward.Sending) (forward.Request, error) {
		if step.Index == 0 {
			return forward.Request{}, forward.ErrUnsendable
		}
		return load(ctx, step)
	}
	tally, err := s.Run(t.Context(), t.Context(), 2)
	if err != nil || tally.Unsent != 1 || tally.Expected != 1 {
		t.Errorf("%+v, %v", tally, err)
	}
	broken := errors.New("broken")
	s.Load = func(context.Context, forward.Sending) (forward.Request, error) { return forward.Request{}, broken }
	if tally, err := s.Run(t.Context(), t.Context(), 2); !errors.Is(err, broken) || tally.Tried() != 0 {
		t.Errorf("%+v, %v", tally, err)
	}
}

// TestSeriesStopsBetweenSendings ends the context while a request is under way:
// its answer still counts, and nothing more is sent.
func TestSeriesStopsBetweenSendings(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	a := newApp(t)
	a.answers(func(string, string) int { cancel(enough); return 200 })
	s := newSeries(t, parse(t, a.URL))
	tally, err := s.Run(ctx, t.Context(), 5)
	if !errors.Is(err, enough) || tally.Expected != 1 || tally.Tried() != 1 || len(a.received()) != 1 {
		t.Errorf("%+v, %v", tally, err)
	}
}

// TestSeriesIsCutOff ends the context of requests under way too.
func TestSeriesIsCutOff(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	a := newApp(t)
	over := make(chan struct{})
	defer close(over)
	a.answers(func(string, string) int {
		cancel(enough)
		<-over
		return 200
	})
	s := newSeries(t, parse(t, a.URL))
	if tally, err := s.Run(ctx, ctx, 5); !errors.Is(err, enough) || tally.Tried() != 0 || len(s.results) != 0 {
		t.Errorf("%+v, %v", tally, err)
	}
}

func TestSeriesCorrupts(t *testing.T) {
	scheme := webhook.Scheme{Signature: webhook.Signature{From: "header:X-Sig"}}
	secret := webhook.Secret{Name: "s", Value: []byte("k")}
	a := newApp(t)
	s := newSeries(t, parse(t, a.URL))
	s.Scheme, s.Faults = scheme, forward.Faults{Corrupt: true, Seed: 2}
	load := s.Load
	s.Load = func(ctx context.Context, step forward.Sending) (forward.Request, error) {
		p, err := load(ctx, step)
		if err == nil && step.Index == 0 {
			out, signErr := webhook.Sign(scheme, secret, p.Message, time.Now())
			p.Message, err = out.Apply(p.Message), signErr
		}
		return p, err
	}
	tally, err := s.Run(t.Context(), t.Context(), 2)
	if err != nil || tally.Expected != 1 || tally.Unsent != 1 || !errors.Is(s.results[1].Err, webhook.ErrUnsigned) {
		t.Errorf("%+v, %v, %+v", tally, err, s.results)
	}
}

func TestSeriesKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := forward.NewClient(forward.ClientOptions{})
		defer c.Close()
		s := forward.Series{
			Client: c, Gate: pace.New(1, 0.1),
			Load: func(context.Context, forward.Sending) (forward.Request, error) {
				return forward.Request{}, forward.ErrUnsendable
			},
			OnResult: func(forward.Result) error { return nil },
		}
		began := time.Now()
		if tally, err := s.Run(t.Context(), t.Context(), 7); err != nil || tally.Unsent != 7 {
			t.Errorf("%+v, %v", tally, err)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("took %v of fake time; want a minute", took)
		}
	})
}

func TestPlanWithoutFaults(t *testing.T) {
	got := forward.Faults{Seed: 9}.Plan(3)
	if diff := cmp.Diff([]forward.Sending{{Index: 0}, {Index: 1}, {Index: 2}}, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestPlanFollowsFromTheSeed(t *testing.T) {
	f := forward.Faults{Duplicate: 2, Reorder: true, Seed: 4}
	one := f.Plan(100)
	if diff := cmp.Diff(one, f.Plan(100)); diff != "" || len(one) != 300 {
		t.Errorf("%d sendings of 300; twice the same seed differ:\n%s", len(one), diff)
	}
	f.Seed = 5
	if cmp.Equal(one, f.Plan(100)) {
		t.Error("another seed plans the same")
	}
}

func TestPick(t *testing.T) {
	seen := map[int]bool{}
	for i := range 100 {
		f, s := forward.Faults{Seed: 3}, forward.Sending{Index: i}
		n := f.Pick(s)(16)
		if n < 0 || n > 15 || n != f.Pick(s)(16) {
			t.Fatalf("sending %d: %d", i, n)
		}
		seen[n] = true
	}
	if len(seen) < 10 {
		t.Errorf("%d of 16 chosen", len(seen))
	}
}

func TestStatuses(t *testing.T) {
	s, err := forward.ParseStatuses("2XX, 401")
	if err != nil || s.String() != "2xx,401" {
		t.Errorf("%v, %v", s, err)
	}
	for status, want := range map[int]bool{200: true, 299: true, 300: false, 401: true, 400: false, 2: false, 0: false, 2000: false} {
		if got := s.Match(status); got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
	for _, text := range []string{"", "2x", "xxx", "600", "099", "20x", "2xx,", "ok", "+20"} {
		if s, err := forward.ParseStatuses(text); err == nil {
			t.Errorf("%q is read as %v", text, s)
		}
	}
}
