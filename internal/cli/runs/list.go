package runs

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

func newList(f *command.Factory) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List runs, newest first",
		Example: command.Example("waybill runs list", "waybill runs list --limit 5 -o json"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runList(ctx, c, limit)
		}),
	}
	command.LimitFlag(cmd.Flags(), &limit, 50)
	command.ColumnsFlag(cmd, runColumns())
	return cmd
}

func runList(ctx context.Context, c *command.Call, limit int) error {
	if err := command.CheckLimit(limit); err != nil {
		return err
	}
	w := command.Listing[ledger.RunSummary]{
		Out: c.Out, Empty: "No runs yet. Create trackings with `waybill create`.",
		JSON:    func(s ledger.RunSummary) any { return newRun(s) },
		Columns: runColumns(),
	}
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	if db == nil {
		return w.Print(c.IO, nil)
	}
	return w.Print(c.IO, db.History.Runs(ctx, "", limit))
}

func runColumns() []command.Column[ledger.RunSummary] {
	attention := func(state ledger.State, of func(ledger.RunSummary) int64) func(ledger.RunSummary) term.Style {
		return func(s ledger.RunSummary) term.Style {
			if of(s) == 0 {
				return term.Normal
			}
			return view.StateStyle(string(state))
		}
	}
	unknown := func(s ledger.RunSummary) int64 { return s.Counts.Unknown }
	return []command.Column[ledger.RunSummary]{
		{Column: render.Column{Name: "RUN", ID: true}, Cell: func(s ledger.RunSummary) string { return strconv.FormatInt(s.ID, 10) }},
		{Column: render.Column{Name: "CREATED", Rank: 1}, Time: func(s ledger.RunSummary) time.Time { return s.Created }},
		{Column: render.Column{Name: "INPUT", Flex: true, Rank: 2}, Cell: func(s ledger.RunSummary) string { return strings.Join(s.Plan.Files, " ") }},
		{Column: render.Column{Name: "ACCEPTED", Right: true}, Count: func(s ledger.RunSummary) int64 { return s.Counts.Accepted }},
		{Column: render.Column{Name: "REJECTED", Right: true}, Count: ledger.RunSummary.Rejected, Style: attention(ledger.Rejected, ledger.RunSummary.Rejected)},
		{Column: render.Column{Name: "UNKNOWN", Right: true}, Count: unknown, Style: attention(ledger.Unknown, unknown)},
		{Column: render.Column{Name: "PENDING", Right: true}, Count: func(s ledger.RunSummary) int64 { return s.Counts.Pending + s.Counts.Sending }},
		{Column: render.Column{Name: "REQUESTS", Right: true, Rank: 3}, Count: func(s ledger.RunSummary) int64 { return s.Requests }},
		{Column: render.Column{Name: "ACCOUNT", Flex: true, Rank: 4}, Cell: func(s ledger.RunSummary) string { return s.Plan.Account }},
		{Column: render.Column{Name: "SUPERSEDED", Right: true, Rank: 5}, Count: func(s ledger.RunSummary) int64 { return s.Superseded }},
		{Column: render.Column{Name: "DISMISSED", Right: true, Rank: 5}, Count: func(s ledger.RunSummary) int64 { return s.Dismissed }},
	}
}
