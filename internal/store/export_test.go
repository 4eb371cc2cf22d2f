package store

// Prepared returns how many statements the connection that writes keeps.
func (d *DB) Prepared() int { return len(d.writer.stmts) }
