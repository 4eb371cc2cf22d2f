package listen

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

const maxConnections = 12_000 // where the system allows so many

// connLimiter limits the open connections of a server. One too many closes the one that has been idle
// for longest, else the one that has been sending its request for longest. A connection whose request
// has arrived whole is never closed: it gets its answer.
type connLimiter struct {
	max int

	mu    sync.Mutex
	conns map[net.Conn]*limitedConn
	idle  list.List // of *limitedConn, those idle for longest first
	busy  list.List // of *limitedConn, those sending for longest first
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
			_ = s.conn.Close() // its server finds that out by itself
			return true
		}
	}
	return false
}

// closeIncomplete closes all connections but those whose request has arrived whole.
func (c *connLimiter) closeIncomplete() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.closeLeastNeeded() {
	}
}

// connState follows every change of a connection. It is a [http.Server.ConnState].
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

// move puts s at the end of one of the lists, or in none.
func (s *limitedConn) move(to *list.List) {
	if s.list != nil {
		s.list.Remove(s.element)
	}
	if s.list = to; to != nil {
		s.element = to.PushBack(s)
	}
}

type limitedConnKey struct{}

// markReceived keeps a connection from being closed to make room: its request has arrived whole.
func markReceived(ctx context.Context) {
	s, _ := ctx.Value(limitedConnKey{}).(*limitedConn)
	if s == nil {
		return
	}
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	if s.list != nil {
		s.move(nil)
	}
}
