package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Serve receives deliveries on l until ctx ends. Then it takes no more
// connections, gives bodies under way a few seconds, waits until everything
// that arrived is stored and answered, and returns nil. It closes l. Any other
// end is an error. It is called once.
func (r *Receiver) Serve(ctx context.Context, l net.Listener) error {
	limiter := newConnLimiter(r.o.MaxConns)
	srv := &http.Server{
		ConnContext:       limiter.connContext,
		ConnState:         limiter.connState,
		Handler:           r.Handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       headerTimeout + bodyTimeout,                                                    // the handler sets the stricter one of bodies
		WriteTimeout:      bodyTimeout + storeTimeout + max(answerTimeout, evidenceTimeout) + sendTimeout, // from the end of the header
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(r.o.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		r.stop(srv, limiter)
		return fmt.Errorf("listen on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	// With a context that has ended, Shutdown closes the listener and what is
	// idle, and does not wait for connections on which nothing was ever sent.
	_ = srv.Shutdown(ctx)
	r.stop(srv, limiter)
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("listen on %s: %w", l.Addr(), err)
	}
	return nil
}

// stop waits for the requests that are being handled, and closes all connections: after a
// few seconds those on which a body is still on its way.
func (r *Receiver) stop(srv *http.Server, limiter *connLimiter) {
	late := time.AfterFunc(shutdownGrace, limiter.closeIncomplete)
	last := time.AfterFunc(shutdownGrace+storeTimeout, func() { _ = srv.Close() })
	r.drain()
	late.Stop()
	last.Stop()
	_ = srv.Close()
}
