package cli_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

// The command that continues one has every flag that was given, whatever the command.
func TestNextCommandKeepsEveryFlag(t *testing.T) {
	walk(tree(), func(cmd *cobra.Command) {
		if err := cmd.ParseFlags([]string{"ARG"}); err != nil { // takes in the global flags
			t.Fatal(err)
		}
		var want []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			values := []string{f.NoOptDefVal, "1", "1s", "a=b", "2026-01-01", "status", "1,2", "x:1"}
			if c, ok := f.Value.(command.Chooser); ok {
				values = c.Choices()
			}
			if !slices.ContainsFunc(values, func(v string) bool { return v != "" && cmd.Flags().Set(f.Name, v) == nil }) {
				t.Errorf("%s: --%s takes none of %q", cmd.CommandPath(), f.Name, values)
			}
			want = append(want, cmp.Or(f.Shorthand, "-"+f.Name))
		})
		got := strings.Fields((&command.Call{Cmd: cmd}).Again(nil))
		for _, name := range want {
			if !slices.ContainsFunc(got, func(word string) bool { flag, _, _ := strings.Cut(word, "="); return flag == "-"+name }) {
				t.Errorf("%s: no -%s in %q", cmd.CommandPath(), name, got)
			}
		}
		if !slices.Contains(got, "ARG") {
			t.Errorf("%s: no argument in %q", cmd.CommandPath(), got)
		}
	})
}
