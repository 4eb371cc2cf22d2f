// Package findings says what is wrong or odd with the rows of an input, as a
// person would want to hear it before it is sent: each finding with its place,
// and by kind. It changes nothing, and holds no row.
package findings

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/xlsx"
)

// Severity is what a finding means for the row.
type Severity string

// Severities, the gravest first.
const (
	Error   Severity = "error"   // the row is not sent
	Warning Severity = "warning" // it is sent as it is, and is likely wrong
	Note    Severity = "note"    // it is sent as it is, and is likely meant so
)

// Kind is what a finding is about.
type Kind string

// Kinds. An input that can't be read at all is an error of its reader instead.
const (
	BadRow         Kind = "bad-row" // a rule of the service, or the shape of the row
	Damaged        Kind = tracking.KindDamaged
	Placeholder    Kind = tracking.KindPlaceholder
	Invisible      Kind = tracking.KindInvisible
	WhiteSpace     Kind = tracking.KindSpace
	Unusual        Kind = "unusual"          // some other note on a good row
	CheckDigit     Kind = "check-digit"      // it is wrong in every form that the number has
	UnknownCarrier Kind = "unknown-carrier"  // most numbers of one length fit no published rule
	LookAlike      Kind = "look-alike"       // a character that looks like the right one, or is nearly right
	LowerCase      Kind = "lower-case"       // letters that carriers write as capitals
	LostZeros      Kind = "lost-zeros"       // leading zeros are missing
	SeveralInCell  Kind = "several-in-cell"  // more than one number in a cell
	Markup         Kind = "markup"           // HTML entities, tags, percent signs of a URL
	Quotes         Kind = "quotes"           // quotes around the value
	SharedNumber   Kind = "shared-number"    // one number under two orders
	Spelling       Kind = "spelling"         // the same number or order written in two ways
	RepeatedRow    Kind = "repeated-row"     // the same row twice: sent once
	SeveralNumbers Kind = "several-numbers"  // an order with several numbers
	HiddenRow      Kind = "hidden-row"       // the sheet does not show the row
	HiddenColumn   Kind = "hidden-column"    // the sheet does not show a column in use
	Exchanged      Kind = "exchanged"        // the two columns look exchanged
	UnusedColumn   Kind = "unused-column"    // not read
	LeftOut        Kind = "carrier-left-out" // names of carriers that are not sent
)

// Finding is one thing wrong or odd in one place.
type Finding struct {
	Severity Severity `json:"severity"`
	Kind     Kind     `json:"kind"`
	File     string   `json:"file"`
	Line     int      `json:"line,omitempty"`   // physical, 1-based; 0 for the whole file
	Column   int      `json:"column,omitempty"` // 1-based; 0 for the whole row
	Sheet    string   `json:"sheet,omitempty"`  // of a workbook; Line is the row's number then
	Cell     string   `json:"cell,omitempty"`   // its address there, such as B17
	Header   string   `json:"header,omitempty"` // name of the column or field
	Value    string   `json:"value,omitempty"`  // as read, cut when it is long
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"`

	// group is what the finding stands and falls with; empty for nothing.
	group string
}

// Shown is how many findings of a kind are kept for [Group.First].
const Shown = 20

// Group is all findings of a kind and severity.
type Group struct {
	Kind     Kind      `json:"kind"`
	Severity Severity  `json:"severity"`
	Count    int64     `json:"count"`
	First    []Finding `json:"first"` // those that stand first, at most [Shown]
}

func (g *Group) add(f Finding) {
	g.Count++
	at, _ := slices.BinarySearchFunc(g.First, f, byPlace)
	if at < Shown {
		g.First = slices.Insert(g.First, at, f)
		g.First = g.First[:min(len(g.First), Shown)]
	}
}

// byPlace compares findings of a kind by line. Files keep their order.
func byPlace(a, b Finding) int {
	if a.File != b.File {
		return -1
	}
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), -1)
}

// FormCount is how many numbers of good rows have a form.
type FormCount struct {
	Carrier string `json:"carrier"` // "unknown" for numbers without a known form
	Form    string `json:"form,omitempty"`
	Rows    int64  `json:"rows"`
	Wrong   int64  `json:"wrong"` // of them, with a wrong check digit
}

// ofProblem returns the finding of a problem that reading found.
func ofProblem(p intake.Problem) Finding {
	f := Finding{
		Severity: Error, Kind: BadRow, File: p.File, Line: p.Line, Column: p.Column, Sheet: p.Sheet, Cell: p.Cell, Header: p.Header, Value: p.Value,
		Message: p.Message, Hint: p.Problem.Hint,
	}
	if f.Header == "" {
		f.Header = p.Field
	}
	if p.Note {
		f.Severity, f.Kind = Warning, Unusual
	}
	if p.Kind != "" {
		f.Kind = Kind(p.Kind)
	}
	if kind, message, hint := severalInCell(p.Value, p.Field == tracking.FieldNumber); f.Kind == WhiteSpace && kind != "" {
		f.Kind, f.Message, f.Hint = kind, message, hint
	}
	return f
}

// place is where a value stands.
type place struct {
	file   int // index of the source
	line   int
	column int
	header string
	sheet  string // of a workbook
}

func (c *Collector) finding(severity Severity, kind Kind, at place, value, message, hint string) Finding {
	f := Finding{
		Severity: severity, Kind: kind, File: c.files[at.file], Line: at.line, Column: at.column, Sheet: at.sheet, Header: at.header,
		Value: intake.Shorten(value), Message: message, Hint: hint,
	}
	if at.sheet != "" && at.column > 0 {
		f.Cell = xlsx.Address(at.column-1, at.line)
	}
	return f
}

func atLine(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }
