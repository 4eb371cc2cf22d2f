package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/shell"
)

func flagError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return unknownWord(cmd, words) // flags of an unknown command are unknown too
	}
	hint := "run `" + cmd.CommandPath() + " --help` for its flags"
	var (
		unknown *pflag.NotExistError
		empty   *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown, hint)
	case errors.As(err, &empty):
		f := empty.GetFlag()
		value, _ := command.FlagText(f)
		return command.Usagef(hint, "--%s needs a value: --%s %s", f.Name, f.Name, value)
	case errors.As(err, &invalid):
		return command.Usagef(hint, "--%s %s", invalid.GetFlag().Name, command.InvalidValue(invalid))
	}
	return &command.UsageError{Err: err, Hint: hint}
}

// unknownFlag suggests a similar flag. A word with one hyphen may also be an argument.
func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError, hint string) error {
	name := err.GetSpecifiedName()
	if letters := err.GetSpecifiedShortnames(); letters != "" {
		if word := shell.Word("-" + letters); strings.Contains(cmd.Use, " ") {
			hint = "if " + word + " is an argument, put -- before it: `" + cmd.CommandPath() + " -- " + word + "`; else " + hint
		}
		return command.Usagef(hint, "unknown flag -%s in %s", name, command.Quoted("-"+letters))
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	if now := replacement(cmd, "--"+name); now != "" {
		hint = now
	} else if near := config.Nearest(name, known); near != "" {
		hint = "did you mean --" + near + "?"
	}
	return command.Usagef(hint, "unknown flag --%s", name)
}

// replaced maps commands and flags that earlier builds had or users look for to the command to use now. Keys begin with
// the path of the command or of its group.
var replaced = map[string]string{
	"compare":         "`waybill list --from FILE` lists the rows of a file with what is known of each",
	"probe":           "`waybill doctor --probe` finds out what the service answers",
	"support":         "`waybill doctor --bundle FILE` writes the archive for support",
	"profile":         "`waybill config profiles` lists profiles, `waybill config use NAME` chooses one",
	"runs prune":      pruneOnce,
	"events prune":    pruneOnce,
	"observed list":   "`waybill observed` lists everything",
	"observed diff":   observedOnce,
	"observed export": observedOnce,
	"signature sign": "`waybill events send` signs what it sends, " +
		"`waybill signature verify` checks a body and its headers",
	"signature schemes list": "`waybill signature schemes` lists them",
	"signature schemes show": "`waybill signature schemes` lists them",
	"signature schemes test": "`waybill signature verify` checks a body and its headers",
	"list --summary":         "`waybill stats` counts, with the filters of list",
	"report --html":          "give the file alone: `waybill report FILE`",
	"report --mask":          "filter the report with the filters of `waybill list`, or edit the page before you send it",
	"show --history": "`waybill events list --refer-id ID` lists every event; " +
		"`waybill show REF -o json` has the last response",
	"events export --redact":  "an export has deliveries as they came; `waybill events show` masks headers with secrets",
	"store erase --from":      eraseFlags,
	"store erase --receipt":   eraseFlags,
	"observed --undocumented": observedOnce,
	"observed --kind":         observedOnce,
	"auth login --from-file":  "use --api-key-file",
	"init --no-input":         "init asks only on a terminal: leave it out",
	"wait --all":              "wait waits for all of them: leave it out",
	"doctor --save":           "`waybill doctor --probe` prints the settings; `waybill config set` saves them",
	"--since":                 "--updated takes a range of time, such as 7d or 2026-11-01..2026-11-07",
	"--port":                  "--addr takes the port too, such as --addr 127.0.0.1:8080",
	"--stale":                 "--stuck=AGE takes what has not moved for that long, --updated ..AGE what was not updated",
	"--not-checked":           "use --status not-checked",
	"--state":                 "--status takes rejected, unknown and pending too",
	"--csv-raw":               "-o csv leaves cells as they are; --excel protects them",
	"--canary":                "--skip-proof sends without the checks of what responses mean",
	"events list --status":    "use --filter, such as --filter status=1",
	"listen --ack":            "leave it out: deliveries get 200 once stored, then sent until the target takes them",
	"events --drop":           faultsThatStay,
	"events --delay":          faultsThatStay,
	"events --skip":           faultsThatStay,
}

const (
	pruneOnce      = "`waybill store prune --older-than AGE` removes what is old, of runs and of deliveries"
	observedOnce   = "`waybill observed -o json --jq 'EXPR'` selects entries"
	eraseFlags     = "`waybill store erase` takes --refer-id, --tracking-number and --run"
	faultsThatStay = "--duplicate, --reorder and --corrupt-signature cause faults"
)

// replacement returns the entry of replaced for a word or flag that cmd does not have, or "".
func replacement(cmd *cobra.Command, word string) string {
	for ; cmd != nil; cmd = cmd.Parent() {
		if text := replaced[strings.Join(append(strings.Fields(cmd.CommandPath())[1:], word), " ")]; text != "" {
			return text
		}
		if !strings.HasPrefix(word, "--") {
			break
		}
	}
	return ""
}
