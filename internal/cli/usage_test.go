package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/complete"
	"github.com/waybill-cli/waybill/internal/term"
)

func TestHelpOfWaybill(t *testing.T) {
	_, help, _ := run(t, nil, "--help")
	for _, want := range []string{"\nHelp topics:\n", "\n  flags  ", "\n  exit-codes  ", "\nExamples:\n", "-h, --help", "-V, --version", "\nGlobal flags: waybill help flags\n"} {
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
	_, all, _ := run(t, nil, "help", "flags")
	tree().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(all, " --"+f.Name+" ") && !strings.Contains(all, " --"+f.Name+"[=") {
			t.Errorf("waybill help flags has no --%s", f.Name)
		}
	})
	walk(tree(), func(cmd *cobra.Command) {
		_, help, _ := run(t, nil, append(words(cmd), "--help")...)
		if strings.Count(help, "Global flags: waybill help flags\n") != 1 || strings.Contains(help, "--request-timeout ") {
			t.Errorf("%s --help has not one line about global flags:\n%s", cmd.CommandPath(), help)
		}
	})
}

// Help is legible on narrow and wide terminals: no line is wider, and no word stands
// alone where there is room for more.
func TestHelpFitsTheTerminal(t *testing.T) {
	pages := [][]string{{"help", "environment"}, {"help", "exit-codes"}, {"help", "flags"}, {"help", "input"}, {"help", "output"}, {"help", "rows"}}
	walk(tree(), func(cmd *cobra.Command) {
		if !strings.HasPrefix(cmd.CommandPath(), "waybill completion") { // its text has commands to be copied
			pages = append(pages, append(words(cmd), "--help"))
		}
	})
	for _, width := range []int{60, 80, 100} {
		for _, args := range pages {
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

func TestHelpIsInAmericanSpelling(t *testing.T) {
	british := regexp.MustCompile(`(?i)\w*(colour|behaviour|honour|favour|recognis|organis|centre|licence|cancell(ed|ing))\w*`)
	pages := [][]string{{"help", "environment"}, {"help", "exit-codes"}, {"help", "flags"}, {"help", "input"}, {"help", "output"}, {"help", "rows"}}
	walk(tree(), func(cmd *cobra.Command) { pages = append(pages, append(words(cmd), "--help")) })
	for _, args := range pages {
		if found := british.FindAllString(runWide(t, 100, args...), -1); found != nil {
			t.Errorf("%v: %q", args, found)
		}
	}
}

func TestErrorsOfFlags(t *testing.T) {
	tests := []struct{ line, message, hint string }{
		{"list --statsu x", "unknown flag --statsu", "did you mean --status?"},
		{"list --jqq x", "unknown flag --jqq", "did you mean --jq?"},
		{"list --no-such-thing", "unknown flag --no-such-thing", "run `waybill list --help` for its flags"},
		{"show -x", `unknown flag -x in "-x"`, "if -x is an argument, put -- before it"},
		{"list --status", "--status needs a value", "run `waybill list --help`"},
		{"list --limit x", `--limit "x" is not a whole number`, "run `waybill list --help`"},
		{"list --limit 99999999999999999999", `--limit "99999999999999999999" is out of range`, ""},
		{"list --quiet=perhaps", `--quiet "perhaps" is not true or false`, ""},
		{"sandbox --seed -1", `--seed "-1" is not a whole number from 0 up`, ""},
		{"list -o jsn", `"jsn"`, "json?"},
		{"runs rows 3 --status rejected,accepte", `--status must be accepted, rejected, superseded, dismissed, unknown, pending or sending, not "accepte"`, "did you mean accepted?"},
		{"show A --by number", `--by must be refer-id or tracking-number, not "number"`, "run `waybill show --help` for its flags"},
		{"create a.csv --format yaml", `--format must be auto, xlsx, csv, tsv, json or jsonl, not "yaml"`, ""},
		{"lst", `unknown command "lst"`, "did you mean `waybill list`?"},
		{"runs shw 3", `unknown command "shw"`, "did you mean `waybill runs show`?"},
		{"help outputs", `unknown command "outputs" for "waybill"`, "run `waybill --help` for what there is"},
		{"help events lst", `unknown command "lst" for "waybill events"`, "did you mean `waybill events list`?"},
		{"help signature x y", `unknown command "x" for "waybill signature"`, "run `waybill signature --help` for what there is"},
		{"events list --columns given-up", `--columns: only --dead has the column "given-up"`, "add --dead, or choose from id, "},
		{"events list --pending --columns given-up", `--columns: only --dead has the column "given-up"`, "or choose from delivery, target, "},
		{"events list --columns xyz", `no column "xyz"`, "verified, delivery, event-id, event-time, status-number, status-label, status-track, reason, anomaly\n"},
		{"list -o xml", `must be table, json, jsonl, csv or xlsx, not "xml"`, ""},
		{"help runz", `unknown command "runz" for "waybill"`, "did you mean `waybill runs`?"},
	}
	for _, tt := range tests {
		code, stdout, stderr := run(t, nil, strings.Fields(tt.line)...)
		if code != command.Usage || stdout != "" || !strings.Contains(stderr, tt.message) || !strings.Contains(stderr, tt.hint) {
			t.Errorf("%s: status %d, stdout %q, stderr %q; want %q and %q", tt.line, code, stdout, stderr, tt.message, tt.hint)
		}
		for _, internal := range []string{"strconv", "parsing", "invalid syntax", "shorthand"} {
			if strings.Contains(stderr, internal) {
				t.Errorf("%s: %q speaks of %s", tt.line, stderr, internal)
			}
		}
	}
}

// The value of a flag has a name in capitals, and the name stands in its help or
// explains itself.
func TestFlagsNameTheirValues(t *testing.T) {
	walk(tree(), func(cmd *cobra.Command) {
		if len(cmd.Short) > 60 {
			t.Errorf("%s: %d characters in %q; want 60 at most", cmd.CommandPath(), len(cmd.Short), cmd.Short)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			value, help := command.FlagText(f)
			if f.Value.Type() != "bool" && (value == "" || value != strings.ToUpper(value)) && !strings.Contains(value, "=") && !strings.Contains(value, ": VALUE") {
				t.Errorf("%s: --%s %q %q; want the name of its value in capitals", cmd.CommandPath(), f.Name, value, help)
			}
		})
	})
}

// Commands whose usage line has no argument refuse one, and say so.
func TestArgumentsThatAreNotTaken(t *testing.T) {
	walk(tree(), func(cmd *cobra.Command) {
		if cmd.HasSubCommands() || len(command.Arguments(cmd)) > 0 {
			return
		}
		code, stdout, stderr := run(t, nil, append(words(cmd), "extra")...)
		if code != command.Usage || stdout != "" || !strings.Contains(stderr, ": "+strings.Join(words(cmd), " ")+` takes no arguments: "extra"`) {
			t.Errorf("%s extra: status %d, stdout %q, stderr %q", cmd.CommandPath(), code, stdout, stderr)
		}
	})
}

// The value of every flag, and every argument, is of a kind that completion knows,
// even if it is one that nobody but the user can know.
func TestEveryValueHasAKindForCompletion(t *testing.T) {
	root := tree()
	complete.Install(root, &app.App{})
	walk(root, func(cmd *cobra.Command) {
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

// Who asks for JSON has errors as JSON too, however early they come, and each says what
// kind of mistake it was.
func TestErrorsAreJSONHoweverEarlyTheyCome(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"bad.csv": "referId,rawTrackingNumber\nA,\n", "typo.yaml": "colour: red\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store := "WAYBILL_STORE=" + filepath.Join(dir, "s.db")
	for _, tt := range []struct{ line, reason string }{
		{"show --bogus", "arguments"},
		{"shwo A1", "arguments"},
		{"runs lst", "arguments"},
		{"show A1 --timeout soon", "arguments"},
		{"check " + filepath.Join(dir, "bad.csv"), "input"},
		{"show A1 --config " + filepath.Join(dir, "typo.yaml"), "setting"},
		{"show A1", "setting"}, // base_url is missing
	} {
		for _, ask := range []struct {
			env  []string
			line string
		}{
			{[]string{"WAYBILL_OUTPUT=json"}, tt.line},
			{[]string{"WAYBILL_OUTPUT=jsonl"}, tt.line},
			{nil, tt.line + " --jq ."},
			{nil, "--jq=. " + tt.line},
			{nil, tt.line + " -qo json"},
		} {
			code, _, stderr := run(t, append(ask.env, store), strings.Fields(ask.line)...)
			if want := `{"type":"error","code":"usage","reason":"` + tt.reason + `",`; code != command.Usage || !strings.Contains(stderr, want) {
				t.Errorf("%v %s: %d %s; want %s", ask.env, ask.line, code, stderr, want)
			}
		}
	}
}
