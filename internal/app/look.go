package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Undecided is the phase of a tracking that an answer does not tell of.
const Undecided ledger.Phase = "undecided"

// View is what one query told of a referId or number, or an event since: one
// tracking, or several if the order has several parcels.
type View struct {
	Ref    string    // as asked for
	Asked  time.Time // zero if the service was not asked
	Answer tracking.Answer
	Found  []Found // at least one
}

// Found is one tracking of a view.
type Found struct {
	tracking.Tracking
	Phase  ledger.Phase
	Source ledger.Source // where it was learnt from; empty if nothing was
	Learnt time.Time     // when

	// Older is what the service's answer said where an event that had come
	// before is newer by the service's own times; nil elsewhere.
	Older *tracking.Tracking

	// Claim is the latest event about the number that did not verify, nil if
	// there is none; see [Session.Claims].
	Claim *inbox.Event
}

// Look asks the service once about a tracking and records what it said. Where
// that is nothing, or less than events have told, it is as events told it. The
// error is [tracking.ErrAbsent] and the others of [api.Client.Detail], but
// not [tracking.ErrProcessing]: that is a phase of the view. The view is
// returned with [tracking.ErrAbsent] and [tracking.ErrUndecided] too.
func (s *Session) Look(ctx context.Context, account string, q tracking.Query) (View, error) {
	client, err := s.Client()
	if err != nil {
		return View{}, err
	}
	db, err := s.ExistingStore(ctx)
	if err != nil {
		return View{}, err
	}
	v := View{Ref: q.ReferID, Asked: time.Now()}
	if q.ReferID == "" {
		v.Ref = q.Number
	}
	answer, err := s.detail(ctx, client, q)
	switch {
	case errors.Is(err, tracking.ErrProcessing), errors.Is(err, tracking.ErrAbsent), errors.Is(err, tracking.ErrUndecided):
	case err != nil:
		return v, err
	}
	v.Answer = answer
	var rows []ledger.TrackingStatus
	if db != nil {
		var findErr error
		if rows, findErr = db.Trackings.Find(ctx, account, q.ReferID, q.Number); findErr != nil {
			return v, findErr
		}
	}
	v.Found = match(q, answer, err, rows)
	var parcelErr error
	if err == nil {
		parcelErr = s.askForParcels(ctx, client, &v)
	}
	for i, f := range v.Found {
		if f.Phase != Undecided {
			v.Found[i].Source, v.Found[i].Learnt = ledger.FromQuery, v.Asked
		}
	}
	if len(rows) > 0 {
		var learnErr error
		if v, learnErr = learn(ctx, db, account, q, v, rows); learnErr != nil {
			return v, learnErr
		}
	}
	if parcelErr != nil {
		return v, parcelErr
	}
	if errors.Is(err, tracking.ErrProcessing) || errors.Is(err, tracking.ErrUndecided) && v.Found[0].Source == ledger.FromEvent {
		err = nil
	}
	if err == nil && v.Found[0].Phase == Undecided {
		err = tracking.ErrUndecided
	}
	return v, err
}

// learn records what a view says of rows, and returns it with what events told
// of them and counts more.
func learn(ctx context.Context, db *Store, account string, q tracking.Query, v View, rows []ledger.TrackingStatus) (View, error) {
	err := db.Trackings.Learn(ctx, account, sightings(v, rows), v.Answer.Raw)
	if err != nil || !slices.ContainsFunc(rows, func(r ledger.TrackingStatus) bool { return r.Sighting != nil && r.Sighting.Source == ledger.FromEvent }) {
		return v, err
	}
	if rows, err = db.Trackings.Find(ctx, account, q.ReferID, q.Number); err != nil {
		return v, err
	}
	return tellNews(ctx, db, v, rows, false)
}

// detail asks once, when the gate lets it, and tells the gate how it went.
func (s *Session) detail(ctx context.Context, client *api.Client, q tracking.Query) (tracking.Answer, error) {
	pass, err := s.Gate.Enter(ctx)
	if err != nil {
		return tracking.Answer{}, err
	}
	answer, err := client.Detail(ctx, q)
	status := (*api.StatusError)(nil)
	switch {
	case errors.As(err, &status) && (status.Status == http.StatusTooManyRequests || status.Status == http.StatusServiceUnavailable):
		pass.Throttled(status.Pause)
	case err == nil, len(answer.Raw) > 0:
		pass.Success()
	default:
		pass.Release()
	}
	return answer, err
}

// askForParcels asks by number for parcels of an order that the answer about
// the order left out. Only an answer that names the number counts. The error is
// that of ctx, or matches [tracking.ErrUnauthorized]: what else goes wrong leaves a
// parcel undecided, as a service need not know queries by number.
func (s *Session) askForParcels(ctx context.Context, client *api.Client, v *View) error {
	if len(v.Found) < 2 {
		return nil
	}
	for i, f := range v.Found {
		if f.Phase != Undecided {
			continue
		}
		q := tracking.Query{Number: f.Number}
		a, err := s.detail(ctx, client, q)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, tracking.ErrUnauthorized):
			return fmt.Errorf("parcel %q: %w", f.Number, err)
		}
		for _, t := range a.Trackings {
			if tracking.SameNumber(t.Number, f.Number) {
				t.ReferID = f.ReferID
				v.Found[i] = answered(t, q, f.Number)
			}
		}
	}
	return nil
}

// LookPatiently is [Session.Look], tried again with growing pauses while no
// connection comes about or the service has a passing trouble, until budget
// is used up.
func (s *Session) LookPatiently(ctx context.Context, account string, q tracking.Query, budget time.Duration) (View, error) {
	for retry := pace.NewRetry(budget); ; {
		v, err := s.Look(ctx, account, q)
		if !Passing(err) || !retry.Wait(ctx, RetryAfter(err)) {
			return v, err
		}
	}
}

// Passing reports whether a query that failed so may do better later.
func Passing(err error) bool {
	var unreachable *api.ConnectError
	var status *api.StatusError
	return errors.As(err, &unreachable) || (errors.As(err, &status) && status.Temporary())
}

// Fatal reports whether a query about any other tracking would meet the same
// error: the service refused more than this query, or the store failed.
func Fatal(err error) bool {
	var status *api.StatusError
	var broken *store.Error
	return errors.As(err, &status) && status.Systemic() || errors.As(err, &broken)
}

// RetryAfter returns how long the service asked to wait, 0 if it did not.
func RetryAfter(err error) time.Duration {
	if status, ok := errors.AsType[*api.StatusError](err); ok {
		return status.Pause
	}
	return 0
}

// match tells which of the trackings asked for the answer speaks of. What it
// says of another number is never taken for the one asked for.
func match(q tracking.Query, a tracking.Answer, err error, rows []ledger.TrackingStatus) []Found {
	numbers := wanted(q, rows)
	var found []Found
	used := make([]bool, len(a.Trackings))
	for _, n := range numbers {
		f := Found{Tracking: tracking.Tracking{ReferID: q.ReferID, Number: n}, Phase: Undecided}
		for i, t := range a.Trackings {
			if !used[i] && (tracking.SameNumber(t.Number, n) || (t.Number == "" && len(a.Trackings) == 1 && len(numbers) == 1)) {
				used[i] = true
				f = answered(t, q, n)
				break
			}
		}
		if f.Phase == Undecided {
			f.Phase = wholePhase(a, err)
		}
		found = append(found, f)
	}
	if q.ReferID != "" {
		for i, t := range a.Trackings {
			if !used[i] {
				found = append(found, answered(t, q, t.Number))
			}
		}
	}
	if len(found) == 0 {
		found = append(found, Found{Tracking: tracking.Tracking{ReferID: q.ReferID}, Phase: wholePhase(a, err)})
	}
	slices.SortStableFunc(found, func(a, b Found) int { return rank(a.Phase) - rank(b.Phase) })
	return found
}

// rank puts what is known before what is not.
func rank(p ledger.Phase) int {
	switch p {
	case ledger.Processed:
		return 0
	case ledger.Processing:
		return 1
	default:
		return 2
	}
}

func answered(t tracking.Tracking, q tracking.Query, number string) Found {
	if t.ReferID == "" {
		t.ReferID = q.ReferID
	}
	if number != "" {
		t.Number = number
	}
	phase := ledger.Processed
	if !t.Known() {
		phase = Undecided
		if t.Processing {
			phase = ledger.Processing
		}
	}
	return Found{Tracking: t, Phase: phase}
}

// wholePhase is what the answer as a whole says of a number it does not name.
func wholePhase(a tracking.Answer, err error) ledger.Phase {
	switch {
	case errors.Is(err, tracking.ErrAbsent):
		return ledger.Absent
	case a.Processing:
		return ledger.Processing // of the order: which parcel is not told
	}
	return Undecided
}

// wanted are the numbers that belong to what was asked for, as far as the
// ledger knows.
func wanted(q tracking.Query, rows []ledger.TrackingStatus) []string {
	if q.ReferID == "" {
		return []string{q.Number}
	}
	var numbers []string
	for _, r := range rows {
		if !slices.Contains(numbers, r.Item.Number) {
			numbers = append(numbers, r.Item.Number)
		}
	}
	return numbers
}

// sightings are what the ledger should remember of a view.
func sightings(v View, rows []ledger.TrackingStatus) []ledger.Sighting {
	var seen []ledger.Sighting
	for _, f := range v.Found {
		if f.Phase == Undecided {
			continue
		}
		for _, r := range rows {
			if !tracking.SameNumber(r.Item.Number, f.Number) {
				continue
			}
			seen = append(seen, ledger.NewSighting(f.Tracking, f.Phase, r.Item.Key(), v.Asked, ledger.FromQuery))
		}
	}
	return seen
}

// Timeline returns the checkpoints newest first by their UTC time; those
// without a readable one keep their place after the others.
func Timeline(cs []tracking.Checkpoint) []tracking.Checkpoint {
	sorted := slices.Clone(cs)
	slices.SortStableFunc(sorted, func(a, b tracking.Checkpoint) int {
		ta, errA := time.Parse(time.RFC3339, a.UTC)
		tb, errB := time.Parse(time.RFC3339, b.UTC)
		switch {
		case errA != nil && errB != nil:
			return 0
		case errA != nil:
			return 1
		case errB != nil:
			return -1
		}
		return tb.Compare(ta)
	})
	return sorted
}

// RawJSON returns an answer as a member of our own JSON: as it is if it is
// JSON, else as a string.
func RawJSON(raw []byte) json.RawMessage {
	if json.Valid(raw) {
		return raw
	}
	s, err := json.Marshal(string(raw))
	if err != nil {
		return json.RawMessage("null")
	}
	return s
}

// Created is what the answer to a synchronous create said of its trackings.
//
// Interface: Endpoints, 1. Batch create (synchronous, v1).
func Created(items []tracking.Item, reply *tracking.Reply) []ledger.Sighting {
	answer := reply.Body.Answer()
	byNumber := make(map[string]tracking.Tracking, len(answer.Trackings))
	for _, t := range answer.Trackings {
		byNumber[t.Number] = t
	}
	var seen []ledger.Sighting
	for _, it := range items {
		t, ok := byNumber[it.Number]
		if ok && t.Known() && (t.ReferID == "" || t.ReferID == it.ReferID) {
			seen = append(seen, ledger.NewSighting(t, ledger.Processed, it.Key(), reply.Began.Add(reply.Took), ledger.FromCreate))
		}
	}
	return seen
}
