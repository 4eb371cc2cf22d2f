package complete

import (
	"embed"
	"strings"

	"github.com/spf13/cobra"
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
		{"bash", "waybill.bash", `The package bash-completion is not needed.

In this shell:

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

// Script returns the script of a shell, with descriptions of values or without.
func (s Shell) Script(descriptions bool) ([]byte, error) {
	script, err := scripts.ReadFile("scripts/" + s.file)
	if descriptions || err != nil {
		return script, err
	}
	text := strings.ReplaceAll(string(script), "waybill "+cobra.ShellCompRequestCmd+" ", "waybill "+cobra.ShellCompNoDescRequestCmd+" ")
	return []byte(strings.ReplaceAll(text, `"${COMP_TYPE:-9}"`, "9")), nil
}
