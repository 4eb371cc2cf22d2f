package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	if path.Clean(r.URL.Path) == r.URL.Path { // the multiplexer would redirect
		if _, pattern := s.api.Handler(r); pattern != "" {
			s.api.ServeHTTP(w, r)
			return
		}
	}
	s.fail(w, &Error{http.StatusNotFound, "there is no such route", "reload the page", "not_found"})
}

func (s *Server) route(route Route) {
	s.api.HandleFunc(APIPrefix+route.Pattern, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != route.Method {
			s.methodNotAllowed(w, route.Method)
			return
		}
		if route.Method == http.MethodPost {
			s.serveChange(w, r, route)
			return
		}
		v, err := route.Serve(r)
		s.answer(w, r, v, err)
	})
}

// serveChange answers a change. Its work continues when the client leaves.
func (s *Server) serveChange(w http.ResponseWriter, r *http.Request, route Route) {
	if refused := s.changeRefusal(r); refused != nil {
		s.fail(w, refused)
		return
	}
	select {
	case s.changes <- struct{}{}:
		defer func() { <-s.changes }()
	default:
		const message, hint = "too many requests at once", "wait until those under way have ended"
		s.fail(w, &Error{http.StatusServiceUnavailable, message, hint, "too_many_requests"})
		return
	}
	body, refused := readBody(w, r)
	if refused != nil {
		closeConnection(w)
		s.fail(w, refused)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if work, ok := r.Context().Value(workKey{}).(context.Context); ok {
		*r = *r.WithContext(work) //nolint:contextcheck // what has begun outlives its client
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	v, err := route.Serve(r)
	s.answer(w, r, v, err)
}

// readBody reads the body of a request, up to the size limit.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *Error) {
	var body []byte
	err := error(&http.MaxBytesError{Limit: maxBody})
	if r.ContentLength <= maxBody {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	}
	switch tooLarge := (*http.MaxBytesError)(nil); {
	case errors.As(err, &tooLarge):
		message := "the body is larger than " + strconv.Itoa(maxBody>>20) + " MiB"
		return nil, &Error{http.StatusRequestEntityTooLarge, message, "send less", "too_large"}
	case err != nil:
		return nil, &Error{http.StatusRequestTimeout, "the body did not arrive whole", "send it again", "incomplete_body"}
	}
	return body, nil
}

// changeRefusal says why a request may not change anything; nil if it may.
func (s *Server) changeRefusal(r *http.Request) *Error {
	if s.o.ReadOnly {
		return &Error{http.StatusForbidden, "the inspector is read-only", "start it without --read-only", "read_only"}
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		const message = "the body of this request is not declared as JSON"
		const hint = "send Content-Type: application/json"
		return &Error{http.StatusUnsupportedMediaType, message, hint, "unsupported_media_type"}
	}
	return nil
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, v any, err error) {
	if err != nil {
		if r.Context().Err() == nil {
			s.fail(w, s.explain(err))
		}
		return
	}
	if f, ok := v.(File); ok {
		w.Header().Set("Content-Disposition", `attachment; filename="`+safeName(f.Name)+`"`)
		s.write(w, http.StatusOK, "application/octet-stream", f.Body)
		return
	}
	s.writeJSON(w, http.StatusOK, v)
}

func (s *Server) explain(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return s.o.Explain(err)
}

func (s *Server) fail(w http.ResponseWriter, e *Error) { s.writeJSON(w, e.Status, e) }

func (s *Server) writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		s.o.Log("inspector: an answer can't be written as JSON: " + err.Error())
		const message = "the answer can't be written as JSON"
		s.fail(w, &Error{http.StatusInternalServerError, message, "report this as a bug", "failed"})
		return
	}
	s.write(w, status, "application/json", append(s.o.Hide(body), '\n'))
}

func (s *Server) write(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	rc := http.NewResponseController(w)
	for first := true; first || len(body) > 0; first = false {
		_ = rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not supported by test recorders
		if first {
			w.WriteHeader(status)
		}
		n, err := w.Write(body[:min(len(body), maxWrite)]) //nolint:gosec // a file of the page, or JSON
		if body = body[n:]; err != nil {
			return // a client that has gone needs no answer
		}
	}
}

// safeName returns a file name that is valid in every system and in a header.
func safeName(name string) string {
	return strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("._-", c) {
			return c
		}
		return '_'
	}, name)
}

// serveStream sends server-sent events. A failure after the first event is sent as an event too.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		s.methodNotAllowed(w, http.MethodGet)
		return
	}
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64) // the page only sends numbers that it was sent
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		s.fail(w, &Error{http.StatusServiceUnavailable, fmt.Sprintf("%d pages are live, "+
			"and no more can be", maxStreams), "close one of them", "too_many_streams"})
		return
	}
	stream := &eventWriter{w: w, rc: http.NewResponseController(w), hide: s.o.Hide}
	ctx, stop := context.WithCancel(r.Context())
	var beating sync.WaitGroup
	beating.Go(func() { stream.beat(ctx) })
	err := s.o.Stream(ctx, r, max(after, 0), stream.send)
	stop()
	beating.Wait()
	switch {
	case err == nil || r.Context().Err() != nil || stream.err != nil:
	case stream.begun:
		_ = stream.send(-1, "problem", s.explain(err)) // the client may have gone
	default:
		s.fail(w, s.explain(err))
	}
}

// eventWriter writes the events of one stream. It is safe for concurrent use.
type eventWriter struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	hide func([]byte) []byte

	mu    sync.Mutex
	begun bool  // the header was written
	err   error // the first error; nothing is written after it
}

// send writes an event. It leaves out a negative id and an empty name.
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

// beat writes a comment at intervals until ctx ends, so that both sides notice when the other has gone.
func (e *eventWriter) beat(ctx context.Context) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = e.write([]byte(":\n\n")) // the next event fails too
		case <-ctx.Done():
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
	_ = e.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not supported by test recorders
	if _, e.err = e.w.Write(b); e.err == nil {
		e.err = e.rc.Flush()
	}
	return e.err
}
