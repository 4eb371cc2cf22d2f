package runs

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
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
	cmd.Flags().IntVar(&limit, "limit", 50, "at most `N` runs (0 for all)")
	return cmd
}

func runList(ctx context.Context, c *command.Call, limit int) error {
	if err := command.CheckLimit(limit); err != nil {
		return err
	}
	w := command.Listing[ledger.RunSummary]{
		Out: c.Out, Empty: "no runs yet; `waybill create` makes one",
		JSON: func(s ledger.RunSummary) any { return newRunJSON(s) },
		Columns: []render.Column{
			{Name: "RUN", ID: true},
			{Name: "CREATED", From: 100},
			{Name: "INPUT", Flex: true},
			{Name: "ACCEPTED", Right: true},
			{Name: "REJECTED", Right: true},
			{Name: "UNKNOWN", Right: true},
			{Name: "PENDING", Right: true},
			{Name: "CALLS", Right: true, From: 100},
			{Name: "ACCOUNT", Flex: true, From: 80},
			{Name: "SUPERSEDED", Right: true, From: 120},
			{Name: "DISMISSED", Right: true, From: 120},
		},
		Cells: func(s ledger.RunSummary) []string {
			return []string{
				fmt.Sprint(s.ID), render.LocalTime(s.Created), strings.Join(s.Plan.Files, " "), fmt.Sprint(s.Counts.Accepted),
				fmt.Sprint(s.Rejected()), fmt.Sprint(s.Counts.Unknown), fmt.Sprint(s.Counts.Pending + s.Counts.Sending), fmt.Sprint(s.Requests), s.Plan.Account,
				fmt.Sprint(s.Superseded), fmt.Sprint(s.Dismissed),
			}
		},
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
