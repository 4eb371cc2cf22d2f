package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
)

func (r *runner) runsPrune() *cobra.Command {
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
		Example: example("waybill runs prune --older-than 90d"),
		Args:    cobra.NoArgs,
		RunE: r.run(func(ctx context.Context, s *app.Session, _ []string) error {
			before, err := olderThan(age)
			if err != nil {
				return err
			}
			return r.runPruneRuns(ctx, s, before)
		}),
	}
	olderThanFlag(cmd, &age)
	return cmd
}

func olderThanFlag(cmd *cobra.Command, age *string) {
	cmd.Flags().StringVar(age, "older-than", "", "`AGE` such as 30d")
}

// olderThan reads --older-than: the time before which things are old.
func olderThan(age string) (time.Time, error) {
	old, err := config.ParseDuration(age)
	if err != nil {
		return time.Time{}, usagef("such as --older-than 30d", "--older-than: %v", err)
	}
	return time.Now().Add(-old), nil
}

// prunedRunsJSON is what a prune came to.
type prunedRunsJSON struct {
	Runs       int64 `json:"runs"`
	Unfinished int64 `json:"unfinished"` // old runs that were kept, since not every row has an outcome
}

func (r *runner) runPruneRuns(ctx context.Context, s *app.Session, before time.Time) error {
	db, err := s.ExistingStore(ctx)
	if err != nil {
		return err
	}
	var p ledger.PrunedRuns
	if db != nil {
		p, err = db.PruneRuns(ctx, before)
	}
	if p.Runs == 0 && err != nil {
		return err
	}
	if p.Unfinished > 0 {
		s.IO.Note("kept, since not every row has an outcome: %s; `waybill runs list` shows them, and `waybill runs resume ID` continues one", plural(p.Unfinished, "run"))
	}
	if r.out.machine() {
		return errors.Join(err, r.out.object(prunedRunsJSON(p)))
	}
	return errors.Join(err, r.out.line("removed %s", plural(p.Runs, "run")))
}
