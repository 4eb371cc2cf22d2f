package store

import "context"

// Prepared returns how many statements the connection that writes keeps.
func (d *DB) Prepared() int { return len(d.writer.stmts) }

// Queued returns how many jobs wait for the one that writes.
func (d *DB) Queued() int {
	d.writer.mu.Lock()
	defer d.writer.mu.Unlock()
	return len(d.writer.queue)
}

// AddAccount adds an account in a transaction, which then does more.
func (d *DB) AddAccount(ctx context.Context, name string, more func() error) error {
	return d.run(ctx, func(ctx context.Context, t *tx) error {
		if _, err := t.accountID(ctx, name); err != nil {
			return err
		}
		return t.each(ctx, func(scanner) error { return more() }, "SELECT 1")
	})
}

// HasAccount reports whether there is an account.
func (d *DB) HasAccount(ctx context.Context, name string) (bool, error) {
	id, err := d.accountID(ctx, name)
	return id >= 0, err
}

// CopiedTables returns the names of the tables that a copy has.
func CopiedTables() []string {
	names := make([]string, len(copied))
	for i, t := range copied {
		names[i] = t.name
	}
	return names
}
