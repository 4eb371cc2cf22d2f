package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/complete"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/term"
)

// run runs one command line with a home of its own and nothing of the
// machine's environment.
func run(t *testing.T, env []string, args ...string) (code command.Code, stdout, stderr string) {
	t.Helper()
	return runIn(t, term.Facts{}, env, args...)
}

// runWide returns what a command line prints on a terminal of some width.
func runWide(t *testing.T, width int, args ...string) string {
	t.Helper()
	_, out, _ := runIn(t, term.Facts{OutTerminal: true, Env: map[string]string{"COLUMNS": strconv.Itoa(width)}}, nil, args...)
	return out
}

func runIn(t *testing.T, facts term.Facts, env []string, args ...string) (code command.Code, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	home := t.TempDir()
	a := &app.App{
		IO: term.New(strings.NewReader(""), &out, &errs, facts),
		Getenv: func(name string) string {
			for _, line := range env {
				if value, ok := strings.CutPrefix(line, name+"="); ok {
					return value
				}
			}
			return ""
		},
		Sources: func(flags []config.Flag) config.Sources {
			return config.Sources{Flags: flags, Env: env, WorkDir: home, Home: home}
		},
	}
	code = cli.Run(t.Context(), a, args)
	return code, out.String(), errs.String()
}

// walk calls do for every command of the tree.
func walk(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, c := range cmd.Commands() {
		walk(c, do)
	}
}

func tree() *cobra.Command {
	return cli.Tree(&app.App{IO: term.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, term.Facts{})})
}

func words(cmd *cobra.Command) []string { return strings.Fields(cmd.CommandPath())[1:] }

// A command that is made alone is the one that is made with all others.
func TestCommandsMadeAloneAreTheSame(t *testing.T) {
	for _, cmd := range tree().Commands() {
		_, among, _ := run(t, nil, "help", cmd.Name())
		_, alone, _ := run(t, nil, cmd.Name(), "--help")
		if alone == "" || alone != among {
			t.Errorf("help of %s alone and among others differs:\n%s\n%s", cmd.Name(), alone, among)
		}
	}
}

func TestEveryGroupRefusesAnUnknownWord(t *testing.T) {
	groups := 0
	walk(tree(), func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() {
			return
		}
		groups++
		code, stdout, stderr := run(t, nil, append(words(cmd), "bogusword")...)
		if code != command.Usage || stdout != "" || !strings.Contains(stderr, "bogusword") || !strings.Contains(stderr, "hint: ") {
			t.Errorf("%s bogusword: status %d, stdout %q, stderr %q; want 2, nothing, and a hint", cmd.CommandPath(), code, stdout, stderr)
		}
	})
	if groups < 5 {
		t.Errorf("%d groups found; the tree is not what it was", groups)
	}
}

func TestEveryCommandRefusesAnUnknownFlagAndExplainsItself(t *testing.T) {
	walk(tree(), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		code, stdout, stderr := run(t, nil, append(words(cmd), "--bogus-flag")...)
		if code != command.Usage || stdout != "" || !strings.Contains(stderr, "bogus-flag") {
			t.Errorf("%s --bogus-flag: status %d, stdout %q, stderr %q", path, code, stdout, stderr)
		}
		code, stdout, _ = run(t, nil, append(words(cmd), "--help")...)
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

func TestHelpFitsEightyColumns(t *testing.T) {
	pages := [][]string{{"help", "flags"}, {"help", "exit-codes"}, {"help", "environment"}, {"help", "input"}, {"help", "rows"}, {"help", "output"}}
	walk(tree(), func(cmd *cobra.Command) {
		if !strings.HasPrefix(cmd.CommandPath(), "waybill completion") {
			pages = append(pages, append(words(cmd), "--help"))
		}
	})
	for _, args := range pages {
		_, stdout, _ := run(t, nil, args...)
		if stdout == "" {
			t.Errorf("%v says nothing", args)
		}
		for line := range strings.Lines(stdout) {
			if len(line) > 81 && !strings.HasPrefix(line, "  waybill ") { // examples are for copying
				t.Errorf("%v: %d columns: %s", args, len(line)-1, line)
			}
		}
	}
}

func TestErrorsAreJSONWhenJSONWasAskedFor(t *testing.T) {
	for _, args := range [][]string{
		{"list", "-o", "json", "--bogus"},
		{"list", "-ojsonl", "--bogus"},
		{"bogus", "--json"},
		{"show", "A", "--output=json"},
		{"create", "nofile.csv", "-o", "json"},
		{"runs", "show", "9", "-o", "json"},
		{"list", "-o", "json", "--jq", ".["},
	} {
		code, stdout, stderr := run(t, nil, args...)
		if code == command.OK || stdout != "" {
			t.Errorf("%v: status %d, stdout %q", args, code, stdout)
		}
		lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
		var last struct{ Type, Code, Message string }
		for _, line := range lines {
			if err := json.Unmarshal([]byte(line), &last); err != nil {
				t.Errorf("%v: stderr line %q: %v", args, line, err)
			}
		}
		if last.Type != "error" || last.Code == "" || last.Message == "" {
			t.Errorf("%v: last line of stderr is %+v; want an error", args, last)
		}
	}
}

// What most need of create is on the first screen of its help.
func TestCreateHelpBeginsWithFewFlags(t *testing.T) {
	_, help, _ := run(t, nil, "create", "--help")
	_, flags, _ := strings.Cut(help, "\nFlags:\n")
	first, rest, found := strings.Cut(flags, "\nAdvanced:\n")
	if n := strings.Count("\n"+first, "\n  -") + strings.Count("\n"+first, "\n      --"); n == 0 || n > 12 || !found || !strings.Contains(rest, "--settle") {
		t.Errorf("%d flags, then %q; want at most 12 and then Advanced", n, rest)
	}
}

func TestSecretsHaveNoFlag(t *testing.T) {
	for _, args := range [][]string{{"create", "--api-key", "x"}, {"listen", "--webhook-secret", "x"}, {"sandbox", "--key", "x"}} {
		if code, _, _ := run(t, nil, args...); code != command.Usage {
			t.Errorf("%v: status %d; want 2", args, code)
		}
	}
}

func TestTheReadmeHasTheTableOfExitStatuses(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, help, _ := run(t, nil, "help", "exit-codes")
	help = strings.Join(strings.Fields(help), " ") // as if it were not wrapped
	n := 0
	for line := range strings.Lines(string(readme)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || strings.HasPrefix(line, "| code") {
			continue
		}
		n++
		code, word, meaning := strings.TrimPrefix(cells[0], "| "), cells[1], strings.TrimSuffix(strings.TrimSpace(cells[2]), " |")
		want := strings.Join(strings.Fields(code+" "+word+" "+meaning), " ")
		if !strings.Contains(help, " "+want+" ") {
			t.Errorf("README says %s %s %q; `waybill help exit-codes` does not", code, word, meaning)
		}
	}
	if n != 14 {
		t.Errorf("%d statuses in the README; want 14", n)
	}
}

func TestCompletionsAreUpToDate(t *testing.T) {
	for shell, file := range map[string]string{"bash": "waybill.bash", "zsh": "_waybill", "fish": "waybill.fish", "powershell": "waybill.ps1"} {
		want, err := os.ReadFile(filepath.Join("..", "..", "completions", file))
		if err != nil {
			t.Errorf("%v; run `make completions`", err)
			continue
		}
		code, got, stderr := run(t, nil, "completion", shell)
		if code != command.OK || got != string(want) {
			t.Errorf("completion %s (status %d, %s) is not completions/%s; run `make completions`", shell, code, stderr, file)
		}
	}
}

// No script gives what is typed, or what the store holds, to the shell to run.
func TestCompletionScriptsEvaluateNothing(t *testing.T) {
	for _, shell := range complete.Shells() {
		_, script, _ := run(t, nil, "completion", shell.Name)
		for line := range strings.Lines(script) {
			code, _, _ := strings.Cut(line, "# ")
			for _, word := range []string{"eval", "Invoke-Expression", "iex ", "compgen -W"} {
				if strings.Contains(code, word) {
					t.Errorf("%s: %s", shell.Name, line)
				}
			}
		}
	}
}

func TestBuildingTheTreeReadsNothing(t *testing.T) {
	a := &app.App{
		IO:      term.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, term.Facts{}),
		Sources: func([]config.Flag) config.Sources { t.Error("settings were read"); return config.Sources{} },
		Getenv:  func(string) string { t.Error("the environment was read"); return "" },
	}
	cli.Tree(a)
}

// tableless are the commands that print no table, or one thing of which a table is a part.
var tableless = []string{
	"api", "completion",
	"auth login", "auth logout", "auth status", "config edit", "config get", "config set", "config unset", "init", "config use",
	"demo", "doctor", "events export", "events import",
	"events readmit", "events show", "help", "inspect", "listen", "report", "runs dismiss", "sandbox",
	"signature explain", "signature learn", "signature promote",
	"store backup", "store check", "store copy", "store erase", "store path", "store prune", "store reset", "store restore", "store schema", "version",
}

// Every command that prints a table takes --columns, and its help topic names them.
func TestEveryTableHasColumns(t *testing.T) {
	_, page, _ := run(t, nil, "help", "output")
	page = strings.Join(strings.Fields(page), " ")
	walk(tree(), func(cmd *cobra.Command) {
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
		if code, _, stderr := run(t, nil, append(words(cmd), "--columns", "nonsense")...); code != command.Usage {
			t.Errorf("%s --columns nonsense: %d: %s", line, code, stderr)
		}
		if code, _, stderr := run(t, nil, append(words(cmd), "--columns", names[0], "-o", "json")...); code != command.Usage {
			t.Errorf("%s --columns %s -o json: %d: %s", line, names[0], code, stderr)
		}
	})
}
