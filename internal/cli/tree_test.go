package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
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
	var out, errs bytes.Buffer
	home := t.TempDir()
	a := &app.App{
		IO: term.New(strings.NewReader(""), &out, &errs, term.Facts{}),
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

func TestSecretsHaveNoFlag(t *testing.T) {
	for _, args := range [][]string{{"create", "--api-key", "x"}, {"listen", "--webhook-secret", "x"}, {"sandbox", "--key", "x"}} {
		if code, _, _ := run(t, nil, args...); code != command.Usage {
			t.Errorf("%v: status %d; want 2", args, code)
		}
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
