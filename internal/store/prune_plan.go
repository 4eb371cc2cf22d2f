package store

import (
	"context"
	"math"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// PrunePlan is what removing all that is older than a time comes to.
type PrunePlan struct {
	Runs  ledger.PrunedRuns
	Inbox inbox.PruneResult
}

// PlanPrune returns what PruneRuns and Prune would remove now. It
// writes nothing.
func (d *DB) PlanPrune(ctx context.Context, before time.Time) (PrunePlan, error) {
	var p PrunePlan
	var err error
	if p.Runs, err = d.eachOldRun(ctx, before, func(run int64) (bool, error) { return hasEnded(ctx, d.each, run) }); err != nil {
		return p, err
	}
	if p.Inbox, err = countOld(ctx, d.each, millis(before), prunableSince(), 0, math.MaxInt64); err != nil {
		return p, err
	}
	if _, err := d.row(ctx, []any{&p.Inbox.Refused}, "SELECT COUNT(*) FROM refused WHERE received < $1", millis(before)); err != nil {
		return p, err
	}
	_, err = d.row(ctx, []any{&p.Inbox.Dead}, `SELECT COUNT(*) FROM outbox w JOIN deliveries d ON d.seq = w.delivery
		WHERE w.dead <> 0 AND d.received < $1 AND (d.body IS NULL OR NOT `+isQueuedOrUnread+`)`, millis(before), prunableSince())
	return p, err
}
