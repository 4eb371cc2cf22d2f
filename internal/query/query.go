// Package query asks the service about trackings, one or a million in the same way. A query takes three steps: the
// service is asked, its answer is recorded, and answer, rows and events are merged.
package query

import (
	"context"
	"errors"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Store has the parts of the store that a query needs.
type Store struct {
	Trackings interface {
		FindAll(ctx context.Context, qs []tracking.Query) ([][]ledger.TrackingStatus, error)
		Record(ctx context.Context, answers []ledger.RecordedAnswer) error
		LastAnswer(ctx context.Context, referID string) ([]byte, error)
	}
	Events interface {
		LastUnverified(ctx context.Context, number string) (int64, error)
	}
	Eraser interface {
		Erased(ctx context.Context, qs []tracking.Query) ([]bool, error)
	}
	Inbox interface {
		Event(ctx context.Context, seq int64) (inbox.Event, error)
	}
}

// Asker queries the service about trackings. It is safe for concurrent use.
type Asker struct {
	Service Service
	Gate    *pace.Gate
	Store   func(context.Context) (*Store, error) // returns the store, nil while there is none
}

// Result is what is known about a referId or number: one tracking, or several if the order has several parcels.
type Result struct {
	Query     tracking.Query
	Ref       string    // as the user gave it
	Asked     time.Time // zero if the service was not queried
	Answer    tracking.Answer
	Trackings []Tracking

	// Err is [tracking.ErrAbsent], [tracking.ErrUndecided], or why there is no answer; not [tracking.ErrProcessing],
	// which is a phase of a tracking.
	Err error
}

// Tracking is one tracking of a result.
type Tracking struct {
	tracking.Tracking
	Phase       ledger.Phase
	Source      ledger.Source // the source of this information; empty if there is none
	Learnt      time.Time     // when it was learnt
	SentCarrier string        // the carrier code sent when it was created
	Reason      string        // why the service rejected it, the service's own words first
	Event       int64         // number in the inbox of the event that reported it, 0 if none
	ledger.CloseReason

	// Older is the answer's data if an earlier event is newer by the service's own times; else nil.
	Older *tracking.Tracking

	// Unverified is the latest event about the number that did not verify; nil if none. It changes nothing.
	Unverified *inbox.Event
}

// Timeline returns the checkpoints newest first, with their anomalies.
func (t Tracking) Timeline() []tracking.Entry { return tracking.Entries(t.Checkpoints, t.Learnt) }

// Phases of trackings that no answer reports.
const (
	Undecided ledger.Phase = "undecided" // no answer says anything about the tracking
	Rejected  ledger.Phase = "rejected"  // the service refused the row
	NotAsked  ledger.Phase = "notAsked"  // the tracking was never queried
	NotSent   ledger.Phase = "notSent"   // the row was not sent yet
)

// Reasons for having no answer.
var (
	ErrRejected = errors.New("the service rejected it")      // all its rows
	ErrInError  = errors.New("the service reports an error") // one of its trackings
	ErrNotSent  = errors.New("not sent yet")                 // none of its rows
	ErrNotAsked = errors.New("not checked yet")              // the end came first
)

func withEvents(ctx context.Context, store *Store, rows []ledger.TrackingStatus) ([]knownRow, error) {
	all := make([]knownRow, len(rows))
	for i, row := range rows {
		all[i].TrackingStatus = row
		if !byEvent(row) {
			continue
		}
		e, err := store.Inbox.Event(ctx, row.Sighting.Event)
		switch {
		case err == nil:
			all[i].event = &e
		case !errors.Is(err, inbox.ErrNoEvent):
			return nil, err
		}
	}
	return all, nil
}

// addUnverified sets [Tracking.Unverified].
func addUnverified(ctx context.Context, store *Store, of *Target, all []Tracking) error {
	if store == nil {
		return nil
	}
	for i := range all {
		t := &all[i]
		var seq int64
		var err error
		if row := of.RowOf(*t); row != nil {
			seq = row.Unverified
		} else if seq, err = store.Events.LastUnverified(ctx, t.Number); err != nil {
			return err
		}
		if seq == 0 {
			continue
		}
		e, err := store.Inbox.Event(ctx, seq)
		if err != nil {
			return err
		}
		t.Unverified = &e
	}
	return nil
}

// Stored returns what the store has of a target, with the last complete answer. It sends no query.
func (a *Asker) Stored(ctx context.Context, t *Target) (res Result, err error) {
	if err := a.readRows(ctx, []*Target{t}); err != nil {
		return res, err
	}
	e := TargetResult{Target: t, Result: t.storedResult(), stored: true}
	if t.erased {
		e.Result.Err = ledger.ErrErased
	}
	s := &targetPoller{Scheduler: &Scheduler{Asker: a, Whole: true, Ended: func(e TargetResult) error {
		res = e.Result
		return nil
	}}}
	err = s.end(ctx, []TargetResult{e})
	return res, err
}

// complete adds the events that reported the rows, and the last answer.
func (s *targetPoller) complete(ctx context.Context, store *Store, e *TargetResult) error {
	t, res := e.Target, &e.Result
	rows, err := withEvents(ctx, store, t.rows)
	if err != nil {
		return err
	}
	if ref := t.orderOf(); s.Whole && ref != "" && !t.lastAsked().IsZero() {
		raw, err := store.Trackings.LastAnswer(ctx, ref)
		if err != nil {
			return err
		}
		if len(raw) > 0 {
			r := queryReply{query: t.Query, asked: t.lastAsked(), answer: tracking.ReadBody(raw).Answer()}
			res.Answer, res.Asked, res.Trackings = r.answer, r.asked, withKnown(t.narrow(match(r, t.rows)), rows)
		}
	}
	res.Trackings = merge(*res, rows)
	return nil
}

// withKnown fills in the known data of rows about which an answer says nothing.
func withKnown(found []Tracking, rows []knownRow) []Tracking {
	for i, f := range found {
		for _, row := range rows {
			if f.Phase == Undecided && f.isOf(row.TrackingStatus) {
				found[i] = row.tracking()
			}
		}
	}
	return found
}
