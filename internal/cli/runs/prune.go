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
		Long: `prune removes runs that are older than AGE: files, line numbers, requests and
responses. Rows and their states are kept, so create never sends them twice, and
list, show and wait do not change. Runs with pending, sending or unknown rows are
kept. Freed space in a file is reused; the file does not shrink.`,
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
		c.IO.Note("Kept %s with unfinished rows; list them with `waybill runs list`, continue one with `waybill runs resume ID`", command.Plural(p.Unfinished, "run"))
	}
	if p.Runs == 0 {
		return c.Out.Result(prunedJSON(p), "No runs to remove")
	}
	return errors.Join(err, c.Out.Result(prunedJSON(p), "Removed %s", command.Plural(p.Runs, "run")))
}
