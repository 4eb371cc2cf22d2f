package view

import (
	"fmt"
	"iter"
	"strconv"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
)

// Counts lists how many rows are in each state.
func Counts(c ledger.Counts) string {
	return fmt.Sprintf("%d accepted, %d rejected, %d unknown, %d pending", c.Accepted, c.Rejected, c.Unknown, c.Pending+c.Sending)
}

// Row is one record of a run's input in our output.
type Row struct {
	File              string       `json:"file"`
	Line              int          `json:"line"`
	ReferID           string       `json:"referId"`
	RawTrackingNumber string       `json:"rawTrackingNumber"`
	CarrierCode       string       `json:"carrierCode,omitempty"`
	State             ledger.State `json:"state"`
	Reason            string       `json:"reason"`
	Duplicate         bool         `json:"duplicate,omitempty"` // the same pair stands earlier in the input
}

// NewRow returns a row as it is stored.
func NewRow(row ledger.Row) Row {
	return Row{
		File: row.File, Line: row.Line, ReferID: row.Item.ReferID, RawTrackingNumber: row.Item.Number, CarrierCode: row.Item.CarrierCode,
		State: row.State, Reason: row.Reason, Duplicate: row.Repeat,
	}
}

// PrintRows prints rows as they come. The columns of CSV are named as create
// reads them.
func PrintRows(c *command.Call, rows iter.Seq2[ledger.Row, error]) error {
	w := command.Listing[ledger.Row]{
		Out: c.Out, Empty: "no such rows",
		JSON: func(row ledger.Row) any { return NewRow(row) },
		Columns: []render.Column{
			{Name: "INPUT"},
			{Name: "REFERENCE", ID: true},
			{Name: "NUMBER", ID: true},
			{Name: "CARRIER", From: 120},
			{Name: "STATE"},
			{Name: "REASON", Flex: true},
		},
		Cells: func(row ledger.Row) []string {
			return []string{fmt.Sprintf("%s:%d", row.File, row.Line), row.Item.ReferID, row.Item.Number, row.Item.CarrierCode, string(row.State), row.Reason}
		},
	}
	if c.Out.IsCSV() {
		w.Columns = []render.Column{
			{Name: "referId", ID: true},
			{Name: "rawTrackingNumber", ID: true},
			{Name: "carrierCode", ID: true},
			{Name: "state"},
			{Name: "reason"},
			{Name: "file"},
			{Name: "line"},
		}
		w.Cells = func(row ledger.Row) []string {
			return []string{row.Item.ReferID, row.Item.Number, row.Item.CarrierCode, string(row.State), row.Reason, row.File, strconv.Itoa(row.Line)}
		}
	}
	return w.Print(c.IO, rows)
}
