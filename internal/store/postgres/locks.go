package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybill-cli/waybill/internal/store"
)

// lockModes are the modes of locks on tables, weakest first. From shareLock on, they prevent writes.
var lockModes = []string{
	"AccessShareLock", "RowShareLock", "RowExclusiveLock", "ShareUpdateExclusiveLock",
	shareLock, "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock",
}

const shareLock = "ShareLock"

// holdersPatience limits the query for the holders of locks, after a wait for a lock ended.
const holdersPatience = 2 * time.Second

// holder is another program's session with a lock on tables. Fields that the role may not see are empty.
type holder struct {
	pid                  int64
	program, user, state string
	since                sql.NullTime // when that state began
	mode, table          string
	more                 int64 // further tables locked in that mode
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

// holds returns a condition on a row l of pg_locks: that it is a granted advisory lock of the store, of the owner with
// that number, or of the writer, whose number is the second half of the lock's key.
func (e *engine) holds(number string) string {
	return fmt.Sprintf(`l.locktype = 'advisory'
		AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
		AND l.classid::bigint = %d AND l.objid::bigint = %s AND l.objsubid = 1 AND l.granted`, ownerLocks(e.schema), number)
}

// endStopped ends a session that blocks other writers since its process was stopped in the middle of a statement, if
// err says that a lock could not be had. Between statements the server does that itself. It reports whether it ended
// one.
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

// holders returns other programs' sessions with locks on the tables, one per mode, strongest first.
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

// nameHolder adds the holder to an error about a lock, if that is another program.
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

// stagingPoll is how often a process that waits for its turn to stage tries again.
const stagingPoll = 100 * time.Millisecond

// lockStaging is for [store.Engine]. Within this process, whoever has put a value into engine.staging may stage. Among
// processes, the one that table meta names may stage while it lives: losing a connection does not end its turn.
func (e *engine) lockStaging(ctx context.Context) (owner string, unlock func() error, err error) {
	select {
	case e.staging <- struct{}{}:
	case <-ctx.Done():
		return "", nil, ctx.Err()
	}
	for {
		var name string
		err := e.read(ctx, func() (again bool, err error) {
			name, err = e.tryStaging(ctx)
			return true, err
		})
		if name != "" {
			return name, func() error { //nolint:contextcheck // the caller's context may have ended
				e.unlockStaging(name)
				return nil
			}, nil
		}
		if err == nil && sleep(ctx, stagingPoll) {
			continue
		}
		err = cmp.Or(err, ctx.Err())
		<-e.staging
		if errors.Is(err, context.DeadlineExceeded) {
			err = e.whyNotStaging(ctx, err)
		}
		return "", nil, err
	}
}

// whyNotStaging returns err, a timeout, if another process is staging. Otherwise the server may be silent, such as
// while its commits wait for a standby.
func (e *engine) whyNotStaging(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.spans.patience)
	defer cancel()
	busy, failed := e.othersStage(ctx)
	if busy || failed != nil && !isTimeout(failed) {
		return cmp.Or(failed, err)
	}
	return e.trouble(store.ErrTimedOut, shortCause(err))
}

func (e *engine) othersStage(ctx context.Context) (busy bool, err error) {
	own, _ := e.owners.own()
	err = e.pool.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM meta m JOIN owners o ON o.name = m.staging
		WHERE m.staging <> $1 AND NOT `+e.owners.isDead()+")", own).Scan(&busy)
	return busy, err
}

// tryStaging gives this process the turn to stage, and returns its name, "" while another process stages. It first
// deletes the row of a dead process, so that it can't come back.
func (e *engine) tryStaging(ctx context.Context) (name string, err error) {
	if busy, err := e.othersStage(ctx); busy || err != nil {
		return "", err
	}
	conn, err := e.pool.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // goes back to the pool
	var own string
	var taken bool
	err = native(conn, func(on *pgx.Conn) error {
		c := on.PgConn()
		if own, err = e.owners.register(ctx, on); err != nil {
			return err
		}
		results, err := c.Exec(ctx, "BEGIN READ WRITE; "+e.writeLock()+
			"; DELETE FROM owners o WHERE o.name IN (SELECT staging FROM meta) AND o.name <> '"+own+"' AND "+e.owners.isDead()+
			"; UPDATE meta SET staging = '"+own+"' WHERE staging = '"+own+"'"+
			" OR NOT EXISTS (SELECT 1 FROM owners o WHERE o.name = meta.staging); COMMIT").ReadAll()
		if err != nil {
			if !c.IsClosed() {
				_, e := c.Exec(context.WithoutCancel(ctx), "ROLLBACK").ReadAll()
				err = errors.Join(err, e)
			}
			return err
		}
		taken = results[len(results)-2].CommandTag.RowsAffected() == 1
		return nil
	})
	if !taken {
		return "", err
	}
	return own, err
}

// unlockStaging lets others stage. If it fails, they can stage once this process has closed the store, which removes
// its row.
func (e *engine) unlockStaging(name string) {
	defer func() { <-e.staging }()
	ctx, cancel := context.WithTimeout(context.Background(), e.spans.patience)
	defer cancel()
	_ = e.read(ctx, func() (bool, error) {
		_, err := e.pool.ExecContext(ctx, "UPDATE meta SET staging = '' WHERE staging = $1", name)
		return true, err
	})
}
