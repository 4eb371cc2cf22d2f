package create

import (
	"context"
	"errors"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
)

func (c *creation) stage(ctx context.Context, stager ledger.Stager) (ledger.Run, error) {
	return bulk.Stage(ctx, waitingStager{stager, c.call.Session}, c.plan, c.in.Entries(ctx), c.stageChecks())
}

// stageChecks refuse an input that changes after it was judged.
func (c *creation) stageChecks() bulk.StageChecks {
	return bulk.StageChecks{
		Conflict: func(ledger.Conflict) error {
			return command.Usagef("re-run the command", "the input has changed while it was read")
		},
		Staged: c.in.Unchanged,
	}
}

// firstRows is how many rows are staged before the first request: a batch for each worker.
func (c *creation) firstRows() int { return max(c.policy.Workers, 2) * c.plan.BatchSize }

// feeds reports whether the input is sent while it is staged: not a few batches, nor rows that are asked for first.
func (c *creation) feeds() bool {
	return !c.plan.CheckFirst && c.judged.Valid > int64(c.firstRows())
}

// feed begins to stage the input. It goes on until hard ends.
func (c *creation) feed(ctx, hard context.Context, stager ledger.Stager) (*bulk.Feed, error) {
	c.in.Sending = true
	return bulk.BeginFeed(ctx, hard, waitingStager{stager, c.call.Session}, c.plan, c.in.Entries(hard), c.firstRows(), c.stageChecks())
}

// Limits of the wait for another process that stages its input.
const (
	stagingNotice = time.Second      // a longer wait is announced
	stagingLimit  = 10 * time.Minute // unless --timeout ends it
)

// waitingStager waits for another process that stages its input, up to a limit, and says whom it waits for.
type waitingStager struct {
	ledger.Stager
	s *app.Session
}

// Stage begins a staging. At the limit it returns the error of the stager.
func (p waitingStager) Stage(ctx context.Context, plan ledger.Plan) (ledger.Staging, error) {
	limit := stagingLimit
	if end, ok := ctx.Deadline(); ok {
		limit = time.Until(end)
	}
	soon, cancel := context.WithTimeout(ctx, min(limit, stagingNotice))
	defer cancel()
	staging, err := p.Stager.Stage(soon, plan)
	if err == nil || soon.Err() == nil || ctx.Err() != nil {
		return staging, err
	}
	var busy *ledger.BusyError
	var trouble *store.Error
	switch {
	case errors.As(err, &busy):
		p.s.IO.Note("Waiting up to %s: %v", config.FormatDuration(limit), busy)
	case errors.As(err, &trouble):
		p.s.IO.Note("Waiting up to %s: %v", config.FormatDuration(limit), trouble)
	}
	ctx, cancel = context.WithTimeout(ctx, limit-stagingNotice)
	defer cancel()
	return p.Stager.Stage(ctx, plan)
}
