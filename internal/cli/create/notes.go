package create

import (
	"fmt"
	"slices"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/term"
)

// printSummaryNotes says what was noticed of a file, and what is not used.
func printSummaryNotes(io *term.IO, s input.SourceSummary) {
	input.NoteSheet(io, s)
	input.WarnHidden(io, s)
	note := func(format string, args ...any) { io.Note("%s: %s", s.Name, fmt.Sprintf(format, args...)) }
	if len(s.Hidden) > 0 {
		note("invisible characters removed from column names: %s", input.QuotedList(s.Hidden))
	}
	if unused := slices.DeleteFunc(slices.Clone(s.Ignored), func(name string) bool { return slices.Contains(s.Own, name) }); len(unused) > 0 {
		note("columns not used: %s", input.QuotedList(unused))
	}
	if len(s.Own) > 0 {
		note("columns kept with the rows, not sent (list --columns shows them): %s", input.QuotedList(s.Own))
	}
	if s.OwnLong > 0 {
		io.Warning("%s: %s longer than %s bytes not kept", s.Name, command.Plural(s.OwnLong, "value"), command.Number(intake.MaxOwnText))
	}
	if s.OwnLatin > 0 {
		io.Warning("%s: %s kept that are not UTF-8: read as Windows-1252; --encoding names another encoding", s.Name, command.Plural(s.OwnLatin, "value"))
	}
	if message, hint := s.LeftOutText(); message != "" {
		note("%s; %s", message, hint)
	}
	if s.Trimmed > 0 {
		note("white space trimmed from %s", command.Plural(s.Trimmed, "value"))
	}
	if s.Stripped > 0 {
		note("spaces removed from %s", command.Plural(s.Stripped, "tracking number"))
	}
	if message, hint := s.ExchangedText(); message != "" && !s.Swapped() {
		io.Warning("%s: %s; %s", s.Name, message, hint)
	}
	if s.Empty > 0 {
		note("%s skipped", command.Plural(s.Empty, "empty row"))
	}
}
