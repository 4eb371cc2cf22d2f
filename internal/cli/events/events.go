// Package events holds the commands about received deliveries and their events:
// what lists, shows, exports, imports, removes and sends them.
package events

import (
	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

// New returns the group of commands about events.
func New(f *command.Factory) *cobra.Command {
	group := &cobra.Command{
		Use:     "events",
		GroupID: command.GroupHook,
		Short:   "List, replay and send events",
		Long:    "The inbox keeps every delivery that waybill listen received, byte for byte.",
	}
	group.AddCommand(
		newList(f), newShow(f), newReplay(f), newSend(f), newWait(f),
		newExport(f), newImport(f), newPrune(f), newReadmit(f),
	)
	return group
}
