package app

import (
	"context"
	"errors"
	"sync"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
)

// Asker returns what asks the service about the account's trackings. Where the
// store can't be written, a note says once that answers are not recorded.
func (s *Session) Asker(ctx context.Context) (*query.Asker, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	a := s.StoredAnswers(ctx)
	a.Service, a.Gate = client, s.Gate
	return a, nil
}

// StoredAnswers returns an Asker without a service: it knows what is stored, see
// [query.Asker.Stored].
func (s *Session) StoredAnswers(ctx context.Context) *query.Asker {
	note := sync.OnceFunc(func() { s.IO.Note("Store %s is read-only: nothing is saved", s.Config.Store) })
	open := func(ctx context.Context) (*query.Store, error) {
		db, err := s.StoreIfAny(ctx)
		if err != nil || db == nil {
			return nil, err
		}
		return &query.Store{Trackings: recorder{db.Trackings, note}, Events: db.Events, Inbox: db.Inbox, Eraser: db.Eraser}, nil
	}
	return &query.Asker{Account: s.Account(ctx), Store: open}
}

// recorder is the trackings of a store that may be read-only.
type recorder struct {
	ledger.Trackings

	unrecorded func() // called instead of an error where it is
}

// Record is for [query.Store].
func (r recorder) Record(ctx context.Context, account string, answers []ledger.RecordedAnswer) error {
	err := r.Trackings.Record(ctx, account, answers)
	if errors.Is(err, inbox.ErrReadOnly) {
		r.unrecorded()
		return nil
	}
	return err
}
