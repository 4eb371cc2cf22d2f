package query_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// service answers queries by function.
type service func(q tracking.Query) (tracking.Answer, error)

func (s service) Detail(_ context.Context, q tracking.Query) (tracking.Answer, error) { return s(q) }

// kept is a store of rows, with what was recorded.
type kept struct {
	rows      []ledger.TrackingStatus
	findErr   error
	found     int // calls of FindAll
	failFrom  int // the call from which findErr comes
	erased    map[tracking.Query]bool
	learnErr  error
	eventErr  error
	learnt    []string
	event     inbox.Event
	lastEvent int64
	last      string
}

func (k *kept) Find(ctx context.Context, referID, number string) ([]ledger.TrackingStatus, error) {
	all, err := k.FindAll(ctx, []tracking.Query{{ReferID: referID, Number: number}})
	return all[0], err
}

func (k *kept) FindAll(_ context.Context, qs []tracking.Query) ([][]ledger.TrackingStatus, error) {
	all := make([][]ledger.TrackingStatus, len(qs))
	for i, q := range qs {
		for _, r := range k.rows {
			if q.ReferID == r.Item.ReferID || q.ReferID == "" && tracking.SameNumber(q.Number, r.Item.Number) {
				all[i] = append(all[i], r)
			}
		}
	}
	if k.found++; k.found < k.failFrom {
		return all, nil
	}
	return all, k.findErr
}

func (k *kept) Record(_ context.Context, answers []ledger.RecordedAnswer) error {
	for _, a := range answers {
		for _, s := range a.Seen {
			k.learnt = append(k.learnt, fmt.Sprintf("%s %s %s %s", s.Key.Number, s.Phase, s.StatusLabel, a.Raw))
		}
	}
	return k.learnErr
}

func (k *kept) LastAnswer(context.Context, string) ([]byte, error) {
	return []byte(k.last), nil
}
func (k *kept) LastUnverified(context.Context, string) (int64, error) { return k.lastEvent, nil }
func (k *kept) Event(context.Context, int64) (inbox.Event, error)     { return k.event, k.eventErr }

func (k *kept) Erased(_ context.Context, qs []tracking.Query) ([]bool, error) {
	found := make([]bool, len(qs))
	for i, q := range qs {
		found[i] = k.erased[q]
	}
	return found, nil
}

// asker asks a service, with a store or nil for none.
func asker(s service, k *kept) *query.Asker {
	return &query.Asker{Service: s, Gate: pace.New(1, 0), Store: func(context.Context) (*query.Store, error) {
		if k == nil {
			return nil, nil
		}
		return &query.Store{Trackings: k, Events: k, Inbox: k, Eraser: k}, nil
	}}
}

func moving(number string) (tracking.Answer, error) {
	return tracking.Answer{Raw: []byte("raw"), JSON: true, Trackings: []tracking.Tracking{{
		Number: number,
		Report: tracking.Report{StatusLabel: "MOVING"},
	}}}, nil
}

var order = tracking.Query{ReferID: "R"}

func rowOf(number string) ledger.TrackingStatus {
	return ledger.TrackingStatus{Item: tracking.Item{ReferID: "R", Number: number}, State: ledger.Accepted}
}

// target is one REF as it was given.
func target(ref string) *query.Target {
	return &query.Target{Ref: ref, Query: tracking.Query{ReferID: ref}}
}

// ask asks about REFs until each has an answer, and returns how each ended.
func ask(ctx context.Context, a *query.Asker, change func(*query.Scheduler), refs ...string) ([]query.TargetResult, error) {
	var all []query.TargetResult
	s := &query.Scheduler{Asker: a, Workers: 2, Patience: time.Minute, Failing: func(error) {}}
	s.Ended = func(e query.TargetResult) error {
		all = append(all, e)
		return nil
	}
	if change != nil {
		change(s)
	}
	err := s.Run(ctx, func(yield func(*query.Target, error) bool) {
		for i, ref := range refs {
			t := target(ref)
			t.Pos = int64(i)
			if !yield(t, nil) {
				return
			}
		}
	})
	slices.SortFunc(all, func(a, b query.TargetResult) int { return cmp.Compare(a.Target.Pos, b.Target.Pos) })
	return all, err
}

func TestAnswersAreRecorded(t *testing.T) {
	k := &kept{rows: []ledger.TrackingStatus{rowOf("N1"), rowOf("N2")}}
	var asked []tracking.Query
	all, err := ask(t.Context(), asker(func(q tracking.Query) (tracking.Answer, error) {
		asked = append(asked, q)
		if q.Number == "N2" {
			return tracking.Answer{}, tracking.ErrAbsent // a service need not know queries by number
		}
		return moving("N1")
	}, k), nil, "R")
	if err != nil || len(all) != 1 || all[0].Result.Err != nil || len(all[0].Result.Trackings) != 2 || all[0].Result.Trackings[1].Phase != query.Undecided {
		t.Errorf("%v %+v; want one of two parcels", err, all)
	}
	if diff := gocmp.Diff([]tracking.Query{order, {Number: "N2"}}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]string{"N1 processed MOVING raw"}, k.learnt); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

// What can't be looked up or recorded is the error, not left out.
func TestFailuresOfTheStoreAreReturned(t *testing.T) {
	broken := errors.New("broken")
	event := rowOf("N1")
	event.Sighting = &ledger.Sighting{Phase: ledger.Processed, Source: ledger.FromEvent, Event: 1}
	for name, k := range map[string]*kept{
		"find":                     {findErr: broken},
		"find the number of a REF": {findErr: broken, failFrom: 2},
		"find the order of a number": {
			rows:    []ledger.TrackingStatus{{Item: tracking.Item{ReferID: "S", Number: "R"}, State: ledger.Accepted}},
			findErr: broken, failFrom: 3,
		},
		"learn": {rows: []ledger.TrackingStatus{rowOf("N1")}, learnErr: broken},
		"event": {rows: []ledger.TrackingStatus{event}, eventErr: broken},
	} {
		a := asker(func(tracking.Query) (tracking.Answer, error) { return moving("N1") }, k)
		if all, err := ask(t.Context(), a, nil, "R"); !errors.Is(err, broken) || slices.ContainsFunc(all, func(e query.TargetResult) bool { return !e.Unfinished }) {
			t.Errorf("%s: %v %v; want the failure", name, err, all)
		}
	}
	k := &kept{rows: []ledger.TrackingStatus{event}, eventErr: inbox.ErrNoEvent}
	a := asker(func(tracking.Query) (tracking.Answer, error) { return moving("N1") }, k)
	if all, err := ask(t.Context(), a, nil, "R"); err != nil || len(all) != 1 || len(all[0].Result.Trackings) != 1 {
		t.Errorf("a pruned event: %v %+v", err, all)
	}
}

// Rows are read before a query, once more if an event reported them, and once more when they meet the condition of a
// wait: a target that waits on keeps its rows, or numbers that one answer alone has named would be wanted later.
func TestRowsAreReadOnceForAnAnswer(t *testing.T) {
	byEvent := rowOf("N1")
	byEvent.Sighting = &ledger.Sighting{Phase: ledger.Processed, Source: ledger.FromEvent, Seen: time.Now()}
	answer := func(tracking.Query) (tracking.Answer, error) { return moving("N1") }
	wait := func(s *query.Scheduler) {
		s.AskAll, s.Meets = true, func(_ context.Context, all []query.TargetResult) error {
			all[0].Matched = true
			return nil
		}
	}
	for _, tt := range []struct {
		row    ledger.TrackingStatus
		change func(*query.Scheduler)
		want   int
	}{{rowOf("N1"), nil, 1}, {rowOf("N1"), wait, 2}, {byEvent, nil, 2}, {byEvent, wait, 3}} {
		k := &kept{rows: []ledger.TrackingStatus{tt.row}, eventErr: inbox.ErrNoEvent}
		all, err := ask(t.Context(), asker(answer, k), tt.change, "R")
		if err != nil || len(all) != 1 || k.found != tt.want {
			t.Errorf("%v, %d targets, rows read %d times; want %d", err, len(all), k.found, tt.want)
		}
	}
}

// What the caller finds out about targets may fail, too.
func TestAFailureOfTheCallerIsReturned(t *testing.T) {
	broken := errors.New("broken")
	asked := 0
	a := asker(func(tracking.Query) (tracking.Answer, error) {
		asked++
		return moving("N1")
	}, nil)
	_, err := ask(t.Context(), a, func(s *query.Scheduler) {
		s.Meets = func(context.Context, []query.TargetResult) error { return broken }
	}, "R")
	if !errors.Is(err, broken) || asked > 0 {
		t.Errorf("%v after %d questions", err, asked)
	}
}

// The service is not asked about what was erased, by order or by number.
func TestErasedTargetsAreNotAsked(t *testing.T) {
	for name, tt := range map[string]struct {
		erased tracking.Query
		ref    string
		asks   int
	}{
		"the order":      {tracking.Query{ReferID: "R"}, "R", 0},
		"a number":       {tracking.Query{Number: "R"}, "R", 0},
		"another order":  {tracking.Query{ReferID: "S"}, "R", 1},
		"another number": {tracking.Query{Number: "N1"}, "R", 1},
	} {
		asked := 0
		k := &kept{erased: map[tracking.Query]bool{tt.erased: true}}
		a := asker(func(tracking.Query) (tracking.Answer, error) { asked++; return moving("N1") }, k)
		all, err := ask(t.Context(), a, nil, tt.ref)
		if err != nil || len(all) != 1 || asked != tt.asks || errors.Is(all[0].Result.Err, ledger.ErrErased) != (tt.asks == 0) {
			t.Errorf("%s: %v, %d questions, %+v", name, err, asked, all)
		}
	}
}

func TestAskingWithoutAStore(t *testing.T) {
	a := asker(func(tracking.Query) (tracking.Answer, error) { return moving("N1") }, nil)
	all, err := ask(t.Context(), a, nil, "R")
	if err != nil || len(all) != 1 || len(all[0].Result.Trackings) != 1 || all[0].Result.Asked.IsZero() || all[0].Result.Trackings[0].Unverified != nil {
		t.Errorf("%v %+v", err, all)
	}
}

func TestUnverifiedEventsStandBeside(t *testing.T) {
	k := &kept{lastEvent: 7, event: inbox.Event{Seq: 7}}
	all, err := ask(t.Context(), asker(func(tracking.Query) (tracking.Answer, error) { return moving("N1") }, k), nil, "R")
	if err != nil || len(all) != 1 || all[0].Result.Trackings[0].Unverified == nil || all[0].Result.Trackings[0].Unverified.Seq != 7 {
		t.Errorf("%v %+v", err, all)
	}
}

func TestWhatMayPassIsTriedAgain(t *testing.T) {
	for _, tt := range []struct {
		name  string
		err   error
		more  bool
		fatal bool
	}{
		{"no connection", &api.ConnectError{Err: errors.New("refused")}, true, false},
		{"overloaded", fmt.Errorf("asked: %w", &api.StatusError{Status: 503, Pause: time.Second}), true, false},
		{"refused", &api.StatusError{Status: 400}, false, false},
		{"unauthorized", &api.StatusError{Status: 401}, false, true},
		{"absent", tracking.ErrAbsent, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				a := asker(func(tracking.Query) (tracking.Answer, error) {
					if tries++; tries < 3 {
						return tracking.Answer{}, tt.err
					}
					return moving("N1")
				}, nil)
				all, err := ask(t.Context(), a, nil, "R")
				if len(all) != 1 || (tries == 3) != tt.more || (all[0].Result.Err == nil) != tt.more || (err != nil) != tt.fatal || all[0].Unfinished != tt.fatal {
					t.Errorf("%d tries, %v %+v", tries, err, all)
				}
			})
		})
	}
}

// A refused key ends it at once: what was answered stands, the rest was not asked.
func TestAFatalAnswerEndsTheAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refs []string
		for i := range 1000 {
			refs = append(refs, fmt.Sprint("R", i))
		}
		asked := 0
		k := &kept{}
		a := asker(func(tracking.Query) (tracking.Answer, error) {
			if asked++; asked > 20 {
				return tracking.Answer{}, &api.StatusError{Status: 401}
			}
			return moving("N1")
		}, k)
		all, err := ask(t.Context(), a, func(s *query.Scheduler) { s.Workers = 1 }, refs...)
		if !errors.Is(err, tracking.ErrUnauthorized) || asked != 21 || len(all) != len(refs) {
			t.Fatalf("%v after %d questions, %d REFs ended; want the refusal after 21, and all", err, asked, len(all))
		}
		for i, e := range all {
			if want := i >= 20; e.Unfinished != want || errors.Is(e.Result.Err, query.ErrNotAsked) != want {
				t.Errorf("REF %d: left %v, %v; want %v", i, e.Unfinished, e.Result.Err, want)
			}
		}
	})
}

// A service that can't be reached ends the asking about many, not each in turn.
func TestNoAnswerForTooLongEndsTheAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := asker(func(tracking.Query) (tracking.Answer, error) {
			return tracking.Answer{}, &api.ConnectError{Err: errors.New("refused")}
		}, nil)
		all, err := ask(t.Context(), a, nil, "R1", "R2", "R3", "R4", "R5")
		if !tracking.FailureOf(err).Temporary || len(all) != 5 {
			t.Errorf("%v, %d ended", err, len(all))
		}
		const lastPause = 4 * time.Second // the question that ends it may come a pause after the patience
		if d := time.Since(start); d < time.Minute || d > time.Minute+lastPause {
			t.Errorf("it took %v; want the patience, and no more than a pause", d)
		}
	})
}

// A wait is not over because of one answer that cannot be believed.
func TestAWaitOutlastsTrouble(t *testing.T) {
	for _, trouble := range []error{&api.StatusError{Status: 500}, &api.AnswerError{Status: 200, Problem: "not JSON"}, &api.ConnectError{Err: errors.New("refused")}} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			a := asker(func(tracking.Query) (tracking.Answer, error) {
				if asked++; asked < 5 {
					return tracking.Answer{}, trouble
				}
				return moving("N1")
			}, nil)
			all, err := ask(t.Context(), a, func(s *query.Scheduler) {
				s.Patience = 0
				s.Meets = func(_ context.Context, all []query.TargetResult) error {
					for i := range all {
						all[i].Matched = len(all[i].Result.Trackings) > 0
					}
					return nil
				}
			}, "R")
			if err != nil || asked != 5 || len(all) != 1 || !all[0].Matched {
				t.Errorf("%v after %v in %d questions: %+v", err, trouble, asked, all)
			}
		})
	}
}

// What the store knows as a number is asked for as such: by the referId where the
// order has no other parcel.
func TestNumbersAreRecognized(t *testing.T) {
	alone := ledger.TrackingStatus{Item: tracking.Item{ReferID: "S", Number: "N-9"}, State: ledger.Accepted}
	k := &kept{rows: []ledger.TrackingStatus{rowOf("N1"), rowOf("N2"), alone}}
	for ref, want := range map[string]tracking.Query{
		"R": {ReferID: "R"}, "N1": {Number: "N1"}, "n9": {ReferID: "S"}, "X": {ReferID: "X"},
	} {
		var asked []tracking.Query
		a := asker(func(q tracking.Query) (tracking.Answer, error) {
			asked = append(asked, q)
			return tracking.Answer{}, tracking.ErrAbsent
		}, k)
		all, err := ask(t.Context(), a, nil, ref)
		if err != nil || len(all) != 1 || all[0].Result.Ref != ref || len(asked) != 1 || asked[0] != want {
			t.Errorf("%s: %v, asked for %+v; want %+v", ref, err, asked, want)
		}
	}
}

// Rejected rows have no status and are not asked about; beside an accepted one
// they are shown as what they are.
func TestRejectedMeansRejected(t *testing.T) {
	bad := rowOf("N1")
	bad.State, bad.Reason = ledger.Rejected, "bad number"
	asked := 0
	processing := func(tracking.Query) (tracking.Answer, error) {
		asked++
		return tracking.Answer{Raw: []byte("{}"), Processing: true}, tracking.ErrProcessing
	}
	all, err := ask(t.Context(), asker(processing, &kept{rows: []ledger.TrackingStatus{bad}}), nil, "R")
	if err != nil || asked != 0 || len(all) != 1 || !errors.Is(all[0].Result.Err, query.ErrRejected) || all[0].Result.Trackings[0].Phase != query.Rejected {
		t.Errorf("%v after %d questions: %+v", err, asked, all)
	}
	k := &kept{rows: []ledger.TrackingStatus{bad, rowOf("N2")}}
	all, err = ask(t.Context(), asker(processing, k), nil, "R")
	if err != nil || asked != 1 || len(all) != 1 || all[0].Result.Err != nil {
		t.Fatalf("%v after %d questions: %+v", err, asked, all)
	}
	phases := map[string]ledger.Phase{}
	for _, x := range all[0].Result.Trackings {
		phases[x.Number] = x.Phase
	}
	if phases["N1"] != query.Rejected || phases["N2"] != ledger.Processing {
		t.Errorf("phases %v", phases)
	}
	if diff := gocmp.Diff([]string{"N2 processing  {}"}, k.learnt); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

// What was asked since is shown as it was answered then, and not asked again.
func TestAnswersSinceCount(t *testing.T) {
	start := time.Now().Add(-2 * time.Hour)
	row := rowOf("N1")
	row.Asked = start.Add(time.Minute)
	row.Sighting = &ledger.Sighting{
		Phase: ledger.Processed, Source: ledger.FromQuery, Seen: row.Asked,
		Report: tracking.Report{StatusLabel: "MOVING"},
	}
	k := &kept{rows: []ledger.TrackingStatus{row}, last: `{"trackingNumber":"N1","statusLabel":"MOVING","trackingEvents":[{"eventType":"Left"}]}`}
	asked := 0
	a := asker(func(tracking.Query) (tracking.Answer, error) {
		asked++
		return moving("N1")
	}, k)
	all, err := ask(t.Context(), a, func(s *query.Scheduler) { s.Since, s.Whole = start, true }, "R")
	if err != nil || asked != 0 || len(all) != 1 || !all[0].Matched || !all[0].Result.Asked.Equal(row.Asked) || len(all[0].Result.Trackings) != 1 || len(all[0].Result.Trackings[0].Checkpoints) != 1 {
		t.Errorf("%v after %d questions: %+v; want the answer of before, whole", err, asked, all)
	}
	if _, err := ask(t.Context(), a, func(s *query.Scheduler) { s.Since = start.Add(time.Hour) }, "R"); err != nil || asked != 1 {
		t.Errorf("%v after %d questions; want one", err, asked)
	}
}

func TestWhatErrorsMean(t *testing.T) {
	for _, tt := range []struct {
		err              error
		fatal, temporary bool
		after            time.Duration
	}{
		{nil, false, false, 0},
		{&api.StatusError{Status: 401, Pause: time.Second}, true, false, time.Second},
		{&api.StatusError{Status: 302}, true, false, 0},
		{&api.StatusError{Status: 429, Pause: time.Minute}, false, true, time.Minute},
		{&api.StatusError{Status: 500}, false, false, 0},
		{&api.ConnectError{Err: errors.New("refused")}, false, true, 0},
		{&store.Error{Kind: store.ErrFull}, true, false, 0},
		{tracking.ErrAbsent, false, false, 0},
		{tracking.ErrUndecided, false, false, 0},
	} {
		err := tt.err
		if err != nil {
			err = fmt.Errorf("asked: %w", err)
		}
		if f := tracking.FailureOf(err); f.Systemic != tt.fatal || f.Temporary != tt.temporary || f.RetryAfter != tt.after {
			t.Errorf("%v: fatal %v, temporary %v, retry after %v", err, f.Systemic, f.Temporary, f.RetryAfter)
		}
	}
}

func TestEvidenceTellsTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := pace.New(4, 0)
		e := query.Evidence(t.Context(), gate, func() tracking.Evidence { return tracking.Evidence{} })
		if e.Err != nil || gate.Window() != 2 {
			t.Errorf("%v; window %d after a good answer, want 2", e.Err, gate.Window())
		}
		query.Evidence(t.Context(), gate, func() tracking.Evidence {
			return tracking.Evidence{Err: errors.New("429"), Failure: tracking.Failure{Throttled: true, RetryAfter: time.Hour}}
		})
		start := time.Now()
		query.Evidence(t.Context(), gate, func() tracking.Evidence { return tracking.Evidence{} })
		if d := time.Since(start); d != time.Hour {
			t.Errorf("asked %v after the service wanted a pause of an hour", d)
		}
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(enough)
		if e := query.Evidence(ctx, gate, nil); !errors.Is(e.Err, enough) {
			t.Errorf("%v; want the cause", e.Err)
		}
	})
}
