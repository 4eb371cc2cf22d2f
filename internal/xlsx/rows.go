package xlsx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// CellKind is what a cell holds.
type CellKind byte

// Kinds of cells.
const (
	Text      CellKind = iota + 1
	Number             // as written in the file, such as 1.5E-3; its format may make it a date
	Bool               // TRUE or FALSE
	ErrorCell          // such as #N/A
	ISODate            // a date written as text
	NoValue            // a formula whose value was not saved
	LostText           // a text that the workbook does not have
)

// Cell is a cell that is not empty.
type Cell struct {
	Column  int // 0-based
	Kind    CellKind
	Formula bool
	Text    []byte // valid until the next row is read
	style   int

	start, end int // in the row's text
}

// Row is a row with at least one cell.
type Row struct {
	Number int // 1-based
	Hidden bool
	Cells  []Cell // by column
}

// Range is a rectangle of cells, columns 0-based and rows 1-based, all inclusive.
type Range struct{ FirstRow, LastRow, FirstColumn, LastColumn int }

func (r Range) String() string {
	return Address(r.FirstColumn, r.FirstRow) + ":" + Address(r.LastColumn, r.LastRow)
}

// maxRow is how many bytes of text one row may have.
const maxRow = 1 << 20

// Rows reads the rows of a sheet.
type Rows struct {
	Filtered bool    // a filter is set
	hidden   []Range // columns that are hidden, of all rows
	book     *Workbook
	part     string
	r        io.ReadCloser
	scan     *scanner
	row      Row
	text     []byte
	last     int // number of the last row
	merges   []Range
	active   []Range // those that the row at hand may be in
	next     int     // the first of merges below the row at hand
	err      error
}

// Rows begins to read a sheet, a [Sheet.Table]. The caller closes it. What stands
// behind the rows is read first: merged cells and filters.
func (b *Workbook) Rows(sheet int) (*Rows, error) {
	r := &Rows{book: b, part: b.Sheets[sheet].part}
	if err := r.open(); err != nil {
		return nil, err
	}
	err := r.readTail()
	r.Close()
	if err != nil {
		return nil, partError(r.part, err)
	}
	slices.SortFunc(r.merges, func(a, b Range) int { return a.FirstRow - b.FirstRow })
	if err := r.open(); err != nil {
		return nil, err
	}
	if err := r.findData(); err != nil {
		r.Close()
		return nil, partError(r.part, err)
	}
	return r, nil
}

func (r *Rows) open() (err error) {
	if r.r, err = r.book.parts.open(r.part, maxPart); err == nil {
		r.scan = newScanner(r.r)
	}
	return err
}

// Close frees what is read from.
func (r *Rows) Close() { _ = r.r.Close() } // only read from

func (r *Rows) findData() error {
	r.hidden = nil
	for {
		t, err := r.scan.next()
		switch {
		case errors.Is(err, io.EOF):
			return syntaxError("it has no sheetData")
		case err != nil:
			return err
		case t != startTag:
		case r.scan.depth == 1 && r.scan.name != "worksheet":
			return syntaxError("it is no worksheet")
		case r.scan.depth == 3 && r.scan.name == "col":
			if err := r.addColumns(); err != nil {
				return err
			}
		case r.scan.depth == 2 && r.scan.name == "sheetData":
			return nil
		}
	}
}

func (r *Rows) addColumns() error {
	first, last := r.scan.attribute("min"), r.scan.attribute("max")
	if !isTrue(r.scan.attribute("hidden")) {
		return nil
	}
	from, errFrom := strconv.Atoi(first)
	to, errTo := strconv.Atoi(last)
	if errFrom != nil || errTo != nil || from < 1 || len(r.hidden) == MaxColumns {
		return syntaxError(fmt.Sprintf("bad columns %.20q to %.20q", first, last))
	}
	r.hidden = append(r.hidden, Range{FirstColumn: from - 1, LastColumn: to - 1})
	return nil
}

// isTrue reports whether the value of an attribute says yes.
func isTrue(value string) bool { return value == "1" || value == "true" }

// HiddenColumn reports whether a column of the sheet, 0-based, is hidden.
func (r *Rows) HiddenColumn(column int) bool {
	return slices.ContainsFunc(r.hidden, func(c Range) bool { return column >= c.FirstColumn && column <= c.LastColumn })
}

func (r *Rows) readTail() error {
	if err := r.findData(); err != nil {
		return err
	}
	if err := r.scan.skipTo("sheetData"); err != nil {
		return err
	}
	return r.scan.each(func() error {
		switch {
		case r.scan.depth != 3:
		case r.scan.name == "filterColumn":
			r.Filtered = true
		case r.scan.name == "mergeCell":
			ref := r.scan.attribute("ref")
			m, ok := parseRange(ref)
			if !ok || len(r.merges) == MaxRows {
				return syntaxError(fmt.Sprintf("bad merged range %.40q", ref))
			}
			r.merges = append(r.merges, m)
		}
		return nil
	})
}

// Merged returns the merged range that has a cell of the row at hand.
func (r *Rows) Merged(column int) (Range, bool) {
	for _, m := range r.active {
		if column >= m.FirstColumn && column <= m.LastColumn {
			return m, true
		}
	}
	return Range{}, false
}

// maxActive is how many merged ranges are known of one row.
const maxActive = 1000

func (r *Rows) advance(row int) {
	r.active = slices.DeleteFunc(r.active, func(m Range) bool { return m.LastRow < row })
	for ; r.next < len(r.merges) && r.merges[r.next].FirstRow <= row; r.next++ {
		if m := r.merges[r.next]; m.LastRow >= row && len(r.active) < maxActive {
			r.active = append(r.active, m)
		}
	}
}

// Next returns the next row with a cell, valid until the next call; io.EOF at the end. Errors are returned again.
func (r *Rows) Next() (*Row, error) {
	for r.err == nil {
		if r.err = r.readRow(); r.err != nil {
			r.err = partError(r.part, r.err)
		} else if len(r.row.Cells) > 0 {
			r.advance(r.row.Number)
			return &r.row, nil
		}
	}
	return nil, r.err
}

func (r *Rows) readRow() error {
	for {
		t, err := r.scan.next()
		switch {
		case err != nil:
			return err
		case t == endTag && r.scan.depth == 1:
			for err == nil { // the rest of the sheet, so that a damaged end is found
				_, err = r.scan.next()
			}
			return err
		case t == startTag && r.scan.depth == 3 && r.scan.name == "row":
			if err := r.beginRow(); err != nil {
				return err
			}
			return r.readCells()
		case t == startTag:
			if err := r.scan.skipElement(); err != nil {
				return err
			}
		}
	}
}

func (r *Rows) beginRow() error {
	r.row = Row{Number: r.last + 1, Cells: r.row.Cells[:0]}
	r.text = r.text[:0]
	if number := r.scan.attribute("r"); number != "" {
		n, err := strconv.Atoi(number)
		if err != nil || n <= r.last {
			return syntaxError(fmt.Sprintf("row %.20q follows row %d", number, r.last))
		}
		r.row.Number = n
	}
	r.row.Hidden = isTrue(r.scan.attribute("hidden"))
	if r.last = r.row.Number; r.last > MaxRows {
		return syntaxError(fmt.Sprintf("it has more than %d rows", MaxRows))
	}
	return nil
}

func (r *Rows) readCells() error {
	last := -1
	for {
		t, err := r.scan.next()
		switch {
		case err != nil:
			return err
		case t == endTag && r.scan.depth == 2:
			for i := range r.row.Cells {
				c := &r.row.Cells[i]
				c.Text = r.text[c.start:c.end]
			}
			return nil
		case t != startTag:
		case r.scan.depth == 4 && r.scan.name == "c":
			if last, err = r.readCell(last); err != nil {
				return err
			}
		default:
			if err := r.scan.skipElement(); err != nil {
				return err
			}
		}
	}
}

// readCell reads a cell behind the column last, and returns its column.
func (r *Rows) readCell(last int) (int, error) {
	c := Cell{Column: last + 1, start: len(r.text)}
	if address := r.scan.attribute("r"); address != "" {
		column, row, ok := parseAddress(address)
		if !ok || row != r.row.Number || column <= last {
			return 0, syntaxError(fmt.Sprintf("cell %.20q is in the wrong place of row %d", address, r.row.Number))
		}
		c.Column = column
	}
	if style := r.scan.attribute("s"); style != "" {
		var err error
		if c.style, err = strconv.Atoi(style); err != nil {
			return 0, syntaxError(fmt.Sprintf("bad style %.20q", style))
		}
	}
	kind := r.scan.attribute("t")
	if c.Column >= MaxColumns {
		return 0, syntaxError(fmt.Sprintf("row %d has more than %d columns", r.row.Number, MaxColumns))
	}
	found, err := r.content(&c)
	if err != nil {
		return 0, err
	}
	return c.Column, r.addCell(c, kind, found)
}

// content reads to the end of a cell and appends its value to the row's text; found says that it has one.
func (r *Rows) content(c *Cell) (found bool, err error) {
	s := r.scan
	for {
		t, err := s.next()
		switch {
		case err != nil:
			return false, err
		case t == endTag && s.depth == 3:
			return found, nil
		case t == startTag && s.depth == 5 && s.name == "f":
			c.Formula = true
			err = s.skipElement()
		case t == startTag && s.depth == 5 && (s.name == "v" || s.name == "is"):
			if len(r.text) > c.start { // together they would be a text that stands nowhere
				err = r.brokenCell(c, "the cell has two values")
			}
			found = true
		case t == startTag && (s.name == "t" || s.name == "r"):
		case t == startTag:
			err = s.skipElement() // such as rPh, how the text is pronounced
		case t == text && (s.local() == "t" || s.local() == "v"):
			if r.text = append(r.text, s.text...); len(r.text) > maxRow {
				err = syntaxError(fmt.Sprintf("row %d has more than 1 MiB of text", r.row.Number))
			}
		}
		if err != nil {
			return false, err
		}
	}
}

func (r *Rows) brokenCell(c *Cell, message string) error {
	return &Error{Part: r.part, Cell: Address(c.Column, r.row.Number), Message: message, hint: hintSaveAgain}
}

// addShared puts in the text with a number, as written. An empty number is an empty cell, which gets no kind.
func (r *Rows) addShared(c *Cell, value []byte) error {
	value = bytes.TrimSpace(value)
	number, err := strconv.Atoi(string(value))
	ok := err == nil
	r.text = r.text[:c.start]
	switch {
	case len(value) == 0:
		return nil
	case r.book.strings == nil:
		return r.brokenCell(c, "the cell refers to a text, and the workbook has none")
	case ok:
		if r.text, ok, err = r.book.strings.append(r.text, number); err != nil {
			return err
		}
	}
	if c.Kind = Text; !ok {
		c.Kind = LostText
	}
	if len(r.text) > maxRow {
		return syntaxError(fmt.Sprintf("row %d has more than 1 MiB of text", r.row.Number))
	}
	return nil
}

// addCell adds a cell whose value, as written, ends the row's text.
func (r *Rows) addCell(c Cell, kind string, found bool) error {
	value := r.text[c.start:]
	switch kind {
	case "s":
		if err := r.addShared(&c, value); err != nil || c.Kind == 0 {
			return err
		}
	case "inlineStr", "str":
		c.Kind = Text
		r.text = r.text[:c.start+len(unescape(value))]
	case "b":
		c.Kind = Bool
		shown := "FALSE"
		if isTrue(string(bytes.TrimSpace(value))) {
			shown = "TRUE"
		}
		if len(value) > 0 {
			r.text = append(r.text[:c.start], shown...)
		}
	case "e":
		c.Kind = ErrorCell
	case "d":
		c.Kind = ISODate
	default:
		c.Kind = Number
	}
	if c.end = len(r.text); c.end == c.start && c.Kind != LostText {
		if !c.Formula || found && c.Kind == Text {
			return nil // empty
		}
		c.Kind = NoValue
	}
	r.row.Cells = append(r.row.Cells, c)
	return nil
}

// Value returns a cell as it can be written, with its number format. The days of a date count from 1900.
func (b *Workbook) Value(c Cell) Value {
	if c.Kind == NoValue || c.Kind == LostText {
		return Value{}
	}
	f := b.formatOf(c)
	v := Value{Kind: c.Kind, Text: string(c.Text), Format: f.code}
	if hasDate, _ := dateParts(f.code); b.date04 && c.Kind == Number && f.pattern == date && hasDate {
		if days, err := strconv.ParseFloat(strings.TrimSpace(v.Text), 64); err == nil {
			v.Text = strconv.FormatFloat(days+from1904, 'f', -1, 64)
		}
	}
	return v
}
