package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	firstReconnect = 50 * time.Millisecond
	lastReconnect  = time.Second
)

// session is the connection that shows that this process is alive, and receives hints when others store something. It
// is made on demand, and again after it was lost.
type session struct {
	engine *engine

	mu       sync.Mutex
	cancel   context.CancelFunc // ends the session; nil if there is none
	ended    chan struct{}
	wake     context.CancelFunc // ends the wait for the next heartbeat; nil before the first wait
	watchers map[chan struct{}]bool
	stopped  bool

	locked int64 // number of the owner whose lock the current connection holds; 0 if none
}

// start starts the session, or makes a running one send a heartbeat now.
func (s *session) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
	case s.cancel != nil:
		if s.wake != nil {
			s.wake()
		}
	default:
		ctx, cancel := context.WithCancel(context.Background())
		s.cancel, s.ended = cancel, make(chan struct{})
		go s.run(ctx)
	}
}

// stop ends the session. The returned function waits until it has ended.
func (s *session) stop() (wait func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.cancel == nil {
		return func() {}
	}
	s.cancel()
	return func() { <-s.ended }
}

// Watch is for [store.Engine]. Everything that was stored while the connection was lost makes one value.
func (s *session) Watch(ctx context.Context) <-chan struct{} {
	hint := make(chan struct{}, 1)
	s.mu.Lock()
	s.watchers[hint] = true
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, hint)
	})
	s.start() //nolint:contextcheck // it outlives the call
	return hint
}

func (s *session) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for hint := range s.watchers {
		select {
		case hint <- struct{}{}:
		default: // one is still to be taken
		}
	}
}

func (s *session) run(ctx context.Context) {
	defer close(s.ended)
	pause, heard := firstReconnect, time.Now()
	for ctx.Err() == nil {
		conn, err := pgx.ConnectConfig(ctx, s.engine.config)
		if ctx.Err() == nil {
			s.engine.outage.record(err)
		}
		switch {
		case err == nil:
			s.serve(ctx, conn)
			pause, heard = firstReconnect, time.Now()
		case !isTimeout(err):
			heard = time.Now()
		case time.Since(heard) > s.engine.spans.silence: // no heartbeat can notice
			s.engine.links.cut()
		}
		sleep(ctx, pause)
		pause = min(2*pause, lastReconnect)
	}
}

func (s *session) serve(ctx context.Context, conn *pgx.Conn) {
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // whatever it says, it is over
	err := s.listen(ctx, conn.PgConn())
	if err == nil {
		s.announce()
	}
	s.locked = 0
	for err == nil {
		if err = s.beat(ctx, conn.PgConn()); err == nil && s.wait(ctx, conn) != nil {
			return
		}
	}
	if isTimeout(err) { // the server did not answer in time
		s.engine.links.cut()
	}
}

func (s *session) listen(ctx context.Context, conn *pgconn.PgConn) error {
	ctx, cancel := context.WithTimeout(ctx, s.engine.spans.silence)
	defer cancel()
	channel := pgx.Identifier{s.engine.schema}.Sanitize()
	results, err := conn.Exec(ctx, "SET synchronous_commit TO off; LISTEN "+channel+"; SELECT "+thisBackend).ReadAll()
	if err == nil {
		s.engine.backends.setSession(string(results[len(results)-1].Rows[0][0]))
	}
	return err
}

func isTimeout(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// wait passes hints on until the next heartbeat is due.
func (s *session) wait(ctx context.Context, conn *pgx.Conn) error {
	due, cancel := context.WithTimeout(ctx, s.engine.spans.beat)
	defer cancel()
	s.mu.Lock()
	s.wake = cancel
	s.mu.Unlock()
	for {
		change, err := conn.WaitForNotification(due)
		switch {
		case err == nil && s.engine.backends.isWriter(change.PID):
		case err == nil:
			s.announce()
		case ctx.Err() != nil:
			return ctx.Err()
		case due.Err() != nil && !conn.IsClosed():
			return nil
		default:
			return err
		}
	}
}

// beat sends one heartbeat. Without an owner it only reads the server's clock.
func (s *session) beat(ctx context.Context, conn *pgconn.PgConn) error {
	e := s.engine
	ctx, cancel := context.WithTimeout(ctx, e.spans.silence)
	defer cancel()
	name, number := e.owners.own()
	query := "SELECT pg_backend_pid(), (extract(epoch FROM clock_timestamp()) * 1000)::bigint; "
	if s.locked != 0 && s.locked != number {
		query += e.ownerLock("pg_advisory_unlock", s.locked) + "; "
		s.locked = 0
	}
	if name != "" && s.locked == 0 {
		query += e.ownerLock("pg_try_advisory_lock", number) + "; "
	}
	query += fmt.Sprintf("UPDATE owners SET seen = clock_timestamp() WHERE name = '%s'", name)
	sent := uptime()
	results, err := conn.Exec(ctx, query).ReadAll()
	if err != nil {
		return err
	}
	clock := results[0].Rows[0]
	shown, err := strconv.ParseInt(string(clock[1]), 10, 64)
	if err != nil {
		return err
	}
	e.clock.observe(sent, uptime(), shown)
	e.backends.checkSession(string(clock[0]))
	if name == "" {
		return nil
	}
	if s.locked == 0 && string(results[len(results)-2].Rows[0][0]) == "t" {
		s.locked = number
	}
	if results[len(results)-1].CommandTag.RowsAffected() == 0 {
		e.owners.fenced(name)
	} else {
		e.owners.beaten(name, sent)
	}
	return nil
}

// backendName identifies a server process in pg_stat_activity; thisBackend is the process that runs the query.
const (
	backendName = "pid || ' ' || extract(epoch FROM backend_start)"
	thisBackend = "(SELECT " + backendName + " FROM pg_stat_activity WHERE pid = pg_backend_pid())"
)

// backends are the server processes of two of our connections. They are different, and stay the same, unless a proxy
// gives each transaction a free one. Locks, notifications and settings of a session need a process that stays.
type backends struct {
	mu              sync.Mutex
	writer, session string
	pooled          bool
}

func (b *backends) setWriter(name string)  { b.set(&b.writer, name) }
func (b *backends) setSession(name string) { b.set(&b.session, name) }

func (b *backends) set(one *string, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*one = name
	b.pooled = b.pooled || b.writer == b.session
}

// checkSession is setSession with only the process's number, on the same connection.
func (b *backends) checkSession(pid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, _, _ := strings.Cut(b.session, " ")
	b.pooled = b.pooled || known != pid
}

func (b *backends) arePooled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pooled
}

// isWriter reports whether our writing connection uses the server process with that number.
func (b *backends) isWriter(pid uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.HasPrefix(b.writer, fmt.Sprint(pid, " "))
}
