package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybill-cli/waybill/internal/store"
)

// awaitPoll is how often a process that waits until another's death is certain checks again.
const awaitPoll = 200 * time.Millisecond

// errFenced says that this process has lost its row: others declared it dead.
var errFenced = errors.New("other processes took this one for dead")

// owners is for [store.Owners]. An owner's row says when it was last alive, by the server's clock. Its session, which
// begins when the first heartbeat is due, also holds a lock with the row's number, as a sign of life while its
// connection lasts.
type owners struct {
	engine  *engine
	process store.Process // as others see it

	registering sync.Mutex

	mu     sync.Mutex
	name   string // empty if this process has no row
	number int64
	beat   time.Duration // uptime before the last heartbeat that is known to have arrived was sent
}

// own returns this process's name and number; the name is "" if it has no row.
func (o *owners) own() (string, int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.name, o.number
}

// register creates this process's row, if it has none, and returns its name, which nobody knew before.
func (o *owners) register(ctx context.Context, conn *pgx.Conn) (string, error) {
	o.registering.Lock()
	defer o.registering.Unlock()
	if name, _ := o.own(); name != "" {
		return name, nil
	}
	name, sent := rand.Text(), uptime()
	var number int64
	var pid uint32
	p := o.process
	err := conn.QueryRow(ctx, `WITH new AS (
			INSERT INTO owners (name, host, pid, version, command) VALUES ($1, $2, $3, $4, $5) RETURNING id, name),
		count AS (INSERT INTO counters (name, value) SELECT 'commits ' || name, 0 FROM new)
		SELECT id, pg_backend_pid() FROM new`,
		pgx.QueryExecModeExec, name, p.Host, p.PID, p.Version, p.Command).Scan(&number, &pid)
	if err != nil {
		return "", err
	}
	o.mu.Lock()
	o.name, o.number, o.beat = name, number, sent
	o.mu.Unlock()
	wait := o.engine.spans.beat // a command that has ended by then needs no session
	if pid != conn.PgConn().PID() {
		wait = 0 // behind a proxy, the session finds out whether connections are pooled
	}
	time.AfterFunc(wait, o.engine.session.start)
	return name, nil
}

// fenced forgets the row with that name, which others removed, and tells the user.
func (o *owners) fenced(name string) {
	if silent, mine := o.forget(name); mine && o.engine.note != nil {
		o.engine.note(fmt.Sprintf("Other processes took this one for dead after %s without contact to the store, "+
			"and took over what it was sending; it continues", silent.Round(time.Second)))
	}
}

// forget forgets the row with that name, if it is this process's. silent is the time since its last heartbeat.
func (o *owners) forget(name string) (silent time.Duration, mine bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.name != name {
		return 0, false
	}
	o.name = ""
	return uptime() - o.beat, true
}

func (o *owners) beaten(name string, sent time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.name == name {
		o.beat = max(o.beat, sent)
	}
}

// Name is for [store.Owners]. The transaction has created the row, or found it.
func (o *owners) Name() (string, error) {
	name, _ := o.own()
	return name, nil
}

// CheckOwner is for [store.Owners].
func (o *owners) CheckOwner(name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.name != name:
		return store.ErrTakenOver
	case uptime()-o.beat > o.engine.spans.grace-o.engine.spans.margin:
		return store.ErrCutOff
	}
	return nil
}

// isDead returns the condition that the process of a row o of owners is dead. After a clock was set back, ages are
// negative.
func (o *owners) isDead() string {
	const age = "clock_timestamp() - GREATEST(o.seen, pg_postmaster_start_time())"
	grace, lease := interval(o.engine.spans.grace), interval(o.engine.spans.lease)
	return "CASE WHEN " + age + " BETWEEN -" + grace + " AND " + grace + " THEN false " +
		"WHEN " + age + " > " + lease + " THEN true ELSE NOT " + o.isLocked() + " END"
}

// isLocked returns the condition that the session of a row o of owners holds its lock.
func (o *owners) isLocked() string {
	return "EXISTS (SELECT 1 FROM pg_locks l WHERE " + o.engine.holds("o.id") + ")"
}

// ownerLocks returns the first half of the keys of the locks that owners' sessions hold.
func ownerLocks(schema string) int64 { return lockKey(schema) >> 32 & math.MaxUint32 }

func interval(d time.Duration) string { return fmt.Sprintf("interval '%d ms'", d.Milliseconds()) }

// IsAlive is for [store.Owners].
func (o *owners) IsAlive(ctx context.Context, on store.Queryer, name string) (bool, error) {
	if own, _ := o.own(); name != "" && own == name {
		return true, nil
	}
	var alive bool
	err := on.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM owners o
		WHERE o.name = $1 AND NOT `+o.isDead()+")", name).Scan(&alive)
	return alive, err
}

// Await is for [store.Owners]. An owner is certainly alive while its lock is held and its heartbeats are recent, and
// once it has sent another heartbeat.
func (o *owners) Await(ctx context.Context, name string) (bool, error) {
	if own, _ := o.own(); name != "" && own == name {
		return true, nil
	}
	defer o.engine.noteIfSlow("Waiting until it is certain whether another waybill still runs, which was sending; " +
		"up to " + o.engine.spans.lease.String())()
	query := "SELECT o.seen, " + o.isDead() + ", " + o.isLocked() + " AND o.seen > clock_timestamp() - " +
		interval(o.engine.spans.grace) + " FROM owners o WHERE o.name = $1"
	var first time.Time
	for {
		var dead, certain, exists bool
		var seen time.Time
		err := o.engine.read(ctx, func() (bool, error) {
			err := o.engine.pool.QueryRowContext(ctx, query, name).Scan(&seen, &dead, &certain)
			exists = !errors.Is(err, sql.ErrNoRows)
			if !exists {
				err = nil
			}
			return true, err
		})
		switch {
		case err != nil, !exists, dead:
			return false, err
		case certain, !first.IsZero() && seen.After(first):
			return true, nil
		}
		first = cmp.Or(first, seen)
		if !sleep(ctx, awaitPoll) {
			return false, context.Cause(ctx)
		}
	}
}

// Fence is for [store.Owners]. A process without its row notices when it begins its next transaction; until then it
// has none, since this transaction holds the lock of all writers.
func (o *owners) Fence(ctx context.Context, on store.Queryer, name string) (bool, error) {
	if own, _ := o.own(); name != "" && own == name {
		return false, nil
	}
	var dead bool
	err := on.QueryRowContext(ctx, `WITH gone AS (DELETE FROM owners o WHERE o.name = $1 AND `+o.isDead()+` RETURNING 1)
		SELECT EXISTS (SELECT 1 FROM gone) OR NOT EXISTS (SELECT 1 FROM owners WHERE name = $1)`, name).Scan(&dead)
	return dead, err
}

// release removes this process's row, so that nobody waits for it. If that fails, the row expires.
func (o *owners) release(ctx context.Context) {
	name, _ := o.own()
	if name == "" || !o.engine.outage.isYoung(o.engine.spans.patience) {
		return
	}
	o.forget(name)
	_, _ = o.engine.pool.ExecContext(ctx, "DELETE FROM owners WHERE name = $1", name)
}
