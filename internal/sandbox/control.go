package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Requests counts requests by operation.
type Requests struct {
	CreateV1 int64 `json:"createV1"`
	CreateV2 int64 `json:"createV2"`
	Detail   int64 `json:"detail"`
}

// Stats has the counters of the sandbox.
type Stats struct {
	Requests   Requests   `json:"requests"`
	Created    int64      `json:"created"`  // creations, including repeated ones
	Distinct   int64      `json:"distinct"` // trackings
	Deliveries Deliveries `json:"deliveries"`
	Rows       []Row      `json:"rows,omitzero"` // in order of creation; nil if not requested
}

// Deliveries counts webhook deliveries.
type Deliveries struct {
	Taken   int64 `json:"taken"`   // answered with 2xx
	Refused int64 `json:"refused"` // answered otherwise, per try
	Waiting int   `json:"waiting"` // to be sent, or in flight
}

// Row is one tracking and how often it was created.
type Row struct {
	ReferID string `json:"referId"`
	Number  string `json:"rawTrackingNumber"`
	Created int    `json:"created"`
}

const noRows = "0"

// Stats returns the counters, without rows.
func (s *Server) Stats() Stats { return s.stats(noRows) }

func (s *Server) stats(rows string) Stats {
	hooks := s.hooks.stats()
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	n := s.state.requests
	st := Stats{
		Requests: Requests{n[opCreateV1], n[opCreateV2], n[opDetail]},
		Created:  s.state.made, Distinct: int64(len(s.state.parcels)), Deliveries: hooks,
	}
	if rows != noRows {
		st.Rows = make([]Row, len(s.state.parcels))
		for i, p := range s.state.parcels {
			st.Rows[i] = Row{p.item.ReferID, p.item.Number, p.created}
		}
	}
	return st
}

// Advance moves sandbox time forward: shipments travel, and events are sent.
func (s *Server) Advance(by time.Duration) {
	s.state.mu.Lock()
	s.state.offset += by
	s.state.mu.Unlock()
	s.hooks.wake()
}

// Reset deletes all trackings, counts and one-shot faults.
func (s *Server) Reset() {
	s.state.reset()
	s.faults.mu.Lock()
	s.faults.once = nil
	s.faults.mu.Unlock()
}

// Fault injects a fault into the next count requests of an operation ("" for any).
func (s *Server) Fault(name, op string, count int) error {
	if !slices.Contains(Faults(), name) {
		return &ConfigError{"fault", fmt.Sprintf("%q is unknown; there are %s", name, strings.Join(Faults(), ", "))}
	}
	if !slices.Contains([]operation{"", opCreateV1, opCreateV2, opDetail}, operation(op)) {
		return &ConfigError{"operation", fmt.Sprintf("%q is unknown", op)}
	}
	s.faults.mu.Lock()
	s.faults.once = append(s.faults.once, oneShot{name, operation(op), max(count, 1)})
	s.faults.mu.Unlock()
	return nil
}

// addControls adds the paths that control the sandbox. They need no key, are not counted, and have no faults.
func (s *Server) addControls() {
	s.mux.HandleFunc("GET /_sandbox/stats", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, s.stats(r.URL.Query().Get("rows")))
	})
	control(s, "advance", func(q struct{ By string }) error {
		d, err := time.ParseDuration(q.By)
		if err != nil || d < 0 {
			return errors.New(`by must be a duration such as "48h"`)
		}
		s.Advance(d)
		return nil
	})
	control(s, "reset", func(struct{}) error { s.Reset(); return nil })
	type fault = struct { // unnamed: errors would show a name
		Name, Operation string
		Count           int
		Probability     *float64
	}
	control(s, "faults", func(q fault) error {
		if q.Probability == nil {
			return s.Fault(q.Name, q.Operation, q.Count)
		}
		if !slices.Contains(Faults(), q.Name) || *q.Probability < 0 || *q.Probability > 1 {
			return fmt.Errorf("fault %q with probability %v is not possible", q.Name, *q.Probability)
		}
		s.faults.mu.Lock()
		s.faults.chance[q.Name] = *q.Probability
		s.faults.mu.Unlock()
		return nil
	})
	control(s, "emit", s.Emit)
}

// control adds a path that accepts a T as JSON, or the zero T without a body.
func control[T any](s *Server, name string, do func(T) error) {
	s.mux.HandleFunc("POST /_sandbox/"+name, func(w http.ResponseWriter, r *http.Request) {
		var asked T
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
		dec.DisallowUnknownFields()
		err := dec.Decode(&asked)
		if err == nil || errors.Is(err, io.EOF) {
			err = do(asked)
		}
		if err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		answer(w, http.StatusOK, map[string]any{"ok": true})
	})
}
