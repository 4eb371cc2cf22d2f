package listen

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

const maxConnections = 12_000 // if the system allows so many

// connLimiter limits the open connections of a server. One too many closes the connection that has been idle for
// longest, else the one that has been sending its request for longest. A connection whose request has arrived
// completely is never closed: it gets its answer.
type connLimiter struct {
	max int

	mu    sync.Mutex
	conns map[net.Conn]*limitedConn
	idle  list.List // of *limitedConn, longest idle first
	busy  list.List // of *limitedConn, longest sending first
}

type limitedConn struct {
	limiter *connLimiter
	conn    net.Conn
	list    *list.List    // idle or busy; nil while its request is handled
	element *list.Element // in it
}

// connContext registers a new connection and passes it to its handler. It is a [http.Server.ConnContext].
func (c *connLimiter) connContext(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.conns) >= c.max && !c.closeLeastNeeded() {
		_ = conn.Close() // all others wait for their answer
		return ctx
	}
	s := &limitedConn{limiter: c, conn: conn}
	c.conns[conn] = s
	s.move(&c.idle)
	return context.WithValue(ctx, limitedConnKey{}, s)
}

func (c *connLimiter) closeLeastNeeded() bool {
	for _, l := range []*list.List{&c.idle, &c.busy} {
		if front := l.Front(); front != nil {
			s, _ := front.Value.(*limitedConn)
			s.move(nil)
			delete(c.conns, s.conn)
			_ = s.conn.Close() // the server notices that
			return true
		}
	}
	return false
}

// closeIncomplete closes all connections except those whose request has arrived completely.
func (c *connLimiter) closeIncomplete() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.closeLeastNeeded() {
	}
}

// connState tracks every change of a connection. It is a [http.Server.ConnState].
func (c *connLimiter) connState(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.conns[conn]
	switch {
	case s == nil: // it was closed to make room
	case state == http.StateActive:
		s.move(&c.busy)
	case state == http.StateIdle:
		s.move(&c.idle)
	case state == http.StateClosed || state == http.StateHijacked:
		s.move(nil)
		delete(c.conns, conn)
	}
}

// move moves s to the end of a list, or out of all lists if to is nil.
func (s *limitedConn) move(to *list.List) {
	if s.list != nil {
		s.list.Remove(s.element)
	}
	if s.list = to; to != nil {
		s.element = to.PushBack(s)
	}
}

type limitedConnKey struct{}

// markReceived keeps a connection from being closed to make room: its request has arrived completely.
func markReceived(ctx context.Context) {
	s, _ := ctx.Value(limitedConnKey{}).(*limitedConn)
	if s == nil {
		return
	}
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	s.move(nil)
}

// How often the stored bytes are counted, and the share of one minute.
const (
	recountWhenFull = 5 * time.Second // they may have become less
	recountInterval = time.Minute     // other processes may have added to them
	minuteShare     = 8               // an eighth of the maximum may arrive per minute
)

// UnverifiedLimit limits what is kept of unverified deliveries, since anybody may send them.
type UnverifiedLimit struct {
	MaxBytes   int64                                // as [inbox.Retention.UnverifiedBytes] counts; an eighth per minute
	CountBytes func(context.Context) (int64, error) // returns how many bytes are kept
}

var errUnverifiedLimit = errors.New("too many unverified deliveries")

// quota applies an UnverifiedLimit. Verified deliveries are not counted.
type quota struct {
	UnverifiedLimit
	report Report

	mu       sync.Mutex
	bytes    int64     // including deliveries admitted since counted
	counted  time.Time // when bytes was counted
	minute   time.Time // when this minute began
	inMinute int64     // bytes admitted in it
	warned   time.Time // when it was last reported as used up
}

func (q *quota) admit(ctx context.Context, n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if now.Sub(q.minute) >= time.Minute {
		q.minute, q.inMinute = now, 0
	}
	if err := q.count(ctx, now, n); err != nil {
		return err
	}
	// One delivery a minute may exceed the share of a minute.
	if q.bytes+n > q.MaxBytes || (q.inMinute > 0 && q.inMinute+n > q.MaxBytes/minuteShare) {
		if now.Sub(q.warned) >= repeatAlert {
			q.warned = now
			q.report(slog.LevelWarn, fmt.Sprintf("too many unverified deliveries, refusing more: free space with "+
				"`waybill store prune`, or raise --max-unverified; bytes kept: %d; most: %d; a minute: %d",
				q.bytes, q.MaxBytes, q.MaxBytes/minuteShare), nil)
		}
		return errUnverifiedLimit
	}
	q.bytes += n
	q.inMinute += n
	return nil
}

// count rereads the stored bytes after recountInterval, or after recountWhenFull if they seem too many.
func (q *quota) count(ctx context.Context, now time.Time, n int64) error {
	old := now.Sub(q.counted)
	if old < recountWhenFull || old < recountInterval && q.bytes+n <= q.MaxBytes {
		return nil
	}
	kept, err := q.CountBytes(ctx)
	if err == nil {
		q.bytes, q.counted = kept, now
	}
	return err
}

func storedSize(d inbox.Delivery, rows int) int64 {
	n := len(d.Path) + len(d.RawQuery) + len(d.Body) + rows*inbox.RowBytes
	for _, f := range d.Header {
		n += len(f.Name) + len(f.Value)
	}
	return int64(n)
}
