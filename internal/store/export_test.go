package store

import "context"

// Prepared returns how many statements the connection that writes keeps.
func (d *DB) Prepared() int { return len(d.writer.compiled) }

// Queued returns how many jobs wait for the one that writes.
func (d *DB) Queued() int {
	d.writer.mu.Lock()
	defer d.writer.mu.Unlock()
	return len(d.writer.queue)
}

// AddProof adds a proof in a transaction, which then does more.
func (d *DB) AddProof(ctx context.Context, name string, more func() error) error {
	return d.run(ctx, func(ctx context.Context, t *tx) {
		t.exec(ctx, "INSERT INTO proofs (shape, state, proven, run_id) VALUES ($1, '', 1, 0) ON CONFLICT DO NOTHING", name)
		t.each(ctx, func(scanner) error { return more() }, "SELECT 1")
	})
}

// FailThenAddProof adds a proof after a statement that fails, and returns what the transaction did after that.
func (d *DB) FailThenAddProof(ctx context.Context, name string) (changed int64, found bool, err error) {
	err = d.run(ctx, func(ctx context.Context, t *tx) {
		t.exec(ctx, "INSERT INTO proofs (shape) VALUES (NULL)")
		changed = t.exec(ctx, "INSERT INTO proofs (shape, state, proven, run_id) VALUES ($1, '', 1, 0)", name)
		found = t.row(ctx, []any{new(int64)}, "SELECT 1")
		t.closing = true
		t.exec(ctx, "DELETE FROM proofs")
	})
	return changed, found, err
}

// HasProof reports whether there is a proof.
func (d *DB) HasProof(ctx context.Context, name string) (found bool, err error) {
	r := d.reader()
	found = value[bool](ctx, r, "SELECT EXISTS (SELECT 1 FROM proofs WHERE shape = $1)", name)
	return found, r.err
}

// CopiedTables returns the names of the tables that a copy has.
func CopiedTables() []string {
	names := make([]string, len(copied))
	for i, t := range copied {
		names[i] = t.name
	}
	return names
}

// ReadAhead is readAhead of numbers.
var ReadAhead = readAhead[int]
