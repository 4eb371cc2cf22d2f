// Package query asks the service about trackings. A query takes three steps:
// the service is asked, what it answered is recorded, and answer, rows and
// events are merged to what is known.
package query

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Store is what a query needs of what is kept.
type Store struct {
	Trackings interface {
		Find(ctx context.Context, account, referID, number string) ([]ledger.TrackingStatus, error)
		Record(ctx context.Context, account string, answers []ledger.RecordedAnswer) error
	}
	Events interface {
		LastUnverified(ctx context.Context, number string) (int64, error)
	}
	Inbox interface {
		Event(ctx context.Context, seq int64) (inbox.Event, error)
	}
}

// Asker asks the service about the trackings of one account. It is safe for
// concurrent use.
type Asker struct {
	Service Service
	Gate    *pace.Gate
	Account string
	// Store returns what is kept, nil while there is nothing.
	Store func(context.Context) (*Store, error)
}

// Result is what is known of a referId or number: one tracking, or several if
// the order has several parcels.
type Result struct {
	Query     tracking.Query
	Asked     time.Time // zero if the service was not asked
	Answer    tracking.Answer
	Trackings []Tracking

	// Err is [tracking.ErrAbsent], [tracking.ErrUndecided], or why no answer
	// came; not [tracking.ErrProcessing], which is a phase of a tracking.
	Err error
}

// Tracking is one tracking of a result.
type Tracking struct {
	tracking.Tracking
	Phase       ledger.Phase
	Source      ledger.Source // where it was learnt from; empty if nothing was
	Learnt      time.Time     // when
	SentCarrier string        // the carrier code that it was created with

	// Older is what the service's answer said where an event that had come
	// before is newer by the service's own times; nil elsewhere.
	Older *tracking.Tracking

	// Unverified is the latest event about the number that did not verify, nil
	// if there is none; see [Asker.AddUnverified].
	Unverified *inbox.Event

	// What was said of it before, see [History.Add]; nil without.
	Versions  []Version          // in the order in which they were learnt
	Entries   []tracking.Entry   // the timeline newest first, with what was removed from it
	Anomalies []tracking.Anomaly // of the tracking as a whole
}

// Timeline returns the checkpoints newest first, with what cannot be right in
// them, and those that were removed if [History.Add] found any.
func (t Tracking) Timeline() []tracking.Entry {
	if t.Entries != nil {
		return t.Entries
	}
	return tracking.Entries(t.Checkpoints, t.Learnt)
}

// Undecided is the phase of a tracking that an answer says nothing about.
const Undecided ledger.Phase = "undecided"

// Query asks the service once and records the answer. Where the answer says
// nothing, or what is older, events count.
func (a *Asker) Query(ctx context.Context, q tracking.Query) Result {
	res := Result{Query: q}
	store, err := a.Store(ctx)
	if err != nil {
		res.Err = err
		return res
	}
	r := a.ask(ctx, q)
	if res.Asked, res.Err = r.asked, r.err; !r.usable() {
		return res
	}
	res.Answer = r.answer
	rows, err := a.Rows(ctx, q)
	if err != nil {
		res.Err = err
		return res
	}
	parcelErr := a.askForParcels(ctx, &r, match(r, rows))
	res.Trackings = match(r, rows)
	known, err := a.record(ctx, store, res, rows)
	res.Trackings = merge(res, known, false)
	switch {
	case err != nil:
		res.Err = err
	case parcelErr != nil:
		res.Err = parcelErr
	default:
		res.Err = outcome(r.err, res.Trackings[0])
	}
	return res
}

// QueryWithRetry is [Asker.Query], tried again with growing pauses while its
// error is [Temporary], for as long as patience.
func (a *Asker) QueryWithRetry(ctx context.Context, q tracking.Query, patience time.Duration) Result {
	for retry := pace.NewRetry(patience); ; {
		res := a.Query(ctx, q)
		if !Temporary(res.Err) || !retry.Wait(ctx, RetryAfter(res.Err)) {
			return res
		}
	}
}

// AddKnown adds to a result what the ledger learnt from events, and the rows
// that the result does not have. It asks the service nothing.
func (a *Asker) AddKnown(ctx context.Context, res Result) (Result, error) {
	store, err := a.Store(ctx)
	if err != nil || store == nil {
		return res, err
	}
	known, err := a.knownRows(ctx, store, res.Query)
	if err == nil {
		res.Trackings = merge(res, known, true)
	}
	return res, err
}

// AddUnverified puts beside each tracking of a result the latest event about
// its number that did not verify. Nothing is learnt from it.
func (a *Asker) AddUnverified(ctx context.Context, res Result) error {
	store, err := a.Store(ctx)
	if err != nil || store == nil {
		return err
	}
	for i := range res.Trackings {
		seq, err := store.Events.LastUnverified(ctx, res.Trackings[i].Number)
		if err != nil {
			return err
		}
		if seq == 0 {
			continue
		}
		e, err := store.Inbox.Event(ctx, seq)
		if err != nil {
			return err
		}
		res.Trackings[i].Unverified = &e
	}
	return nil
}

// Rows returns the rows of the ledger that are asked for.
func (a *Asker) Rows(ctx context.Context, q tracking.Query) ([]ledger.TrackingStatus, error) {
	store, err := a.Store(ctx)
	if err != nil || store == nil {
		return nil, err
	}
	return store.Trackings.Find(ctx, a.Account, q.ReferID, q.Number)
}

// record keeps what an answer said of rows. If any was last learnt from an
// event, which may count more, it returns the rows as they are then.
func (a *Asker) record(ctx context.Context, store *Store, res Result, rows []ledger.TrackingStatus) ([]knownRow, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	seen := sightings(res, rows)
	err := store.Trackings.Record(ctx, a.Account, []ledger.RecordedAnswer{
		{ReferID: res.Query.ReferID, Asked: res.Asked, Seen: seen, Raw: res.Answer.Raw, Digest: digest(res)},
	})
	if err != nil || !slices.ContainsFunc(rows, func(r ledger.TrackingStatus) bool { return r.Sighting != nil && r.Sighting.Source == ledger.FromEvent }) {
		return nil, err
	}
	known, err := a.knownRows(ctx, store, res.Query)
	// In a store that can't be written, older events still stand.
	return slices.DeleteFunc(known, func(k knownRow) bool {
		return k.byEvent() && slices.ContainsFunc(seen, func(s ledger.Sighting) bool {
			return s.Key == k.Item.Key() && s.Supersedes(*k.Sighting)
		})
	}), err
}

// knownRows returns the rows of what is asked for, with the events that they were
// learnt from.
func (a *Asker) knownRows(ctx context.Context, store *Store, q tracking.Query) ([]knownRow, error) {
	rows, err := a.Rows(ctx, q)
	if err != nil {
		return nil, err
	}
	all := make([]knownRow, len(rows))
	for i, row := range rows {
		all[i].TrackingStatus = row
		if !all[i].byEvent() {
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
