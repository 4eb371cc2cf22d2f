// Package track has the commands that show, await and list trackings.
package track

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
)

type showOptions struct {
	refOptions
	Timeline, Refresh bool
}

// NewShow returns the command that asks the service about trackings.
func NewShow(f *command.Factory) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show REF...|--from FILE|--run ID",
		Short: "Show status and timeline of trackings",
		Long: `Ask the service about each REF and show its status and timeline. A REF is your
own identifier of the shipment, or a tracking number that you created.

One REF prints a header and its timeline. Several REFs, --from FILE and filters
such as --run print one row each, and a summary on standard error; --timeline
prints the timeline of each.

Rejected rows are shown with the service's reason and not queried. If --from or a
filter is interrupted, re-run the same command to continue.

If a verified event is newer than the service's answer, by the latest checkpoint
or the time of the last update, the event is shown and a note says so; in JSON,
olderAnswer has what the service answered.

Timelines mark errors: a local time that no time zone explains, a checkpoint that
is repeated, an impossible time. JSON has them in anomalies.`,
		Example: command.Example("waybill show ORD-1001", "waybill show 1Z999AA10123456784 --by tracking-number",
			"waybill show ORD-1 ORD-2 -o json", "waybill show --from open-orders.csv -o csv --out status.csv",
			"waybill show --updated ..48h"),
		RunE: f.WithArgs(&o.Refs, func(ctx context.Context, c *command.Call) error { return runShow(ctx, c, o) }),
	}
	o.flags(cmd)
	refreshFlag(cmd.Flags(), &o.Refresh)
	const usage = "print the timeline of each REF; with -o csv a row for each checkpoint"
	cmd.Flags().BoolVar(&o.Timeline, "timeline", false, usage)
	command.ColumnsFlag(cmd, view.StatusFormatter{}.AnswerColumns(view.Reader{}))
	command.ColumnsWith(cmd, "timeline", stopColumns(1))
	return cmd
}

func runShow(ctx context.Context, c *command.Call, o showOptions) error {
	if err := o.check(c.Cmd); err != nil {
		return err
	}
	all, err := o.targets(ctx, c)
	if err != nil {
		return err
	}
	defer all.close()
	p, err := newPrinter(c, printer{single: o.single(), timeline: o.Timeline})
	if err != nil {
		return err
	}
	a, err := newQueryRun(ctx, c, all, p.add)
	if err != nil {
		return err
	}
	a.restart = o.Refresh
	s := a.scheduler(ctx)
	s.Whole = true
	stop, err := a.sweep(ctx, s, all, o.selection())
	if err != nil {
		return err
	}
	next := c.Again([]string{"refresh"}) // which would begin anew
	var failed error
	switch {
	case p.single && p.only != nil && p.only.Unfinished && stop != nil && !command.As[*command.SignalError](stop):
		code, hint := command.CodeAndHint(stop)
		err := fmt.Errorf("%s: %w", command.Quoted(p.only.Result.Ref), stop)
		failed = &command.ExitError{Code: code, Err: err, Hint: hint, Next: next}
	case a.tally.all == 0 && stop == nil:
		failed = noteNothing(ctx, c, &o.filterOptions)
	default:
		failed = a.exitError(stop, a.notChecked, next)
	}
	return errors.Join(p.end(failed), failed)
}

func runName(id int64) string { return strconv.FormatInt(id, 10) }
