package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

func keyPrint(salt []byte, key string) string {
	mac := hmac.New(sha256.New, salt)
	mac.Write([]byte(key))
	return hex.EncodeToString(mac.Sum(nil))
}

// Account returns the account of the store, see [ledger.Accounts].
func (d *DB) Account(ctx context.Context) (string, error) {
	return readFor(d, func(r *reader) string { return value[string](ctx, r, "SELECT name FROM account") })
}

// Pin gives the store an account, see [ledger.Accounts].
func (d *DB) Pin(ctx context.Context, name string) (string, error) {
	if err := checkText("account", name); err != nil {
		return "", err
	}
	return runFor(ctx, d, func(ctx context.Context, t *tx) string {
		t.salt(ctx)
		t.exec(ctx, "UPDATE account SET name = $1 WHERE name = ''", name)
		return value[string](ctx, t, "SELECT name FROM account")
	})
}

// salt returns the key of the fingerprints. It is generated on first use.
func (t *tx) salt(ctx context.Context) []byte {
	salt := make([]byte, sha256.Size)
	_, _ = rand.Read(salt) // never fails
	const insert = "INSERT INTO account (id, name, salt) VALUES (1, '', $1) ON CONFLICT DO NOTHING"
	t.exec(ctx, insert, salt)
	return value[[]byte](ctx, t, "SELECT salt FROM account")
}

// LookUpKey reports whether a key was recorded, see [ledger.Keys].
func (d *DB) LookUpKey(ctx context.Context, key string) (ledger.KeyStatus, error) {
	var status ledger.KeyStatus
	var salt []byte
	var prints string
	r := d.reader()
	r.row(ctx, []any{&status.HasRuns, &salt, &prints}, `SELECT EXISTS (SELECT 1 FROM runs WHERE state = 'open'),
		(SELECT salt FROM account), COALESCE((SELECT key_prints FROM account), '')`)
	status.Seen = strings.Contains(prints, keyPrint(salt, key))
	return status, r.err
}

func (t *tx) keyPrint(ctx context.Context, key string) string { return keyPrint(t.salt(ctx), key) }

// TrustKey records the key, see [ledger.Keys].
func (d *DB) TrustKey(ctx context.Context, key string) error {
	return d.run(ctx, func(ctx context.Context, t *tx) {
		t.exec(ctx, `UPDATE account SET key_prints = key_prints || $1
			WHERE key_prints NOT LIKE '%' || $1 || '%'`, t.keyPrint(ctx, key))
	})
}

var limitColumns = map[ledger.Mode]string{ledger.Sync: "max_v1", ledger.Async: "max_v2"}

// BatchLimit returns how many rows one request may carry, see [ledger.Accounts].
func (d *DB) BatchLimit(ctx context.Context, mode ledger.Mode) (int, error) {
	return readFor(d, func(r *reader) int {
		return value[int](ctx, r, "SELECT "+limitColumns[mode]+" FROM account")
	})
}

// LowerBatchLimit lowers the limit, see [ledger.Accounts].
func (d *DB) LowerBatchLimit(ctx context.Context, mode ledger.Mode, rows int) error {
	return d.run(ctx, func(ctx context.Context, t *tx) {
		t.salt(ctx)
		limit := limitColumns[mode]
		t.exec(ctx, "UPDATE account SET "+limit+" = $1 WHERE "+limit+" = 0 OR "+limit+" > $1", max(rows, 1))
	})
}

// Proofs returns all proofs, see [ledger.Accounts].
func (d *DB) Proofs(ctx context.Context) ([]ledger.Proof, error) {
	r := d.reader()
	all := list(ctx, r, scanInto(func(p *ledger.Proof) []any {
		return []any{&p.Shape, &p.State, (*storedTime)(&p.Proven), &p.Run}
	}), "SELECT shape, state, proven, run_id FROM proofs ORDER BY shape")
	return all, r.err
}

// Prove records a proof, see [ledger.Accounts].
func (d *DB) Prove(ctx context.Context, p ledger.Proof, in ledger.State, rows []ledger.UnknownRow) (bool, error) {
	return runFor(ctx, d, func(ctx context.Context, t *tx) (unchanged bool) {
		if unchanged = len(t.stillInState(ctx, in, rows)) == len(rows); !unchanged {
			return false
		}
		t.exec(ctx, `INSERT INTO proofs (shape, state, proven, run_id) VALUES ($1, $2, $3, $4)
			ON CONFLICT (shape) DO UPDATE SET state = excluded.state, proven = excluded.proven, run_id = excluded.run_id
			WHERE proofs.state <> 'unknown'`, p.Shape, string(p.State), millis(p.Proven), p.Run)
		return true
	})
}

// Disprove deletes a proof, see [ledger.Accounts].
func (d *DB) Disprove(ctx context.Context, shape string) error {
	_, err := d.exec(ctx, "DELETE FROM proofs WHERE shape = $1", shape)
	return err
}

// BeginSweep begins or continues a sweep, see [ledger.Sweeps]. Only a hash of its name is stored, since the name may
// contain erased data.
func (d *DB) BeginSweep(ctx context.Context, name string, oldest time.Time) (time.Time, error) {
	at, err := runFor(ctx, d, func(ctx context.Context, t *tx) int64 {
		return value[int64](ctx, t, `INSERT INTO counters (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE
			SET value = CASE WHEN counters.value < $3 THEN excluded.value ELSE counters.value END RETURNING value`,
			"sweep "+t.keyPrint(ctx, name), millis(time.Now()), millis(oldest))
	})
	return instant(at), err
}

// EndSweep ends a sweep, see [ledger.Sweeps].
func (d *DB) EndSweep(ctx context.Context, name string) error {
	return d.run(ctx, func(ctx context.Context, t *tx) {
		t.exec(ctx, "DELETE FROM counters WHERE name = $1", "sweep "+t.keyPrint(ctx, name))
	})
}
