package cli

import (
	"github.com/spf13/cobra"
)

// bashWords makes the script for bash work without the package bash-completion, which
// puts words together that bash splits at = and colons, and completes names of files.
const bashWords = `
__waybill_init_completion()
{
    COMPREPLY=()
    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local i last=-1 word line=$COMP_LINE
    words=()
    cword=0
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $last -ge 1 && $line != [[:space:]]* && ($word == [=:]* || ${words[last]} == *[=:]) ]]; then
            words[last]+=$word
        else
            last=$((last + 1))
            words[last]=$word
        fi
        line=${line#*"$word"}
        [[ $i -eq $COMP_CWORD ]] && cword=$last
    done
    cur=${words[cword]}
    prev=${words[cword-1]}
    declare -F _filedir >/dev/null 2>&1 || eval '_filedir() { __waybill_files "$@"; }'
}

__waybill_files()
{
    local IFS=$'\n' types=${1%|}
    COMPREPLY=($(compgen -d -- "$cur"))
    if [[ $types != -d ]]; then
        COMPREPLY+=($(shopt -s extglob; compgen -f -X "${types:+!*.@($types)}" -- "$cur"))
    fi
    compopt -o filenames 2>/dev/null
}
`

const bashHelp = `Print the script that makes bash complete commands, flags and their values. The
package bash-completion is not needed.

In this shell:

  source <(waybill completion bash)

In every new shell, on Linux and on macOS:

  waybill completion bash > /etc/bash_completion.d/waybill
  waybill completion bash > $(brew --prefix)/etc/bash_completion.d/waybill

or, without bash-completion:

  echo 'source <(waybill completion bash)' >> ~/.bashrc`

// completeBash adds bashWords to the script that the command completion bash prints.
func completeBash(completion *cobra.Command) {
	for _, c := range completion.Commands() {
		if generate := c.RunE; c.Name() == "bash" {
			c.Long = bashHelp
			c.RunE = func(cmd *cobra.Command, args []string) error {
				if err := generate(cmd, args); err != nil {
					return err
				}
				_, err := cmd.OutOrStdout().Write([]byte(bashWords))
				return err
			}
		}
	}
}
