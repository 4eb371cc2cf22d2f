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

// Refuse returns the error of an input with bad rows. outcome says what happens to the other rows; next is the command
// to run once the bad rows are fixed, or "".
func (j Checked) Refuse(outcome, hint, next string) error {
	return &command.UsageError{
		Err: errors.New(BadRows(j) + "; " + outcome), Hint: hint, Reason: command.ReasonInput, Issues: j.Issues, Next: next,
	}
}

// Issue returns a problem in the form that errors list.
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

// BadRows returns a text with the number of bad rows.
func BadRows(j Checked) string {
	if j.Invalid == 1 {
		return fmt.Sprintf("1 of %s is bad", command.Plural(j.Read, "row"))
	}
	return fmt.Sprintf("%s of %s are bad", command.Number(j.Invalid), command.Plural(j.Read, "row"))
}

// Place returns the location of a problem: the row of a table, FILE:SHEET!CELL in a workbook, else FILE:LINE:COLUMN.
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

// ProblemLine returns a line with the location, value and remedy of a problem.
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

// Swapped returns an error if referId and tracking number look exchanged in all rows of a file.
func (j Checked) Swapped() error {
	for _, s := range j.Summaries {
		if s.Summary.Swapped() {
			message, hint := s.ExchangedText()
			return command.Inputf(hint, "%s: %s; nothing was sent", s.Name, message)
		}
	}
	return nil
}

// QuotedList joins quoted names.
func QuotedList(names []string) string {
	return strings.Join(command.Texts(len(names), func(i int) string { return command.Quoted(names[i]) }), ", ")
}

// NoteSheet prints notes about the table that was read: the chosen sheet if there are several, lines above the header,
// and hidden content that was skipped. [WarnHidden] is about hidden content that was read.
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

// WarnHidden warns about hidden rows and columns that were read.
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
