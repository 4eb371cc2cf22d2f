package listen

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// mostConnections is how many connections there may be, if the system allows
// so many: it is left a fifth of its descriptors for everything else.
const mostConnections = 12_000

// connections returns how many connections there may be.
func connections() int {
	if n := descriptors(); n > 0 {
		return max(1, min(mostConnections, int(n/5*4)))
	}
	return mostConnections
}

// crowd is the connections of a server. When there is one too many, the one
// that has been idle for longest is closed, or, if all are busy, the one that
// has been sending its request for longest. Those whose request has arrived
// whole are left to get their answer.
type crowd struct {
	most int

	mu    sync.Mutex
	seats map[net.Conn]*seat
	idle  list.List // of *seat, those idle for longest first
	busy  list.List // of *seat, those sending for longest first
}

// seat is one connection. Its fields are guarded by the crowd's mutex.
type seat struct {
	crowd *crowd
	conn  net.Conn
	in    *list.List    // idle or busy; nil while its request is handled
	place *list.Element // in it
}

func newCrowd(most int) *crowd { return &crowd{most: most, seats: map[net.Conn]*seat{}} }

// greet takes a connection in and lets its handler know its seat, as
// [http.Server.ConnContext].
func (c *crowd) greet(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seats) >= c.most && !c.closeOne() {
		_ = conn.Close() // all others wait for their answer
		return ctx
	}
	s := &seat{crowd: c, conn: conn}
	c.seats[conn] = s
	s.move(&c.idle)
	return context.WithValue(ctx, seatKey{}, s)
}

// closeOne closes the connection that is needed least, if there is one.
func (c *crowd) closeOne() bool {
	for _, l := range []*list.List{&c.idle, &c.busy} {
		if front := l.Front(); front != nil {
			s, _ := front.Value.(*seat)
			s.move(nil)
			delete(c.seats, s.conn)
			_ = s.conn.Close() // its server finds that out by itself
			return true
		}
	}
	return false
}

// noted is told of every change of a connection, as [http.Server.ConnState].
func (c *crowd) noted(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.seats[conn]
	switch {
	case s == nil: // it was closed to make room
	case state == http.StateActive:
		s.move(&c.busy)
	case state == http.StateIdle:
		s.move(&c.idle)
	case state == http.StateClosed || state == http.StateHijacked:
		s.move(nil)
		delete(c.seats, conn)
	}
}

// move puts s at the end of one of the lists, or in none.
func (s *seat) move(to *list.List) {
	if s.in != nil {
		s.in.Remove(s.place)
	}
	if s.in = to; to != nil {
		s.place = to.PushBack(s)
	}
}

type seatKey struct{}

// arrived says that the request of a connection has arrived whole: from now on
// it is not closed to make room.
func arrived(ctx context.Context) {
	s, _ := ctx.Value(seatKey{}).(*seat)
	if s == nil {
		return
	}
	s.crowd.mu.Lock()
	defer s.crowd.mu.Unlock()
	if s.in != nil {
		s.move(nil)
	}
}
