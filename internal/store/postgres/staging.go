package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybill-cli/waybill/internal/store"
)

// stagingPoll is how often a process tries again that waits for another to end staging.
const stagingPoll = 100 * time.Millisecond

// lockStaging is for [store.Engine]. In this process, whoever has put a value into
// engine.staging may stage. Among processes, the process that table meta names may stage
// while it lives: the loss of a connection does not end its turn.
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

// whyNotStaging returns err, for time that ran out, if another process stages: the server may be silent
// as well, as it is while its commits wait for a standby.
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

// tryStaging makes this process the one that stages, and returns its name; empty while another does. A
// dead one loses its row first, so that it can't come back.
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

// unlockStaging lets others stage. Where that fails they may once this process has closed
// the store, which removes its row.
func (e *engine) unlockStaging(name string) {
	defer func() { <-e.staging }()
	ctx, cancel := context.WithTimeout(context.Background(), e.spans.patience)
	defer cancel()
	_ = e.read(ctx, func() (bool, error) {
		_, err := e.pool.ExecContext(ctx, "UPDATE meta SET staging = '' WHERE staging = $1", name)
		return true, err
	})
}
