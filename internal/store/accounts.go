package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// newSalt returns what keys the fingerprints of a new account.
func newSalt() []byte {
	salt := make([]byte, sha256.Size)
	_, _ = rand.Read(salt) // never fails
	return salt
}

// fingerprint returns what is kept of an API key.
func fingerprint(salt []byte, key string) []byte {
	mac := hmac.New(sha256.New, salt)
	mac.Write([]byte(key))
	return mac.Sum(nil)
}

// AccountNames returns the accounts that have runs, see [ledger.History].
func (d *DB) AccountNames(ctx context.Context) ([]string, error) {
	var names []string
	err := d.each(ctx, func(s scanner) error {
		var name string
		err := s.Scan(&name)
		names = append(names, name)
		return err
	}, "SELECT name FROM accounts a WHERE EXISTS (SELECT 1 FROM runs r WHERE r.account_id = a.id AND r.state = 'open') ORDER BY id")
	return names, err
}

// LookUpKey says whether a key was recorded for the account or for others, see
// [ledger.Accounts]. Each account has its own salt, so that each is compared
// apart.
func (d *DB) LookUpKey(ctx context.Context, account, key string) (ledger.KeyStatus, error) {
	var status ledger.KeyStatus
	err := d.each(ctx, func(s scanner) error {
		var name string
		var salt, kept []byte
		var hasRuns bool
		if err := s.Scan(&name, &salt, &kept, &hasRuns); err != nil {
			return err
		}
		seen := hmac.Equal(kept, fingerprint(salt, key))
		switch {
		case name == account:
			status.Seen, status.HasRuns = status.Seen || seen, hasRuns
		case seen && hasRuns:
			status.Others = append(status.Others, name)
		}
		return nil
	}, `SELECT a.name, a.salt, k.print, EXISTS (SELECT 1 FROM runs r WHERE r.account_id = a.id AND r.state = 'open')
		FROM accounts a LEFT JOIN keyprints k ON k.account_id = a.id ORDER BY a.id`)
	return status, err
}

// TrustKey records the key as one of the account's, see [ledger.Accounts].
func (d *DB) TrustKey(ctx context.Context, account, key string) error {
	return d.forAccount(ctx, account, func(ctx context.Context, t *tx, id int64) error {
		var salt []byte
		if _, err := t.row(ctx, []any{&salt}, "SELECT salt FROM accounts WHERE id = $1", id); err != nil {
			return err
		}
		_, err := t.exec(ctx, "INSERT INTO keyprints (account_id, print) VALUES ($1, $2) ON CONFLICT DO NOTHING", id, fingerprint(salt, key))
		return err
	})
}
