package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// serveStream sends server-sent events. What fails after the first one is an event too.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		s.methodNotAllowed(w, http.MethodGet)
		return
	}
	after, err := lastEvent(r)
	if err != nil {
		s.fail(w, &Error{http.StatusBadRequest, err.Error(), "a whole number from 0 up", "usage"})
		return
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		s.fail(w, &Error{http.StatusServiceUnavailable, fmt.Sprintf("%d pages are live, and no more can be", maxStreams), "close one of them", "too_many_streams"})
		return
	}
	stream := &eventWriter{w: w, rc: http.NewResponseController(w), hide: s.o.Hide}
	err = stream.run(r.Context(), func(ctx context.Context) error { return s.o.Stream(ctx, r, after, stream.send) })
	switch {
	case err == nil || r.Context().Err() != nil || stream.err != nil:
	case stream.begun:
		_ = stream.send(-1, "problem", s.explain(err)) // the client may have gone
	default:
		s.fail(w, s.explain(err))
	}
}

// lastEvent returns the number of the last event that the client has.
func lastEvent(r *http.Request) (int64, error) {
	text := r.URL.Query().Get("after")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("after %q is not a number of the stream", text)
	}
	return n, nil
}

// eventWriter writes the events of one stream. It is safe for concurrent use.
type eventWriter struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	hide func([]byte) []byte

	mu    sync.Mutex
	begun bool  // the header was written
	err   error // the first one; nothing is written after it
}

// send writes an event, without an id if that is negative, or a name if that is empty.
func (e *eventWriter) send(id int64, event string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write an event as JSON: %w", err)
	}
	var b bytes.Buffer
	if id >= 0 {
		fmt.Fprintf(&b, "id: %d\n", id)
	}
	if event != "" {
		fmt.Fprintf(&b, "event: %s\n", event)
	}
	fmt.Fprintf(&b, "data: %s\n\n", e.hide(data))
	return e.write(b.Bytes())
}

// run calls do, and writes signs of life until it returns.
func (e *eventWriter) run(ctx context.Context, do func(context.Context) error) error {
	done := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() { e.beat(done) })
	defer beating.Wait()
	defer close(done)
	return do(ctx)
}

// beat writes a comment now and then, so that both sides notice when the other has gone.
func (e *eventWriter) beat(done <-chan struct{}) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = e.write([]byte(":\n\n")) // the next event fails too
		case <-done:
			return
		}
	}
}

func (e *eventWriter) write(b []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	if !e.begun {
		e.begun = true
		e.w.Header().Set("Content-Type", "text/event-stream")
		e.w.WriteHeader(http.StatusOK)
	}
	_ = e.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not supported by recorders of tests
	if _, e.err = e.w.Write(b); e.err == nil {
		e.err = e.rc.Flush()
	}
	return e.err
}
