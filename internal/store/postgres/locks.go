package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/store"
)

// lockModes are the modes of locks on tables, the weakest first. From shareLock on, they prevent writes.
var lockModes = []string{
	"AccessShareLock", "RowShareLock", "RowExclusiveLock", "ShareUpdateExclusiveLock",
	shareLock, "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock",
}

const shareLock = "ShareLock"

// holdersPatience bounds the question who holds locks, after a wait for one ended.
const holdersPatience = 2 * time.Second

// holder is another program's session with a lock on tables. What the role may not see is empty.
type holder struct {
	pid                  int64
	program, user, state string
	since                sql.NullTime // when it got into the state
	mode, table          string
	more                 int64 // further tables that it has locked in that mode
}

func (h holder) String() string {
	text := fmt.Sprintf("%q, pid %d, user %s", h.program, h.pid, h.user)
	if h.state != "" {
		text += ", " + h.state
	}
	if h.since.Valid {
		text += " since " + h.since.Time.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	text += ", with " + h.mode + " on " + h.table
	if h.more > 0 {
		text += fmt.Sprintf(" and %d more", h.more)
	}
	return text
}

func (h holder) setting() store.Setting {
	preventsWrites := slices.Index(lockModes, h.mode) >= slices.Index(lockModes, shareLock)
	return warnIf(preventsWrites, "Lock holder", h.String(), "waybill waits while that session holds the lock; "+
		"end its transaction, or the session with "+h.terminate())
}

// holds says of a row l of pg_locks whether it is one of the store's advisory locks, as somebody holds it: of an
// owner with that number, or of whoever writes, whose number is the second half of the lock's key.
func (e *engine) holds(number string) string {
	return fmt.Sprintf(`l.locktype = 'advisory'
		AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
		AND l.classid::bigint = %d AND l.objid::bigint = %s AND l.objsubid = 1 AND l.granted`, ownerLocks(e.schema), number)
}

// endStopped ends a session that keeps others from writing since its process was stopped in
// the middle of a statement, if err says that a lock could not be had. Between statements the
// server does that itself. It reports whether it ended one.
func (e *engine) endStopped(ctx context.Context, err error) (ended bool) {
	if sqlState(err) != "55P03" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, holdersPatience)
	defer cancel()
	query := `SELECT COALESCE(bool_or(pg_terminate_backend(a.pid)), false)
		FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE ` + e.holds(fmt.Sprint(uint32(lockKey(e.schema)))) + ` AND a.state = 'active'
		AND a.wait_event = 'ClientRead' AND a.query_start < clock_timestamp() - ` + interval(e.spans.stopped)
	_ = e.pool.QueryRowContext(ctx, query).Scan(&ended)
	return ended
}

func (h holder) terminate() string { return fmt.Sprintf("`SELECT pg_terminate_backend(%d)`", h.pid) }

// holders returns other programs' sessions with locks on the tables, one a mode, the strongest first.
func (e *engine) holders(ctx context.Context) ([]holder, error) {
	var all []holder
	err := e.each(ctx, func(rows *sql.Rows) error {
		var h holder
		err := rows.Scan(&h.pid, &h.program, &h.user, &h.state, &h.since, &h.mode, &h.table, &h.more)
		all = append(all, h)
		return err
	}, `SELECT a.pid, a.application_name, a.usename, COALESCE(a.state, ''), a.state_change, k.mode, k.first, k.n - 1
		FROM pg_stat_activity a JOIN (
			SELECT l.pid, l.mode, MIN(CAST(c.relname AS TEXT)) AS first, COUNT(*) AS n
			FROM pg_locks l JOIN pg_class c ON c.oid = l.relation AND c.relkind = 'r'
				JOIN pg_namespace s ON s.oid = c.relnamespace
			WHERE l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND s.nspname = $1
			GROUP BY l.pid, l.mode) k ON k.pid = a.pid
		WHERE a.application_name <> 'waybill' AND a.usename IS NOT NULL -- that of a worker of the server is NULL
		ORDER BY array_position(CAST($2 AS TEXT[]), k.mode) DESC, a.pid LIMIT 20`, e.schema, lockModes)
	return all, err
}

// nameHolder adds to an error about a lock who holds it, if that is another program.
func (e *engine) nameHolder(err *store.Error) {
	ctx, cancel := context.WithTimeout(context.Background(), holdersPatience)
	defer cancel()
	all, failed := e.holders(ctx)
	if failed != nil || len(all) == 0 || all[0].mode == lockModes[0] {
		return
	}
	err.Err = fmt.Errorf("%w; locked by %s", err.Err, all[0])
	err.Advice = "end the transaction of that session, or the session with " + all[0].terminate() +
		", then re-run the same command"
}
