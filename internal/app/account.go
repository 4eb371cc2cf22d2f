package app

import (
	"context"
	"fmt"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/shell"
)

// Account returns the account of the store. While the store belongs to no account, it
// returns the account of the settings.
func (s *Session) Account(ctx context.Context) string {
	_, _ = s.StoreIfAny(ctx) // whoever asks the store meets its error again
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account != "" {
		return s.account
	}
	return s.Config.Account
}

// pin gives the store the account of the settings, if the store belongs to no account yet.
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

// CheckAccount refuses a store whose account is another one than the settings name.
// localhost and every loopback address are one host.
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
		Hint: "use a profile, which has a store of its own, or --store FILE; if it is the same account, add --account " +
			shell.Word(account),
	}
}
