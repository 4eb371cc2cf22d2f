package render

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/xlsx"
)

const (
	maxTallied = 1000 // different values of a column that are counted
	safeNumber = 15   // digits of a number that a spreadsheet keeps
)

// ErrSheetFull says that there are more rows than a sheet can have.
var ErrSheetFull = errors.New("there are more rows than a sheet can have")

// errSheetEnded says that a table goes on after the next one was begun.
var errSheetEnded = errors.New("a sheet of the result was written in two parts")

// workbook is the XLSX file that tables go to, each into a sheet of its own.
type workbook struct {
	w       *xlsx.Writer
	title   string // of the sheets
	rows    int64
	sheets  int // that were begun
	tallies []tally
	lines   *Rows // text between tables; nil while the last sheet is a table
}

// tally counts the rows by the value of a column.
type tally struct {
	name   string
	counts map[string]int64
	others int64 // rows with further values
}

// Fact is a line of the summary of a workbook.
type Fact struct{ Name, Value string }

func newWorkbook(out *term.Writer, title string) *workbook {
	return &workbook{w: xlsx.NewWriter(out), title: title}
}

// table begins a table in a sheet of its own.
func (b *workbook) table(columns ...Column) *Rows {
	b.lines = nil
	return &Rows{columns: columns, form: &sheetForm{book: b}}
}

// line adds a line of text that is in no table.
func (b *workbook) line(text string) error {
	if b.lines == nil {
		b.lines = b.table(Column{Name: "TEXT"})
	}
	b.rows-- // it is none of a table's
	return b.lines.Row(text)
}

// sheetForm writes a table into a sheet.
type sheetForm struct {
	book    *workbook
	sheet   int   // which one of the workbook's it is
	tallies []int // of the columns, -1 for none
	values  []xlsx.Value
}

func (f *sheetForm) begin(r *Rows) error {
	b := f.book
	names := make([]string, len(r.columns))
	f.tallies = make([]int, len(r.columns))
	for i, c := range r.columns {
		names[i], f.tallies[i] = c.CSVName(), -1
		if c.Tally {
			f.tallies[i] = len(b.tallies)
			b.tallies = append(b.tallies, tally{name: c.Name, counts: map[string]int64{}})
		}
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
		if f.tallies[i] >= 0 {
			f.book.tallies[f.tallies[i]].add(c.Text)
		}
	}
	f.book.rows++
	err := f.book.w.Row(f.values)
	if errors.Is(err, xlsx.ErrFull) {
		return ErrSheetFull
	}
	return err
}

func (f *sheetForm) end(*Rows) error { return nil }

// value returns a cell with its type: a time, a number, or text.
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

func (t *tally) add(value string) {
	if _, ok := t.counts[value]; !ok && len(t.counts) == maxTallied {
		t.others++
		return
	}
	t.counts[value]++
}

// sorted returns the values, most rows first.
func (t *tally) sorted() []string {
	return slices.SortedFunc(maps.Keys(t.counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.counts[b], t.counts[a]), cmp.Compare(a, b))
	})
}

// close adds a sheet with the summary: facts, how many rows there are, and how many
// by the value of columns that count them; and ends the workbook.
func (b *workbook) close(facts []Fact) error {
	if b.sheets == 0 {
		return nil
	}
	rows := b.rows
	tallies := b.tallies
	b.title = "Summary"
	t := b.table(Column{Name: "NAME"}, Column{Name: "VALUE"}, Column{Name: "ROWS", Right: true})
	for _, f := range facts {
		if err := t.Row(f.Name, f.Value); err != nil {
			return err
		}
	}
	if err := t.Row("rows", "", strconv.FormatInt(rows, 10)); err != nil {
		return err
	}
	for _, of := range tallies {
		for _, value := range of.sorted() {
			if err := t.Row(of.name, value, strconv.FormatInt(of.counts[value], 10)); err != nil {
				return err
			}
		}
		if of.others > 0 {
			if err := t.Row(of.name, "others", strconv.FormatInt(of.others, 10)); err != nil {
				return err
			}
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return b.w.Close()
}

// parseTime returns the time that a cell shows as [LocalDateTime] does; zero if it
// is none.
func parseTime(text string) time.Time {
	t, _ := time.Parse(time.DateTime, text) // zero if it is none
	return t
}
