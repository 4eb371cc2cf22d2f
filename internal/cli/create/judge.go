package create

import (
	"context"
	"fmt"
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// notes tells what was noticed on good rows and what is not used.
func (c *creation) notes() {
	for _, p := range c.judged.Notes {
		c.call.IO.Note("%s", input.ProblemLine(p))
	}
	if n := c.judged.MoreNotes; n > 0 {
		c.call.IO.Note("%d more rows with such notes", n)
	}
	for _, s := range c.judged.Summaries {
		c.summaryNotes(s)
	}
}

func (c *creation) summaryNotes(s input.SourceSummary) {
	note := func(format string, args ...any) { c.call.IO.Note("%s: %s", s.Name, fmt.Sprintf(format, args...)) }
	if len(s.Hidden) > 0 {
		note("column names read without the invisible characters in them: %s", input.QuotedList(s.Hidden))
	}
	if len(s.Ignored) > 0 {
		note("columns not used and not stored: %s", input.QuotedList(s.Ignored))
	}
	if len(s.LeftOut) > 0 {
		var rows int64
		var list []string
		for _, l := range s.LeftOut {
			rows += l.Rows
			list = append(list, fmt.Sprintf("%s (%d)", command.Quoted(l.Name), l.Rows))
		}
		rows += s.LeftOutMore
		const most = 8
		if len(list) > most {
			list = append(list[:most], fmt.Sprintf("and %d more names", len(s.LeftOut)-most))
		}
		note("carrier names left out of %d rows, the service identifies the carrier itself: %s; --carrier-map %s=CODE sends a code",
			rows, strings.Join(list, ", "), shell.Word(s.LeftOut[0].Name))
	}
	if s.Trimmed > 0 {
		note("white space cut from around %d values", s.Trimmed)
	}
	if s.Stripped > 0 {
		note("spaces removed from inside %d identifiers", s.Stripped)
	}
	if s.Exchanged*2 > s.Rows {
		c.call.IO.Warning("%s", input.ExchangedText(s))
	}
	if s.Empty > 0 {
		note("%d rows without any value passed over", s.Empty)
	}
}

func (c *creation) conflictProblem(conflict ledger.Conflict) intake.Problem {
	files := c.in.Names()
	return intake.Problem{
		File: files[conflict.Entry.File], Line: conflict.Entry.Line, Header: tracking.FieldCarrierCode,
		Problem: tracking.Problem{
			Field: tracking.FieldCarrierCode, Value: conflict.Entry.Item.CarrierCode,
			Message: fmt.Sprintf("the same tracking stands at %s:%d with carrier code %s",
				files[conflict.First.File], conflict.First.Line, command.Quoted(conflict.First.Item.CarrierCode)),
			Hint: "keep one of the two",
		},
	}
}

func (c *creation) rejectsFile(ctx context.Context) (*input.RejectsFile, error) {
	if c.o.Rejects == "" {
		return &input.RejectsFile{}, nil
	}
	for _, src := range c.in.Sources {
		if input.SameFile(src.Name, c.o.Rejects) {
			return nil, command.Usagef("choose another name", "--rejects %s is the input itself", c.o.Rejects)
		}
	}
	f, err := command.NewAtomicFile(ctx, c.o.Rejects)
	if err != nil {
		return nil, err
	}
	return &input.RejectsFile{File: f, Rows: intake.NewRejects(f)}, nil
}
