package cli

import (
	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/complete"
)

// newCompletion returns the command that prints the scripts for shells.
func newCompletion() *cobra.Command {
	group := &cobra.Command{
		Use:     "completion SHELL",
		GroupID: command.GroupRest,
		Short:   "Print a script that makes the shell complete commands",
		Long: `Print the script that makes a shell complete commands, flags and their values.
The help of each shell says how to load its script.`,
	}
	for _, s := range complete.Shells() {
		cmd := &cobra.Command{
			Use:   s.Name,
			Short: "Print the script for " + s.Name,
			Long:  "Print the script that makes " + s.Name + " complete commands, flags and their values.\n\n" + s.Help,
		}
		bare := cmd.Flags().Bool("no-descriptions", false, "show values without descriptions")
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			script, err := s.Script(!*bare)
			if err == nil {
				_, err = cmd.OutOrStdout().Write(script)
			}
			return err
		}
		group.AddCommand(cmd)
	}
	return group
}
