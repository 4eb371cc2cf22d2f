// Package runs holds the commands about runs: what was sent, with which
// outcome, and how to continue it.
package runs

import (
	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

// New returns the group of commands about runs.
func New(f *command.Factory) *cobra.Command {
	group := &cobra.Command{
		Use:     "runs",
		GroupID: command.GroupOps,
		Short:   "List, continue and retry runs of create",
	}
	group.AddCommand(newList(f), newShow(f), newRows(f), newResume(f), newRetry(f), newDismiss(f))
	return group
}

func oneRun() cobra.PositionalArgs {
	return command.Exactly(1, "the ID of a run; list runs with `waybill runs list`")
}
