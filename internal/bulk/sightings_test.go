package bulk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// answering accepts rows, and shows the tracking of each.
func answering(_ context.Context, items []tracking.Item) *tracking.Reply {
	shown := make([]map[string]string, len(items))
	for i, it := range items {
		shown[i] = map[string]string{"rawTrackingNumber": it.Number, "referId": it.ReferID, "statusTrack": "delivered"}
	}
	raw, err := json.Marshal(map[string]any{"data": shown})
	if err != nil {
		panic(err)
	}
	return &tracking.Reply{Outcome: tracking.OutcomeAccepted, Answer: raw, Body: tracking.ReadBody(raw)}
}

// shown returns how many rows of the run have a status.
func shown(t *testing.T, s ledger.Trackings, run ledger.Run) int {
	t.Helper()
	n := 0
	for st, err := range s.Statuses(t.Context(), ledger.Filter{Run: run.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		if st.Sighting != nil && st.Sighting.StatusTrack == "delivered" {
			n++
		}
	}
	return n
}

// What synchronous creates answered is recorded when Execute returns; answers
// to asynchronous ones say nothing of trackings.
func TestAnswersOfSynchronousCreatesAreRecorded(t *testing.T) {
	for mode, want := range map[ledger.Mode]int{ledger.Sync: 95, ledger.Async: 0} {
		db := open(t)
		run := stage(t, db, mode, 10, 95)
		j := job(db, run, service(answering))
		if _, err := j.Execute(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := shown(t, db, run); got != want {
			t.Errorf("%s: %d trackings recorded; want %d", mode, got, want)
		}
	}
}

// unlearning is a ledger that can't record what answers say.
type unlearning struct{ ledger.Trackings }

func (unlearning) Record(context.Context, []ledger.RecordedAnswer) error {
	return errors.New("full")
}

func TestUnrecordedAnswersAreAWarning(t *testing.T) {
	db := open(t)
	run := stage(t, db, ledger.Sync, 10, 20)
	j := job(db, run, service(answering))
	j.Ledger.Trackings = unlearning{db}
	var warnings []string
	j.Observer = bulk.Observer{Warn: func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }}
	_, err := j.Execute(t.Context(), t.Context())
	if c := counts(t, db, run); err != nil || c.Accepted != 20 || len(warnings) == 0 {
		t.Errorf("%+v, warnings %q, err = %v; want all accepted and a warning", c, warnings, err)
	}
}
