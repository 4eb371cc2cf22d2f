package app

import (
	"context"

	"github.com/waybill-cli/waybill/internal/query"
)

// Asker returns what asks the service about the account's trackings.
func (s *Session) Asker(ctx context.Context) (*query.Asker, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (*query.Store, error) {
		db, err := s.ExistingStore(ctx)
		if err != nil || db == nil {
			return nil, err
		}
		return &query.Store{Trackings: db.Trackings, Events: db.Events, Inbox: db.Inbox}, nil
	}
	return &query.Asker{Service: client, Gate: s.Gate, Account: s.Account(ctx), Store: open}, nil
}
