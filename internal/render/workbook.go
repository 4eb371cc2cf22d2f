package render

import (
	"errors"
	"time"

	"github.com/waybill-cli/waybill/internal/xlsx"
)

// safeNumber is the number of digits that a spreadsheet keeps.
const safeNumber = 15

// ErrSheetFull reports that there are more rows than a sheet can have.
var ErrSheetFull = errors.New("there are more rows than a sheet can have")

var errSheetEnded = errors.New("a sheet of the result was written in two parts")

// workbook is the XLSX file that tables are written to, each as a sheet.
type workbook struct {
	w      *xlsx.Writer
	title  string // of the sheets
	sheets int    // begun so far
	lines  *Rows  // text between tables; nil while the last sheet is a table
}

func (b *workbook) table(columns ...Column) *Rows {
	b.lines = nil
	return &Rows{columns: columns, form: &sheetForm{book: b}}
}

func (b *workbook) line(text string) error {
	if b.lines == nil {
		b.lines = b.table(Column{Name: "TEXT"})
	}
	return b.lines.Row(text)
}

type sheetForm struct {
	book   *workbook
	sheet  int // number of the sheet in the workbook
	values []xlsx.Value
}

func (f *sheetForm) begin(r *Rows) error {
	b := f.book
	names := make([]string, len(r.columns))
	for i, c := range r.columns {
		names[i] = c.CSVName()
	}
	b.sheets++
	f.sheet = b.sheets
	return b.w.Sheet(b.title, names)
}

func (f *sheetForm) row(r *Rows, cells []Cell) error {
	if f.sheet != f.book.sheets {
		return errSheetEnded
	}
	f.values = f.values[:0]
	for i, c := range cells {
		f.values = append(f.values, r.columns[i].value(c))
	}
	err := f.book.w.Row(f.values)
	if errors.Is(err, xlsx.ErrFull) {
		return ErrSheetFull
	}
	return err
}

func (f *sheetForm) end(*Rows) error { return nil }

// value returns a typed cell: a time, a number, or text.
func (c Column) value(cell Cell) xlsx.Value {
	switch {
	case !cell.Time.IsZero():
		return xlsx.Value{Time: cell.Time.In(time.Local)}
	case c.Clock && !parseTime(cell.Text).IsZero():
		return xlsx.Value{Time: parseTime(cell.Text)}
	case cell.Text == "":
		return xlsx.Value{}
	case c.Right && !c.ID && plainNumber(cell.Text) && len(cell.Text) <= safeNumber && cell.Text[0] != '+':
		return xlsx.Value{Kind: xlsx.Number, Text: cell.Text}
	}
	return xlsx.Value{Kind: xlsx.Text, Text: cell.Text}
}

func parseTime(text string) time.Time {
	t, _ := time.Parse(time.DateTime, text) // zero if it is not a time
	return t
}
