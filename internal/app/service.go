package app

import (
	"context"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
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

// Service is what a run needs of the tracking service.
type Service struct {
	client *api.Client
	mode   ledger.Mode
}

// Service returns the service for runs of that mode.
func (s *Session) Service(mode ledger.Mode) (*Service, error) {
	c, err := s.Client()
	if err != nil {
		return nil, err
	}
	return &Service{client: c, mode: mode}, nil
}

// Create sends one batch, once. The reply is never nil.
func (s *Service) Create(ctx context.Context, items []tracking.Item) *tracking.Reply {
	if s.mode == ledger.Sync {
		return s.client.CreateSync(ctx, items)
	}
	return s.client.CreateAsync(ctx, items)
}

// Evidence asks once for an item, by its referId or by its number.
func (s *Service) Evidence(ctx context.Context, item tracking.Item, byNumber bool) tracking.Evidence {
	q := tracking.Query{ReferID: item.ReferID}
	if byNumber {
		q = tracking.Query{Number: item.Number}
	}
	return s.client.Evidence(ctx, q, item)
}
