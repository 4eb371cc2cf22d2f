package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/store"
)

// maxConnections bounds the connections of an open store, besides the one of its session:
// one that writes, which it keeps, and two that read.
const maxConnections = 3

// closing bounds what is still said to the server when the store is closed.
const closing = 500 * time.Millisecond

// spans are how long what takes time takes.
type spans struct {
	patience time.Duration // since the server went away, how long calls try again
	beat     time.Duration // from one heartbeat to the next
	silence  time.Duration // in which the server must answer one; then all connections are cut
	// grace is how long an owner without its lock lives after its last heartbeat, or the
	// server's start, so that it can connect again.
	grace time.Duration
	// margin is how long before the end of its grace an owner ceases to send.
	margin time.Duration
	// lease is how long an owner lives whose lock hangs on, as that of a machine does whose network was cut.
	lease time.Duration
	// stopped is how long a session that writes waits for the rest of a statement before
	// others end it: no setting of the server limits that.
	stopped time.Duration
}

var usualSpans = spans{
	patience: 5 * time.Second,
	beat:     time.Second,
	silence:  10 * time.Second,
	grace:    5 * time.Second,
	margin:   time.Second,
	lease:    15 * time.Second,
	stopped:  30 * time.Second,
}

type engine struct {
	place  string
	schema string
	config *pgx.ConnConfig // of every connection
	spans  spans
	links  *links
	outage outage
	until  time.Time         // see [store.Options]
	note   func(text string) // what the user should know; nil for nobody
	moved  bool              // the server is not the one that was written to last
	clock  serverClock

	backends backends
	pool     *sql.DB
	writer   *writer
	owners   *owners
	session  *session
	staging  chan struct{} // see lockStaging

	password *redact.Redactor // removes it from what a server says
}

// newEngine returns an engine on the server that config leads to. It opens no connection.
func newEngine(place, schema string, config *pgx.ConnConfig, p store.Process) *engine {
	e := &engine{
		place: place, schema: schema, config: config.Copy(), spans: usualSpans, links: &links{open: map[*link]bool{}},
		staging: make(chan struct{}, 1),
	}
	e.links.ctx, e.links.stop = context.WithCancel(context.Background())
	e.config.DialFunc = e.links.dialer(config.DialFunc)
	e.pool = sql.OpenDB(observed{stdlib.GetConnector(*e.config), &e.outage})
	e.pool.SetMaxOpenConns(maxConnections)
	e.pool.SetMaxIdleConns(maxConnections)
	e.owners = &owners{engine: e, process: p}
	e.session = &session{engine: e, watchers: map[chan struct{}]bool{}}
	e.writer = &writer{engine: e}
	return e
}

// observed records how connecting ends.
type observed struct {
	driver.Connector
	outage *outage
}

// Connect is for [sql.OpenDB].
func (o observed) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := o.Connector.Connect(ctx)
	if err == nil || ctx.Err() == nil {
		o.outage.record(err)
	}
	return conn, err
}

// close ends everything, and does not wait for a server that is silent.
func (e *engine) close() error {
	defer e.session.stop()()
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	e.owners.release(ctx)
	defer e.links.close()
	return e.fail("close", e.pool.Close())
}

func (e *engine) read(ctx context.Context, ask func() (again bool, err error)) error {
	for deadline := e.deadline(); ; {
		again, err := ask()
		if err == nil || !again || ctx.Err() != nil || !e.isTemporary(err) ||
			time.Now().After(deadline) && !e.endStopped(ctx, err) || !e.outage.wait(ctx) {
			return err
		}
	}
}

// queryRow reads the one row of a query, see engine.read.
func (e *engine) queryRow(ctx context.Context, query string, args []any, into ...any) error {
	return e.read(ctx, func() (again bool, err error) {
		return true, e.pool.QueryRowContext(ctx, query, args...).Scan(into...)
	})
}

// deadline returns until when a call that begins now tries again.
func (e *engine) deadline() time.Time {
	return store.Later(time.Now().Add(2*e.spans.patience), e.until)
}

// isTemporary reports whether what failed with err may succeed when it is tried again now.
// Where no connection could be made, that holds for a while only.
func (e *engine) isTemporary(err error) bool {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	if connecting && !e.outage.isYoung(e.spans.patience) && time.Now().After(e.until) {
		return false
	}
	return sqlState(err) == "55P03" || canRetry(err)
}

// trouble is an error of a kind, which came while something was written.
func (e *engine) trouble(kind, cause error) error {
	return &store.Error{Kind: kind, Path: e.place, Op: "write", Err: cause}
}

func native(conn *sql.Conn, use func(*pgx.Conn) error) error {
	return conn.Raw(func(c any) error { return use(c.(*stdlib.Conn).Conn()) }) //nolint:forcetypeassert // of our driver
}

// Bounds of trying again while the server is away.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 250 * time.Millisecond
	forgetful  = 10 * time.Second // without a try after which an outage is taken for another one
)

// outage is the time in which no connection can be made.
type outage struct {
	mu    sync.Mutex
	began time.Time // zero: there is none
	last  time.Time // the last try
	pause time.Duration
}

func (o *outage) record(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil:
		o.began, o.pause = time.Time{}, 0
		return
	case o.began.IsZero(), now.Sub(o.last) > forgetful:
		o.began, o.pause = now, firstPause
	default:
		o.pause = min(2*o.pause, lastPause)
	}
	o.last = now
}

// isYoung reports whether the outage, if there is one, is younger than that.
func (o *outage) isYoung(patience time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.began.IsZero() || time.Since(o.began) < patience
}

// wait waits before the next try. It returns false if ctx ended.
func (o *outage) wait(ctx context.Context) bool {
	o.mu.Lock()
	pause := max(o.pause, firstPause)
	o.mu.Unlock()
	return sleep(ctx, pause)
}

// sleep waits. It returns false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
