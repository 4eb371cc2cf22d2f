package render

import (
	"strings"

	"github.com/waybill-cli/waybill/internal/term"
)

// NewCSV begins CSV (RFC 4180, lines ended by a newline alone) with a header.
// It may be opened with a spreadsheet and read in again: unless raw, a cell of
// an identifier column that a spreadsheet would change is written as `="…"`,
// quotes in it doubled, and any other cell that a spreadsheet would run gets a
// `'` in front. Text is not changed in any other way.
func NewCSV(out *term.Writer, raw bool, columns ...Column) *Rows {
	return &Rows{sink: sink{out: out}, columns: columns, form: csvForm{raw: raw, separator: ',', newline: "\n"}}
}

// NewExcelCSV begins CSV that Excel opens by double click: with a byte order mark,
// the separator of the user's place and lines ended by CRLF. Cells are guarded as in
// [NewCSV]. Where semicolons separate them, numbers have a decimal comma.
func NewExcelCSV(out *term.Writer, separator byte, columns ...Column) *Rows {
	form := csvForm{separator: separator, mark: "\ufeff", newline: "\r\n"}
	if out.IsTerminal() { // it would show them as escapes
		form.mark, form.newline = "", "\n"
	}
	return &Rows{sink: sink{out: out}, columns: columns, form: form}
}

type csvForm struct {
	raw       bool
	separator byte
	mark      string // byte order mark, empty for none
	newline   string
}

func (f csvForm) begin(r *Rows) error {
	r.sink.buf = append(r.sink.buf, f.mark...)
	for i, c := range r.columns {
		f.cell(r, i, c.CSVName())
	}
	return r.sink.ended()
}

func (f csvForm) row(r *Rows, cells []Cell) error {
	for i := range cells {
		c := cells[i].Text
		switch {
		case f.raw:
		case r.columns[i].ID && isReinterpreted(c):
			c = `="` + strings.ReplaceAll(c, `"`, `""`) + `"`
		case !r.columns[i].ID && isFormula(c):
			c = "'" + c
		case f.separator == ';' && r.columns[i].Right && c != "" && plainNumber(c):
			c = strings.Replace(c, ".", ",", 1)
		}
		f.cell(r, i, c)
	}
	return r.sink.ended()
}

func (csvForm) end(*Rows) error { return nil }

func (f csvForm) cell(r *Rows, i int, text string) {
	alone := text == "" && len(r.columns) == 1 // else a reader takes the line for none
	if alone || strings.ContainsAny(text, "\",;\t\r\n") || strings.HasPrefix(text, " ") || strings.HasSuffix(text, " ") {
		text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	r.sink.buf = append(r.sink.buf, text...)
	if i+1 < len(r.columns) {
		r.sink.buf = append(r.sink.buf, f.separator)
	} else {
		r.sink.buf = append(r.sink.buf, f.newline...)
	}
}
