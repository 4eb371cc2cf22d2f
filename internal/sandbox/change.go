package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Change is what the service says of a tracking from now on, other than before
// or than can be.
type Change struct {
	ReferID        string `json:"referId"`        // empty: by number
	TrackingNumber string `json:"trackingNumber"` // both empty: the first tracking
	Kind           string `json:"kind"`           // see Changes
	Checkpoint     int    `json:"checkpoint"`     // of those without changes, 0 is the newest
}

// Kinds of changes.
const (
	ChangeOffset = "offset" // the checkpoint's local time is 26 hours ahead of UTC
	ChangeRepeat = "repeat" // the checkpoint stands there twice
)

// Changes returns the kinds of changes.
func Changes() []string {
	return []string{ChangeOffset, ChangeRepeat}
}

// impossibleOffset is that of no zone.
const impossibleOffset = 26 * time.Hour

type appliedChange struct {
	kind string
	at   time.Time
}

// Change changes what the sandbox says of a tracking.
func (s *Server) Change(c Change) error {
	if !slices.Contains(Changes(), c.Kind) {
		return fmt.Errorf("kind %q is not one of %s", c.Kind, strings.Join(Changes(), ", "))
	}
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	i, ok := s.state.index(c.ReferID, c.TrackingNumber)
	if !ok {
		return errors.New("no such tracking")
	}
	p := &s.state.parcels[i]
	done := s.journey(*p).done(s.state.now())
	if c.Checkpoint < 0 || c.Checkpoint >= len(done) {
		return fmt.Errorf("checkpoint %d: there are %d, and 0 is the newest", c.Checkpoint, len(done))
	}
	p.changes = append(slices.Clip(p.changes), appliedChange{c.Kind, done[len(done)-1-c.Checkpoint].at})
	return nil
}

// changed returns the steps as the changes leave them, at least one.
func (j journey) changed(done []step) []step {
	for _, c := range j.changes {
		i := slices.IndexFunc(done, func(st step) bool { return st.at.Equal(c.at) })
		if i < 0 {
			continue
		}
		done = slices.Clone(done)
		switch c.kind {
		case ChangeOffset:
			done[i].city.offset = impossibleOffset
		case ChangeRepeat:
			done = slices.Insert(done, i, done[i])
		}
	}
	return done
}
