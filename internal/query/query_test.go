package query_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
	learnErr  error
	eventErr  error
	learnt    []string
	event     inbox.Event
	lastEvent int64
}

func (k *kept) Find(context.Context, string, string, string) ([]ledger.TrackingStatus, error) {
	return k.rows, k.findErr
}

func (k *kept) Record(_ context.Context, account string, answers []ledger.RecordedAnswer) error {
	for _, a := range answers {
		for _, s := range a.Seen {
			k.learnt = append(k.learnt, fmt.Sprintf("%s %s %s %s %s", account, s.Key.Number, s.Phase, s.StatusLabel, a.Raw))
		}
	}
	return k.learnErr
}

func (k *kept) LastUnverified(context.Context, string) (int64, error) { return k.lastEvent, nil }
func (k *kept) Event(context.Context, int64) (inbox.Event, error)     { return k.event, k.eventErr }

// asker asks a service, with a store or nil for none.
func asker(s service, k *kept) *query.Asker {
	return &query.Asker{Service: s, Gate: pace.New(1, 0), Account: "acc", Store: func(context.Context) (*query.Store, error) {
		if k == nil {
			return nil, nil
		}
		return &query.Store{Trackings: k, Events: k, Inbox: k}, nil
	}}
}

func moving(number string) (tracking.Answer, error) {
	return tracking.Answer{Raw: []byte("raw"), JSON: true, Trackings: []tracking.Tracking{{Number: number, StatusLabel: "MOVING"}}}, nil
}

var order = tracking.Query{ReferID: "R"}

func rowOf(number string) ledger.TrackingStatus {
	return ledger.TrackingStatus{Item: tracking.Item{ReferID: "R", Number: number}, State: ledger.Accepted}
}

func TestQueryRecordsWhatItIsTold(t *testing.T) {
	k := &kept{rows: []ledger.TrackingStatus{rowOf("N1"), rowOf("N2")}}
	var asked []tracking.Query
	res := asker(func(q tracking.Query) (tracking.Answer, error) {
		asked = append(asked, q)
		if q.Number == "N2" {
			return tracking.Answer{}, tracking.ErrAbsent // a service need not know queries by number
		}
		return moving("N1")
	}, k).Query(t.Context(), order)
	if res.Err != nil || len(res.Trackings) != 2 || res.Trackings[1].Phase != query.Undecided {
		t.Errorf("%+v; want one of two parcels", res)
	}
	if diff := cmp.Diff([]tracking.Query{order, {Number: "N2"}}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"acc N1 processed MOVING raw"}, k.learnt); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

// What can't be looked up or recorded is the error, not left out.
func TestQueryReturnsFailuresOfTheStore(t *testing.T) {
	broken := errors.New("broken")
	event := rowOf("N1")
	event.Sighting = &ledger.Sighting{Phase: ledger.Processed, Source: ledger.FromEvent, Event: 1}
	for name, k := range map[string]*kept{
		"find":  {findErr: broken},
		"learn": {rows: []ledger.TrackingStatus{rowOf("N1")}, learnErr: broken},
		"event": {rows: []ledger.TrackingStatus{event}, eventErr: broken},
	} {
		a := asker(func(tracking.Query) (tracking.Answer, error) { return moving("N1") }, k)
		if res := a.Query(t.Context(), order); !errors.Is(res.Err, broken) {
			t.Errorf("%s: %v; want the failure", name, res.Err)
		}
		if _, err := a.AddKnown(t.Context(), query.Result{Query: order}); (err == nil) != (name == "learn") {
			t.Errorf("%s: AddKnown: %v", name, err)
		}
	}
	k := &kept{rows: []ledger.TrackingStatus{event}, eventErr: inbox.ErrNoEvent}
	if res, err := asker(nil, k).AddKnown(t.Context(), query.Result{Query: order}); err != nil || len(res.Trackings) != 1 {
		t.Errorf("a pruned event: %v %+v", err, res)
	}
}

func TestQueryWithoutAStore(t *testing.T) {
	a := asker(func(tracking.Query) (tracking.Answer, error) { return moving("N1") }, nil)
	res := a.Query(t.Context(), order)
	if res.Err != nil || len(res.Trackings) != 1 || res.Asked.IsZero() {
		t.Errorf("%+v", res)
	}
	known, err := a.AddKnown(t.Context(), res)
	if err != nil || len(known.Trackings) != 1 || a.AddUnverified(t.Context(), res) != nil || res.Trackings[0].Unverified != nil {
		t.Errorf("%v %+v", err, known)
	}
}

func TestAddUnverified(t *testing.T) {
	k := &kept{lastEvent: 7, event: inbox.Event{Seq: 7}}
	res := query.Result{Trackings: []query.Tracking{{}}}
	if err := asker(nil, k).AddUnverified(t.Context(), res); err != nil || res.Trackings[0].Unverified == nil || res.Trackings[0].Unverified.Seq != 7 {
		t.Errorf("%v %+v", err, res)
	}
}

func TestQueryWithRetryTriesAgainWhatMayPass(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		more bool
	}{
		{"no connection", &api.ConnectError{Err: errors.New("refused")}, true},
		{"overloaded", fmt.Errorf("asked: %w", &api.StatusError{Status: 503, Pause: time.Second}), true},
		{"refused", &api.StatusError{Status: 400}, false},
		{"unauthorized", &api.StatusError{Status: 401}, false},
		{"absent", tracking.ErrAbsent, false},
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
				res := a.QueryWithRetry(t.Context(), order, time.Minute)
				if (tries == 3) != tt.more || (res.Err == nil) != tt.more {
					t.Errorf("%d tries, %v", tries, res.Err)
				}
			})
		})
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
		if query.Fatal(err) != tt.fatal || query.Temporary(err) != tt.temporary || query.RetryAfter(err) != tt.after {
			t.Errorf("%v: fatal %v, temporary %v, retry after %v", err, query.Fatal(err), query.Temporary(err), query.RetryAfter(err))
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
			return tracking.Evidence{Err: errors.New("429"), Throttled: true, RetryAfter: time.Hour}
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
