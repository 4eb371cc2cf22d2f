package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/store"
)

func (r *runner) runs() *cobra.Command {
	group := &cobra.Command{
		Use:     "runs",
		GroupID: groupOps,
		Short:   "Look up what was sent and with which outcome, and go on with it",
	}
	var limit int
	list := &cobra.Command{
		Use:     "list",
		Short:   "List runs, newest first",
		Example: example("waybill runs list", "waybill runs list --limit 5 -o json"),
		Args:    cobra.NoArgs,
		RunE: r.run(func(ctx context.Context, s *app.Session, _ []string) error {
			return r.listRuns(ctx, s, limit)
		}),
	}
	list.Flags().IntVar(&limit, "limit", 50, "at most `N` runs (0 for all)")
	group.AddCommand(list, r.runsShow(), r.runsRows(), r.runsResume(), r.runsRetry(), r.runsPrune())
	return group
}

func oneRun() cobra.PositionalArgs {
	return exactly(1, "the ID of a run; `waybill runs list` shows them")
}

// exactly asks for n arguments and says what they are.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("needed: "+what, "%d arguments given, %d needed", len(args), n)
		}
		return nil
	}
}

// openRun opens the store and finds a run by its ID.
func openRun(ctx context.Context, s *app.Session, id string) (*store.DB, int64, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 1 {
		return nil, 0, usagef("run IDs are numbers; `waybill runs list` shows them", "%q is no run ID", id)
	}
	db, err := s.ExistingStore(ctx)
	if err != nil {
		return nil, 0, err
	}
	if db == nil {
		return nil, 0, fmt.Errorf("%w: %d", ledger.ErrNoRun, n)
	}
	if _, err := db.CountRows(ctx, n); err != nil {
		return nil, 0, err
	}
	if err := recoverRows(ctx, s, db); err != nil {
		s.IO.Warning("rows of killed processes are shown as sending: %v", err)
	}
	return db, n, nil
}

func (r *runner) listRuns(ctx context.Context, s *app.Session, limit int) error {
	w := listing[ledger.RunSummary]{
		out: r.out, empty: "no runs yet; `waybill create` makes one",
		json: func(s ledger.RunSummary) any { return newRunJSON(s) },
		columns: []render.Column{
			{Name: "RUN", ID: true},
			{Name: "CREATED", From: 100},
			{Name: "INPUT", Flex: true},
			{Name: "ACCEPTED", Right: true},
			{Name: "REJECTED", Right: true},
			{Name: "UNKNOWN", Right: true},
			{Name: "PENDING", Right: true},
			{Name: "CALLS", Right: true, From: 80},
		},
		cells: func(s ledger.RunSummary) []string {
			return []string{
				fmt.Sprint(s.ID), render.LocalTime(s.Created), strings.Join(s.Plan.Files, " "), fmt.Sprint(s.Counts.Accepted),
				fmt.Sprint(s.Counts.Rejected), fmt.Sprint(s.Counts.Unknown), fmt.Sprint(s.Counts.Pending + s.Counts.Sending), fmt.Sprint(s.Requests),
			}
		},
	}
	db, err := s.ExistingStore(ctx)
	if err != nil || db == nil {
		return firstError(err, func() error { return w.print(s.IO, nil) })
	}
	return w.print(s.IO, db.Runs(ctx, "", limit))
}

func firstError(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}

func countsLine(c ledger.Counts) string {
	return fmt.Sprintf("%d accepted, %d rejected, %d unknown, %d pending", c.Accepted, c.Rejected, c.Unknown, c.Pending+c.Sending)
}
