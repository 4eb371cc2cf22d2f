//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	visible "github.com/waybill-cli/waybill/internal/term"
)

// newListed is a world with 70 trackings of two carriers, one of which has a hostile
// code.
func newListed(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "--processing", "0s")
	file := filepath.Join(w.home, "orders.csv")
	text := "referId,rawTrackingNumber,carrierCode\n"
	for i := range 70 {
		text += fmt.Sprintf("ORD-%03d,9400100000000000%03d7,%s\n", i+1, i, []string{"dhl", "国\u202e際"}[i%2])
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run("create", file, "-q")
	return w
}

// A list on a terminal has 50 rows, how many more there are, and a sum of all; in a
// pipe it has all.
func TestListOnTerminals(t *testing.T) {
	w := newListed(t)
	for _, tt := range []struct {
		args string
		rows int
		more string // below the rows
	}{
		{"list", 50, "… and 20 more: --limit 0 shows all, -o csv --out FILE writes all\n70 trackings: 70 not checked yet"},
		{"list --limit 7 --sort -reference", 7, "… and 63 more: --limit 0 shows all, --limit 0 -o csv --out FILE writes all\n70 trackings: 70 not checked yet"},
		{"list --limit 0", 70, "70 trackings: 70 not checked yet"},
		{"list --refer-id ORD-01*", 10, "10 trackings: 10 not checked yet"},
		{"list --limit 50 --carrier dhl", 35, "35 trackings: 35 not checked yet"},
	} {
		for _, columns := range []uint16{60, 80, 100, 140} {
			code, raw := w.terminal(columns, strings.Fields(tt.args)...)
			lines, _ := drawn(t, raw)
			shown := strings.Join(lines, "\n")
			if rows := strings.Count(shown, "ORD-"); code != 0 || rows != tt.rows || !strings.Contains(shown, tt.more) {
				t.Errorf("%s on %d columns: status %d, %d rows; want %d and %q:\n%s", tt.args, columns, code, rows, tt.rows, tt.more, shown)
			}
		}
	}
	_, out, _ := w.run("list", "-o", "csv")
	if rows := strings.Count(string(out), "ORD-"); rows != 70 {
		t.Errorf("%d rows in a pipe; want 70", rows)
	}
}

// stats fits terminals of all widths, with bars that grow with them: blocks where the
// locale says UTF-8, else what every terminal has.
func TestStatsOnTerminals(t *testing.T) {
	w := newListed(t)
	widest := 0
	for _, columns := range []uint16{40, 60, 80, 100, 140} {
		for _, env := range []string{"LANG=de_DE.UTF-8", "LANG=C", "TERM=dumb"} {
			cmd := w.command("stats")
			cmd.Stdout = nil
			code, raw := w.on(columns, cmd, "TERM=xterm-256color", "LANG=de_DE.UTF-8", env)
			lines, _ := drawn(t, raw)
			shown := strings.Join(lines, "\n")
			if code != 0 || !strings.Contains(shown, "CARRIER") || !strings.Contains(shown, "dhl  ") {
				t.Errorf("%d columns, %s: status %d:\n%s", columns, env, code, shown)
			}
			for _, line := range lines {
				if n := visible.DisplayWidth(line); n > int(columns) {
					t.Errorf("%d columns: %d: %s", columns, n, line)
				}
			}
			bar := regexp.MustCompile(`(?m)^not checked yet .*?([█#]*)$`).FindStringSubmatch(shown)
			if bar == nil {
				t.Fatalf("no line of that status:\n%s", shown)
			}
			if blocks := env == "LANG=de_DE.UTF-8"; strings.Contains(bar[1], "#") == blocks && bar[1] != "" {
				t.Errorf("%s: bar %q", env, bar[1])
			}
			if env == "LANG=C" && columns > 40 {
				if len(bar[1]) < widest || len(bar[1]) == 0 {
					t.Errorf("%d columns: a bar of %d; want more than %d", columns, len(bar[1]), widest)
				}
				widest = len(bar[1])
			}
		}
	}
}
