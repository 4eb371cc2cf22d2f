package store

import (
	"context"
	"time"
)

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
