package bulk

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Bounds of answers that are not recorded yet. The more trackings are recorded
// at once, the fewer pages of their index are written twice.
const (
	maxUnrecorded   = 64 // answers
	recordAtOnce    = 4096
	maxRecordingLag = time.Second
)

// sightingRecorder records what the answers to synchronous creates say of trackings,
// while the run goes on. A nil recorder records nothing.
type sightingRecorder struct {
	answers chan answered
	ended   chan struct{}
}

type answered struct {
	batch ledger.Batch
	reply *tracking.Reply
}

// newRecorder starts the recorder of a synchronous run; of others it is nil. The
// caller closes it.
func (j *Job) newRecorder(ctx context.Context) *sightingRecorder {
	if j.Run.Plan.Mode != ledger.Sync {
		return nil
	}
	r := &sightingRecorder{make(chan answered, maxUnrecorded), make(chan struct{})}
	go func() {
		defer close(r.ended)
		for a := range r.answers {
			seen := r.collect(a)
			slices.SortStableFunc(seen, func(a, b ledger.Sighting) int { // the order in which many are recorded fastest
				return cmp.Or(strings.Compare(a.Key.ReferID, b.Key.ReferID), strings.Compare(a.Key.Number, b.Key.Number))
			})
			if err := j.Ledger.Record(ctx, []ledger.RecordedAnswer{{Seen: seen}}); err != nil {
				j.Warn("rows saved as accepted, but without their status in the response: %v", err)
			}
		}
	}()
	return r
}

func (r *sightingRecorder) add(b ledger.Batch, reply *tracking.Reply) {
	if r != nil && reply.Outcome == tracking.OutcomeAccepted {
		r.answers <- answered{b, reply}
	}
}

// close waits until everything is recorded.
func (r *sightingRecorder) close() {
	if r != nil {
		close(r.answers)
		<-r.ended
	}
}

// collect returns what an answer says, with those that follow soon.
func (r *sightingRecorder) collect(a answered) []ledger.Sighting {
	seen := a.sightings()
	late := time.NewTimer(maxRecordingLag)
	defer late.Stop()
	for len(seen) < recordAtOnce {
		select {
		case a, ok := <-r.answers:
			if !ok {
				return seen
			}
			seen = append(seen, a.sightings()...)
		case <-late.C:
			return seen
		}
	}
	return seen
}

// sightings returns what the answer says of the rows of its batch.
//
// Interface: Endpoints, 1. Batch create (synchronous, v1).
func (a answered) sightings() []ledger.Sighting {
	answer := a.reply.Body.Answer()
	byNumber := make(map[string]tracking.Tracking, len(answer.Trackings))
	for _, t := range answer.Trackings {
		byNumber[t.Number] = t
	}
	var seen []ledger.Sighting
	for _, row := range a.batch.Rows {
		t, ok := byNumber[row.Item.Number]
		if ok && t.Known() && (t.ReferID == "" || t.ReferID == row.Item.ReferID) {
			seen = append(seen, ledger.NewSighting(t, ledger.Processed, row.Item.Key(), a.reply.Began.Add(a.reply.Took), ledger.FromCreate))
		}
	}
	return seen
}
