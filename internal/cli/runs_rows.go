package cli

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

// rowJSON is one record of a run's input in our output.
type rowJSON struct {
	File              string       `json:"file"`
	Line              int          `json:"line"`
	ReferID           string       `json:"referId"`
	RawTrackingNumber string       `json:"rawTrackingNumber"`
	CarrierCode       string       `json:"carrierCode,omitempty"`
	State             ledger.State `json:"state"`
	Reason            string       `json:"reason"`
	Duplicate         bool         `json:"duplicate,omitempty"` // the same pair stands earlier in the input
}

func newRowJSON(row ledger.Row) rowJSON {
	return rowJSON{
		File: row.File, Line: row.Line, ReferID: row.Item.ReferID, RawTrackingNumber: row.Item.Number, CarrierCode: row.Item.CarrierCode,
		State: row.State, Reason: row.Reason, Duplicate: row.Repeat,
	}
}

// rowStates are the states that --state takes.
func rowStates() []string {
	return []string{string(ledger.Pending), string(ledger.Sending), string(ledger.Accepted), string(ledger.Rejected), string(ledger.Unknown)}
}

func (r *runner) runsRows() *cobra.Command {
	var states []string
	cmd := &cobra.Command{
		Use:   "rows ID",
		Short: "List the rows of a run's input and what became of each",
		Long: `rows lists one line for each record of the run's input, in its order: where it
stood, in which state it is now, and why.

The CSV can be mended and read in again by "waybill create": it has the columns
that create reads, and others that create passes over.`,
		Example: example("waybill runs rows 3 --state unknown", "waybill runs rows 3 --state rejected -o csv --out bad.csv"),
		Args:    oneRun(),
		RunE: r.run(func(ctx context.Context, s *app.Session, args []string) error {
			for _, state := range states {
				if !slices.Contains(rowStates(), state) {
					return usagef("use "+strings.Join(rowStates(), ", "), "--state %s", quoted(state))
				}
			}
			db, id, err := openRun(ctx, s, args[0])
			if err != nil {
				return err
			}
			return r.printRows(s.IO, rowsIn(db.Rows(ctx, id), states))
		}),
	}
	cmd.Flags().StringArrayVar(&states, "state", nil, "only rows in `STATE`: "+strings.Join(rowStates(), ", ")+" (may be given again)")
	return cmd
}

// rowsIn leaves out rows in other states; no states mean all.
func rowsIn(rows iter.Seq2[ledger.Row, error], states []string) iter.Seq2[ledger.Row, error] {
	if len(states) == 0 {
		return rows
	}
	return func(yield func(ledger.Row, error) bool) {
		for row, err := range rows {
			if (err != nil || slices.Contains(states, string(row.State))) && !yield(row, err) {
				return
			}
		}
	}
}

// printRows prints rows as they come. The columns of CSV are named as create
// reads them.
func (r *runner) printRows(io *term.IO, rows iter.Seq2[ledger.Row, error]) error {
	w := listing[ledger.Row]{
		out: r.out, empty: "no such rows",
		json: func(row ledger.Row) any { return newRowJSON(row) },
		columns: []render.Column{
			{Name: "INPUT"},
			{Name: "REFERENCE", ID: true},
			{Name: "NUMBER", ID: true},
			{Name: "CARRIER", From: 120},
			{Name: "STATE"},
			{Name: "REASON", Flex: true},
		},
		cells: func(row ledger.Row) []string {
			return []string{fmt.Sprintf("%s:%d", row.File, row.Line), row.Item.ReferID, row.Item.Number, row.Item.CarrierCode, string(row.State), row.Reason}
		},
	}
	if r.out.csv() {
		w.columns = []render.Column{
			{Name: "referId", ID: true},
			{Name: "rawTrackingNumber", ID: true},
			{Name: "carrierCode", ID: true},
			{Name: "state"},
			{Name: "reason"},
			{Name: "file"},
			{Name: "line"},
		}
		w.cells = func(row ledger.Row) []string {
			return []string{row.Item.ReferID, row.Item.Number, row.Item.CarrierCode, string(row.State), row.Reason, row.File, strconv.Itoa(row.Line)}
		}
	}
	return w.print(io, rows)
}
