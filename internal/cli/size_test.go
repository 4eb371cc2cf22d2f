package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/cli"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
)

// What a person has to learn. These numbers only go down, but for what was asked for.
const (
	mostCommands = 59
	mostFlags    = 137 // besides the global ones
	mostSettings = 40
)

func TestThereIsNoMoreToLearn(t *testing.T) {
	root := tree()
	commands, usages := 0, map[string]string{}
	walk(root, func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() {
			commands++
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if root.PersistentFlags().Lookup(f.Name) == nil {
				usages[f.Name] = f.Usage
			}
		})
	})
	for _, count := range []struct {
		what       string
		have, most int
	}{
		{"commands", commands, mostCommands},
		{"flags", len(usages), mostFlags},
		{"settings", len(config.Settings()), mostSettings},
	} {
		if count.have > count.most {
			t.Errorf("%d %s; want at most %d", count.have, count.what, count.most)
		}
	}
}

var quotedCommand = regexp.MustCompile("`waybill ([^`]+)`")

// Whoever types what earlier builds had gets one line that names what does the
// job now, and that command and its flags exist.
func TestReplacedWordsNameTheirReplacement(t *testing.T) {
	for typed, now := range cli.Replaced() {
		code, stdout, stderr := run(t, nil, append(strings.Fields(typed), "x")...)
		if code != command.Usage || stdout != "" || !strings.Contains(stderr, "hint: "+now) {
			t.Errorf("%s: status %d, stdout %q, stderr %q; want 2 and the hint %q", typed, code, stdout, stderr, now)
		}
		for _, quoted := range quotedCommand.FindAllStringSubmatch(now, -1) {
			words := strings.Fields(quoted[1])
			cmd, _, err := tree().Find(words)
			if err != nil || cmd == cmd.Root() {
				t.Errorf("%s: no command %q", typed, quoted[1])
				continue
			}
			for _, word := range words {
				if name, isFlag := strings.CutPrefix(word, "--"); isFlag && cmd.Flags().Lookup(name) == nil {
					t.Errorf("%s: %s has no flag %s", typed, cmd.CommandPath(), word)
				}
			}
		}
	}
}
