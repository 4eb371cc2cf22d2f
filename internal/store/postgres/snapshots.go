package postgres

import (
	"context"
	"database/sql"
	"strings"
	"time"
)

// snapshotsPatience is how long those wait for the end of older transactions who remove
// what was deleted; snapshotsPoll is how often they ask.
const (
	snapshotsPatience = 5 * time.Second
	snapshotsPoll     = 100 * time.Millisecond
)

// awaitSnapshots waits until nobody sees the rows that were deleted before the call: as
// long as somebody does, the server keeps them in every rewrite of their table. It returns
// who still does, in words, when the patience is at its end.
//
// A transaction of another database counts if it writes: snapshots here do not go past it.
func (e *engine) awaitSnapshots(ctx context.Context) (holders []string, err error) {
	var next string // transaction, after those that deleted
	if err := e.read(ctx, func() (bool, error) {
		return true, e.readers.QueryRowContext(ctx, "SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS xid) AS TEXT)").Scan(&next)
	}); err != nil {
		return nil, err
	}
	patience, poll := time.NewTimer(snapshotsPatience), time.NewTicker(snapshotsPoll)
	defer patience.Stop()
	defer poll.Stop()
	for {
		holders = nil
		err = e.each(ctx, func(rows *sql.Rows) error {
			var name string
			err := rows.Scan(&name)
			holders = append(holders, strings.ReplaceAll(name, "*", "_")) // it stands in a comment
			return err
		}, `SELECT name FROM (
				SELECT format('the transaction of session %s (%s, user %s%s)', pid, to_json(application_name), usename, ', ' || state) AS name,
					GREATEST(CASE WHEN datname IS NULL OR datname = current_database() THEN age(backend_xmin) END, age(backend_xid)) AS age
				FROM pg_stat_activity WHERE pid <> pg_backend_pid()
				UNION ALL SELECT format('the replication slot %s', slot_name), age(xmin) FROM pg_replication_slots
				UNION ALL SELECT format('the prepared transaction %s', to_json(gid)), age(transaction) FROM pg_prepared_xacts) s
			WHERE age > age(CAST(CAST($1 AS TEXT) AS xid)) ORDER BY age DESC LIMIT 3`, next)
		if err != nil || len(holders) == 0 {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-patience.C:
			return holders, nil
		case <-poll.C:
		}
	}
}
