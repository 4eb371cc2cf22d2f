package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Service answers queries. Each call is one request.
type Service interface {
	// Detail queries the status and timeline of a tracking. Errors that come with an answer are returned with it.
	Detail(ctx context.Context, q tracking.Query) (tracking.Answer, error)
}

// Evidence calls ask once, when the gate permits it, and reports the result to the gate. All queries go this way. If
// ctx ends first, its cause is the error.
func Evidence(ctx context.Context, gate *pace.Gate, ask func() tracking.Evidence) tracking.Evidence {
	pass, err := gate.Enter(ctx)
	if err != nil {
		return tracking.Evidence{Err: err}
	}
	e := ask()
	pass.End(e.Outcome().Meaning().Signal, e.RetryAfter)
	return e
}

type queryReply struct {
	query   tracking.Query
	asked   time.Time
	answer  tracking.Answer
	found   []Tracking // according to the answers
	err     error
	parcels map[string]tracking.Tracking // by number: parcels of the order that the answer left out
	refused error                        // the key was refused by a query for a parcel; else nil
}

// usable reports whether the answer says something about the query, even if only that nothing is known.
func (r queryReply) usable() bool {
	return r.err == nil || errors.Is(r.err, tracking.ErrProcessing) ||
		errors.Is(r.err, tracking.ErrAbsent) || errors.Is(r.err, tracking.ErrUndecided)
}

// ask queries the service once. entering bounds the wait for the gate.
func (a *Asker) ask(ctx, entering context.Context, q tracking.Query) queryReply {
	r := queryReply{query: q, asked: time.Now()}
	e := Evidence(entering, a.Gate, func() tracking.Evidence {
		r.asked = time.Now()
		r.answer, r.err = a.Service.Detail(ctx, q)
		failure := tracking.FailureOf(r.err)
		if len(r.answer.Raw) > 0 && !failure.Throttled {
			return tracking.Evidence{}
		}
		return tracking.Evidence{Err: r.err, Failure: failure}
	})
	r.err = cmp.Or(r.err, e.Err)
	return r
}

// OtherError reports that a response is about another tracking: it can't be trusted, and nothing is recorded from it.
type OtherError struct {
	ReferID, Number string // named by the response; either may be empty
}

func (e *OtherError) Error() string {
	named := ""
	if e.ReferID != "" {
		named += fmt.Sprintf(" order %q", e.ReferID)
	}
	if e.Number != "" {
		named += fmt.Sprintf(" number %q", e.Number)
	}
	return "the response is about another tracking:" + named
}

// Failure lets a wait query again.
func (e *OtherError) Failure() tracking.Failure { return tracking.Failure{Troubled: true} }

// contradiction returns an [*OtherError] if an answer names orders or numbers, but not the requested one.
func (r queryReply) contradiction(rows []ledger.TrackingStatus) error {
	numbers := wanted(r.query, rows)
	agrees := func(k tracking.Key) bool {
		sameOrder := k.ReferID == "" || r.query.ReferID == "" || k.ReferID == r.query.ReferID
		isNumber := func(n string) bool { return tracking.SameNumber(n, k.Number) }
		return sameOrder && (k.Number == "" || len(numbers) == 0 || slices.ContainsFunc(numbers, isNumber))
	}
	if named := r.answer.Named; len(named) > 0 && !slices.ContainsFunc(named, agrees) {
		return &OtherError{named[0].ReferID, named[0].Number}
	}
	return nil
}

// askForParcels queries by number the parcels of an order that the order's answer left out. Only an answer that names
// the number counts. On an error a parcel stays undecided, because a service need not support queries by number; but
// a temporary error becomes the error of the whole reply.
func (a *Asker) askForParcels(ctx, entering context.Context, r *queryReply, parcels []Tracking) {
	if len(parcels) < 2 {
		return
	}
	r.parcels = map[string]tracking.Tracking{}
	for _, p := range parcels {
		if p.Phase != Undecided || p.Number == "" {
			continue
		}
		parcel := a.ask(ctx, entering, tracking.Query{Number: p.Number})
		switch {
		case ctx.Err() != nil, tracking.FailureOf(parcel.err).Temporary:
			r.err = fmt.Errorf("parcel %q: %w", p.Number, parcel.err)
			return
		case errors.Is(parcel.err, tracking.ErrUnauthorized):
			r.refused = fmt.Errorf("parcel %q: %w", p.Number, parcel.err)
			return
		}
		for _, t := range parcel.answer.Trackings {
			if tracking.SameNumber(t.Number, p.Number) && (t.ReferID == "" || t.ReferID == p.ReferID) {
				t.ReferID = p.ReferID
				r.parcels[p.Number] = t
			}
		}
	}
}

// outcome returns the error of an answer, unless events say more about the first tracking.
func outcome(err error, first Tracking) error {
	fromEvent := first.Source == ledger.FromEvent
	if errors.Is(err, tracking.ErrProcessing) || errors.Is(err, tracking.ErrUndecided) && fromEvent {
		err = nil
	}
	if err == nil && first.Phase == Undecided {
		return tracking.ErrUndecided
	}
	return err
}
