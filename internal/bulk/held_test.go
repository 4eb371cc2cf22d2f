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

// cutOff is a store that this process is cut off from after so many requests. Then others
// take over what it had claimed, if they can.
type cutOff struct {
	*store.DB
	left      atomic.Int64
	takenOver bool
}

var errCutOff = &store.Error{Kind: store.ErrCutOff, Path: "postgres://db.test/waybill", Op: "write", Err: errors.New("no contact for 12s")}

func (c *cutOff) Held(owner string) error {
	if c.left.Add(-1) < 0 {
		return errCutOff
	}
	return c.DB.Held(owner)
}

func (c *cutOff) Settle(ctx context.Context, all []ledger.Settlement) error {
	if c.takenOver && c.left.Load() < 0 {
		return &store.Error{Kind: store.ErrTakenOver, Path: "postgres://db.test/waybill", Op: "write"}
	}
	return c.DB.Settle(ctx, all)
}

// Who is cut off from the store sends nothing more of what it had claimed.
func TestNothingIsSentOnceClaimsAreNotHeld(t *testing.T) {
	for name, tt := range map[string]struct {
		mode      ledger.Mode
		takenOver bool
		contact   bool
		held      int64 // requests until then
		want      ledger.Counts
	}{
		"async":                {ledger.Async, false, false, 2, ledger.Counts{Accepted: 20, Pending: 30}},
		"sync":                 {ledger.Sync, false, false, 2, ledger.Counts{Accepted: 20, Pending: 30}},
		"first row":            {ledger.Async, false, true, 0, ledger.Counts{Pending: 50}},
		"others took it over":  {ledger.Sync, true, false, 0, ledger.Counts{Sending: 50}},
		"they took the first":  {ledger.Async, true, true, 0, ledger.Counts{Sending: 1, Pending: 49}},
		"settled and not sent": {ledger.Async, true, false, 0, ledger.Counts{Sending: 10, Pending: 40}},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			run := stage(t, db, tt.mode, 10, 50)
			c := &cutOff{DB: db, takenOver: tt.takenOver}
			c.left.Store(tt.held)
			sent := int64(0)
			j := job(db, run, service(func(context.Context, []tracking.Item) *tracking.Reply {
				sent++
				return &tracking.Reply{Outcome: tracking.OutcomeAccepted}
			}))
			j.Canary = tt.contact
			j.Ledger.Queue = c
			_, err := j.Execute(t.Context(), t.Context())
			if !errors.Is(err, ledger.ErrNotClaimed) {
				t.Errorf("err = %v; want one that matches ErrNotClaimed", err)
			}
			if got := counts(t, db, run); got != tt.want || sent != tt.held {
				t.Errorf("%+v after %d requests; want %+v after %d", got, sent, tt.want, tt.held)
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
	c.left.Store(3)
	sent := 0
	j := job(db, run, service(func(context.Context, []tracking.Item) *tracking.Reply {
		sent++
		c.left.Store(-1)
		return &tracking.Reply{Outcome: tracking.OutcomeAccepted}
	}))
	j.Ledger.Queue = c
	j.Settled = func(b ledger.Batch, _ *tracking.Reply) { t.Errorf("batch %d reported", b.ID) }
	_, err := j.Execute(t.Context(), t.Context())
	if !errors.Is(err, store.ErrTakenOver) || sent != 1 || j.Sent() != 0 {
		t.Errorf("err = %v, %d requests, %d rows sent; want ErrTakenOver after one, and none", err, sent, j.Sent())
	}
}
