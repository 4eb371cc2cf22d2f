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
	return &Rows{sink: sink{out: out}, columns: columns, form: csvForm{raw}}
}

type csvForm struct{ raw bool }

func (f csvForm) begin(r *Rows) error {
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
		}
		f.cell(r, i, c)
	}
	return r.sink.ended()
}

func (csvForm) end(*Rows) error { return nil }

func (csvForm) cell(r *Rows, i int, text string) {
	alone := text == "" && len(r.columns) == 1 // else a reader takes the line for none
	if alone || strings.ContainsAny(text, "\",;\t\r\n") || strings.HasPrefix(text, " ") || strings.HasSuffix(text, " ") {
		text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	r.cell(i, text, ',')
}
