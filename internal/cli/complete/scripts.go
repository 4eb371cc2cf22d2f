package complete

import (
	"embed"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

//go:embed scripts
var scripts embed.FS

// Shell is a shell that can complete.
type Shell struct {
	Name, file string
	Help       string // how its script is loaded
}

// Shells are the shells with a script.
func Shells() []Shell {
	return []Shell{
		{"bash", "waybill.bash", `In this shell (the package bash-completion is not needed):

  source <(waybill completion bash)

In every new shell, on Linux and on macOS:

  waybill completion bash > /etc/bash_completion.d/waybill
  waybill completion bash > $(brew --prefix)/etc/bash_completion.d/waybill

or, without bash-completion:

  echo 'source <(waybill completion bash)' >> ~/.bashrc`},
		{"zsh", "waybill.zsh", `In this shell:

  source <(waybill completion zsh)

In every new shell, on Linux and on macOS:

  waybill completion zsh > "${fpath[1]}/_waybill"
  waybill completion zsh > $(brew --prefix)/share/zsh/site-functions/_waybill

If zsh completes nothing yet, turn completion on:

  echo "autoload -U compinit; compinit" >> ~/.zshrc`},
		{"fish", "waybill.fish", `In this shell:

  waybill completion fish | source

In every new shell:

  waybill completion fish > ~/.config/fish/completions/waybill.fish`},
		{"powershell", "waybill.ps1", `In this shell:

  . ([scriptblock]::Create((waybill completion powershell | Out-String)))

In every new shell, write the script to a file, and load it in your profile:

  waybill completion powershell > waybill.ps1
  Add-Content $PROFILE ". '$PWD\waybill.ps1'"`},
	}
}

// New returns the command that prints the script of a shell.
func New(*command.Factory) *cobra.Command {
	shells := Shells()
	names := make([]string, len(shells))
	var long strings.Builder
	long.WriteString("Print the script that makes a shell complete commands, flags and their values.")
	for i, s := range shells {
		names[i] = s.Name
		long.WriteString("\n\n" + strings.ToUpper(s.Name) + "\n\n" + s.Help)
	}
	return &cobra.Command{
		Use:       "completion SHELL",
		GroupID:   command.GroupRest,
		Short:     "Print a script that makes the shell complete commands",
		Long:      long.String(),
		Example:   command.Example("waybill completion bash", "waybill completion zsh"),
		ValidArgs: names,
		Args:      command.Exactly(1, "one SHELL: "+command.Or(names)),
		RunE: func(cmd *cobra.Command, args []string) error {
			i := slices.Index(names, args[0])
			if i < 0 {
				return command.Usagef("choose "+command.Or(names), "no script for the shell %s", command.Quoted(args[0]))
			}
			script, err := scripts.ReadFile("scripts/" + shells[i].file)
			if err == nil {
				_, err = cmd.OutOrStdout().Write(script)
			}
			return err
		},
	}
}
