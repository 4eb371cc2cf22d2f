package input

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/term"
)

// Refuse returns the error of an input with bad rows: what it means for the others, and the command to run once
// they are fixed, empty for none.
func (j Judgement) Refuse(outcome, hint, next string) error {
	return &command.UsageError{
		Err: errors.New(BadRows(j) + "; " + outcome), Hint: hint, Reason: command.ReasonInput, Issues: j.Issues, Next: next,
	}
}

// Issue returns a problem as errors list it.
func Issue(p intake.Problem) term.Issue {
	issue := term.Issue{
		File: p.File, Line: p.Line, Column: p.Column, Sheet: p.Sheet, Cell: p.Cell, Header: cmp.Or(p.Header, p.Field),
		Value: p.Value, Message: p.Message, Hint: p.Problem.Hint, Row: p.Row, Field: p.Field,
	}
	if p.Row > 0 {
		issue.Place = Place(p)
	}
	return issue
}

// BadRows says how many rows are bad.
func BadRows(j Judgement) string {
	if j.Invalid == 1 {
		return fmt.Sprintf("1 of %s is bad", command.Plural(j.Read, "row"))
	}
	return fmt.Sprintf("%s of %s are bad", command.Number(j.Invalid), command.Plural(j.Read, "row"))
}

// Place returns where a problem is: in a table by its row, in a workbook FILE:SHEET!CELL, else FILE:LINE:COLUMN.
func Place(p intake.Problem) string {
	at := intake.RowPlace(p.File, p.Line, p.Row, p.Cell)
	switch {
	case p.Line == 0:
		return p.File
	case p.Sheet != "":
		return p.File + ":" + intake.SheetPlace(p.Sheet, cmp.Or(p.Cell, strconv.Itoa(p.Line)))
	case p.Row == 0 && p.Column > 0:
		return fmt.Sprintf("%s:%d", at, p.Column)
	}
	return at
}

// ProblemLine shows a problem with its place, its value and the remedy.
func ProblemLine(p intake.Problem) string {
	var b strings.Builder
	b.WriteString(Place(p))
	if p.Header != "" {
		b.WriteString(", " + command.Quoted(p.Header))
	}
	b.WriteString(": " + p.Message)
	if p.Value != "" {
		b.WriteString(": " + command.Quoted(p.Value))
	}
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	return b.String()
}

// Swapped returns the error of an input whose two columns are exchanged in all rows of a file.
func (j Judgement) Swapped() error {
	for _, s := range j.Summaries {
		if s.Summary.Swapped() {
			message, hint := s.ExchangedText()
			return command.Inputf(hint, "%s: %s; nothing was sent", s.Name, message)
		}
	}
	return nil
}

// QuotedList lists names between quotes.
func QuotedList(names []string) string {
	return strings.Join(command.Texts(len(names), func(i int) string { return command.Quoted(names[i]) }), ", ")
}

// NoteSheet says what is particular about the table: which sheet it is where there are others, what stands above it,
// and what people don't see of it. What is hidden and read all the same is up to [WarnHidden].
func NoteSheet(io *term.IO, s SourceSummary) {
	if others := QuotedList(s.OtherSheets); others != "" {
		io.Note("%s: sheet %s is read; without the columns: %s (--sheet)", s.Name, command.Quoted(s.Sheet), others)
	}
	const noZeros = " stored as numbers, which have no zeros at their beginning"
	for _, particular := range []struct {
		found bool
		text  string
	}{
		{s.HiddenSheet, "sheet " + command.Quoted(s.Sheet) + " is hidden"},
		{s.HeaderRow > 1, fmt.Sprintf("the header is in row %d; the rows above it are not read", s.HeaderRow)},
		{s.Filtered && s.HiddenRows == 0, "a filter is set, which hides no row"},
		{s.AsNumbers > 0, command.Plural(s.AsNumbers, "identifier") + noZeros},
		{s.Padded > 0, command.Plural(s.Padded, "identifier") + " read with the zeros or text that the number format shows"},
	} {
		if particular.found {
			io.Note("%s: %s", s.Name, particular.text)
		}
	}
}

// WarnHidden warns of what a sheet does not show, and is read all the same.
func WarnHidden(io *term.IO, s SourceSummary) {
	if s.HiddenRows > 0 {
		filter := ""
		if s.Filtered {
			filter = ", where a filter is set"
		}
		io.Warning("%s: hidden rows are read too: %s of sheet %s%s; delete them in the file if they are not meant",
			s.Name, command.Plural(s.HiddenRows, "row"), command.Quoted(s.Sheet), filter)
	}
	ignored := func(name string) bool { return slices.Contains(s.Ignored, name) }
	if used := slices.DeleteFunc(slices.Clone(s.HiddenCols), ignored); len(used) > 0 {
		io.Warning("%s: hidden columns are read too: %s of sheet %s; map others with --map if they are not meant",
			s.Name, QuotedList(used), command.Quoted(s.Sheet))
	}
}
