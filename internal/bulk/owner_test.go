package bulk_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// cutOff is a store that this process is cut off from after so many requests, once so many
// outcomes are recorded, for so many requests that it then wants to send. Meanwhile others
// take over what it had claimed, if they do.
type cutOff struct {
	*store.DB
	checks, lost atomic.Int64
	recorded     chan struct{} // for each outcome that is recorded before
	takenOver    bool
}

func (c *cutOff) CheckOwner(owner string) error {
	if c.checks.Load() == 0 {
		for range cap(c.recorded) {
			<-c.recorded
		}
	}
	if c.checks.Add(-1) < 0 && c.lost.Add(-1) >= 0 {
		return &store.Error{Kind: store.ErrCutOff, Path: "postgres://db.test/waybill", Op: "write"}
	}
	return c.DB.CheckOwner(owner)
}

func (c *cutOff) RecordOutcomes(ctx context.Context, all []ledger.BatchOutcome) error {
	if c.takenOver && c.checks.Load() < 0 {
		return &store.Error{Kind: store.ErrTakenOver, Path: "postgres://db.test/waybill", Op: "write"}
	}
	err := c.DB.RecordOutcomes(ctx, all)
	for range all {
		select {
		case c.recorded <- struct{}{}:
		default: // nobody waits for it
		}
	}
	return err
}

// Who was cut off from the store sends nothing of what it had claimed before. It goes on
// once the store says that nobody took that over, and else stops.
func TestNothingIsSentWhileClaimsAreLost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode      ledger.Mode
		takenOver bool
		contact   bool
		checks    int64 // requests until then
		want      ledger.Counts
		sent      int64
	}{
		"async":                  {ledger.Async, false, false, 2, ledger.Counts{Accepted: 50}, 5},
		"sync":                   {ledger.Sync, false, false, 2, ledger.Counts{Accepted: 50}, 5},
		"others took it over":    {ledger.Async, true, false, 2, ledger.Counts{Accepted: 20, Sending: 10, Pending: 20}, 2},
		"and what was claimed":   {ledger.Sync, true, false, 0, ledger.Counts{Sending: 50}, 0},
		"they took the first":    {ledger.Async, true, true, 0, ledger.Counts{Sending: 1, Pending: 49}, 0},
		"the first is sent late": {ledger.Async, false, true, 0, ledger.Counts{Unknown: 1, Pending: 49}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			run := stage(t, db, tt.mode, 10, 50)
			c := &cutOff{DB: db, takenOver: tt.takenOver, recorded: make(chan struct{}, tt.checks)}
			c.checks.Store(tt.checks)
			c.lost.Store(3)
			sent := int64(0)
			j := job(db, run, service(func(context.Context, []tracking.Item) *tracking.Reply {
				sent++
				return &tracking.Reply{Outcome: tracking.OutcomeAccepted, HTTPStatus: 200, Shape: shapeOf(200), Agrees: true}
			}))
			j.SkipProof = !tt.contact
			j.Ledger.Queue = c
			_, err := j.Execute(t.Context(), t.Context())
			if errors.Is(err, ledger.ErrNotClaimed) != tt.takenOver {
				t.Errorf("err = %v; want one that matches ErrNotClaimed: %v", err, tt.takenOver)
			}
			if got := counts(t, db, run); got != tt.want || sent != tt.sent {
				t.Errorf("%+v after %d requests; want %+v after %d", got, sent, tt.want, tt.sent)
			}
		})
	}
}

// An answer that can't be recorded, since others took its rows over, is not reported,
// and ends the sending.
func TestAnswersOfRowsThatOthersTookAreNotReported(t *testing.T) {
	db := open(t)
	run := stage(t, db, ledger.Async, 10, 50)
	c := &cutOff{DB: db, takenOver: true}
	c.checks.Store(3)
	c.lost.Store(100)
	sent := 0
	j := job(db, run, service(func(context.Context, []tracking.Item) *tracking.Reply {
		sent++
		c.checks.Store(-1)
		return &tracking.Reply{Outcome: tracking.OutcomeAccepted}
	}))
	j.Ledger.Queue = c
	j.Recorded = func(b ledger.Batch, _ *tracking.Reply) { t.Errorf("batch %d reported", b.ID) }
	_, err := j.Execute(t.Context(), t.Context())
	if !errors.Is(err, store.ErrTakenOver) || sent != 1 || j.Sent() != 0 {
		t.Errorf("err = %v, %d requests, %d rows sent; want ErrTakenOver after one, and none", err, sent, j.Sent())
	}
}

// A request that was stopped before its first byte, since the process was cut off from
// the store meanwhile, does not stop the run: it is sent once the store is back.
func TestWhatWasStoppedBeforeItsFirstByteIsSentLater(t *testing.T) {
	db := open(t)
	run := stage(t, db, ledger.Async, 10, 50)
	c := &cutOff{DB: db}
	sent, wasLost := 0, false
	j := job(db, run, service(func(ctx context.Context, _ []tracking.Item) *tracking.Reply {
		if sent == 1 && !wasLost {
			c.lost.Store(2) // for this write, and for why it was not made
			wasLost = true
		}
		if err := tracking.Allowed(ctx)(); err != nil {
			return &tracking.Reply{Outcome: tracking.OutcomeNotSent, Err: err}
		}
		sent++
		return &tracking.Reply{Outcome: tracking.OutcomeAccepted}
	}))
	j.Ledger.Queue = c
	if _, err := j.Execute(t.Context(), t.Context()); err != nil {
		t.Error(err)
	}
	if got, want := counts(t, db, run), (ledger.Counts{Accepted: 50}); got != want || sent != 5 || !wasLost {
		t.Errorf("%+v after %d requests, cut off: %v; want %+v after 5", got, sent, wasLost, want)
	}
}
