package app

import (
	"context"
	"fmt"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/shell"
)

// Account returns to which account the trackings of the store belong: that of the store,
// or while it belongs to none, that of the settings.
func (s *Session) Account(ctx context.Context) string {
	_, _ = s.StoreIfAny(ctx) // whoever asks the store meets its error again
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account != "" {
		return s.account
	}
	return s.Config.Account
}

// pin makes the store that of the account of the settings, if it belongs to none.
func (s *Session) pin(ctx context.Context, db *Store) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account != "" || s.Config.Account == "" {
		return nil
	}
	if s.account, err = db.Accounts.Pin(ctx, s.Config.Account); err != nil {
		return err
	}
	return s.CheckAccount(db.Path, s.account)
}

// CheckAccount refuses a store that belongs to another account than that of the settings.
// The names of this machine are one: localhost and every loopback address.
func (s *Session) CheckAccount(place, account string) error {
	if account == "" || s.Config.Account == "" || account == s.Config.Account {
		return nil
	}
	ours, ok := config.SameLoopback(s.Config.Account)
	if theirs, _ := config.SameLoopback(account); ok && ours == theirs {
		return nil
	}
	return &config.KeyError{
		Message: fmt.Sprintf("store %s belongs to account %q, not to account %q", place, account, s.Config.Account),
		Hint:    "use a profile, which has a store of its own, or --store FILE; if it is the same account, add --account " + shell.Word(account),
	}
}
