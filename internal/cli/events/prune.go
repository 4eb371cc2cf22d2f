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
		Short: "Remove the raw bytes of old deliveries",
		Long: `prune removes headers and bodies of deliveries that are older than AGE, and
refused deliveries. Number, kind, status and eventId are kept, so no event counts
twice. Pruned deliveries can't be verified, shown completely or replayed.
Deliveries that are not forwarded yet are kept; those given up can't be sent any
more. Freed space in a file is reused; the file does not shrink.`,
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
		if err := db.Observer().CatchUp(ctx); err != nil { // while the bytes are there
			return err
		}
		p, err = db.Retention.Prune(ctx, before)
	}
	if p.Deliveries == 0 && err != nil {
		return err
	}
	if p.Dead > 0 {
		c.IO.Note("Pruned after forwarding was given up, can't be sent any more: %s", command.Plural(p.Dead, "delivery"))
	}
	if p.Waiting > 0 {
		c.IO.Note("Kept, not forwarded yet: %s; `waybill listen` with the same --forward-to sends them, --skip-backlog drops them", command.Plural(p.Waiting, "delivery"))
	}
	return errors.Join(err, c.Out.Result(prunedJSON(p), "Removed %s of %s, and %s", command.Plural(p.Bytes, "byte"), command.Plural(p.Deliveries, "delivery"), command.Plural(p.Refused, "refused delivery")))
}
