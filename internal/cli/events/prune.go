package events

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
)

func newPrune(f *command.Factory) *cobra.Command {
	var age string
	cmd := &cobra.Command{
		Use:   "prune --older-than AGE",
		Short: "Drop the raw bytes of old deliveries",
		Long: `prune drops headers and bodies of deliveries that are older than AGE, and the
evidence of refusals. What was read from them stays: number, kind, status and
eventId, so that nothing is new a second time. What was pruned can't be
verified, shown whole or sent again, so what still waits to be forwarded stays
whole; what was given up is forgotten. The room is used for what comes next; the
file does not shrink.`,
		Example: command.Example("waybill events prune --older-than 30d"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runPrune(ctx, c, age)
		}),
	}
	command.OlderThanFlag(cmd, &age)
	return cmd
}

// prunedJSON is the result of a prune.
type prunedJSON struct {
	Deliveries int64 `json:"deliveries"`
	Bytes      int64 `json:"bytes"`
	Refused    int64 `json:"refused"`
	Dead       int64 `json:"dead"`    // of deliveries that had been given up forwarding
	Waiting    int64 `json:"waiting"` // deliveries that were left whole, since they are not forwarded yet
}

func runPrune(ctx context.Context, c *command.Call, age string) error {
	before, err := command.OlderThan(age)
	if err != nil {
		return err
	}
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	var p inbox.PruneResult
	if db != nil {
		p, err = db.Retention.Prune(ctx, before)
	}
	if p.Deliveries == 0 && err != nil {
		return err
	}
	if p.Dead > 0 {
		c.IO.Note("of what had been given up forwarding, this can't be sent any more and is forgotten: %s", command.Plural(p.Dead, "delivery"))
	}
	if p.Waiting > 0 {
		c.IO.Note("left whole, since not forwarded yet: %s; `waybill listen` with the same --forward-to sends them, and --skip-backlog forgets them", command.Plural(p.Waiting, "delivery"))
	}
	return errors.Join(err, c.Out.Result(prunedJSON(p), "dropped %d bytes of %d deliveries, and %d refused ones", p.Bytes, p.Deliveries, p.Refused))
}
