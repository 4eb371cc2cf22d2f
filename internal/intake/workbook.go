package intake

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/xlsx"
)

// WorkbookError reports that an XLSX workbook can't be read, or not beyond a place.
type WorkbookError struct {
	File  string
	Sheet string // empty for the whole workbook
	Err   *xlsx.Error
}

func (e *WorkbookError) Error() string {
	if e.Err.Cell != "" {
		return place(e.File, e.Sheet, e.Err.Cell) + ": " + e.Err.Message
	}
	return showName(e.File) + ": " + e.Err.Error()
}

func (e *WorkbookError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *WorkbookError) Hint() string { return e.Err.Hint() }

// place names a place in a sheet as a spreadsheet does, such as orders.xlsx:Orders!B17.
func place(file, sheet, at string) string { return showName(file) + ":" + SheetPlace(sheet, at) }

// SheetPlace returns the address of a cell, or a row number, with its sheet, which is quoted where needed.
func SheetPlace(sheet, at string) string {
	for i, r := range sheet {
		if i == 0 && r >= '0' && r <= '9' || r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z') {
			return "'" + strings.ReplaceAll(sheet, "'", "''") + "'!" + at
		}
	}
	return sheet + "!" + at
}

func workbookError(file, sheet string, err error) error {
	var wrong *xlsx.Error
	var path *fs.PathError
	switch {
	case errors.As(err, &wrong) && wrong.Kind == xlsx.Foreign:
		return foreignFile(file, wrong.Message, wrong.Hint())
	case errors.As(err, &wrong):
		return &WorkbookError{File: file, Sheet: sheet, Err: wrong}
	case errors.As(err, &path) && path.Op == "write":
		return err
	}
	return readError(file, err)
}

// Sheets returns the sheets from which rows can be read, in a workbook of size bytes; none if it is not a workbook.
func Sheets(at io.ReaderAt, size int64) []xlsx.Sheet {
	book, err := xlsx.Open(at, size, disk.Temp)
	if err != nil {
		return nil
	}
	defer book.Close()
	return slices.DeleteFunc(book.Sheets, func(s xlsx.Sheet) bool { return !s.Table })
}

func openWorkbook(r *Reader, in io.Reader, o Options) error {
	at, ok := in.(interface {
		io.ReaderAt
		io.Seeker
	})
	if !ok {
		return readError(r.name, errors.ErrUnsupported)
	}
	size, err := at.Seek(0, io.SeekEnd)
	if err != nil {
		return readError(r.name, err)
	}
	book, err := xlsx.Open(at, size, disk.Temp)
	if err != nil {
		return workbookError(r.name, "", err)
	}
	r.release = append(r.release, book.Close)
	r.sum.Format, r.sum.Encoding = XLSX, utf8Name
	t, err := chooseSheet(r, book, o)
	if err != nil || t == nil {
		r.Close()
		return err
	}
	r.rows, r.carriers, r.book = t, t.carrier, t
	r.dialect = dialect{book: true, header: strings.Join(t.columnNames(), "\x00")}
	s := &r.sum
	s.Sheet, s.HiddenSheet, s.Filtered = t.sheet.name, t.sheet.hidden, t.sheet.rows.Filtered
	s.HeaderRow = t.sheet.headerRow
	t.summarizeColumns(s)
	if t.list {
		s.Format = List
	}
	return nil
}

// chooseSheet finds the requested sheet, or the only visible one with rows, else the only one that has the columns.
// It is nil if no sheet has a cell.
func chooseSheet(r *Reader, book *xlsx.Workbook, o Options) (*table, error) {
	candidates, err := sheetsToTry(r.name, book, o.Sheet)
	if err != nil {
		return nil, err
	}
	var found *table
	var used []int // sheets that have the columns
	var rest []int // sheets that have cells, but not the columns
	var failed *ColumnError
	for _, i := range candidates {
		t, err := openSheet(r, book, i, o)
		var wrong *ColumnError
		switch {
		case errors.Is(err, errEnd):
			continue
		case errors.As(err, &wrong):
			rest, failed = append(rest, i), cmp.Or(failed, wrong)
			continue
		case err != nil:
			return nil, err
		}
		if used = append(used, i); found == nil {
			found = t
		} else {
			t.sheet.rows.Close()
		}
	}
	if found != nil {
		r.release = append(r.release, found.sheet.rows.Close)
	}
	switch {
	case len(used) > 1:
		message := fmt.Sprintf("%d sheets have the columns: %s", len(used), sheetNames(book, used))
		return nil, &FileError{File: r.name, Message: message, hint: "choose one with --sheet NAME or --sheet N"}
	case found != nil:
		for _, i := range rest[:min(len(rest), maxSheets)] {
			r.sum.OtherSheets = append(r.sum.OtherSheets, book.Sheets[i].Name)
		}
		return found, nil
	case failed != nil:
		failed.others = sheetNames(book, rest[1:])
		return nil, failed
	}
	return nil, nil
}

func sheetsToTry(file string, book *xlsx.Workbook, asked string) ([]int, error) {
	var all, seen []int
	for i, s := range book.Sheets {
		if s.Table {
			all = append(all, i)
			if !s.Hidden {
				seen = append(seen, i)
			}
		}
	}
	if asked == "" {
		if len(seen) == 0 {
			hint := "choose one with --sheet: " + sheetNames(book, all)
			return nil, &FileError{File: file, Message: "no sheet is visible", hint: hint}
		}
		return seen, nil
	}
	for _, same := range []func(string) bool{
		func(name string) bool { return name == asked },
		func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), strings.TrimSpace(asked)) },
	} {
		for _, i := range all {
			if same(book.Sheets[i].Name) {
				return []int{i}, nil
			}
		}
	}
	if n, err := strconv.Atoi(asked); err == nil && n >= 1 && n <= len(book.Sheets) && book.Sheets[n-1].Table {
		return []int{n - 1}, nil
	}
	return nil, &FileError{File: file, Message: "no sheet " + show(asked), hint: "its sheets: " + sheetNames(book, all)}
}

const maxSheets = 20

func sheetNames(book *xlsx.Workbook, sheets []int) string {
	var list []string
	for _, i := range sheets[:min(len(sheets), maxSheets)] {
		text := fmt.Sprintf("%d %s", i+1, show(book.Sheets[i].Name))
		if book.Sheets[i].Hidden {
			text += " (hidden)"
		}
		list = append(list, text)
	}
	if more := len(sheets) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

func (t *table) summarizeColumns(s *Summary) {
	s.ReferID, s.Number = t.cols.name(t.cols.ref), t.cols.name(t.cols.number)
	s.ReferColumn, s.NumColumn = t.cols.ref+1, t.cols.number+1
	for i, name := range t.cols.header {
		if t.sheet != nil && name != "" && t.sheet.rows.HiddenColumn(i) {
			s.HiddenCols = append(s.HiddenCols, name)
		}
		if !t.inUse(i) && !slices.Contains(t.cols.errors, i) {
			name = asWindows1252(name)
			t.cols.header[i] = name
			s.Ignored = append(s.Ignored, cmp.Or(name, fmt.Sprintf("column %d", i+1)))
			if t.opt.Own && t.own.keep(t.cols.header, i) {
				s.Own = append(s.Own, name)
			}
		}
		if i == t.cols.carrier && t.opt.Own && t.own.keep(t.cols.header, i) { // names are not sent
			s.Own = append(s.Own, name)
		}
		if t.inUse(i) && strings.ContainsFunc(name, tracking.Invisible) {
			s.Hidden = append(s.Hidden, name)
		}
	}
}
