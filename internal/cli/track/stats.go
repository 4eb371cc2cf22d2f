package track

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

// NewStats returns the command that counts trackings.
func NewStats(f *command.Factory) *cobra.Command {
	var o filterOptions
	cmd := &cobra.Command{
		Use:     "stats",
		GroupID: command.GroupOps,
		Short:   "Count trackings by status, carrier, age and transit time",
		Long: `stats counts what this computer knows of your trackings: by status, carrier, age,
transit time and first run. It does not query the service; "waybill list --refresh" does.
Filters select a part.

The age of a tracking is the time since its first run, the one that created it; --run
selects the whole input of a run, also trackings of earlier runs. The transit time
is the time from the first to the last checkpoint of a delivered tracking, in whole
days; it is known after a response or an event with its checkpoints.

A terminal shows the sums as bars, JSON as plain numbers: "days" are whole days,
"median" and "p90" are the days within which 50 % and 90 % arrived.`,
		Example: command.Example("waybill stats", "waybill stats --carrier dhl", "waybill stats --run 12 -o json", "waybill stats --jq '.transitDays.median'"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			_, filter, err := o.filter(ctx, c)
			if err != nil {
				return err
			}
			l := listing{call: c, filter: filter, words: o.words()}
			return l.printSums(ctx)
		}),
	}
	cmd.Flags().SortFlags = false
	o.flags(cmd)
	command.ColumnsFlag(cmd, sumColumns())
	return cmd
}
