package helptest

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/complete"
)

func TestEveryGroupRefusesAnUnknownWord(t *testing.T) {
	groups := 0
	command.Walk(tree(), func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() {
			return
		}
		groups++
		code, stdout, stderr := run(t, append(words(cmd), "bogusword")...)
		refused := strings.Contains(stderr, "bogusword") && strings.Contains(stderr, "hint: ")
		if code != command.Usage || stdout != "" || !refused {
			t.Errorf("%s bogusword: status %d, stdout %q, stderr %q; want 2, nothing, and a hint",
				cmd.CommandPath(), code, stdout, stderr)
		}
	})
	if groups < 5 {
		t.Errorf("%d groups found; the tree is not what it was", groups)
	}
}

func TestEveryCommandRefusesAnUnknownFlagAndExplainsItself(t *testing.T) {
	command.Walk(tree(), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		code, stdout, stderr := run(t, append(words(cmd), "--bogus-flag")...)
		if code != command.Usage || stdout != "" || !strings.Contains(stderr, "bogus-flag") {
			t.Errorf("%s --bogus-flag: status %d, stdout %q, stderr %q", path, code, stdout, stderr)
		}
		code, stdout, _ = run(t, append(words(cmd), "--help")...)
		if code != command.OK || !strings.Contains(stdout, "Usage:") {
			t.Errorf("%s --help: status %d, stdout %.80q", path, code, stdout)
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: short help %q", path, cmd.Short)
		}
		if !cmd.HasSubCommands() && cmd.Example == "" && path != "waybill help" {
			t.Errorf("%s has no example", path)
		}
	})
}

// The value of a flag has a name in capitals, and the name stands in its help or
// explains itself.
func TestFlagsNameTheirValues(t *testing.T) {
	command.Walk(tree(), func(cmd *cobra.Command) {
		if len(cmd.Short) > 60 {
			t.Errorf("%s: %d characters in %q; want 60 at most", cmd.CommandPath(), len(cmd.Short), cmd.Short)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			value, help := command.FlagText(f)
			named := value != "" && value == strings.ToUpper(value)
			if f.Value.Type() != "bool" && !named && !strings.Contains(value, "=") && !strings.Contains(value, ": VALUE") {
				t.Errorf("%s: --%s %q %q; want the name of its value in capitals", cmd.CommandPath(), f.Name, value, help)
			}
		})
	})
}

// Commands whose usage line has no argument refuse one, and say so.
func TestArgumentsThatAreNotTaken(t *testing.T) {
	command.Walk(tree(), func(cmd *cobra.Command) {
		if cmd.HasSubCommands() || len(command.Arguments(cmd)) > 0 {
			return
		}
		code, stdout, stderr := run(t, append(words(cmd), "extra")...)
		want := ": " + strings.Join(words(cmd), " ") + ` takes no arguments: "extra"`
		if code != command.Usage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s extra: status %d, stdout %q, stderr %q", cmd.CommandPath(), code, stdout, stderr)
		}
	})
}

// The value of every flag, and every argument, is of a kind that completion knows,
// even if it is one that nobody but the user can know.
func TestEveryValueHasAKindForCompletion(t *testing.T) {
	root := tree()
	complete.Install(root, &app.App{})
	command.Walk(root, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, known := cmd.GetFlagCompletionFunc(f.Name); !known && f.Value.Type() != "bool" {
				t.Errorf("%s: nothing says what completes --%s", cmd.CommandPath(), f.Name)
			}
		})
		if !cmd.HasSubCommands() && cmd.ValidArgsFunction == nil {
			t.Errorf("%s: nothing says what completes its arguments %q", cmd.CommandPath(), command.Arguments(cmd))
		}
	})
}

// tableless are the commands that print no table, or one thing of which a table is a part.
var tableless = []string{
	"api", "completion",
	"auth login", "auth logout", "auth status",
	"config edit", "config get", "config set", "config unset", "init", "config use",
	"demo", "doctor", "events export", "events import",
	"events readmit", "events show", "help", "inspect", "listen", "report", "runs dismiss", "sandbox",
	"signature explain", "signature learn", "signature promote",
	"store backup", "store check", "store copy", "store erase", "store path", "store prune", "store reset",
	"store restore", "store schema", "version",
}

// Every command that prints a table takes --columns, and its help topic names them.
func TestEveryTableHasColumns(t *testing.T) {
	_, page, _ := run(t, "help", "output")
	page = strings.Join(strings.Fields(page), " ")
	command.Walk(tree(), func(cmd *cobra.Command) {
		if cmd.HasSubCommands() || cmd.Hidden {
			return
		}
		line := strings.Join(words(cmd), " ")
		names, has := command.ColumnNames(cmd), cmd.Flags().Lookup("columns") != nil
		if slices.Contains(tableless, line) {
			if has || len(names) > 0 {
				t.Errorf("%s: it has --columns, so it prints a table: %v", line, names)
			}
			return
		}
		if !has || len(names) == 0 {
			t.Errorf("%s: no --columns: declare them with command.ColumnsFlag, or say here that it prints no table", line)
		}
		if !strings.Contains(page, strings.Join(names, ", ")) {
			t.Errorf("waybill help output does not name the columns of %s: %v", line, names)
		}
		for i, name := range names {
			if name != strings.ToLower(name) || strings.ContainsAny(name, " _") || slices.Contains(names[:i], name) {
				t.Errorf("%s: column %q", line, name)
			}
		}
		if code, _, stderr := run(t, append(words(cmd), "--columns", "nonsense")...); code != command.Usage {
			t.Errorf("%s --columns nonsense: %d: %s", line, code, stderr)
		}
		if code, _, stderr := run(t, append(words(cmd), "--columns", names[0], "-o", "json")...); code != command.Usage {
			t.Errorf("%s --columns %s -o json: %d: %s", line, names[0], code, stderr)
		}
	})
}
