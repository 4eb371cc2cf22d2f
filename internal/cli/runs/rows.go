package runs

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
)

type rowsOptions struct {
	Run    string
	States []string // empty for all
}

func newRows(f *command.Factory) *cobra.Command {
	var o rowsOptions
	cmd := &cobra.Command{
		Use:   "rows ID",
		Short: "List the rows of a run and their states",
		Long: `rows lists the rows of a run's input in order, with file, line, state and reason.

A rejected row is superseded if another number of its order was accepted since,
and dismissed after "waybill runs dismiss". Both are done; --state rejected does
not list them. In JSON the state of all three is rejected, with the members
superseded and dismissed.

The CSV can be fixed and passed to "waybill create"; create ignores its additional
columns.`,
		Example: command.Example("waybill runs rows 3 --state unknown", "waybill runs rows 3 --state rejected -o csv --out bad.csv"),
		Args:    oneRun(),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			o.Run = args[0]
			return runRows(ctx, c, o)
		}),
	}
	command.Choices(cmd.Flags(), &o.States, "state", "only rows in `STATE`, or in several separated by commas", view.RowStates()...)
	command.ColumnsFlag(cmd, view.RowColumns())
	return cmd
}

func runRows(ctx context.Context, c *command.Call, o rowsOptions) error {
	db, id, err := command.OpenRun(ctx, c.Session, o.Run)
	if err != nil {
		return err
	}
	return view.PrintRows(c, command.Filter(db.History.Rows(ctx, id), func(row ledger.Row) bool {
		return len(o.States) == 0 || slices.Contains(o.States, view.RowState(row))
	}, 0))
}
