package query

import (
	"context"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Stored returns what the store has of a target, with the last answer whole, and asks
// nobody.
func (a *Asker) Stored(ctx context.Context, t *Target) (Result, error) {
	s := &targetPoller{&Scheduler{Asker: a, Whole: true}}
	if err := s.load(ctx, []*Target{t}); err != nil {
		return Result{}, err
	}
	e := TargetResult{Target: t, Result: t.known()}
	if t.erased {
		e.Result.Err = ledger.ErrErased
	}
	store, err := a.Store(ctx)
	if err != nil || store == nil {
		return e.Result, err
	}
	if err := s.complete(ctx, store, &e); err != nil {
		return e.Result, err
	}
	return e.Result, addUnverified(ctx, store, &e.Result, t.rows)
}

// complete adds to a result what is kept of it beside its rows: the events that
// they were learnt from, and the last answer.
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
	res.Trackings = merge(*res, rows, false)
	return nil
}

// withKnown returns trackings with what is known of rows where an answer says
// nothing of them.
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
