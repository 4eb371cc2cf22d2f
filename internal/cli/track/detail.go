package track

import (
	"context"
	"errors"
	"slices"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Stored is what is known of an order or a number, as `show` would print it if the
// service had just answered what it answered last.
type Stored struct {
	query.Result
	Target *query.Target // knows the rows of the trackings
	More   int           // trackings that were left out
	Events []inbox.Event // of the numbers, the latest first, secrets masked
	Cut    bool          // there are more events
}

const (
	maxTrackings = 50
	maxEvents    = 100
)

// ReadStored reads what the store has of a referId, of a number, or of one number of a referId if both are given. It
// asks nobody. The error matches [tracking.ErrAbsent] if nothing is known.
func ReadStored(ctx context.Context, c *command.Call, referID, number string) (*Stored, error) {
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, tracking.ErrAbsent
	}
	if _, err := catchUp(ctx, db, func(int64) {}); err != nil {
		return nil, err
	}
	t := &query.Target{Query: tracking.Query{ReferID: referID}, Exact: true}
	switch {
	case referID == "":
		t.Query = tracking.Query{Number: number}
	case number != "":
		t.Chosen = []string{number}
	}
	t.Ref = t.Query.Ref()
	s := &Stored{Target: t}
	if s.Result, err = c.StoredAnswers().Stored(ctx, t); err != nil {
		return nil, err
	}
	if errors.Is(s.Err, ledger.ErrErased) {
		return nil, s.Err
	}
	if len(s.Trackings) > maxTrackings {
		s.More, s.Trackings = len(s.Trackings)-maxTrackings, s.Trackings[:maxTrackings]
	}
	if err := s.addEvents(ctx, c, db.Inbox, number); err != nil {
		return nil, err
	}
	switch {
	case len(s.Trackings) > 0:
	case len(s.Events) > 0: // none of them verified
		s.Trackings = []query.Tracking{{Tracking: tracking.Tracking{Number: number}, Phase: query.Undecided}}
	default:
		return nil, tracking.ErrAbsent
	}
	return s, nil
}

func (s *Stored) addEvents(ctx context.Context, c *command.Call, events inbox.Store, number string) error {
	var keys inbox.TrackingKeys
	for _, t := range s.Trackings {
		if t.Number != "" {
			keys.Numbers = append(keys.Numbers, t.Number)
		}
	}
	if number != "" && !slices.Contains(keys.Numbers, number) {
		keys.Numbers = append(keys.Numbers, number)
	}
	if len(keys.Numbers) == 0 {
		return nil
	}
	hide := c.SecretMasker()
	for e, err := range events.Events(ctx, inbox.Query{Trackings: &keys, Newest: true, Limit: maxEvents + 1}) {
		if err != nil {
			return err
		}
		if s.Cut = len(s.Events) == maxEvents; s.Cut {
			break
		}
		s.Events = append(s.Events, view.MaskEvent(e, hide))
	}
	return nil
}
