package postgres

import (
	"context"
	"database/sql"
)

// timeline is the number that a server takes when it becomes the primary: each that was a
// standby, or was restored to an earlier time, takes a new one.
const timeline = "('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint"

// isMoved reports whether the server took over from the one that the store was written on
// last. If it lagged behind, what that one had committed last is lost.
func isMoved(ctx context.Context, conn *sql.Conn) (moved bool, err error) {
	err = conn.QueryRowContext(ctx, "SELECT timeline NOT IN (0, "+timeline+") FROM meta").Scan(&moved)
	return moved, err
}
