package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
)

// Output writes a command's result in the requested format, to standard output or the file of --out.
type Output struct {
	*render.Printer

	ctx  context.Context //nolint:containedctx // ends an endless --jq
	file *AtomicFile     // nil for standard output

	columns []string // of --columns; nil for the format's defaults
	status  bool     // --exit-status is set
	io      *term.IO
}

func runsUntilStopped(cmd *cobra.Command) bool {
	return cmd.Name() == "listen" || cmd.Name() == "inspect" || cmd.Name() == "sandbox"
}

// watchFormat returns the format of --watch: a redrawn table on a terminal that can redraw, else JSON Lines.
func watchFormat(cmd *cobra.Command, io *term.IO, format, jq string) (string, error) {
	switch {
	case format == string(render.CSV) || format == string(render.XLSX):
		return "", Usagef("omit -o "+format+" or --watch", "--watch does not support %s", strings.ToUpper(format))
	case format == string(render.Table) && jq == "" && !cmd.Flags().Changed("out") && io.CanRedraw():
		return format, nil
	}
	return string(render.JSONL), nil
}

// Output returns the output of a command that runs without settings: only --output and --json set its format.
func (f *Factory) Output(cmd *cobra.Command) (*Output, error) {
	format := valueOf(cmd, "output")
	if isSet(cmd, "json") {
		format = string(render.JSON)
	}
	if asExcel(cmd) {
		format = string(render.CSV)
	}
	return newOutput(cmd, f.App, format)
}

// newOutput also checks the flags about output, before the command does anything.
func newOutput(cmd *cobra.Command, a *app.App, format string) (*Output, error) {
	live := runsUntilStopped(cmd) // results are written immediately, JSON as JSON Lines
	onlyLines := cmd.CommandPath() == "waybill events export"
	if live && format == string(render.JSON) ||
		onlyLines && format != string(render.CSV) && format != string(render.XLSX) {
		format = string(render.JSONL)
	}
	jq, path := valueOf(cmd, "jq"), valueOf(cmd, "out")
	if format == string(render.Table) && jq == "" && !isSet(cmd, "output") &&
		strings.EqualFold(filepath.Ext(path), ".xlsx") {
		format = string(render.XLSX)
	}
	if isSet(cmd, "watch") {
		var err error
		if format, err = watchFormat(cmd, a.IO, format, jq); err != nil {
			return nil, err
		}
		live = format == string(render.JSONL)
	}
	separator, err := excelSeparator(cmd, a, jq)
	if err != nil {
		return nil, err
	}
	columns, err := chosenColumns(cmd, format)
	if err != nil {
		return nil, err
	}
	o := &Output{ctx: cmd.Context(), columns: columns, status: isSet(cmd, "exit-status"), io: a.IO}
	if o.status && jq == "" {
		return nil, Usagef("add --jq EXPR, or omit it", "--exit-status is about the results of --jq")
	}
	title := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	if a.Hard != nil {
		o.ctx = a.Hard
	}
	stream := a.IO.Out
	if err := o.checkWorkbook(format, path, title); err != nil {
		return nil, err
	}
	if path != "" && path != StdinName {
		if err := spare(cmd, a.Sources(FlagsOf(cmd)), "out", path); err != nil {
			return nil, err
		}
		if o.file, err = NewAtomicFile(cmd.Context(), path); err != nil {
			return nil, err
		}
		stream = term.Plain(o.file)
	}
	atOnce := slices.Contains([]string{"replay", "send", "show", "wait"}, cmd.Name())
	o.Printer, err = render.New(stream,
		render.Options{Format: format, JQ: jq, Excel: separator, Title: title, Live: live || atOnce})
	if err != nil {
		o.Discard()
		return nil, err
	}
	return o, nil
}

func (o *Output) checkWorkbook(format, path, title string) error {
	ending := filepath.Ext(path)
	named := strings.EqualFold(ending, ".xlsx")
	switch book := format == string(render.XLSX); {
	case !book && named:
		return Usagef("omit the other format, or use another name",
			"--out %s is the name of a workbook, and another format is asked for", path)
	case !book:
		return nil
	case ending != "" && !named:
		return Usagef("use a name that ends in .xlsx, or omit -o xlsx",
			"--out %s is no name of a workbook, which -o xlsx writes", path)
	}
	if (path == "" || path == StdinName) && o.io.Out.IsTerminal() {
		file := shell.Word(strings.ReplaceAll(title, " ", "-") + ".xlsx")
		return Usagef("add --out FILE, such as --out "+file, "-o xlsx writes a workbook, which a terminal can't show")
	}
	return nil
}

// End finishes the output. It commits the file of --out if a complete result was written, even if the command failed.
func (o *Output) End(err error) error {
	cut, bookErr := o.Close()
	if cut > 0 {
		o.io.Warning("%s longer than a cell can be, and cut: -o json has all of it", Plural(cut, "text"))
	}
	if err == nil && o.status && o.IsFalse() {
		err = &ExitError{Code: Partial, Err: errors.New("the last result of --jq is false or null (--exit-status)")}
	}
	if err = errors.Join(err, bookErr); o.file == nil || !o.file.written {
		return err
	}
	if code := CodeOf(err); (code == Failed || code == Usage) && !As[FoundError](err) || code == Store {
		return err
	}
	return errors.Join(err, o.file.Commit())
}

// Discard removes the file of --out unless it was committed.
func (o *Output) Discard() { o.file.Discard() }

// IsCSV reports whether the format is CSV or XLSX, which have the same tables.
func (o *Output) IsCSV() bool { return o.Format() == render.CSV || o.IsWorkbook() }

// IsWorkbook reports whether the format is XLSX.
func (o *Output) IsWorkbook() bool { return o.Format() == render.XLSX }

// ForPeople reports whether results are tables on a terminal, with ages, times to the minute, and colors.
func (o *Output) ForPeople() bool { return o.Format() == render.Table && o.Out().IsTerminal() }

// On returns an output that prints tables to w.
func (o *Output) On(w *term.Writer) *Output {
	further := *o
	further.Printer, further.file = render.NewTables(w), nil
	return &further
}

// Object prints one result as JSON.
func (o *Output) Object(v any) error { return o.JSON(o.ctx, v) }

// Result prints v as JSON, or a line of text in other formats.
func (o *Output) Result(v any, format string, args ...any) error {
	if o.Machine() {
		return o.Object(v)
	}
	return o.Line(format, args...)
}

// BeginList begins a list of results as JSON.
func (o *Output) BeginList() *render.List { return o.List(o.ctx) }

// Line prints a line of text.
func (o *Output) Line(format string, args ...any) error {
	if o.IsWorkbook() {
		return o.Text(fmt.Sprintf(format, args...))
	}
	return o.Out().Printf(format+"\n", args...)
}

// Fields prints fields one below the other, or names and values as CSV.
func (o *Output) Fields(fs []render.Field) error {
	if !o.IsCSV() {
		return render.Fields(o.Out(), fs...)
	}
	rows := o.Table(render.Column{Name: "NAME"}, render.Column{Name: "VALUE"})
	for _, f := range fs {
		if f.Value == "" {
			continue
		}
		if err := rows.Row(f.Name, f.Value); err != nil {
			return err
		}
	}
	return rows.Flush()
}

// Listing prints many results as a table, CSV or JSON.
type Listing[T any] struct {
	Out     *Output
	Empty   string // note for a table without rows; empty for none
	Columns []Column[T]
	JSON    func(T) any // returns the JSON value of a row; nil for the row itself
}

// PrintAll prints a slice.
func (l Listing[T]) PrintAll(all []T) error {
	return l.Print(Values(all))
}

// Values yields the values of a slice.
func Values[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// Print prints the values of seq as they come.
func (l Listing[T]) Print(seq iter.Seq2[T, error]) error {
	if l.Out.Machine() {
		list := l.Out.BeginList()
		err := Each(seq, func(v T) error {
			if l.JSON == nil {
				return list.Add(v)
			}
			return list.Add(l.JSON(v))
		})
		return errors.Join(err, list.Close())
	}
	rows, err := BeginTable(l.Out, l.Columns)
	if err != nil {
		return err
	}
	n := 0
	err = Each(seq, func(v T) error {
		n++
		return rows.Add(v)
	})
	if n == 0 && !l.Out.IsCSV() {
		if err == nil && l.Empty != "" {
			l.Out.io.Note("%s", l.Empty)
		}
		return err
	}
	return errors.Join(err, rows.Flush())
}

// Filter yields the values of seq that keep accepts, up to limit of them, or all if limit is 0.
func Filter[T any](seq iter.Seq2[T, error], keep func(T) bool, limit int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for v, err := range seq {
			if err == nil && !keep(v) {
				continue
			}
			n++
			if !yield(v, err) || n == limit {
				return
			}
		}
	}
}

// Each calls do for every value of seq until an error occurs.
func Each[T any](seq iter.Seq2[T, error], do func(T) error) error {
	for v, err := range seq {
		if err != nil {
			return err
		}
		if err := do(v); err != nil {
			return err
		}
	}
	return nil
}

// Bytes writes foreign bytes unchanged; a terminal gets control characters escaped. No bytes are a valid result.
func (o *Output) Bytes(b []byte) error {
	o.Whole()
	if o.IsWorkbook() {
		return o.Text(string(b))
	}
	_, err := o.Out().Write(b)
	return err
}

// Whole marks the result as complete, even if nothing was written.
func (o *Output) Whole() {
	if o.file != nil {
		o.file.written = true
	}
}

// Raw prints foreign JSON indented and escaped, and anything else as text.
func (o *Output) Raw(b []byte) error {
	if !json.Valid(b) || o.IsWorkbook() {
		return o.Line("%s", b)
	}
	_, err := o.Out().Write(append(term.EscapeJSON(nil, render.Indented(b)), '\n'))
	return err
}

const excelFlag = "excel"

// excelSeparators returns the values of --excel. The first one is the default of a bare --excel.
func excelSeparators() []string { return []string{"auto", "semicolon", "comma"} }

func asExcel(cmd *cobra.Command) bool { return cmd.Flags().Changed(excelFlag) }

// excelSeparator checks --excel and returns the cell separator, or 0 if --excel was not given.
func excelSeparator(cmd *cobra.Command, a *app.App, jq string) (byte, error) {
	if !asExcel(cmd) {
		return 0, nil
	}
	other := ""
	switch asked := cmd.Flags().Lookup("output"); {
	case jq != "":
		other = "--jq"
	case cmd.Flags().Lookup("json").Changed:
		other = "--json"
	case asked.Changed && asked.Value.String() != string(render.CSV):
		other = "-o " + asked.Value.String()
	}
	if other != "" {
		return 0, Usagef("omit "+other, "--excel can't be used with %s", other)
	}
	switch cmd.Flags().Lookup(excelFlag).Value.String() {
	case "semicolon":
		return ';', nil
	case "comma":
		return ',', nil
	}
	separator, reason := config.ListSeparator(a.Getenv)
	name := "comma"
	if separator == ';' {
		name = "semicolon"
	}
	a.IO.Detail("Separating cells by %s: %s; --excel=semicolon or --excel=comma sets it", name, reason)
	return separator, nil
}
