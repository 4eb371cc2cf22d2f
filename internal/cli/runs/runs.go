// Package runs holds the commands about runs: what was sent, with which
// outcome, and how to continue it.
package runs

import (
	"context"
	"slices"
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

// New returns the group of commands about runs.
func New(f *command.Factory) *cobra.Command {
	group := &cobra.Command{
		Use:   "runs",
		Short: "List, continue and retry runs of create",
	}
	group.AddCommand(newList(f), newShow(f), newRows(f), newResume(f), newRetry(f), newDismiss(f))
	return group
}

func oneRun() cobra.PositionalArgs {
	return command.Exactly(1, "the ID of a run, or last; list runs with `waybill runs list`")
}

func newList(f *command.Factory) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Example: command.Example("waybill runs list", "waybill runs list --since yesterday",
			"waybill runs list --limit 5 -o json"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error { return runList(ctx, c, o) }),
	}
	command.LimitFlag(cmd.Flags(), &o.Limit, 50)
	command.SinceFlag(cmd, &o.Since, "only runs that began since `TIME`")
	command.ColumnsFlag(cmd, runColumns(""))
	return cmd
}

type listOptions struct {
	Limit int
	Since string
}

func runList(ctx context.Context, c *command.Call, o listOptions) error {
	if err := command.CheckLimit(o.Limit); err != nil {
		return err
	}
	since, err := command.ParseSince("--since", o.Since)
	if err != nil {
		return err
	}
	account := c.Account(ctx)
	w := command.Listing[ledger.RunSummary]{
		Out: c.Out, Empty: "No runs yet. Create trackings with `waybill create`.",
		JSON: func(s ledger.RunSummary) any {
			j := newRun(s, account)
			j.Next = nextCommand(c, s)
			return j
		},
		Columns: runColumns(account),
	}
	db, err := c.StoreToList(ctx, "run")
	if err != nil {
		return err
	}
	if db == nil {
		return w.Print(c.IO, nil)
	}
	command.ReadyRuns(ctx, c.Session, db)
	if o.Since != "" {
		w.Empty = "No run began since " + o.Since
	}
	return w.Print(c.IO, func(yield func(ledger.RunSummary, error) bool) {
		for run, err := range db.History.Runs(ctx, o.Limit) { // the newest first
			if err == nil && run.Created.Before(since) || !yield(run, err) {
				return
			}
		}
	})
}

func runColumns(account string) []command.Column[ledger.RunSummary] {
	type run = ledger.RunSummary
	attention := func(name string, state ledger.State, rows func(run) int64) command.Column[run] {
		return command.Column[run]{Column: render.Column{Name: name}, Count: rows, Style: func(s run) term.Style {
			if rows(s) == 0 {
				return term.Normal
			}
			return view.StateStyle(string(state))
		}}
	}
	return []command.Column[run]{
		{Column: render.Column{Name: "RUN", ID: true}, Cell: func(s run) string { return strconv.FormatInt(s.ID, 10) }},
		{
			Column: render.Column{Name: "CREATED", Rank: 1}, Time: func(s run) time.Time { return s.Created },
			Cell: func(s run) string { return view.Ago(s.Created, time.Now()) },
		},
		{
			Column: render.Column{Name: "INPUT", CSV: "files", Flex: true},
			Cell:   func(s run) string { return strings.Join(s.Plan.Files, " ") },
		},
		{Column: render.Column{Name: "ACCEPTED"}, Count: run.Accepted},
		attention("REJECTED", ledger.Rejected, run.Rejected),
		attention("UNKNOWN", ledger.Unknown, func(s run) int64 { return s.Counts.Unknown }),
		{Column: render.Column{Name: "PENDING"}, Count: func(s run) int64 { return s.Counts.Pending + s.Counts.Sending }},
		{Column: render.Column{Name: "REQUESTS", CSV: "batches", Rank: 3}, Count: func(s run) int64 { return s.Requests }},
		{Column: render.Column{Name: "ACCOUNT", Rank: 4}, Cell: func(run) string { return account }},
		{Column: render.Column{Name: "SUPERSEDED", Rank: 5}, Count: func(s run) int64 { return s.Superseded }},
		{Column: render.Column{Name: "DISMISSED", Rank: 5}, Count: func(s run) int64 { return s.Dismissed }},
		{Column: render.Column{Name: "SKIPPED", Rank: 5}, Count: func(s run) int64 { return s.Tally.Skipped }},
	}
}

func newRows(f *command.Factory) *cobra.Command {
	var states []string // empty for all
	cmd := &cobra.Command{
		Use:   "rows ID",
		Short: "List the rows of a run and their states",
		Long: `rows lists the rows of a run's input in order, with file, row, state and reason. A row
is numbered as a spreadsheet shows it, with its line where quoted line breaks move that.

A rejected row is superseded if another number of its order was accepted since,
and dismissed after "waybill runs dismiss". Both are done; --status rejected does
not list them. In JSON the state of all three is rejected, with the members
superseded and dismissed.

The CSV can be fixed and passed to "waybill create"; create ignores its additional
columns.`,
		Example: command.Example("waybill runs rows 3 --status unknown",
			"waybill runs rows 3 --status rejected -o csv --out bad.csv"),
		Args: oneRun(),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			return runRows(ctx, c, args[0], states)
		}),
	}
	const usage = "only rows of `STATUS`, or in several separated by commas"
	command.Choices(cmd.Flags(), &states, "status", usage, view.RowStates()...)
	command.ColumnsFlag(cmd, view.RowColumns())
	return cmd
}

func runRows(ctx context.Context, c *command.Call, run string, states []string) error {
	db, id, err := command.OpenRun(ctx, c.Session, run)
	if err != nil {
		return err
	}
	return view.PrintRows(c, command.Filter(db.History.Rows(ctx, id), func(row ledger.Row) bool {
		return len(states) == 0 || slices.Contains(states, view.RowState(row))
	}, 0))
}
