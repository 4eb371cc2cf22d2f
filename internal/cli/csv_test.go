package cli_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/sandbox"
)

// A header of CSV is the name of a member in JSON, and the cell has its value. Members that
// JSON leaves out where they are empty are named.
func TestCSVHasTheNamesOfJSON(t *testing.T) {
	url, _ := serveSandbox(t, sandbox.Config{})
	env := []string{"WAYBILL_BASE_URL=" + url, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + filepath.Join(t.TempDir(), "s.db")}
	if code := createOne(t, env, "A", "--wait"); code != command.OK {
		t.Fatalf("create: status %d", code)
	}
	for line, omitted := range map[string]string{
		"list":        "reason error superseded dismissed",
		"show A A":    "run reason error superseded dismissed",
		"runs list":   "",
		"runs show 1": "reason",
		"runs rows 1": "carrierCode superseded dismissed row",
		"create --refer-id A --tracking-number N1-A --dry-run": "",
		"observed":          "",
		"config list":       "",
		"config path":       "",
		"config profiles":   "",
		"signature schemes": "",
		"doctor --offline":  "",
	} {
		_, text, stderr := run(t, env, append(strings.Fields(line), "-o", "csv")...)
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(rows) < 2 {
			t.Errorf("%s: %d rows, %v: %s", line, len(rows), err, stderr)
			continue
		}
		_, text, _ = run(t, env, append(strings.Fields(line), "-o", "json")...)
		values := map[string][]string{}
		var all any
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%s: %v: %s", line, err, text)
		}
		collect(all, "", values)
		for i, name := range rows[0] {
			if !slices.Contains(strings.Fields(omitted), name) && values[name] == nil {
				t.Errorf("%s: JSON has no %s", line, name)
			}
			cell := rows[1][i]
			if _, err := time.Parse(time.RFC3339, cell); err == nil || strings.HasPrefix(cell, "/") {
				continue // times of waybill are in seconds, folders those of the test
			}
			if cell != "" && values[name] != nil && !slices.Contains(values[name], cell) {
				t.Errorf("%s: %s is %q; JSON has %q", line, name, cell, values[name])
			}
		}
	}
}

// collect adds the values of all members, by their names.
func collect(v any, name string, to map[string][]string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			collect(value, key, to)
		}
	case []any:
		for _, value := range v {
			collect(value, name, to)
		}
	case string:
		to[name] = append(to[name], v)
	default:
		to[name] = append(to[name], fmt.Sprint(v))
	}
}
