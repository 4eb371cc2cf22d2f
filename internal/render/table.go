package render

import (
	"fmt"

	"github.com/waybill-cli/waybill/internal/term"
)

// Column is one column of a table.
type Column struct {
	Name  string                       // as it stands in the header
	Flex  bool                         // may be cut to fit a terminal; of several the first ones are first
	Right bool                         // aligned to the right
	ID    bool                         // identifies something: CSV keeps a spreadsheet from changing it
	From  int                          // width of the narrowest terminal that shows it; 0 for any
	Style func(cell string) term.Style // how a cell stands out; nil for not
}

// Rows writes the rows of a table or of CSV as they come, in constant memory.
// It is not safe for concurrent use.
//
// On a terminal a table is aligned. Up to [pageRows] rows are laid out
// together, and if they are too wide flexible columns are cut; beyond, the
// columns are as wide as the first rows need, and none is cut. Identifiers are
// cut where they are too long to be any. Elsewhere cells are whole and
// separated by tabs.
type Rows struct {
	sink    sink
	columns []Column
	places  []int // of the columns shown, where their cells stand in a row
	given   int   // columns, shown or not
	form    form
	begun   bool
	err     error
}

// form is a way to write rows. Rows are as long as there are columns.
type form interface {
	// begin writes the header.
	begin(r *Rows) error
	// row takes one row. The slice is its own.
	row(r *Rows, cells []string) error
	// end writes what is left.
	end(r *Rows) error
}

// NewTable begins a table.
func NewTable(out *term.Writer, columns ...Column) *Rows {
	r := &Rows{sink: sink{out: out, styled: true}}
	r.choose(columns, out.Width())
	if out.IsTerminal() {
		r.form = &page{}
	} else {
		r.form = tabbed{}
	}
	return r
}

// choose takes the columns that a terminal of that width shows; all of them if
// it is 0.
func (r *Rows) choose(columns []Column, width int) {
	r.given = len(columns)
	for i, c := range columns {
		if width == 0 || c.From <= width {
			r.columns = append(r.columns, c)
			r.places = append(r.places, i)
		}
	}
}

// Row writes a row, or keeps it until the next ones have been seen. Missing
// cells are empty; too many are an error. After an error it returns the same
// one.
func (r *Rows) Row(cells ...string) error {
	if r.err != nil {
		return r.err
	}
	if len(cells) > r.given {
		return fmt.Errorf("row of %d cells for %d columns", len(cells), r.given)
	}
	row := make([]string, len(r.columns))
	for i, place := range r.places {
		if place < len(cells) {
			row[i] = cells[place]
		}
	}
	if r.start() == nil {
		r.err = r.form.row(r, row)
	}
	return r.err
}

// Flush writes what is left; it must be called after the last row. A table
// without rows has a header.
func (r *Rows) Flush() error {
	if r.start() == nil {
		r.err = r.form.end(r)
	}
	if r.err == nil {
		r.err = r.sink.flush()
	}
	return r.err
}

// start writes the header before anything else.
func (r *Rows) start() error {
	if r.err == nil && !r.begun {
		r.begun = true
		r.err = r.form.begin(r)
	}
	return r.err
}

func (r *Rows) style(i int, cell string) term.Style {
	if f := r.columns[i].Style; f != nil {
		return f(cell)
	}
	return term.Normal
}

// add appends styled text to what is to be written.
func (r *Rows) add(text term.Styled) { r.sink.buf = append(r.sink.buf, text...) }

// cell appends the cell of column i and what ends it: the separator, or the
// end of the line.
func (r *Rows) cell(i int, text string, separator byte) {
	if i+1 == len(r.columns) {
		separator = '\n'
	}
	r.sink.buf = append(append(r.sink.buf, text...), separator)
}

// tabbed separates cells by tabs: a table for programs and for a look at it.
type tabbed struct{}

func (tabbed) begin(r *Rows) error {
	for i, c := range r.columns {
		r.cell(i, string(r.sink.out.Style(term.Heading, c.Name)), '\t')
	}
	return r.sink.ended()
}

func (tabbed) row(r *Rows, cells []string) error {
	for i, c := range cells {
		r.cell(i, string(r.sink.out.Style(r.style(i, c), c)), '\t')
	}
	return r.sink.ended()
}

func (tabbed) end(*Rows) error { return nil }
