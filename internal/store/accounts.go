package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"time"

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

// Proofs returns what is proven of the account's answers, see [ledger.Accounts].
func (d *DB) Proofs(ctx context.Context, account string) ([]ledger.Proof, error) {
	return list(ctx, d.each, func(s scanner) (p ledger.Proof, err error) {
		var proven int64
		err = s.Scan(&p.Shape, &p.State, &proven, &p.Run)
		p.Proven = instant(proven)
		return p, err
	}, "SELECT shape, state, proven, run_id FROM proofs WHERE account_id = "+accountOfFirst+" ORDER BY shape", account)
}

// Prove records a proof, see [ledger.Accounts].
func (d *DB) Prove(ctx context.Context, account string, p ledger.Proof, in ledger.State, rows []ledger.UnknownRow) (held bool, err error) {
	err = d.forAccount(ctx, account, func(ctx context.Context, t *tx, id int64) error {
		still, err := t.stillInState(ctx, in, rows)
		if held = len(still) == len(rows); !held || err != nil {
			return err
		}
		_, err = t.exec(ctx, `INSERT INTO proofs (account_id, shape, state, proven, run_id) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (account_id, shape) DO UPDATE SET state = excluded.state, proven = excluded.proven, run_id = excluded.run_id WHERE proofs.state <> 'unknown'`,
			id, p.Shape, string(p.State), millis(p.Proven), p.Run)
		return err
	})
	return held, err
}

// Disprove forgets a proof, see [ledger.Accounts].
func (d *DB) Disprove(ctx context.Context, account, shape string) error {
	return d.forAccount(ctx, account, func(ctx context.Context, t *tx, id int64) error {
		_, err := t.exec(ctx, "DELETE FROM proofs WHERE account_id = $1 AND shape = $2", id, shape)
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

// BeginSweep begins a sweep or continues one, see [ledger.Sweeps].
func (d *DB) BeginSweep(ctx context.Context, account, name string, oldest time.Time) (began time.Time, err error) {
	if err := checkText("name", name); err != nil {
		return time.Time{}, err
	}
	now := time.Now()
	err = d.forAccount(ctx, account, func(ctx context.Context, t *tx, id int64) error {
		if _, err := t.exec(ctx, "DELETE FROM sweeps WHERE account_id = $1 AND name = $2 AND began < $3", id, name, millis(oldest)); err != nil {
			return err
		}
		if _, err := t.exec(ctx, "INSERT INTO sweeps (account_id, name, began) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", id, name, millis(now)); err != nil {
			return err
		}
		var at int64
		_, err := t.row(ctx, []any{&at}, "SELECT began FROM sweeps WHERE account_id = $1 AND name = $2", id, name)
		began = instant(at)
		return err
	})
	return began, err
}

// EndSweep ends a sweep, see [ledger.Sweeps].
func (d *DB) EndSweep(ctx context.Context, account, name string) error {
	return d.forAccount(ctx, account, func(ctx context.Context, t *tx, id int64) error {
		_, err := t.exec(ctx, "DELETE FROM sweeps WHERE account_id = $1 AND name = $2", id, name)
		return err
	})
}
