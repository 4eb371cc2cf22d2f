package intake

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/xlsx"
)

// mergedBelow is how many rows below the header may be covered by cells merged with it.
const mergedBelow = 5

// sheet is the source of a table's records if it is in a workbook.
type sheet struct {
	file      string
	name      string
	hidden    bool
	book      *xlsx.Workbook
	rows      *xlsx.Rows
	row       *xlsx.Row
	headerRow int // number of the header's row
	headerEnd int // number of the last row that belongs to the header
	shown     []xlsx.Shown
	merged    map[string]string // values of merged cells in the rows above the header
	wide      []xlsx.Range      // header cells that are merged over several columns
}

// errList reports that a sheet must be read as a list.
var errList = errors.New("a list without a header")

// openSheet reads a sheet up to its header. It returns errEnd if the sheet has no cells.
func openSheet(r *Reader, book *xlsx.Workbook, i int, o Options) (*table, error) {
	name := book.Sheets[i].Name
	rows, err := book.Rows(i)
	if err != nil {
		return nil, workbookError(r.name, name, err)
	}
	t, err := newTable(r, o, &scanner{})
	t.sheet = &sheet{file: r.name, name: name, hidden: book.Sheets[i].Hidden, book: book, rows: rows}
	t.sheet.merged = map[string]string{}
	if err == nil {
		err = t.findHeader()
	}
	if err == nil {
		return t, nil
	}
	rows.Close()
	if errors.Is(err, errList) {
		o.Format = List
		return openSheet(r, book, i, o)
	}
	return nil, err
}

// findHeader reads up to the first row that has the columns. Rows above may be a title or part of the header. It
// returns errList if no row has them and the first row is a single REF.
func (t *table) findHeader() error {
	var search headerSearch
	mayBeList := false
	var above []string // names in the row before
	for n := range headerRows {
		err := t.sheet.next()
		if errors.Is(err, errEnd) {
			break
		} else if err != nil {
			return err
		}
		names := t.sheet.names()
		if t.opt.Format == List {
			t.beginList()
			t.first = true
			t.fillRecord()
			return nil
		}
		mayBeList = mayBeList || n == 0 && t.opt.Refs && len(names) == 1
		err = t.resolveNames(names)
		if err == nil || above != nil && t.resolveNames(joined(above, names)) == nil {
			return nil
		}
		if wrong, ok := errors.AsType[*ColumnError](err); ok && t.sheet.lost() != "" {
			wrong.reason += "; cell " + t.sheet.lost() + " refers to a text that the workbook does not have"
		}
		if err := search.miss(err, names); err != nil {
			return err
		}
		above = spread(names, t.sheet.wide)
	}
	switch {
	case search.best == nil:
		return errEnd
	case mayBeList:
		return errList
	}
	return search.failure()
}

// resolveNames finds the columns from the names in the current row. A name over several columns identifies none.
func (t *table) resolveNames(names []string) error {
	s := t.sheet
	err := t.resolve(s.row.Number, names)
	if wrong, ok := errors.AsType[*ColumnError](err); ok {
		wrong.Sheet = s.name
	}
	if err != nil {
		return err
	}
	for _, m := range s.wide {
		for column := m.FirstColumn; column <= m.LastColumn && column < len(names); column++ {
			if t.inUse(column) {
				return &ColumnError{
					File: t.file, Sheet: s.name, Line: s.row.Number, Header: names,
					reason: fmt.Sprintf("the name %s is over several columns (%v)", show(names[m.FirstColumn]), m),
				}
			}
		}
	}
	s.headerRow, s.headerEnd = s.row.Number, s.row.Number
	for column := range names {
		if m, ok := s.rows.Merged(column); ok && m.LastRow <= s.headerRow+mergedBelow {
			s.headerEnd = max(s.headerEnd, m.LastRow)
		}
	}
	return nil
}

// next reads the next row of the sheet, with what its cells show. It returns errEnd at the end.
func (s *sheet) next() (err error) {
	s.row, err = s.rows.Next()
	if errors.Is(err, io.EOF) {
		return errEnd
	} else if err != nil {
		return workbookError(s.file, s.name, err)
	}
	s.shown = s.shown[:0]
	for _, c := range s.row.Cells {
		s.shown = append(s.shown, s.book.Shown(c))
	}
	return nil
}

// names returns the names in the current row. A cell merged with one above has that cell's value.
func (s *sheet) names() []string {
	names := make([]string, s.row.Cells[len(s.row.Cells)-1].Column+1)
	for i, c := range s.row.Cells {
		names[c.Column] = string(trim([]byte(s.shown[i].Text)))
	}
	s.wide = nil
	for column := range xlsx.MaxColumns {
		m, ok := s.rows.Merged(column)
		if !ok {
			if column >= len(names) {
				break
			}
			continue
		}
		if m.FirstColumn < m.LastColumn && m.FirstColumn == column {
			s.wide = append(s.wide, m)
		}
		if column != m.FirstColumn {
			continue
		}
		for column >= len(names) {
			names = append(names, "") //nolint:makezero // a merged cell beyond the last one
		}
		if m.FirstRow == s.row.Number {
			s.merged[m.String()] = names[column]
		} else if names[column] == "" {
			names[column] = s.merged[m.String()]
		}
	}
	return names
}

// lost returns the address of the first cell whose text is missing in the workbook, or "".
func (s *sheet) lost() string {
	for i, c := range s.row.Cells {
		if s.shown[i].Loss == xlsx.Lost {
			return xlsx.Address(c.Column, s.row.Number)
		}
	}
	return ""
}

// spread copies a name that covers several columns to each of them.
func spread(names []string, wide []xlsx.Range) []string {
	for _, m := range wide {
		for column := m.FirstColumn + 1; column <= m.LastColumn && column < MaxRecord; column++ {
			for column >= len(names) {
				names = append(names, "")
			}
			names[column] = cmp.Or(names[column], names[m.FirstColumn])
		}
	}
	return names
}

// joined prefixes names with the ones above them: Order and No become Order No.
func joined(above, names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		if i < len(above) && above[i] != name {
			name = strings.TrimSpace(above[i] + " " + name)
		}
		out[i] = name
	}
	return out
}

func (t *table) read() error {
	if t.sheet == nil {
		err := t.scan.next(&t.rec)
		if errors.Is(err, errLong) {
			return &FileError{
				File: t.file, Line: t.scan.line, row: t.scan.line - t.scan.noRows, Message: "the row is longer than 1 MiB",
				hint: "check that every quote in this row is closed",
			}
		}
		return err
	}
	for below := false; !below; below = t.sheet.row.Number > t.sheet.headerEnd {
		if err := t.sheet.next(); err != nil {
			return err
		}
	}
	if t.sheet.row.Hidden {
		t.sum.HiddenRows++
	}
	t.fillRecord()
	return nil
}

// fillRecord makes a record of the current row. It ignores cells beyond the last column.
func (t *table) fillRecord() {
	s, rec := t.sheet, &t.rec
	rec.raw, rec.cells, rec.lineEnd, rec.fault = rec.raw[:0], rec.cells[:0], true, nil
	rec.line, rec.row = s.row.Number, s.row.Number
	width := len(t.cols.header)
	if t.list {
		width = s.row.Cells[len(s.row.Cells)-1].Column + 1
	}
	next := 0 // cell of the row
	for column := range width {
		start := len(rec.raw)
		if next < len(s.row.Cells) && s.row.Cells[next].Column == column {
			rec.raw = append(rec.raw, s.shown[next].Text...)
			next++
		}
		rec.cells = append(rec.cells, cell{start: start, end: len(rec.raw)})
	}
}

// shownIn returns what the cell of a column shows; false if it is absent or text.
func (s *sheet) shownIn(column int) (xlsx.Shown, bool) {
	for i, c := range s.row.Cells {
		if c.Column == column {
			return s.shown[i], c.Kind != xlsx.Text
		}
	}
	return xlsx.Shown{}, false
}

// checkDamage reports a cell that a spreadsheet changed, instead of the problems that follow from it.
func (t *table) checkDamage(field string, at int) {
	if t.sheet == nil || at == none {
		return
	}
	s, isValue := t.sheet.shownIn(at)
	if !isValue {
		if m, ok := t.sheet.rows.Merged(at); ok && (m.FirstRow != t.rec.line || m.FirstColumn != at) {
			t.replaceProblem(field, at, tracking.Problem{
				Message: fmt.Sprintf("the cell is merged into %v, which has one value", m),
				Hint:    "unmerge the cells and fill in each",
			})
		}
		return
	}
	p, bad := damages[s.Loss]
	if !bad {
		if t.sum.AsNumbers++; s.Loss == xlsx.Padded {
			t.sum.Padded++
		}
		return
	}
	p.Value, p.Kind, p.Message = s.Text, tracking.KindDamaged, strings.Replace(p.Message, "%s", show(s.Format), 1)
	switch {
	case p.Odd && t.opt.Refs:
	case p.Odd && t.opt.AcceptOdd:
		p.Note, p.Field = true, field
		t.report(p, at)
	default:
		t.replaceProblem(field, at, p)
	}
}

func (t *table) replaceProblem(field string, at int, p tracking.Problem) {
	t.out.Problems = slices.DeleteFunc(t.out.Problems, func(other Problem) bool { return other.Field == field })
	p.Field = field
	t.report(p, at)
}

const asText = "format the column as Text and enter the value again, or export it as text"

// damages are the problems of identifiers that a spreadsheet holds as values; %s is the format that shows one.
var damages = map[xlsx.Loss]tracking.Problem{
	xlsx.Digits: {Message: "a number of more than 15 digits, of which the spreadsheet kept 15: " +
		"the others are lost", Hint: asText},
	xlsx.Scientific: {Odd: true, Message: "a number shown in scientific form (%s)", Hint: asText},
	xlsx.Fraction:   {Odd: true, Message: "a number with a fraction, whose last zeros a spreadsheet drops", Hint: asText},
	xlsx.Formatted:  {Odd: true, Message: "a number shown otherwise (%s)", Hint: asText},
	xlsx.Date:       {Message: "the spreadsheet turned the value into a date or time", Hint: asText},
	xlsx.Truth:      {Message: "the spreadsheet turned the value into TRUE or FALSE", Hint: asText},
	xlsx.Failed:     {Message: "the formula failed", Hint: "correct the formula, or replace it by its value"},
	xlsx.Unsaved: {
		Message: "the value of the formula is not in the file",
		Hint:    "open the file in a spreadsheet and save it, which calculates it",
	},
	xlsx.Lost: {
		Message: "the cell refers to a text that the workbook does not have",
		Hint:    "open the file in a spreadsheet, enter the value again and save it",
	},
	xlsx.Malformed: {
		Message: "the cell should hold a number and does not",
		Hint:    "open the file in a spreadsheet and save it again",
	},
}
