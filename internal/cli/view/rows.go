package view

import (
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

// Counts lists how many rows of a run's input are in each state, rejected ones by
// what they are.
func Counts(s ledger.RunSummary) string {
	var settled string
	if s.Superseded > 0 {
		settled = command.Number(s.Superseded) + " superseded, "
	}
	if s.Dismissed > 0 {
		settled += command.Number(s.Dismissed) + " dismissed, "
	}
	return fmt.Sprintf("%s accepted, %s rejected, %s%s unknown, %s pending", command.Number(s.Counts.Accepted), command.Number(s.Rejected()), settled, command.Number(s.Counts.Unknown), command.Number(s.Counts.Pending+s.Counts.Sending))
}

// What rejected rows are called that need nothing more.
const (
	Superseded = "superseded"
	Dismissed  = "dismissed"
)

// RowStates are the words of --state, see [RowState].
func RowStates() []string {
	return []string{string(ledger.Accepted), string(ledger.Rejected), Superseded, Dismissed, string(ledger.Unknown), string(ledger.Pending), string(ledger.Sending)}
}

// NotCreated is the state of a row of a file of which the store has none.
const NotCreated ledger.State = "notCreated"

// RowState names the state of a row, and what a rejected one is beside that.
func RowState(row ledger.Row) string {
	switch {
	case row.Superseded:
		return Superseded
	case !row.Dismissed.IsZero():
		return Dismissed
	}
	return string(row.State)
}

// StateStyle is the colour of a state of rows, or of a batch.
func StateStyle(state string) term.Style {
	switch state {
	case string(ledger.Rejected):
		return term.Bad
	case string(ledger.Unknown):
		return term.Caution
	case Superseded, Dismissed:
		return term.Faint
	}
	return term.Normal
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
	Superseded        bool         `json:"superseded,omitempty"` // rejected, and another number of the referId was accepted since
	Dismissed         *time.Time   `json:"dismissed,omitempty"`  // rejected: when the user dismissed it
	Duplicate         bool         `json:"duplicate,omitempty"`  // the same pair stands earlier in the input
}

// NewRow returns a row as it is stored.
func NewRow(row ledger.Row) Row {
	r := Row{
		File: row.File, Line: row.Line, ReferID: row.Item.ReferID, RawTrackingNumber: row.Item.Number, CarrierCode: row.Item.CarrierCode,
		State: row.State, Reason: row.Reason, Superseded: row.Superseded, Duplicate: row.Repeat,
	}
	if !row.Dismissed.IsZero() {
		r.Dismissed = TimeOrNull(row.Dismissed)
	}
	return r
}

// RowColumns returns the columns of rows. In CSV they are named as create reads them.
func RowColumns() []command.Column[ledger.Row] {
	return []command.Column[ledger.Row]{
		{Column: render.Column{Name: "INPUT", CSV: "-", Rank: 2}, Cell: func(row ledger.Row) string { return fmt.Sprintf("%s:%d", row.File, row.Line) }},
		{Column: render.Column{Name: "REFERENCE", CSV: "referId", ID: true}, Cell: func(row ledger.Row) string { return row.Item.ReferID }},
		{Column: render.Column{Name: "NUMBER", CSV: "rawTrackingNumber", ID: true}, Cell: func(row ledger.Row) string { return row.Item.Number }},
		{Column: render.Column{Name: "CARRIER", CSV: "carrierCode", ID: true, Rank: 3}, Cell: func(row ledger.Row) string { return row.Item.CarrierCode }},
		{Column: render.Column{Name: "STATE", CSV: "state"}, Cell: RowState, Style: func(row ledger.Row) term.Style { return StateStyle(RowState(row)) }},
		{Column: render.Column{Name: "REASON", CSV: "reason", Flex: true, Rank: 1}, Cell: func(row ledger.Row) string { return row.Reason }},
		{Column: render.Column{Name: "FILE", CSV: "file", Extra: true}, Cell: func(row ledger.Row) string { return row.File }},
		{Column: render.Column{Name: "LINE", CSV: "line", Extra: true, Right: true}, Cell: func(row ledger.Row) string { return strconv.Itoa(row.Line) }},
	}
}

// PrintRows prints rows as they come.
func PrintRows(c *command.Call, rows iter.Seq2[ledger.Row, error]) error {
	w := command.Listing[ledger.Row]{
		Out: c.Out, Empty: "No matching rows", Columns: RowColumns(),
		JSON: func(row ledger.Row) any { return NewRow(row) },
	}
	return w.Print(c.IO, rows)
}
