// Package events has the commands that list, show, wait for, export, import and
// send deliveries and their events.
package events

import (
	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/replay"
)

// New returns the command group events.
func New(f *command.Factory) *cobra.Command {
	group := &cobra.Command{
		Use:   "events",
		Short: "List, replay and send events",
		Long:  "The inbox keeps every delivery that waybill listen received, byte for byte.",
	}
	group.AddCommand(
		newList(f), newShow(f), newDiff(f), newReplay(f), newSend(f), newWait(f),
		newExport(f), newImport(f), newReadmit(f),
	)
	return group
}

func sinceFlag(cmd *cobra.Command, since *string) {
	command.SinceFlag(cmd, since, "only what was received since `TIME`")
}

func afterFlag(cmd *cobra.Command, after *string) {
	cmd.Flags().StringVar(after, "after", "", "only what was recorded after the one with this `ID`, oldest first: "+
		"imported, readmitted and late verified ones too")
}

// parseAfter parses --after: a delivery and the position of an event in it. Both are 0 without the flag.
func parseAfter(id string) (delivery int64, index int, err error) {
	delivery, index, ok := replay.ParseNumber(id)
	if !ok && id != "" {
		hint := "an ID such as 12 or 12.2; begin without --after"
		err = command.Usagef(hint, "--after %q is not the number of an event", id)
	}
	return delivery, index, err
}

func filterFlag(cmd *cobra.Command, filter *string) {
	const usage = "only events that match `FILTER`, such as 'status=1,number=1Z*', and deliveries with one"
	cmd.Flags().StringVar(filter, "filter", "", usage)
}

func verifiedFlag(cmd *cobra.Command, verified *string) {
	results := []string{string(inbox.Yes), string(inbox.No), string(inbox.Unknown), string(inbox.Unsigned)}
	command.Choice(cmd.Flags(), verified, "verified", "", "only those with verification `RESULT`", results...)
}

func setFlag(cmd *cobra.Command, set *[]string) {
	const usage = "set a value in each event, `/POINTER=VALUE`: JSON, else a text; may be repeated"
	cmd.Flags().StringArrayVar(set, "set", nil, usage)
}

func deadFlag(cmd *cobra.Command, dead *bool) {
	cmd.Flags().BoolVar(dead, "dead", false, "deliveries that will not be forwarded any more")
}
