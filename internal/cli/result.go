package cli

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

// result is where a command's result goes: standard output or the file of
// --out, in the form asked for.
type result struct {
	*render.Printer
	ctx  context.Context //nolint:containedctx // ends an endless --jq
	file *wholeFile      // nil for standard output
	out  *term.Writer
}

// serves reports whether a command tells things as they happen.
func serves(cmd *cobra.Command) bool { return cmd.Name() == "listen" || cmd.Name() == "sandbox" }

// linesOnly reports whether a command's result has one form, JSON Lines.
func linesOnly(cmd *cobra.Command) bool { return cmd.CommandPath() == "waybill events export" }

// sends reports whether a command sends deliveries and tells of each at once.
func sends(cmd *cobra.Command) bool { return cmd.Name() == "replay" || cmd.Name() == "send" }

// newResult checks --jq and --out before anything is done. live writes every
// result out at once, and JSON as JSON Lines.
func newResult(cmd *cobra.Command, a *app.App, format string, live bool) (*result, error) {
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
	r := &result{ctx: cmd.Context(), out: a.IO.Out}
	if a.Hard != nil {
		r.ctx = a.Hard
	}
	if path != "" && path != stdinName {
		if r.file, err = newWholeFile(cmd.Context(), path); err != nil {
			return nil, err
		}
		r.out = term.Plain(r.file)
	}
	r.Printer, err = render.New(r.out, render.Options{Format: format, JQ: jq, CSVRaw: raw, Live: live || sends(cmd)})
	if err != nil {
		r.discard()
		return nil, err
	}
	return r, nil
}

// end puts the file of --out in its place if a whole result was written: also
// that of a command that ends with a status which stands beside a result.
func (r *result) end(err error) error {
	if r.file == nil || !r.file.written {
		return err
	}
	if code, _ := explain(err); code == Failed || code == Usage || code == Store {
		return err
	}
	return errors.Join(err, r.file.Commit())
}

func (r *result) discard() {
	if r != nil && r.file != nil {
		r.file.Discard()
	}
}

func (r *result) machine() bool { return r.Machine() }

func (r *result) csv() bool { return r.Format() == render.CSV }

// object prints one result as JSON.
func (r *result) object(v any) error { return r.JSON(r.ctx, v) }

// list begins a list of results as JSON.
func (r *result) list() *render.List { return r.List(r.ctx) }

// line prints a line of text between blocks.
func (r *result) line(format string, args ...any) error { return r.out.Printf(format+"\n", args...) }

// fields prints what is known of one thing: one below the other, or as CSV of
// names and values.
func (r *result) fields(fs []render.Field) error {
	if !r.csv() {
		return render.Fields(r.out, fs...)
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

// headers prints headers as a request carries them, or as CSV.
func (r *result) headers(hs []headerJSON) error {
	if r.csv() {
		fs := make([]render.Field, len(hs))
		for i, h := range hs {
			fs[i] = render.Field{Name: h.Name, Value: h.Value}
		}
		return r.fields(fs)
	}
	for _, h := range hs {
		if err := r.line("%s: %s", h.Name, h.Value); err != nil {
			return err
		}
	}
	return nil
}

// listing prints many results in the form asked for: a table, CSV, or JSON.
type listing[T any] struct {
	out     *result
	empty   string // what to say on stderr when a table has no rows
	columns []render.Column
	cells   func(T) []string
	json    func(T) any
}

// print prints what seq yields; nil yields nothing.
func (l listing[T]) print(io *term.IO, seq iter.Seq2[T, error]) error {
	if seq == nil {
		seq = func(func(T, error) bool) {}
	}
	if l.out.machine() {
		return l.printJSON(seq)
	}
	rows := l.out.Table(l.columns...)
	n := 0
	err := each(seq, func(v T) error {
		n++
		return rows.Row(l.cells(v)...)
	})
	if n == 0 && !l.out.csv() {
		if err == nil {
			io.Note("%s", l.empty)
		}
		return err
	}
	return errors.Join(err, rows.Flush())
}

func (l listing[T]) printJSON(seq iter.Seq2[T, error]) error {
	list := l.out.list()
	err := each(seq, func(v T) error { return list.Add(l.json(v)) })
	return errors.Join(err, list.Close())
}

// each calls do for every value of seq until an error.
func each[T any](seq iter.Seq2[T, error], do func(T) error) error {
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

// bytes writes bytes from outside as they are; a terminal shows what they
// would do to it. A file of none is a result too.
func (r *result) bytes(b []byte) error {
	r.whole()
	_, err := r.out.Write(b)
	return err
}

// whole says that what was written is the result, if it is nothing at all.
func (r *result) whole() {
	if r.file != nil {
		r.file.written = true
	}
}

// raw prints JSON from outside, indented and made visible; what is no JSON is
// made visible as text.
func (r *result) raw(b []byte) error {
	if !json.Valid(b) {
		return r.line("%s", b)
	}
	_, err := r.out.Write(append(term.EscapeJSON(nil, render.Indented(nil, b)), '\n'))
	return err
}
