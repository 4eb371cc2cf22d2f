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
	return list(ctx, d.each, scanOne[string], "SELECT name FROM accounts a WHERE EXISTS (SELECT 1 FROM runs r WHERE r.account_id = a.id AND r.state = 'open') ORDER BY id")
}

// LookUpKey says whether a key was recorded for the account or for others, see
// [ledger.Keys]. Each account has its own salt, so that each is compared
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

// TrustKey records the key as one of the account's, see [ledger.Keys].
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

// Contacted reports whether a row sent for the account was found once, see
// [ledger.Accounts].
func (d *DB) Contacted(ctx context.Context, account string) (bool, error) {
	var contacted bool
	_, err := d.row(ctx, []any{&contacted}, "SELECT contacted FROM accounts WHERE name = $1", account)
	return contacted, err
}

// RecordContact records that, see [ledger.Accounts].
func (d *DB) RecordContact(ctx context.Context, account string) error {
	return d.forAccount(ctx, account, func(ctx context.Context, t *tx, id int64) error {
		_, err := t.exec(ctx, "UPDATE accounts SET contacted = 1 WHERE id = $1", id)
		return err
	})
}

// limitColumn is where an account's limit of a mode is.
func limitColumn(mode ledger.Mode) string {
	if mode == ledger.Sync {
		return "max_v1"
	}
	return "max_v2"
}

// BatchLimit returns how many rows one request may carry, see [ledger.Accounts].
func (d *DB) BatchLimit(ctx context.Context, account string, mode ledger.Mode) (int, error) {
	var rows int
	_, err := d.row(ctx, []any{&rows}, "SELECT "+limitColumn(mode)+" FROM accounts WHERE name = $1", account)
	return rows, err
}

// LowerBatchLimit lowers it, see [ledger.Accounts].
func (d *DB) LowerBatchLimit(ctx context.Context, account string, mode ledger.Mode, rows int) error {
	return d.forAccount(ctx, account, func(ctx context.Context, t *tx, id int64) error {
		column := limitColumn(mode)
		_, err := t.exec(ctx, "UPDATE accounts SET "+column+" = $1 WHERE id = $2 AND ("+column+" = 0 OR "+column+" > $1)", max(rows, 1), id)
		return err
	})
}

// Assumptions returns what was checked, see [ledger.Accounts].
func (d *DB) Assumptions(ctx context.Context, account string) ([]ledger.CheckedAssumption, error) {
	return list(ctx, d.each, func(s scanner) (c ledger.CheckedAssumption, err error) {
		var checked int64
		err = s.Scan(&c.Assumption, &c.Holds, &checked)
		c.Checked = instant(checked)
		return c, err
	}, "SELECT name, holds, checked FROM assumptions WHERE account_id = "+accountOfFirst+" ORDER BY name", account)
}

// RecordAssumption records it, see [ledger.Accounts].
func (d *DB) RecordAssumption(ctx context.Context, account string, c ledger.CheckedAssumption) error {
	return d.forAccount(ctx, account, func(ctx context.Context, t *tx, id int64) error {
		_, err := t.exec(ctx, `INSERT INTO assumptions (account_id, name, holds, checked) VALUES ($1, $2, $3, $4)
			ON CONFLICT (account_id, name) DO UPDATE SET holds = excluded.holds, checked = excluded.checked WHERE assumptions.holds = 1`,
			id, string(c.Assumption), flag(c.Holds), millis(c.Checked))
		return err
	})
}

// forAccount does work on an account, which is added if it is new.
func (d *DB) forAccount(ctx context.Context, account string, do func(ctx context.Context, t *tx, id int64) error) error {
	if err := checkText("account", account); err != nil {
		return err
	}
	return d.run(ctx, func(ctx context.Context, t *tx) error {
		id, err := t.accountID(ctx, account)
		if err != nil {
			return err
		}
		return do(ctx, t, id)
	})
}

// accountID returns the number of an account, -1 if it is not known.
func (d *DB) accountID(ctx context.Context, name string) (int64, error) {
	id := int64(-1)
	_, err := d.row(ctx, []any{&id}, "SELECT id FROM accounts WHERE name = $1", name)
	return id, err
}
