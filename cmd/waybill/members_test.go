package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// members TABLES COMMAND... runs a command of waybill with -o json, and looks each
// member that it prints up in tables of docs/output.md, their headings separated by
// semicolons; the first element of the result must have all that are never absent.
func members(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: members TABLES COMMAND...")
	}
	stream, command := "stdout", args[1:]
	if command[0] == "--stderr" {
		stream, command = "stderr", command[1:]
	}
	exitStatus(ts, append(append([]string{"waybill"}, command...), "-o", "json"))
	tables := outputTables(ts)
	found := 0
	for dec := json.NewDecoder(strings.NewReader(ts.ReadFile(stream))); ; {
		var v any
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			break
		}
		ts.Check(err)
		all, list := v.([]any)
		if !list {
			all = []any{v}
		}
		for _, v := range all {
			found++
			var wrong error
			for heading := range strings.SplitSeq(args[0], "; ") {
				if wrong = compareMembers(tables[heading], "", v); wrong == nil {
					break
				}
			}
			ts.Check(wrong)
		}
	}
	if found == 0 {
		ts.Fatalf("nothing was printed that has members")
	}
}

// documentedMember is a row of docs/output.md.
type documentedMember struct{ kind, absent string }

var (
	outputTable = regexp.MustCompile(`(?m)^## (.*)\n((?:\n|\|.*\n)*)`)
	outputRow   = regexp.MustCompile("(?m)^\\| `([^`]*)` \\| ([^|]*) \\| [^|]*\\| ([^|]*) \\|")
)

func outputTables(ts *testscript.TestScript) map[string]map[string]documentedMember {
	page, err := os.ReadFile("../../docs/output.md")
	ts.Check(err)
	tables := map[string]map[string]documentedMember{}
	for _, table := range outputTable.FindAllStringSubmatch(string(page), -1) {
		tables[table[1]] = map[string]documentedMember{}
		for _, row := range outputRow.FindAllStringSubmatch(table[2], -1) {
			tables[table[1]][row[1]] = documentedMember{row[2], row[3]}
		}
	}
	return tables
}

// compareMembers says what of v, whose place is prefix, a table lacks or calls otherwise.
func compareMembers(table map[string]documentedMember, prefix string, v any) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := compareMembers(table, prefix, e); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, value := range v {
			if err := compareMember(table, prefix, name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func compareMember(table map[string]documentedMember, prefix, name string, value any) error {
	place := prefix + name
	if _, single := table[place]; !single {
		place += "[]"
	}
	_, list := value.([]any)
	m, ok := table[place]
	switch {
	case !ok:
		return fmt.Errorf("docs/output.md lacks %s", place)
	case m.kind == "any", strings.HasPrefix(m.kind, "object of "), value == nil && (m.absent == "null" || strings.HasSuffix(place, "[]")):
		return nil
	case m.kind == "object like this one":
		return compareMembers(table, prefix, value)
	case list != strings.HasSuffix(place, "[]"), !list && !slices.Contains(kindsOf(value), m.kind):
		return fmt.Errorf("%s is %v, which docs/output.md calls %s", place, value, m.kind)
	}
	return compareMembers(table, place+".", value)
}

// kindsOf returns what docs/output.md may call a value.
func kindsOf(v any) []string {
	switch v.(type) {
	case string:
		return []string{"string", "time", "base64"}
	case bool:
		return []string{"boolean"}
	case float64:
		return []string{"integer", "number"}
	case map[string]any:
		return []string{"object"}
	}
	return nil
}
