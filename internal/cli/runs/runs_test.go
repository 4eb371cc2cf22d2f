package runs

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/send"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/term"
)

// Without a store there are no runs, and no command makes one.
func TestRunsWithoutAStore(t *testing.T) {
	c, stdout, stderr := clitest.Call(t)
	if err := runList(t.Context(), c, listOptions{}); err != nil || stdout.Len() > 0 || stderr.Len() == 0 {
		t.Errorf("list: %v; stdout %q, stderr %q; want a note alone", err, stdout, stderr)
	}
	for _, tt := range []struct {
		run  string
		code command.Code
	}{{"1", command.NotFound}, {"0", command.Usage}, {"x", command.Usage}} {
		options := send.Options{Unknown: "keep", RecheckDelay: "1s"}
		for what, err := range map[string]error{
			"show":    runShow(t.Context(), c, showOptions{Run: tt.run}),
			"rows":    runRows(t.Context(), c, tt.run, nil),
			"dismiss": runDismiss(t.Context(), c, tt.run, ""),
			"resume":  runResume(t.Context(), c, resumeOptions{Run: tt.run, Options: options}),
		} {
			if code, hint := command.CodeAndHint(err); code != tt.code || hint == "" {
				t.Errorf("%s %s: status %d, %v, hint %q; want %d and a hint", what, tt.run, code, err, hint, tt.code)
			}
		}
	}
	if db, err := c.ExistingStore(t.Context()); db != nil || err != nil {
		t.Errorf("a store was made: %v, %v", db, err)
	}
}

// Counts have commas on a terminal, and no account before the requests.
func TestRunsOnTerminals(t *testing.T) {
	run := ledger.RunSummary{Run: ledger.Run{ID: 20000, Plan: ledger.Plan{Files: []string{"orders.csv"}}, Created: time.Now()}, Requests: 1234}
	run.Counts.Accepted = 20000
	for _, width := range []string{"", "100", "160"} {
		var buf bytes.Buffer
		io := term.New(nil, &buf, &buf, term.Facts{OutTerminal: width != "", Env: map[string]string{"NO_COLOR": "1", "COLUMNS": width}})
		if err := command.PrintTable((&command.Output{}).On(io.Out), runColumns("https://api.example.com#3f1b2c4d5e6f"), run); err != nil {
			t.Fatal(err)
		}
		accepted, requests := "20,000", "1,234"
		if width == "" {
			accepted, requests = "20000", "1234"
		}
		fields := strings.Fields(buf.String())
		if !slices.Contains(fields, accepted) || !slices.Contains(fields, requests) || fields[0] != "RUN" || !slices.Contains(fields, "20000") {
			t.Errorf("width %s: %s", width, &buf)
		}
		if width == "100" && slices.Contains(fields, "ACCOUNT") {
			t.Errorf("an account that is cut:\n%s", &buf)
		}
	}
}

func TestCountsHaveCommas(t *testing.T) {
	run := ledger.RunSummary{}
	run.Counts.Accepted, run.Counts.Pending = 12431, 3999
	if got, want := view.Counts(run), "12,431 accepted, 0 rejected, 0 unknown, 3,999 pending"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
