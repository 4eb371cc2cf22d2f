package view_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// cell returns what a column of trackings shows.
func cell(t *testing.T, name string, terminal bool, now time.Time, l view.Line) string {
	t.Helper()
	for _, c := range (view.StatusNames{}).Columns(terminal, now) {
		if c.Name == name {
			return c.Cell(&l)
		}
	}
	t.Fatalf("no column %s", name)
	return ""
}

func TestLine(t *testing.T) {
	now := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
	at := time.Date(2026, 3, 6, 17, 12, 0, 0, time.UTC)
	seen := &ledger.Sighting{Phase: ledger.Processed, Status: "2", StatusLabel: "MOVING", Seen: now.Add(-3 * time.Minute), Source: ledger.FromEvent, Shared: 2, Times: tracking.Times{Checkpoint: at}}
	known := view.KnownLine(&ledger.TrackingStatus{Item: tracking.Item{ReferID: "A", Number: "N"}, State: ledger.Accepted, Run: 7, Sighting: seen})
	asked := view.Line{Tracking: query.Tracking{Phase: ledger.Processed, Tracking: tracking.Tracking{Checkpoints: []tracking.Checkpoint{{UTC: "2026-03-05T00:00:00Z"}, {UTC: "2026-03-06T17:12:00Z"}}}}}
	elsewhere := view.KnownLine(&ledger.TrackingStatus{Item: tracking.Item{Number: "N"}, Sighting: seen})
	unnamed := view.Line{Tracking: query.Tracking{Phase: ledger.Processed, Tracking: tracking.Tracking{Status: "2"}}}
	failed := view.FailedLine(query.Result{Query: tracking.Query{ReferID: "B"}, Err: tracking.ErrUndecided})
	for _, c := range []struct {
		column   string
		terminal bool
		line     view.Line
		want     string
	}{
		{"STATUS", false, known, "MOVING (2)"},
		{"STATUS", true, known, "MOVING"},
		{"STATUS", true, unnamed, "2"},
		{"STATUS NUMBER", false, known, "2"},
		{"STATE", false, known, "accepted"},
		{"RUN", false, known, "7"},
		{"SOURCE", false, known, "webhook, of 2 with this number"},
		{"UPDATED", true, known, "3 min ago, webhook, of 2 with this number"},
		{"CHECKPOINT", false, known, "2026-03-06T17:12:00.000Z"},
		{"CHECKPOINT", false, asked, "2026-03-06T17:12:00.000Z"},
		{"CHECKPOINT", true, asked, at.Local().Format("2006-01-02 15:04 -07:00")},
		{"UPDATED", true, asked, ""},
		{"STATE", false, asked, ""},
		{"STATE", false, elsewhere, "not created here"},
		{"STATUS", false, failed, "failed"},
		{"LATEST EVENT", false, failed, tracking.ErrUndecided.Error()},
		{"CHECKPOINT", true, failed, ""},
	} {
		if got := cell(t, c.column, c.terminal, now, c.line); got != c.want {
			t.Errorf("%s is %q; want %q", c.column, got, c.want)
		}
	}
}

// At 80 columns a list has room for how fresh it is.
func TestListAtEightyColumns(t *testing.T) {
	now := time.Now()
	seen := &ledger.Sighting{
		Phase: ledger.Processed, Status: "9002", StatusLabel: "SANDBOX_IN_TRANSIT", LatestEvent: "Arrived at the sorting hub", CarrierCode: "dhl",
		Seen: now.Add(-3 * time.Minute), Source: ledger.FromEvent, Times: tracking.Times{Checkpoint: now},
	}
	line := view.KnownLine(&ledger.TrackingStatus{Item: tracking.Item{ReferID: "ORD-10000", Number: "9400111899223000001001"}, State: ledger.Accepted, Sighting: seen})
	shared := *seen
	shared.Shared = 2
	other := view.KnownLine(&ledger.TrackingStatus{Item: tracking.Item{ReferID: "ORD-10001", Number: "9400111899223000001002"}, State: ledger.Accepted, Sighting: &shared})
	if got := table(t, "80", now, &line, &other); !strings.HasSuffix(got, "3 min ago, webhook, of 2…") {
		t.Errorf("with a number of two: %q", got)
	}
	for columns, want := range map[string]string{
		"80":  "REFERENCE NUMBER STATUS UPDATED ORD-10000 9400111899223000001001 SANDBOX_IN_TRANSIT 3 min ago, webhook",
		"100": "REFERENCE NUMBER STATUS CHECKPOINT UPDATED ORD-10000 9400111899223000001001 SANDBOX_IN_TRANSIT " + render.LocalMinute(now) + " 3 min ago, webhook",
	} {
		if got := table(t, columns, now, &line); got != want {
			t.Errorf("%s columns: %q; want %q", columns, got, want)
		}
	}
}

// table returns the words of a table on a terminal of so many columns.
func table(t *testing.T, columns string, now time.Time, lines ...*view.Line) string {
	t.Helper()
	var buf bytes.Buffer
	io := term.New(nil, &buf, &buf, term.Facts{OutTerminal: true, Env: map[string]string{"NO_COLOR": "1", "COLUMNS": columns}})
	if err := command.PrintTable((&command.Output{}).On(io.Out), view.StatusNames{}.Columns(true, now), lines...); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(buf.String()), " ")
}
