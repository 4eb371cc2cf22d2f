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

// maxConnections limits the connections of an open store, besides its session: one that writes, which is kept open,
// and two that read.
const maxConnections = 3

// closing limits the time for last requests to the server when the store is closed.
const closing = 500 * time.Millisecond

// spans are the durations that an engine works with.
type spans struct {
	patience time.Duration // how long calls retry after the server became unreachable
	beat     time.Duration // from one heartbeat to the next
	silence  time.Duration // how long the server may take to answer one before all connections are cut
	// grace is how long an owner without its lock lives after its last heartbeat, or the server's start, so that it can
	// reconnect.
	grace time.Duration
	// margin is how long before the end of its grace an owner stops sending.
	margin time.Duration
	// lease is how long an owner lives whose lock remains, such as on a machine whose network was cut.
	lease time.Duration
	// stopped is how long a session that writes may wait for the rest of a statement before others end it: no setting of
	// the server limits that.
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
	note   func(text string) // tells the user something; may be nil
	moved  bool              // the server is not the one that was last written to
	clock  serverClock

	backends backends
	pool     *sql.DB
	writer   *writer
	owners   *owners
	session  *session
	staging  chan struct{} // see lockStaging

	password *redact.Redactor // removes the password from the server's messages
}

// newEngine returns an engine for the server of config. It opens no connection.
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

// observed records the results of connecting.
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

// close ends everything without waiting for a silent server.
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

// queryRow reads the only row of a query, see engine.read.
func (e *engine) queryRow(ctx context.Context, query string, args []any, into ...any) error {
	return e.read(ctx, func() (again bool, err error) {
		return true, e.pool.QueryRowContext(ctx, query, args...).Scan(into...)
	})
}

// deadline returns until when a call that begins now is retried.
func (e *engine) deadline() time.Time {
	return store.Later(time.Now().Add(2*e.spans.patience), e.until)
}

// isTemporary reports whether what failed with err may succeed if it is retried now. If no connection could be made,
// that holds for a while only.
func (e *engine) isTemporary(err error) bool {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	if connecting && !e.outage.isYoung(e.spans.patience) && time.Now().After(e.until) {
		return false
	}
	return sqlState(err) == "55P03" || canRetry(err)
}

// trouble returns an error of a kind that came up while writing.
func (e *engine) trouble(kind, cause error) error {
	return &store.Error{Kind: kind, Path: e.place, Op: "write", Err: cause}
}

func native(conn *sql.Conn, use func(*pgx.Conn) error) error {
	return conn.Raw(func(c any) error { return use(c.(*stdlib.Conn).Conn()) }) //nolint:forcetypeassert // of our driver
}

// Limits of retries while the server is unreachable.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 250 * time.Millisecond
	forgetful  = 10 * time.Second // without a try, after which the next failure begins another outage
)

// outage is a time in which no connection can be made.
type outage struct {
	mu    sync.Mutex
	began time.Time // zero if there is none
	last  time.Time // of the last try
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

// isYoung reports whether there is no outage, or one shorter than patience.
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

// sleep waits for d. It returns false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
