package store

import (
	"context"

	"github.com/waybill-cli/waybill/internal/ledger"
)

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

// BatchLimit returns how many rows one request may carry, see [ledger.Accounts].
func (d *DB) BatchLimit(ctx context.Context, account string, mode ledger.Mode) (int, error) {
	var rows int
	_, err := d.row(ctx, []any{&rows}, "SELECT rows FROM batch_limits WHERE account_id = "+accountOf("$1")+" AND mode = $2", account, string(mode))
	return rows, err
}

// LowerBatchLimit lowers it, see [ledger.Accounts].
func (d *DB) LowerBatchLimit(ctx context.Context, account string, mode ledger.Mode, rows int) error {
	return d.forAccount(ctx, account, func(ctx context.Context, t *tx, id int64) error {
		_, err := t.exec(ctx, `INSERT INTO batch_limits (account_id, mode, rows) VALUES ($1, $2, $3)
			ON CONFLICT (account_id, mode) DO UPDATE SET rows = CASE WHEN excluded.rows < batch_limits.rows THEN excluded.rows ELSE batch_limits.rows END`,
			id, string(mode), max(rows, 1))
		return err
	})
}

// Assumptions returns what was checked, see [ledger.Accounts].
func (d *DB) Assumptions(ctx context.Context, account string) ([]ledger.CheckedAssumption, error) {
	var all []ledger.CheckedAssumption
	err := d.each(ctx, func(s scanner) error {
		var c ledger.CheckedAssumption
		var checked int64
		err := s.Scan(&c.Assumption, &c.Holds, &checked)
		c.Checked = instant(checked)
		all = append(all, c)
		return err
	}, "SELECT name, holds, checked FROM assumptions WHERE account_id = "+accountOf("$1")+" ORDER BY name", account)
	return all, err
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
