// Package check has the command that finds errors and oddities in a file, and prints
// the same findings for create.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/findings"
	"github.com/waybill-cli/waybill/internal/term"
)

type options struct {
	Files  []string
	Strict bool
	input.Flags
}

// New returns the command check.
func New(f *command.Factory) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "check FILE|-...",
		Short: "Say what is wrong with a file before it is sent",
		Long: `check reads a file as create does, and lists what is wrong with it, or unusual. It
needs no settings, no key and no store, sends nothing and changes nothing.

  error    create refuses the row
  warning  create sends it as it is, and it is likely wrong: a check digit that
           does not fit, letters that look like digits, lost leading zeros, one
           number under two orders ...
  note     create sends it as it is: repeated rows, orders in several parcels,
           columns that are not used ...

The numbers are counted by the carrier's form that they have. "waybill help input"
says which check digits are checked, and what each kind of finding means.

The exit status is 2 if there are errors, or with --strict warnings, else 0.`,
		Example: command.Example("waybill check orders.csv", "waybill check orders.csv -o csv --out findings.csv",
			`waybill check export.csv --map referId="Order No" --strict`),
	}
	cmd.RunE = f.WithArgs(&o.Files, func(ctx context.Context, c *command.Call) error { return run(ctx, c, o) })
	StrictFlag(cmd, &o.Strict)
	o.AddRows(cmd)
	command.ColumnsFlag(cmd, columns())
	return cmd
}

// StrictFlag adds --strict.
func StrictFlag(cmd *cobra.Command, strict *bool) {
	cmd.Flags().BoolVar(strict, "strict", false, "treat warnings of `waybill check` as errors")
}

func run(ctx context.Context, call *command.Call, o options) error {
	if len(o.Files) == 0 {
		return command.Usagef("waybill check orders.csv, or `waybill check -` to read standard input", "no input")
	}
	if err := o.CheckSaveMap(call); err != nil {
		return err
	}
	in, err := input.OpenFiles(ctx, call, o.Files)
	if err != nil {
		return err
	}
	defer in.Close()
	in.Options = o.Options(call)
	collector := findings.New()
	defer collector.Close()
	checked, err := in.Check(ctx, collector)
	switch {
	case err != nil:
		return err
	case checked.Read == 0:
		return command.Inputf("check the export", "%s: no data rows", in.Sources[0].Name)
	}
	if err := o.KeepMap(call); err != nil {
		return err
	}
	for _, s := range checked.Summaries {
		input.NoteSheet(call.IO, s)
	}
	report := checked.Found
	if err := printReport(call, checked); err != nil {
		return err
	}
	wrong := report.Count(findings.Error)
	if o.Strict {
		wrong += report.Count(findings.Warning)
	}
	text := command.Plural(checked.Read, "row") + ": " + counts(report)
	if wrong > 0 {
		const hint = "fix the file or the export, then check it again"
		return &command.UsageError{Err: command.FoundError(text), Hint: hint, Reason: command.ReasonInput}
	}
	call.IO.Note("%s", text)
	return nil
}

func counts(r *findings.Report) string {
	var parts []string
	for _, s := range []findings.Severity{findings.Error, findings.Warning, findings.Note} {
		if n := r.Count(s); n > 0 {
			parts = append(parts, command.Plural(n, string(s)))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing found")
}

var titles = map[findings.Kind]string{
	findings.BadRow:         "bad rows",
	findings.Damaged:        "damaged values",
	findings.Placeholder:    "placeholders",
	findings.Invisible:      "invisible characters",
	findings.WhiteSpace:     "white space inside identifiers",
	findings.CarrierName:    "carrier names sent as codes",
	findings.Unusual:        "unusual values",
	findings.CheckDigit:     "wrong check digits",
	findings.UnknownCarrier: "numbers of unknown carriers",
	findings.LookAlike:      "look-alike characters",
	findings.LowerCase:      "letters in lower case",
	findings.LostZeros:      "lost leading zeros",
	findings.NoForm:         "numbers without a carrier's form",
	findings.OtherCarrier:   "numbers of another carrier",
	findings.SeveralInCell:  "several numbers in one cell",
	findings.Markup:         "HTML or URL characters",
	findings.Quotes:         "quotes around values",
	findings.Contradiction:  "one tracking with two carrier codes",
	findings.SharedNumber:   "one number under two orders",
	findings.Spelling:       "different spellings",
	findings.RepeatedRow:    "repeated rows",
	findings.SeveralNumbers: "orders with several numbers",
	findings.HiddenRow:      "hidden rows",
	findings.HiddenColumn:   "hidden columns",
	findings.Exchanged:      "exchanged columns",
	findings.UnusedColumn:   "columns not sent",
	findings.LeftOut:        "carrier names not used",
}

func columns() []command.Column[findings.Finding] {
	type finding = findings.Finding
	number := func(n int) string { return command.NonZero(int64(n)) }
	return []command.Column[finding]{
		{Name: "SEVERITY", Cell: func(f finding) string { return string(f.Severity) }},
		{Name: "KIND", Cell: func(f finding) string { return string(f.Kind) }},
		{Name: "FILE", Flex: true, Cell: func(f finding) string { return f.File }},
		{Name: "LINE", Right: true, Cell: func(f finding) string { return number(f.Line) }},
		{Name: "COLUMN", Right: true, Cell: func(f finding) string { return number(f.Column) }},
		{Name: "SHEET", CSV: "sheet", Extra: true, Cell: func(f finding) string { return f.Sheet }},
		{Name: "CELL", CSV: "cell", Extra: true, Cell: func(f finding) string { return f.Cell }},
		{Name: "HEADER", Cell: func(f finding) string { return f.Header }},
		{Name: "VALUE", ID: true, Cell: func(f finding) string { return f.Value }},
		{Name: "MESSAGE", Flex: true, Cell: func(f finding) string { return f.Message }},
		{Name: "HINT", CSV: "hint", Flex: true, Extra: true, Cell: func(f finding) string { return f.Hint }},
		{Name: "ROW", CSV: "row", Extra: true, Cell: func(f finding) string { return number(f.Row) }},
	}
}

func printReport(call *command.Call, checked input.Checked) error {
	out, r := call.Out, checked.Found
	if out.Machine() || out.IsCSV() || out.HasColumns() {
		l := command.Listing[findings.Finding]{Out: out, Columns: columns(), JSON: func(f findings.Finding) any { return f }}
		return l.Print(r.All())
	}
	for _, g := range r.Groups {
		severity := strings.ToUpper(string(g.Severity))
		err := out.Line("%s: %s (%s)", severity, titles[g.Kind], command.Number(g.Count))
		for _, f := range g.First {
			err = errors.Join(err, out.Line("  %s", input.ProblemLine(f.Problem)))
		}
		if more := g.Count - int64(len(g.First)); more > 0 {
			err = errors.Join(err, out.Line("  %s more; -o csv and -o jsonl list all", command.Number(more)))
		}
		if err := errors.Join(err, out.Line("")); err != nil {
			return err
		}
	}
	if checked.Valid == 0 {
		return nil
	}
	forms := []command.Column[findings.FormCount]{
		{Name: "CARRIER", Cell: func(n findings.FormCount) string { return n.Carrier }},
		{Name: "FORM", Cell: func(n findings.FormCount) string { return n.Form }},
		{Name: "ROWS", Right: true, Count: func(n findings.FormCount) int64 { return n.Rows }},
		{Name: "WRONG", Right: true, Count: func(n findings.FormCount) int64 { return n.Wrong }},
	}
	return command.PrintTable(out, forms, r.Forms...)
}

var noted = []findings.Kind{
	findings.HiddenRow, findings.HiddenColumn, findings.Exchanged, findings.UnusedColumn, findings.LeftOut,
}

// Warn prints the warnings of a report, except the kinds that create prints itself.
func Warn(io *term.IO, r *findings.Report) {
	const shown = 5 // of each kind
	for _, g := range r.Groups {
		if g.Severity != findings.Warning || slices.Contains(noted, g.Kind) {
			continue
		}
		f := term.Failure{Message: fmt.Sprintf("%s (%s)", titles[g.Kind], command.Number(g.Count))}
		for _, first := range g.First[:min(len(g.First), shown)] {
			f.Errors = append(f.Errors, input.Issue(first.Problem))
		}
		f.More = int(g.Count) - len(f.Errors)
		io.WarningWith(f)
	}
}

// Note prints short forms of a report's notes, except the kinds that create prints itself.
func Note(io *term.IO, r *findings.Report) {
	for _, g := range r.Groups {
		if g.Severity != findings.Note || slices.Contains(noted, g.Kind) {
			continue
		}
		more := ""
		if g.Count > 1 {
			more = fmt.Sprintf(" (and %s more)", command.Number(g.Count-1))
		}
		io.Note("%s: %s%s", titles[g.Kind], input.ProblemLine(g.First[0].Problem), more)
	}
}

// Refuse returns the error of --strict for an input with warnings.
func Refuse(r *findings.Report) error {
	e := &command.UsageError{
		Reason: command.ReasonInput,
		Err:    errors.New(command.Plural(r.Count(findings.Warning), "warning") + " with --strict; nothing was sent"),
		Hint:   "fix the file, or omit --strict to send it as it is; `waybill check` lists all findings",
	}
	for _, g := range r.Groups {
		if g.Severity != findings.Warning {
			continue
		}
		for _, f := range g.First {
			e.Issues.Add(input.Issue(f.Problem))
		}
		e.Issues.More += int(g.Count) - len(g.First)
	}
	return e
}
