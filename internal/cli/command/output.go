package command

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

// Output is where a command's result goes: standard output or the file of
// --out, in the form asked for.
type Output struct {
	*render.Printer
	Ctx    context.Context //nolint:containedctx // ends an endless --jq
	file   *AtomicFile     // nil for standard output
	Stream *term.Writer
}

// serves reports whether a command tells things as they happen.
func serves(cmd *cobra.Command) bool { return cmd.Name() == "listen" || cmd.Name() == "sandbox" }

// linesOnly reports whether a command's result has one form, JSON Lines.
func linesOnly(cmd *cobra.Command) bool { return cmd.CommandPath() == "waybill events export" }

// sends reports whether a command sends deliveries and tells of each at once.
func sends(cmd *cobra.Command) bool { return cmd.Name() == "replay" || cmd.Name() == "send" }

// NewOutput checks --jq and --out before anything is done. live writes every
// result out at once, and JSON as JSON Lines.
func NewOutput(cmd *cobra.Command, a *app.App, format string, live bool) (*Output, error) {
	if live && format == string(render.JSON) || linesOnly(cmd) && format != string(render.CSV) {
		format = string(render.JSONL)
	}
	jq, err := cmd.Flags().GetString("jq")
	if err != nil {
		return nil, err
	}
	path, err := cmd.Flags().GetString("out")
	if err != nil {
		return nil, err
	}
	raw, err := cmd.Flags().GetBool("csv-raw")
	if err != nil {
		return nil, err
	}
	r := &Output{Ctx: cmd.Context(), Stream: a.IO.Out}
	if a.Hard != nil {
		r.Ctx = a.Hard
	}
	if path != "" && path != StdinName {
		if r.file, err = NewAtomicFile(cmd.Context(), path); err != nil {
			return nil, err
		}
		r.Stream = term.Plain(r.file)
	}
	r.Printer, err = render.New(r.Stream, render.Options{Format: format, JQ: jq, CSVRaw: raw, Live: live || sends(cmd)})
	if err != nil {
		r.Discard()
		return nil, err
	}
	return r, nil
}

// End puts the file of --out in its place if a whole result was written: also
// that of a command that ends with a status which stands beside a result.
func (r *Output) End(err error) error {
	if r.file == nil || !r.file.written {
		return err
	}
	if code, _ := Explain(err); code == Failed || code == Usage || code == Store {
		return err
	}
	return errors.Join(err, r.file.Commit())
}

func (r *Output) Discard() {
	if r != nil && r.file != nil {
		r.file.Discard()
	}
}

func (r *Output) IsCSV() bool { return r.Format() == render.CSV }

// Object prints one result as JSON.
func (r *Output) Object(v any) error { return r.JSON(r.Ctx, v) }

// Result prints what a command came to, v as JSON, or a line of text.
func (r *Output) Result(v any, format string, args ...any) error {
	if r.Machine() {
		return r.Object(v)
	}
	return r.Line(format, args...)
}

// BeginList begins a list of results as JSON.
func (r *Output) BeginList() *render.List { return r.List(r.Ctx) }

// Line prints a line of text between blocks.
func (r *Output) Line(format string, args ...any) error { return r.Stream.Printf(format+"\n", args...) }

// Fields prints what is known of one thing: one below the other, or as CSV of
// names and values.
func (r *Output) Fields(fs []render.Field) error {
	if !r.IsCSV() {
		return render.Fields(r.Stream, fs...)
	}
	rows := r.Table(render.Column{Name: "NAME"}, render.Column{Name: "VALUE"})
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

// Headers prints headers as a request carries them, or as CSV.
func (r *Output) Headers(hs []Header) error {
	if r.IsCSV() {
		fs := make([]render.Field, len(hs))
		for i, h := range hs {
			fs[i] = render.Field{Name: h.Name, Value: h.Value}
		}
		return r.Fields(fs)
	}
	for _, h := range hs {
		if err := r.Line("%s: %s", h.Name, h.Value); err != nil {
			return err
		}
	}
	return nil
}

// Listing prints many results in the form asked for: a table, CSV, or JSON.
type Listing[T any] struct {
	Out     *Output
	Empty   string // what to say on stderr when a table has no rows
	Columns []render.Column
	Cells   func(T) []string
	JSON    func(T) any
}

// Print prints what seq yields; nil yields nothing.
func (l Listing[T]) Print(io *term.IO, seq iter.Seq2[T, error]) error {
	if seq == nil {
		seq = func(func(T, error) bool) {}
	}
	if l.Out.Machine() {
		return l.printJSON(seq)
	}
	rows := l.Out.Table(l.Columns...)
	n := 0
	err := Each(seq, func(v T) error {
		n++
		return rows.Row(l.Cells(v)...)
	})
	if n == 0 && !l.Out.IsCSV() {
		if err == nil {
			io.Note("%s", l.Empty)
		}
		return err
	}
	return errors.Join(err, rows.Flush())
}

func (l Listing[T]) printJSON(seq iter.Seq2[T, error]) error {
	list := l.Out.BeginList()
	err := Each(seq, func(v T) error { return list.Add(l.JSON(v)) })
	return errors.Join(err, list.Close())
}

// Filter yields the values of seq that keep accepts, at most limit of them; 0
// for all.
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

// Each calls do for every value of seq until an error.
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

// Bytes writes bytes from outside as they are; a terminal shows what they
// would do to it. A file of none is a result too.
func (r *Output) Bytes(b []byte) error {
	r.Whole()
	_, err := r.Stream.Write(b)
	return err
}

// Whole says that what was written is the result, if it is nothing at all.
func (r *Output) Whole() {
	if r.file != nil {
		r.file.written = true
	}
}

// Raw prints JSON from outside, indented and made visible; what is no JSON is
// made visible as text.
func (r *Output) Raw(b []byte) error {
	if !json.Valid(b) {
		return r.Line("%s", b)
	}
	_, err := r.Stream.Write(append(term.EscapeJSON(nil, render.Indented(nil, b)), '\n'))
	return err
}

// Header is one header line in our output.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
