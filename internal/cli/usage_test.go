package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

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
