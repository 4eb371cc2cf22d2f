package app

import (
	"context"
	"errors"
	"slices"

	"github.com/waybill-cli/waybill/internal/follow"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// toldAhead is from how many events on carrying them over is announced.
const toldAhead = 10_000

// Sink returns what carries the events of the store to what is known of
// trackings.
func (s *Session) Sink(db *Store) *follow.Sink {
	return &follow.Sink{Inbox: db.Inbox, Ledger: db.Events}
}

// CatchUp carries events over that were received, by any process, and were not
// yet carried over to what is known of trackings. A store that cannot be
// written keeps what it knows, and a warning says so.
func (s *Session) CatchUp(ctx context.Context) error {
	db, err := s.ExistingStore(ctx)
	if err != nil || db == nil {
		return err
	}
	at, last, err := db.Events.Followed(ctx)
	if err != nil || at >= last {
		return err
	}
	if last-at >= toldAhead {
		s.IO.Note("taking in %d events that were received since", last-at)
	}
	err = s.Sink(db).CatchUp(ctx)
	if ctx.Err() == nil && (errors.Is(err, inbox.ErrFull) || errors.Is(err, inbox.ErrLocked) || errors.Is(err, inbox.ErrReadOnly)) {
		s.IO.Warning("what received events tell is not taken in: %v", err)
		return nil
	}
	return err
}

// News adds to a view what the ledger knows of its trackings, as far as it
// learnt that from an event, and those of which the view tells nothing. It asks
// the service nothing.
func (s *Session) News(ctx context.Context, account string, q tracking.Query, v View) (View, error) {
	db, err := s.ExistingStore(ctx)
	if err != nil || db == nil {
		return v, err
	}
	rows, err := db.Trackings.Find(ctx, account, q.ReferID, q.Number)
	if err != nil {
		return v, err
	}
	return tellNews(ctx, db, v, rows, true)
}

// tellNews puts what was learnt from events into a view. all adds the other
// rows too that the view does not have.
func tellNews(ctx context.Context, db *Store, v View, rows []ledger.TrackingStatus, all bool) (View, error) {
	v.Found = slices.Clone(v.Found)
	for _, row := range rows {
		i := slices.IndexFunc(v.Found, func(f Found) bool {
			return tracking.SameNumber(f.Number, row.Item.Number) && (f.ReferID == "" || row.Item.ReferID == "" || f.ReferID == row.Item.ReferID)
		})
		known := row.Sighting != nil && row.Sighting.Phase == ledger.Processed && row.Sighting.Source == ledger.FromEvent
		if i < 0 && !all || i >= 0 && !known {
			continue
		}
		f := remembered(row)
		if known {
			var err error
			if f, err = fromEvent(ctx, db, row); err != nil {
				return v, err
			}
		}
		if i < 0 {
			v.Found = append(v.Found, f)
			continue
		}
		was := v.Found[i]
		if len(f.Checkpoints) == 0 {
			f.Checkpoints = was.Checkpoints
		}
		f.Older = was.Older
		if was.Source == ledger.FromQuery && was.Phase == ledger.Processed && f.Learnt.Before(v.Asked) {
			f.Older = &was.Tracking
		}
		v.Found[i] = f
	}
	slices.SortStableFunc(v.Found, func(a, b Found) int { return rank(a.Phase) - rank(b.Phase) })
	return v, nil
}

// fromEvent is a tracking as the event told it from which it was learnt.
func fromEvent(ctx context.Context, db *Store, row ledger.TrackingStatus) (Found, error) {
	f := remembered(row)
	e, err := db.Inbox.Event(ctx, row.Sighting.Event)
	if errors.Is(err, inbox.ErrNoEvent) {
		return f, nil
	}
	t := follow.Told(e)
	t.ReferID, t.Number = f.ReferID, f.Number
	if t.CarrierCode == "" {
		t.CarrierCode = f.CarrierCode
	}
	f.Tracking = t
	return f, err
}

// remembered is a tracking as the ledger knows it.
func remembered(row ledger.TrackingStatus) Found {
	f := Found{Tracking: tracking.Tracking{ReferID: row.Item.ReferID, Number: row.Item.Number, CarrierCode: row.Item.CarrierCode}, Phase: Undecided}
	if row.State == ledger.Accepted {
		f.Phase = ledger.Processing
	}
	if s := row.Sighting; s != nil {
		f.Phase, f.Source, f.Learnt = s.Phase, s.Source, s.Seen
		f.Status, f.StatusLabel, f.StatusTrack, f.LatestEvent, f.LatestTime, f.RouterID = s.Status, s.StatusLabel, s.StatusTrack, s.LatestEvent, s.LatestTime, s.RouterID
	}
	return f
}

// Claims puts beside each tracking of a view the latest event about its number
// that did not verify. Nothing is learnt from it.
func (s *Session) Claims(ctx context.Context, v View) error {
	db, err := s.ExistingStore(ctx)
	if err != nil || db == nil {
		return err
	}
	for i := range v.Found {
		seq, err := db.Events.LastUnverified(ctx, v.Found[i].Number)
		if err != nil {
			return err
		}
		if seq == 0 {
			continue
		}
		e, err := db.Inbox.Event(ctx, seq)
		if err != nil {
			return err
		}
		v.Found[i].Claim = &e
	}
	return nil
}
