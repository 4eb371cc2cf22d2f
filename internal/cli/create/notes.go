package create

import (
	"fmt"
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/shell"
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
	if len(s.Ignored) > 0 {
		note("columns not used: %s", input.QuotedList(s.Ignored))
	}
	if len(s.LeftOut) > 0 {
		var rows int64
		var list []string
		for _, l := range s.LeftOut {
			rows += l.Rows
			list = append(list, fmt.Sprintf("%s (%s)", command.Quoted(l.Name), command.Number(l.Rows)))
		}
		rows += s.LeftOutMore
		const limit = 8
		if len(list) > limit {
			list = append(list[:limit], fmt.Sprintf("and %d more names", len(s.LeftOut)-limit))
		}
		note("carrier names not used (%s): %s; the service detects carriers; --carrier-map %s=CODE sends one",
			command.Plural(rows, "row"), strings.Join(list, ", "), shell.Word(s.LeftOut[0].Name))
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
