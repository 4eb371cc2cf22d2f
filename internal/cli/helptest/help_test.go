// Package helptest tests the form of every command and of its help. The tests need no store and no server, so .ci/quick
// runs them for each change below internal/cli.
package helptest

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/carriers"
	"github.com/waybill-cli/waybill/internal/cli"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/term"
)

// run runs a command line without settings, and returns its exit status and what it prints.
func run(t *testing.T, args ...string) (code command.Code, stdout, stderr string) {
	t.Helper()
	return runIn(t, term.Facts{}, args...)
}

// runWide returns what a command line prints on a terminal of some width.
func runWide(t *testing.T, width int, args ...string) string {
	t.Helper()
	_, out, _ := runIn(t, term.Facts{OutTerminal: true, Env: map[string]string{"COLUMNS": strconv.Itoa(width)}}, args...)
	return out
}

func runIn(t *testing.T, facts term.Facts, args ...string) (code command.Code, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	home := t.TempDir()
	a := &app.App{
		IO:     term.New(strings.NewReader(""), &out, &errs, facts),
		Getenv: func(string) string { return "" },
		Sources: func(flags []config.Flag) config.Sources {
			return config.Sources{Flags: flags, WorkDir: home, Home: home}
		},
	}
	code = cli.Run(t.Context(), a, args)
	return code, out.String(), errs.String()
}

func tree() *cobra.Command {
	return cli.Tree(&app.App{IO: term.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, term.Facts{})})
}

func words(cmd *cobra.Command) []string { return strings.Fields(cmd.CommandPath())[1:] }

// pages returns the command lines that print the topics and the help of every command.
func pages(t *testing.T) [][]string {
	t.Helper()
	var all [][]string
	topics := 0
	command.Walk(tree(), func(cmd *cobra.Command) {
		all = append(all, append(words(cmd), "--help"))
		if list, ok := strings.CutPrefix(cmd.Long, "Topics: "); ok {
			for topic := range strings.SplitSeq(strings.TrimSuffix(list, "."), ", ") {
				all = append(all, []string{"help", topic})
				topics++
			}
		}
	})
	if topics < 6 {
		t.Fatalf("%d topics of help; want 6 or more: %v", topics, all)
	}
	return all
}

// isCopied reports whether a page has commands for copying, which are not wrapped.
func isCopied(page []string) bool { return page[0] == "completion" }

func TestHelpOfWaybill(t *testing.T) {
	_, help, _ := run(t, "--help")
	for _, want := range []string{
		"\nHelp topics:\n", "\n  flags  ", "\n  exit-codes  ", "\nExamples:\n", "-h, --help", "-V, --version",
		"\nGlobal flags: waybill help flags\n",
	} {
		if !strings.Contains(help, want) {
			t.Errorf("waybill --help has no %q:\n%s", want, help)
		}
	}
	if n := strings.Count(help, "\n  waybill "); n != 4 { // its usage, and three examples
		t.Errorf("%d lines of commands in waybill --help; want 4:\n%s", n, help)
	}
}

// Global flags are explained once, and every command says where.
func TestGlobalFlagsAreShownOnce(t *testing.T) {
	_, all, _ := run(t, "help", "flags")
	tree().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(all, " --"+f.Name+" ") && !strings.Contains(all, " --"+f.Name+"[=") {
			t.Errorf("waybill help flags has no --%s", f.Name)
		}
	})
	command.Walk(tree(), func(cmd *cobra.Command) {
		_, help, _ := run(t, append(words(cmd), "--help")...)
		if strings.Count(help, "Global flags: waybill help flags\n") != 1 || strings.Contains(help, "--request-timeout ") {
			t.Errorf("%s --help has not one line about global flags:\n%s", cmd.CommandPath(), help)
		}
	})
}

// Help is legible on narrow and wide terminals: no line is wider, and no word stands
// alone where there is room for more.
func TestHelpFitsTheTerminal(t *testing.T) {
	for _, args := range pages(t) {
		if isCopied(args) {
			continue
		}
		for _, width := range []int{60, 80, 100} {
			help := runWide(t, width, args...)
			for line := range strings.Lines(help) {
				line = strings.TrimSuffix(line, "\n")
				if term.DisplayWidth(line) > width && !strings.HasPrefix(line, "  waybill ") {
					t.Errorf("%v at %d columns: %s", args, width, line)
				}
				if text := strings.TrimLeft(line, " "); text != "" && len(line)-len(text) > width/2 {
					t.Errorf("%v at %d columns leaves no room: %s", args, width, line)
				}
			}
		}
	}
}

func TestHelpFitsEightyColumns(t *testing.T) {
	for _, args := range pages(t) {
		if isCopied(args) {
			continue
		}
		_, stdout, _ := run(t, args...)
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

func TestHelpIsInAmericanSpelling(t *testing.T) {
	british := regexp.MustCompile(
		`(?i)\w*(colour|behaviour|honour|favour|recognis|organis|centre|licence|cancell(ed|ing))\w*`)
	for _, args := range pages(t) {
		if found := british.FindAllString(runWide(t, 100, args...), -1); found != nil {
			t.Errorf("%v: %q", args, found)
		}
	}
}

// A command that is made alone is the one that is made with all others.
func TestCommandsMadeAloneAreTheSame(t *testing.T) {
	for _, cmd := range tree().Commands() {
		_, among, _ := run(t, "help", cmd.Name())
		_, alone, _ := run(t, cmd.Name(), "--help")
		if alone == "" || alone != among {
			t.Errorf("help of %s alone and among others differs:\n%s\n%s", cmd.Name(), alone, among)
		}
	}
}

// What most need of create is on the first screen of its help.
func TestCreateHelpBeginsWithFewFlags(t *testing.T) {
	_, help, _ := run(t, "create", "--help")
	_, flags, _ := strings.Cut(help, "\nFlags:\n")
	first, rest, found := strings.Cut(flags, "\nAdvanced:\n")
	n := strings.Count("\n"+first, "\n  -") + strings.Count("\n"+first, "\n      --")
	if n == 0 || n > 12 || !found || !strings.Contains(rest, "--settle") {
		t.Errorf("%d flags, then %q; want at most 12 and then Advanced", n, rest)
	}
}

func TestTheReadmeHasTheTableOfExitStatuses(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, help, _ := run(t, "help", "exit-codes")
	help = strings.Join(strings.Fields(help), " ") // as if it were not wrapped
	n := 0
	for line := range strings.Lines(string(readme)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || strings.HasPrefix(line, "| code") {
			continue
		}
		n++
		code, word := strings.TrimPrefix(cells[0], "| "), cells[1]
		meaning := strings.TrimSuffix(strings.TrimSpace(cells[2]), " |")
		want := strings.Join(strings.Fields(code+" "+word+" "+meaning), " ")
		if !strings.Contains(help, " "+want+" ") {
			t.Errorf("README says %s %s %q; `waybill help exit-codes` does not", code, word, meaning)
		}
	}
	if n != 14 {
		t.Errorf("%d statuses in the README; want 14", n)
	}
}

func TestHelpNamesAllForms(t *testing.T) {
	_, help, _ := run(t, "help", "input")
	help = strings.Join(strings.Fields(help), " ")
	for _, checked := range []bool{true, false} {
		for _, row := range carriers.ByCarrier(func(f carriers.Form) bool { return f.Checked == checked }) {
			if !strings.Contains(help, " "+row[0]+" "+row[1]) {
				t.Errorf("waybill help input does not have the forms of %s: %s", row[0], row[1])
			}
		}
	}
}
