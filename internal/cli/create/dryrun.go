package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/check"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/cli/send"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/findings"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/tracking"
)

const shownRows = 5

type dryRunResult struct {
	DryRun     bool             `json:"dryRun"`
	Read       int64            `json:"read"`
	New        int64            `json:"new"`
	Already    int64            `json:"already"`
	Duplicates int64            `json:"duplicates"`
	Invalid    int64            `json:"invalid"`
	Erased     int64            `json:"erased,omitempty"` // erased from the store before: would not be sent
	Rows       int64            `json:"rows"`             // that would be sent: new ones, and known ones still pending
	Batches    int64            `json:"batches"`          // create requests that would be made
	BatchSize  int              `json:"batchSize"`
	Operation  ledger.Mode      `json:"operation"`
	Carriers   map[string]int64 `json:"carriers"` // rows to be sent by carrier code; "" for those without
	FirstRows  []view.Row       `json:"firstRows"`
	first      []ledger.Row     // FirstRows, for the table

	Findings []findings.Group     `json:"findings"` // of `waybill check`
	Forms    []findings.FormCount `json:"forms"`    // good rows by the form of their number
}

// dryRun stages the input in a scratch store and shows what would be sent. It only reads the real store.
func (c *creation) dryRun(ctx context.Context, scratch *app.Store) error {
	run, err := c.stage(ctx, scratch.Stager)
	if err != nil {
		return err
	}
	known, err := c.Call.ExistingStore(ctx)
	if err != nil {
		return err
	}
	checked := c.checked
	res := dryRunResult{
		DryRun: true, Read: checked.Read, Duplicates: run.Tally.Repeats, Invalid: checked.Invalid,
		BatchSize: c.plan.BatchSize, Operation: c.plan.Mode, Carriers: map[string]int64{}, FirstRows: []view.Row{},
		Findings: checked.Found.Groups, Forms: checked.Found.Forms,
	}
	err = command.Each(scratch.History.Rows(ctx, run.ID), func(row ledger.Row) (err error) {
		if row.Repeat {
			return nil
		}
		state, found := ledger.Pending, false
		if known != nil {
			state, found, err = known.History.Lookup(ctx, row.Item.Key())
		}
		if known != nil && !found && err == nil {
			before, err := known.Eraser.Erased(ctx, []tracking.Query{{ReferID: row.Item.ReferID, Number: row.Item.Number}})
			if err != nil {
				return err
			}
			if before[0] {
				res.Erased++
				return nil
			}
		}
		if found {
			res.Already++
		} else {
			res.New++
		}
		if !found || state == ledger.Pending {
			res.add(row)
		}
		return err
	})
	if err != nil {
		return err
	}
	res.Batches = send.Requests(res.Rows, c.plan.BatchSize)
	check.Note(c.Call.IO, checked.Found)
	if err := printDryRun(c.Call, res); err != nil {
		return err
	}
	var outcome error
	if checked.Invalid > 0 && !c.Gate.Covers("invalid") {
		err := fmt.Errorf("%s and would be skipped", input.BadRows(checked))
		outcome = &command.ExitError{Code: command.Partial, Err: err}
	}
	return c.Gate.Check(res.counts(), outcome)
}

// counts returns the counts that a dry run knows. Rows that would be sent count as pending.
func (res *dryRunResult) counts() send.Result {
	return send.Result{
		Read: res.Read, New: res.New, Already: res.Already, Duplicates: res.Duplicates, Invalid: res.Invalid,
		Erased: res.Erased, Pending: res.Rows, Batches: res.Batches,
	}
}

func (res *dryRunResult) add(row ledger.Row) {
	res.Rows++
	res.Carriers[row.Item.CarrierCode]++
	if len(res.FirstRows) < shownRows {
		row.State = ledger.Pending
		res.first, res.FirstRows = append(res.first, row), append(res.FirstRows, view.NewRow(row))
	}
}

func printDryRun(c *command.Call, res dryRunResult) error {
	out := c.Out
	send.NoteErased(c, res.Erased)
	if out.Machine() {
		return out.Object(res)
	}
	if out.IsCSV() || out.HasColumns() {
		counts := slices.DeleteFunc(send.CountColumns(), func(c command.Column[send.Result]) bool {
			return !out.HasColumns() && !slices.Contains(dryRunCounts, c.Name)
		})
		for i, c := range counts {
			if c.Name == "PENDING" {
				counts[i].CSV = "rows" // to be sent
			}
		}
		if err := command.PrintTable(out, counts, res.counts()); err != nil {
			return err
		}
	} else if err := printFirstRows(out, res); err != nil {
		return err
	}
	c.IO.Note("Dry run: nothing sent, nothing saved")
	return nil
}

// dryRunCounts are the columns of [dryRunResult.counts].
var dryRunCounts = []string{"READ", "NEW", "ALREADY", "DUPLICATES", "INVALID", "PENDING", "REQUESTS"}

func printFirstRows(out *command.Output, res dryRunResult) error {
	rows, requests := command.Plural(res.Rows, "row"), command.Plural(res.Batches, "request")
	err := out.Fields([]render.Field{
		{Name: "Input", Value: fmt.Sprintf("%s: %s new, %s sent before, %s duplicates, %s bad",
			command.Plural(res.Read, "row"), command.Number(res.New), command.Number(res.Already),
			command.Number(res.Duplicates), command.Number(res.Invalid))},
		{Name: "Would send", Value: fmt.Sprintf("%s in %s of up to %d (%s)", rows, requests, res.BatchSize, res.Operation)},
		{Name: "Carriers", Value: carrierCounts(res.Carriers)},
		{Name: "Numbers", Value: formCounts(res.Forms)},
	})
	if err != nil || len(res.FirstRows) == 0 {
		return err
	}
	columns := view.RowColumns()[:3] // input, reference, number
	return errors.Join(out.Line(""), command.PrintTable(out, columns, res.first...))
}

const shownForms = 5

func formCounts(forms []findings.FormCount) string {
	var parts []string
	var more int64
	for i, f := range forms {
		if i < shownForms {
			parts = append(parts, strings.TrimSpace(f.Carrier+" "+f.Form)+" "+command.Number(f.Rows))
		} else {
			more += f.Rows
		}
	}
	if more > 0 {
		parts = append(parts, "others "+command.Number(more))
	}
	return strings.Join(parts, ", ")
}

func carrierCounts(carriers map[string]int64) string {
	codes := slices.SortedFunc(maps.Keys(carriers), func(a, b string) int {
		return cmp.Or(cmp.Compare(carriers[b], carriers[a]), cmp.Compare(a, b))
	})
	return strings.Join(command.Texts(len(codes), func(i int) string {
		return cmp.Or(codes[i], "identified by the service") + " " + command.Number(carriers[codes[i]])
	}), ", ")
}
