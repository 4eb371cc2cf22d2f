package postgres

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// links are the network connections of an open store. Closing one from below ends what
// waits for the server's answer on it, however silent the network is.
type links struct {
	ctx  context.Context //nolint:containedctx // of every dial; it ends when the store is closed
	stop context.CancelFunc

	mu   sync.Mutex
	open map[*link]bool
}

// dialer returns dial, whose connections are among the links from then on.
func (l *links) dialer(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(l.ctx, cancel)() //nolint:contextcheck // the end of either ends it
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		one := &link{Conn: conn, links: l}
		l.mu.Lock()
		l.open[one] = true
		l.mu.Unlock()
		if l.ctx.Err() != nil {
			return nil, errors.Join(net.ErrClosed, one.Close())
		}
		return one, nil
	}
}

func (l *links) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.open {
		_ = one.Conn.Close() // whoever uses it finds out
	}
	clear(l.open)
}

// close closes all links, and lets none be opened.
func (l *links) close() {
	l.stop()
	l.cut()
}

type link struct {
	net.Conn
	links *links
}

// Close is for [net.Conn].
func (l *link) Close() error {
	l.links.mu.Lock()
	delete(l.links.open, l)
	l.links.mu.Unlock()
	return l.Conn.Close()
}
