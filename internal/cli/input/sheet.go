package input

import (
	"fmt"
	"slices"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/term"
)

// NoteSheet says what is particular about the sheet that rows were read from: which
// one it is where there are others, and what people don't see of it.
// What is hidden and read all the same is up to [WarnHidden].
func NoteSheet(io *term.IO, s SourceSummary) {
	if s.Sheet == "" {
		return
	}
	note := func(format string, args ...any) { io.Note("%s: %s", s.Name, fmt.Sprintf(format, args...)) }
	if len(s.OtherSheets) > 0 {
		note("sheet %s is read; without the columns: %s (--sheet)", command.Quoted(s.Sheet), QuotedList(s.OtherSheets))
	}
	if s.HiddenSheet {
		note("sheet %s is hidden", command.Quoted(s.Sheet))
	}
	if s.HeaderRow > 1 {
		note("the header is in row %d; the rows above it are not read", s.HeaderRow)
	}
	if s.Filtered && s.HiddenRows == 0 {
		note("a filter is set, which hides no row")
	}
	if s.AsNumbers > 0 {
		note("%s stored as numbers, which have no zeros at their beginning", command.Plural(s.AsNumbers, "identifier"))
	}
	if s.Padded > 0 {
		note("%s read with the zeros or text that the number format shows", command.Plural(s.Padded, "identifier"))
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
	var used []string
	for _, name := range s.HiddenCols {
		if !slices.Contains(s.Ignored, name) {
			used = append(used, name)
		}
	}
	if len(used) > 0 {
		io.Warning("%s: hidden columns are read too: %s of sheet %s; map others with --map if they are not meant", s.Name, QuotedList(used), command.Quoted(s.Sheet))
	}
}
