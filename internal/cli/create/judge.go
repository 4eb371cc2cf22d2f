package create

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/check"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/findings"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// openInput opens what the line names. The caller closes it.
func openInput(ctx context.Context, c *command.Call, o createOptions) (*input.Input, error) {
	single := o.ReferID != "" || o.Number != "" || o.Carrier != ""
	switch {
	case single && len(o.Files) > 0:
		return nil, command.Usagef("pass either files or the flags of one row",
			"files can't be combined with --refer-id and --tracking-number")
	case single && (o.ReferID == "" || o.Number == ""):
		return nil, command.Usagef("waybill create --refer-id R --tracking-number N [--carrier-code C]",
			"--refer-id and --tracking-number must be used together")
	case single:
		item := tracking.Item{ReferID: o.ReferID, Number: o.Number, CarrierCode: o.Carrier}
		return &input.Input{Sources: []input.Source{{Name: "command line", Row: &item}}}, nil
	case len(o.Files) == 0:
		return nil, command.Usagef("waybill create orders.csv, or `waybill create -` to read standard input", "no input")
	}
	return input.OpenFiles(ctx, c, o.Files)
}

func (c *creation) judge(ctx context.Context) error {
	var file *command.AtomicFile // nil without --rejects
	if c.o.Rejects != "" {
		err := c.Call.Spare("rejects", c.o.Rejects)
		if err == nil {
			file, err = command.NewAtomicFile(ctx, c.o.Rejects)
		}
		if err != nil {
			return err
		}
	}
	defer file.Discard()
	collector := findings.New()
	defer collector.Close()
	var err error
	if c.judged, err = c.in.Judge(ctx, collector); err != nil {
		return err
	}
	if err := c.o.KeepMap(c.Call); err != nil {
		return err
	}
	if err := c.checkRejectsName(); err != nil {
		return err
	}
	for _, s := range c.judged.Summaries {
		printSummaryNotes(c.Call.IO, s)
	}
	if err := c.judged.Swapped(); err != nil {
		return err
	}
	if !c.o.Strict {
		check.Warn(c.Call.IO, c.judged.Found)
	}
	if c.judged.Invalid > 0 {
		if err := c.commitRejects(ctx, file); err != nil {
			return err
		}
		if !c.in.Skip || c.judged.Valid == 0 {
			return c.judged.Refuse("nothing was sent", c.badRowsHint(), c.Repeat)
		}
		bad := c.judged.Issues
		c.Call.IO.WarningWith(term.Failure{Message: input.BadRows(c.judged) + "; skipped", Errors: bad.First, More: bad.More})
	} else if err := c.removeOldRejects(); err != nil {
		return err
	}
	if c.o.Strict && c.judged.Found.Count(findings.Warning) > 0 {
		return check.Refuse(c.judged.Found)
	}
	return nil
}

func (c *creation) badRowsHint() string {
	if c.o.Rejects != "" {
		return "the bad rows are in " + command.Quoted(c.o.Rejects) +
			": fix them there or in the source, or send the good rows with --skip-invalid"
	}
	return "fix the rows and re-run the same command; --skip-invalid sends the good rows, " +
		"--rejects FILE writes the bad rows to a file"
}

// removeOldRejects removes the file of an earlier command: there are no bad rows now.
func (c *creation) removeOldRejects() error {
	info, err := os.Lstat(c.o.Rejects)
	if err != nil || !info.Mode().IsRegular() { // no --rejects, or no file
		return nil //nolint:nilerr // see above
	}
	if err := os.Remove(c.o.Rejects); err != nil {
		return err
	}
	c.Call.IO.Note("No bad rows: %s of an earlier command removed", c.o.Rejects)
	return nil
}

// checkRejectsName refuses another ending than the input's format has: spreadsheets refuse such a file.
func (c *creation) checkRejectsName() error {
	ending := filepath.Ext(c.o.Rejects)
	if ending == "" {
		return nil
	}
	named := strings.EqualFold(ending, ".xlsx")
	for _, s := range c.judged.Summaries {
		right := s.Format
		if right == "" || s.Bad == 0 && len(c.judged.Summaries) > 1 || (right == intake.XLSX) == named {
			continue
		}
		if right == intake.JSON {
			right = intake.JSONL // what its bad rows become
		}
		return command.Usagef("use another name",
			"--rejects %s must end in .%s, as the input %s does", c.o.Rejects, right, s.Name)
	}
	return nil
}

func (c *creation) commitRejects(ctx context.Context, file *command.AtomicFile) error {
	if file == nil {
		return nil
	}
	if err := c.in.WriteRejects(ctx, file); err != nil {
		return err
	}
	return file.Commit()
}

func printSummaryNotes(io *term.IO, s input.SourceSummary) {
	input.NoteSheet(io, s)
	input.WarnHidden(io, s)
	unused := slices.DeleteFunc(slices.Clone(s.Ignored), func(name string) bool { return slices.Contains(s.Own, name) })
	leftOut, leftOutHint := s.LeftOutText()
	exchanged, exchangedHint := s.ExchangedText()
	long := " longer than " + command.Number(intake.MaxOwnText) + " bytes not kept"
	const kept = "columns kept with the rows, not sent (list --columns shows them): "
	const latin = " kept that are not UTF-8: read as Windows-1252; --encoding names another encoding"
	for _, particular := range []struct {
		found bool
		say   func(format string, args ...any)
		text  string
	}{
		{len(s.Hidden) > 0, io.Note, "invisible characters removed from column names: " + input.QuotedList(s.Hidden)},
		{len(unused) > 0, io.Note, "columns not used: " + input.QuotedList(unused)},
		{len(s.Own) > 0, io.Note, kept + input.QuotedList(s.Own)},
		{s.OwnLong > 0, io.Warning, command.Plural(s.OwnLong, "value") + long},
		{s.OwnLatin > 0, io.Warning, command.Plural(s.OwnLatin, "value") + latin},
		{leftOut != "", io.Note, leftOut + "; " + leftOutHint},
		{s.Trimmed > 0, io.Note, "white space trimmed from " + command.Plural(s.Trimmed, "value")},
		{s.Stripped > 0, io.Note, "spaces removed from " + command.Plural(s.Stripped, "tracking number")},
		{exchanged != "" && !s.Swapped(), io.Warning, exchanged + "; " + exchangedHint},
		{s.Empty > 0, io.Note, command.Plural(s.Empty, "empty row") + " skipped"},
	} {
		if particular.found {
			particular.say("%s: %s", s.Name, particular.text)
		}
	}
}
