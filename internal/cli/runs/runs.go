// Package runs has the commands about runs: they show what was sent with which outcome, and continue it.
package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/send"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
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
	since, err := command.ParseSince("--since", o.Since)
	if err := cmp.Or(command.CheckLimit(o.Limit), err); err != nil {
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
		return w.PrintAll(nil)
	}
	command.ReadyRuns(ctx, c.Session, db)
	if o.Since != "" {
		w.Empty = "No run began since " + o.Since
	}
	return w.Print(func(yield func(ledger.RunSummary, error) bool) {
		for run, err := range db.History.Runs(ctx, o.Limit) { // newest first
			if err == nil && run.Created.Before(since) || !yield(run, err) {
				return
			}
		}
	})
}

func runColumns(account string) []command.Column[ledger.RunSummary] {
	type run = ledger.RunSummary
	attention := func(name string, state ledger.State, rows func(run) int64) command.Column[run] {
		return command.Column[run]{Name: name, Count: rows, Style: func(s run) term.Style {
			if rows(s) == 0 {
				return term.Normal
			}
			return view.StateStyle(string(state))
		}}
	}
	return []command.Column[run]{
		{Name: "RUN", ID: true, Cell: func(s run) string { return command.RunName(s.ID) }},
		{
			Name: "CREATED", Rank: 1, Time: func(s run) time.Time { return s.Created },
			Cell: func(s run) string { return view.Ago(s.Created, time.Now()) },
		},
		{Name: "INPUT", CSV: "files", Flex: true, Cell: func(s run) string { return strings.Join(s.Plan.Files, " ") }},
		{Name: "ACCEPTED", Count: run.Accepted},
		attention("REJECTED", ledger.Rejected, run.Rejected),
		attention("UNKNOWN", ledger.Unknown, func(s run) int64 { return s.Counts.Unknown }),
		{Name: "PENDING", Count: func(s run) int64 { return s.Counts.Pending + s.Counts.Sending }},
		{Name: "REQUESTS", CSV: "batches", Rank: 3, Count: func(s run) int64 { return s.Requests }},
		{Name: "ACCOUNT", Rank: 4, Cell: func(run) string { return account }},
		{Name: "SUPERSEDED", Rank: 5, Count: func(s run) int64 { return s.Superseded }},
		{Name: "DISMISSED", Rank: 5, Count: func(s run) int64 { return s.Dismissed }},
		{Name: "SKIPPED", Rank: 5, Count: func(s run) int64 { return s.Tally.Skipped }},
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

type resumeOptions struct {
	send.Options

	Run string
	Row string // with RetryRejected: REF of the rows to retry; empty for all
}

func newResume(f *command.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Continue a run: check unknown rows, send pending rows",
		Long: `resume continues a run from the store. Use it if the input was standard input,
or if its file no longer exists; otherwise re-run the same create command.
Rejected rows are not sent again. If another waybill is working on the run, both
share the work.

` + send.UnknownText,
		Example: command.Example("waybill runs resume 3", "waybill runs resume 3 --unknown keep"),
	}
	o := &resumeOptions{}
	o.CheckFirstFlag(cmd.Flags())
	return withResume(f, cmd, o)
}

func newRetry(f *command.Factory) *cobra.Command {
	o := resumeOptions{Options: send.Options{RetryRejected: true}}
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Send a run's rejected or lost rows again",
		Long: `retry sends the rejected rows of a run again, unchanged, like "waybill runs
resume". Superseded and dismissed rows are sent only if --row names them. To fix
rows before they are sent, see "waybill runs rows --help".

With --absent, retry checks the accepted rows of the run with the service
instead. Rows that are not found become unknown, and are sent again under the
same conditions as all unknown rows ("waybill help rows").`,
		Example: command.Example("waybill runs retry 3", "waybill runs retry 3 --row ORD-17",
			"waybill runs retry 3 --max-rejects 0", "waybill runs retry 3 --absent"),
	}
	cmd.Flags().BoolVar(&o.RetryAbsent, "absent", false, "send accepted rows again that the service does not have")
	rowFlag(cmd, &o.Row)
	return withResume(f, cmd, &o)
}

func withResume(f *command.Factory, cmd *cobra.Command, o *resumeOptions) *cobra.Command {
	cmd.Args = oneRun()
	command.SettingFlags(cmd, "concurrency", "rate")
	o.Flags(cmd)
	command.ColumnsFlag(cmd, send.CountColumns())
	cmd.RunE = f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
		o.Run = args[0]
		return send.WithNextCommand(runResume(ctx, c, *o), c.Repeat())
	})
	return cmd
}

func runResume(ctx context.Context, c *command.Call, o resumeOptions) error {
	policy, err := o.Policy(c.Config)
	if err := cmp.Or(err, checkRowFlag(c, o.Row)); err != nil {
		return err
	}
	policy.RetryRow = o.Row
	if o.Row != "" && o.RetryAbsent {
		return command.Usagef("omit one of them", "--row is for rejected rows, --absent for accepted ones")
	}
	started := time.Now()
	ctx, cancel := c.Within(ctx)
	defer cancel()
	db, id, err := command.OpenRun(ctx, c.Session, o.Run)
	if err != nil {
		return err
	}
	run, err := db.History.Run(ctx, id)
	if err != nil {
		return err
	}
	if _, err := c.Client(); err != nil {
		return err
	}
	if err := o.CheckKey(ctx, c.Session, db.Keys); err != nil {
		return err
	}
	e := &send.Execution{Call: c, Store: db, Run: run.Run, Policy: policy, Wait: o.Wait, Started: started}
	e.Partial = run.Partial && !run.Live
	if e.NamedRejected, err = countRejected(ctx, db.History, run.ID, o.Row); err != nil {
		return err
	}
	if !policy.RetryRejected {
		e.Repeat = c.Repeat()
	}
	return e.Execute(ctx)
}

func newDismiss(f *command.Factory) *cobra.Command {
	var row string
	cmd := &cobra.Command{
		Use:   "dismiss ID",
		Short: "Mark a run's rejected rows as done",
		Long: `dismiss marks the rejected rows of a run as done: all of them, or those of one
REF. They are kept with their reason and listed as dismissed, and no longer
affect exit statuses. Only "waybill runs retry ID --row REF" sends them again.

Superseded rows (another number of the order was accepted since) do not need to
be dismissed. No request is sent to the service.`,
		Example: command.Example("waybill runs dismiss 3", "waybill runs dismiss 3 --row ORD-17"),
		Args:    oneRun(),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			return runDismiss(ctx, c, args[0], row)
		}),
	}
	rowFlag(cmd, &row)
	return cmd
}

func rowFlag(cmd *cobra.Command, row *string) {
	cmd.Flags().StringVar(row, "row", "", "only the rejected rows of this `REF` (referId or number)")
}

// checkRowFlag returns an error for an empty --row, which must not mean all rows.
func checkRowFlag(c *command.Call, row string) error {
	if row == "" && c.Cmd.Flags().Changed("row") {
		return command.Usagef("pass a referId or a number, or omit --row for all rejected rows", "--row is empty")
	}
	return nil
}

type dismissedJSON struct {
	Run       string `json:"run"`
	Dismissed int64  `json:"dismissed"` // by this command
}

func runDismiss(ctx context.Context, c *command.Call, id, row string) error {
	if err := checkRowFlag(c, row); err != nil {
		return err
	}
	db, run, err := command.OpenRun(ctx, c.Session, id)
	if err != nil {
		return err
	}
	if _, err := countRejected(ctx, db.History, run, row); err != nil {
		return err
	}
	n, err := db.Unknown.Dismiss(ctx, run, row)
	if err != nil {
		return err
	}
	done := dismissedJSON{command.RunName(run), n}
	if n == 0 {
		return c.Out.Result(done, "Nothing to dismiss in run %d", run)
	}
	return c.Out.Result(done, "Dismissed %s of run %d", command.Plural(n, "row"), run)
}

// countRejected counts the rejected rows of the run with that referId or number, if one is given; none is an error.
func countRejected(ctx context.Context, history ledger.History, run int64, ref string) (rejected int64, err error) {
	if ref == "" {
		return 0, nil
	}
	var other *ledger.Row
	folded := tracking.FoldNumber(ref)
	for row, err := range history.Rows(ctx, run) {
		switch {
		case err != nil:
			return 0, err
		case row.Repeat || row.Item.ReferID != ref && tracking.FoldNumber(row.Item.Number) != folded:
		case row.State == ledger.Rejected:
			rejected++
		case other == nil:
			other = &row
		}
	}
	hint := fmt.Sprintf("`waybill runs rows %d --status rejected` lists the rejected rows", run)
	switch {
	case rejected > 0:
		return rejected, nil
	case other != nil:
		return 0, command.Usagef(hint, "row %s of run %d is not rejected: %s", command.Quoted(ref), run, other.State)
	}
	return 0, command.Usagef(hint, "run %d has no row %s", run, command.Quoted(ref))
}
