package runs

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
)

func newPrune(f *command.Factory) *cobra.Command {
	var age string
	cmd := &cobra.Command{
		Use:   "prune --older-than AGE",
		Short: "Remove old runs",
		Long: `prune removes runs that were created longer than AGE ago: which file named which
row in which line, the requests, and the answers to them. What was sent stays:
every row with its state, so that a later create still knows it, and list, show
and wait tell the same of it. Runs with rows that are pending, being sent or of
unknown outcome are kept. The room is used for what comes next; the file does not
shrink.`,
		Example: command.Example("waybill runs prune --older-than 90d"),
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
	Runs       int64 `json:"runs"`
	Unfinished int64 `json:"unfinished"` // old runs that were kept, since not every row has an outcome
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
	var p ledger.PrunedRuns
	if db != nil {
		p, err = db.History.PruneRuns(ctx, before)
	}
	if p.Runs == 0 && err != nil {
		return err
	}
	if p.Unfinished > 0 {
		c.IO.Note("kept, since not every row has an outcome: %s; `waybill runs list` shows them, and `waybill runs resume ID` continues one", command.Plural(p.Unfinished, "run"))
	}
	return errors.Join(err, c.Out.Result(prunedJSON(p), "removed %s", command.Plural(p.Runs, "run")))
}
