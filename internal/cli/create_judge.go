package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// inputError says that an input has bad rows. Nothing was sent.
type inputError struct {
	judged  judgement
	rejects string // file that got them, empty if none was asked for
	next    string // command that would go on
}

func (e *inputError) Error() string {
	return fmt.Sprintf("%s, nothing was sent", badRows(e.judged))
}

// warning is what stands for the error with --skip-invalid.
func (e *inputError) warning() term.Failure {
	return term.Failure{Message: badRows(e.judged) + " and left out", Errors: issues(e.judged), More: int(e.judged.MoreProblems)}
}

// Issues returns the first bad rows, and how many more there are.
func (e *inputError) Issues() (first []term.Issue, more int) {
	return issues(e.judged), int(e.judged.MoreProblems)
}

// Next returns the command that would go on.
func (e *inputError) Next() string { return e.next }

func issues(j judgement) []term.Issue {
	list := make([]term.Issue, len(j.Problems))
	for i, p := range j.Problems {
		list[i] = term.Issue{File: p.File, Line: p.Line, Column: p.Column, Header: columnName(p), Value: p.Value, Message: p.Message, Hint: p.Problem.Hint}
	}
	return list
}

func columnName(p intake.Problem) string {
	if p.Header != "" {
		return p.Header
	}
	return p.Field
}

func badRows(j judgement) string {
	if j.Invalid == 1 {
		return fmt.Sprintf("1 of %s is bad", plural(j.Read, "row"))
	}
	return fmt.Sprintf("%d of %d rows are bad", j.Invalid, j.Read)
}

// Hint says what to do about an input with bad rows.
func (e *inputError) Hint() string {
	if e.rejects != "" {
		return "the bad rows are in " + quoted(e.rejects) + ": mend them there or in the source, or send the good ones with --skip-invalid"
	}
	return "mend the rows and run the same command again; --skip-invalid sends the good ones, --rejects FILE writes the bad ones to a file"
}

// problemLine shows one problem with its place, the value made visible, and
// the remedy.
func problemLine(p intake.Problem) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d", p.File, p.Line)
	if p.Column > 0 {
		fmt.Fprintf(&b, ":%d", p.Column)
	}
	if p.Header != "" {
		fmt.Fprintf(&b, " (%s)", quoted(p.Header))
	}
	b.WriteString(": " + p.Message)
	if p.Value != "" {
		b.WriteString(": " + quoted(p.Value))
	}
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	return b.String()
}

// notes tells what was noticed on good rows and what is not used.
func (c *creation) notes() {
	for _, p := range c.judged.Notes {
		c.s.IO.Note("%s", problemLine(p))
	}
	if n := c.judged.MoreNotes; n > 0 {
		c.s.IO.Note("%d more rows with such notes", n)
	}
	for _, s := range c.judged.Summaries {
		c.summaryNotes(s)
	}
}

func (c *creation) summaryNotes(s sourceSummary) {
	note := func(format string, args ...any) { c.s.IO.Note("%s: %s", s.Name, fmt.Sprintf(format, args...)) }
	if len(s.Hidden) > 0 {
		note("column names read without the invisible characters in them: %s", quotedList(s.Hidden))
	}
	if len(s.Ignored) > 0 {
		note("columns not used and not stored: %s", quotedList(s.Ignored))
	}
	if len(s.LeftOut) > 0 {
		var rows int64
		var list []string
		for _, l := range s.LeftOut {
			rows += l.Rows
			list = append(list, fmt.Sprintf("%s (%d)", quoted(l.Name), l.Rows))
		}
		rows += s.LeftOutMore
		const most = 8
		if len(list) > most {
			list = append(list[:most], fmt.Sprintf("and %d more names", len(s.LeftOut)-most))
		}
		note("carrier names left out of %d rows, the service identifies the carrier itself: %s; --carrier-map %s=CODE sends a code",
			rows, strings.Join(list, ", "), shellWord(s.LeftOut[0].Name))
	}
	if s.Trimmed > 0 {
		note("white space cut from around %d values", s.Trimmed)
	}
	if s.Stripped > 0 {
		note("spaces removed from inside %d identifiers", s.Stripped)
	}
	if s.Exchanged*2 > s.Rows {
		c.s.IO.Warning("%s", exchangedText(s))
	}
	if s.Empty > 0 {
		note("%d rows without any value passed over", s.Empty)
	}
}

// exchangedText says that the two columns look like each other, and which
// flags exchange them.
func exchangedText(s sourceSummary) string {
	text := fmt.Sprintf("%s: in %d of %s the referId looks like a tracking number and the number like an order", s.Name, s.Exchanged, plural(s.Rows, "row"))
	if s.ReferID == "" {
		return text + "; exchange the two fields if that is so"
	}
	return fmt.Sprintf("%s; if the columns are exchanged, add --map %s=%s --map %s=%s", text,
		tracking.FieldReferID, shellWord(s.Number), tracking.FieldNumber, shellWord(s.ReferID))
}

func quotedList(names []string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = quoted(n)
	}
	return strings.Join(list, ", ")
}

func (c *creation) conflictProblem(conflict ledger.Conflict) intake.Problem {
	files := c.in.names()
	return intake.Problem{
		File: files[conflict.Entry.File], Line: conflict.Entry.Line, Header: tracking.FieldCarrierCode,
		Problem: tracking.Problem{
			Field: tracking.FieldCarrierCode, Value: conflict.Entry.Item.CarrierCode,
			Message: fmt.Sprintf("the same tracking stands at %s:%d with carrier code %s",
				files[conflict.First.File], conflict.First.Line, quoted(conflict.First.Item.CarrierCode)),
			Hint: "keep one of the two",
		},
	}
}

// rejectsFile is a file of rejected rows in the making. One that was not asked
// for does nothing.
type rejectsFile struct {
	file *wholeFile
	rows *intake.Rejects
}

func (c *creation) rejectsFile(ctx context.Context) (*rejectsFile, error) {
	if c.o.Rejects == "" {
		return &rejectsFile{}, nil
	}
	for _, src := range c.in.sources {
		if same(src.name, c.o.Rejects) {
			return nil, usagef("choose another name", "--rejects %s is the input itself", c.o.Rejects)
		}
	}
	f, err := newWholeFile(ctx, c.o.Rejects)
	if err != nil {
		return nil, err
	}
	return &rejectsFile{file: f, rows: intake.NewRejects(f)}, nil
}

func same(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

func (f *rejectsFile) writer() *intake.Rejects { return f.rows }

func (f *rejectsFile) keep() error {
	if f.file == nil {
		return nil
	}
	return f.file.Commit()
}

func (f *rejectsFile) discard() {
	if f.file != nil {
		f.file.Discard()
	}
}
