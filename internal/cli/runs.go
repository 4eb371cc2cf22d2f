package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/store"
)

// runJSON is a run in our output.
type runJSON struct {
	Run        string      `json:"run"`
	Account    string      `json:"account"`
	Files      []string    `json:"files"`
	Operation  ledger.Mode `json:"operation"` // v1 or v2
	Created    time.Time   `json:"created"`
	Live       bool        `json:"live"` // a living process is working on it
	New        int64       `json:"new"`
	Already    int64       `json:"already"`
	Duplicates int64       `json:"duplicates"`
	Accepted   int64       `json:"accepted"`
	Rejected   int64       `json:"rejected"`
	Unknown    int64       `json:"unknown"`
	Pending    int64       `json:"pending"`
	Batches    int64       `json:"batches"` // create requests sent
	LastSent   *time.Time  `json:"lastSent"`
	BatchList  []batchJSON `json:"batchList,omitempty"`
}

// batchJSON is one batch of a run in our output.
type batchJSON struct {
	Batch       int64        `json:"batch"`
	State       ledger.State `json:"state"`
	Rows        int64        `json:"rows"`
	HTTPStatus  int          `json:"httpStatus,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	Began       *time.Time   `json:"began,omitempty"`
	TookSeconds float64      `json:"tookSeconds,omitempty"`
}

func newRunJSON(s ledger.RunSummary) runJSON {
	return runJSON{
		Run: strconv.FormatInt(s.ID, 10), Account: s.Plan.Account, Files: s.Plan.Files, Operation: s.Plan.Mode,
		Created: s.Created.UTC(), Live: s.Live,
		New: s.Tally.New, Already: s.Tally.Known, Duplicates: s.Tally.Repeats,
		Accepted: s.Counts.Accepted, Rejected: s.Counts.Rejected, Unknown: s.Counts.Unknown,
		Pending: s.Counts.Pending + s.Counts.Sending, Batches: s.Requests, LastSent: timeOrNil(s.LastSent),
	}
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (r *runner) runs() *cobra.Command {
	group := &cobra.Command{
		Use:     "runs",
		GroupID: groupOps,
		Short:   "Look up what was sent, when, and with which outcome",
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
	show := &cobra.Command{
		Use:     "show ID",
		Short:   "Show one run and its batches",
		Example: example("waybill runs show 3", "waybill runs show 3 -o json"),
		Args:    exactly(1, "the ID of a run; `waybill runs list` shows them"),
		RunE: r.run(func(ctx context.Context, s *app.Session, args []string) error {
			return r.showRun(ctx, s, args[0])
		}),
	}
	group.AddCommand(list, show, r.runsRows(), r.runsResume(), r.runsRetry())
	return group
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

func (r *runner) showRun(ctx context.Context, s *app.Session, id string) error {
	db, n, err := openRun(ctx, s, id)
	if err != nil {
		return err
	}
	summary, err := db.Run(ctx, n)
	if err != nil {
		return err
	}
	var batches []ledger.BatchSummary
	for b, err := range db.Batches(ctx, n) {
		if err != nil {
			return err
		}
		batches = append(batches, b)
	}
	if r.out.machine() {
		j := newRunJSON(summary)
		for _, b := range batches {
			j.BatchList = append(j.BatchList, batchJSON{
				Batch: b.ID, State: b.State, Rows: b.Rows, HTTPStatus: b.HTTPStatus, Reason: b.Reason,
				Began: timeOrNil(b.Began), TookSeconds: b.Took.Seconds(),
			})
		}
		return r.out.object(j)
	}
	return printRun(r.out, summary, batches)
}

func printRun(out *result, s ledger.RunSummary, batches []ledger.BatchSummary) error {
	if out.csv() {
		return printBatches(out, batches)
	}
	state := "ended"
	if s.Live {
		state = "a waybill is working on it"
	}
	err := out.fields([]render.Field{
		{Name: "Run", Value: fmt.Sprint(s.ID)},
		{Name: "Account", Value: s.Plan.Account},
		{Name: "Input", Value: strings.Join(s.Plan.Files, " ")},
		{Name: "Created", Value: render.LocalTime(s.Created)},
		{Name: "State", Value: state},
		{Name: "Rows", Value: fmt.Sprintf("%d new, %d already there, %d duplicates", s.Tally.New, s.Tally.Known, s.Tally.Repeats)},
		{Name: "Outcome", Value: countsLine(s.Counts)},
		{Name: "Calls", Value: fmt.Sprint(s.Requests)},
	})
	if err != nil || len(batches) == 0 {
		return err
	}
	if err := out.line(""); err != nil {
		return err
	}
	return printBatches(out, batches)
}

func printBatches(out *result, batches []ledger.BatchSummary) error {
	t := out.Table(render.Column{Name: "BATCH", Right: true}, render.Column{Name: "STATE"}, render.Column{Name: "ROWS", Right: true},
		render.Column{Name: "HTTP", Right: true}, render.Column{Name: "SENT", From: 100}, render.Column{Name: "TOOK", Right: true}, render.Column{Name: "REASON", Flex: true})
	for _, b := range batches {
		status, sent, took := "", "", ""
		if b.HTTPStatus != 0 {
			status = fmt.Sprint(b.HTTPStatus)
		}
		if !b.Began.IsZero() {
			sent, took = render.LocalTime(b.Began), b.Took.Round(time.Millisecond).String()
		}
		if err := t.Row(fmt.Sprint(b.ID), string(b.State), fmt.Sprint(b.Rows), status, sent, took, b.Reason); err != nil {
			return err
		}
	}
	return t.Flush()
}

func countsLine(c ledger.Counts) string {
	return fmt.Sprintf("%d accepted, %d rejected, %d unknown, %d pending", c.Accepted, c.Rejected, c.Unknown, c.Pending+c.Sending)
}
