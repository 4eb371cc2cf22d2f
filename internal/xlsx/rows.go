package xlsx

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
)

// CellKind is the type of a cell's value.
type CellKind byte

// Kinds of cells.
const (
	Text      CellKind = iota + 1
	Number             // as written in the file, such as 1.5E-3; the format may make it a date
	Bool               // TRUE or FALSE
	ErrorCell          // such as #N/A
	ISODate            // a date written as text
	NoValue            // a formula whose value was not saved
	LostText           // a text missing in the workbook
)

// Cell is a non-empty cell.
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

// maxRow is the maximum size of a row's text, in bytes.
const maxRow = 1 << 20

// Rows reads the rows of a sheet.
type Rows struct {
	Filtered bool    // a filter is set
	hidden   []Range // hidden columns, in all rows
	book     *Workbook
	scan     *scanner
	row      Row
	text     []byte
	last     int // number of the last row
	merges   []Range
	active   []Range // those that the row at hand may be in
	next     int     // the first of merges below the row at hand
}

// Rows begins to read a sheet, which must be a [Sheet.Table]. It first reads what follows the rows: merged cells and
// filters. The caller closes it.
func (b *Workbook) Rows(sheet int) (*Rows, error) {
	r := &Rows{book: b}
	part := b.Sheets[sheet].part
	r.scan = b.scan(part, maxPart)
	r.findData()
	r.readTail()
	r.Close()
	if r.scan.err != nil {
		return nil, r.scan.err
	}
	slices.SortFunc(r.merges, func(a, b Range) int { return a.FirstRow - b.FirstRow })
	r.scan = b.scan(part, maxPart)
	if r.findData(); r.scan.err != nil {
		r.Close()
		return nil, r.scan.err
	}
	return r, nil
}

// Close closes the part that the rows are read from.
func (r *Rows) Close() { r.scan.close() }

func (r *Rows) findData() {
	r.hidden = nil
	for s := r.scan; s.nextStart(); {
		switch {
		case s.depth == 1 && s.name != "worksheet":
			s.fail("it is no worksheet")
		case s.depth == 3 && s.name == "col":
			r.addColumns()
		case s.depth == 2 && s.name == "sheetData":
			return
		}
	}
	r.scan.fail("it has no sheetData")
}

func (r *Rows) addColumns() {
	first, last := r.scan.attribute("min"), r.scan.attribute("max")
	if !isTrue(r.scan.attribute("hidden")) {
		return
	}
	from, errFrom := strconv.Atoi(first)
	to, errTo := strconv.Atoi(last)
	if errFrom != nil || errTo != nil || from < 1 || len(r.hidden) == MaxColumns {
		r.scan.fail("bad columns %.20q to %.20q", first, last)
	}
	r.hidden = append(r.hidden, Range{FirstColumn: from - 1, LastColumn: to - 1})
}

// isTrue reports whether the value of an attribute means true.
func isTrue(value string) bool { return value == "1" || value == "true" }

// HiddenColumn reports whether a column of the sheet, 0-based, is hidden.
func (r *Rows) HiddenColumn(column int) bool {
	return slices.ContainsFunc(r.hidden, func(c Range) bool { return column >= c.FirstColumn && column <= c.LastColumn })
}

func (r *Rows) readTail() {
	s := r.scan
	s.skipTo("sheetData")
	for s.nextStart() {
		switch {
		case s.depth != 3:
		case s.name == "filterColumn":
			r.Filtered = true
		case s.name == "mergeCell":
			ref := s.attribute("ref")
			m, ok := parseRange(ref)
			if !ok || len(r.merges) == MaxRows {
				s.fail("bad merged range %.40q", ref)
			}
			r.merges = append(r.merges, m)
		}
	}
}

// Merged returns the merged range that contains the cell at column in the current row.
func (r *Rows) Merged(column int) (Range, bool) {
	for _, m := range r.active {
		if column >= m.FirstColumn && column <= m.LastColumn {
			return m, true
		}
	}
	return Range{}, false
}

// maxActive is the maximum number of merged ranges tracked for one row.
const maxActive = 1000

func (r *Rows) advance(row int) {
	r.active = slices.DeleteFunc(r.active, func(m Range) bool { return m.LastRow < row })
	for ; r.next < len(r.merges) && r.merges[r.next].FirstRow <= row; r.next++ {
		if m := r.merges[r.next]; m.LastRow >= row && len(r.active) < maxActive {
			r.active = append(r.active, m)
		}
	}
}

// Next returns the next row with a cell, valid until the next call; io.EOF at the end. It repeats an error.
func (r *Rows) Next() (*Row, error) {
	for r.readRow() {
		if len(r.row.Cells) > 0 {
			r.advance(r.row.Number)
			return &r.row, nil
		}
	}
	return nil, cmp.Or(r.scan.err, io.EOF)
}

// readRow returns false after the last row or an error.
func (r *Rows) readRow() bool {
	for s := r.scan; s.next(); {
		switch {
		case s.token == endTag && s.depth == 1:
			for s.next() { // reads the rest of the sheet, to detect a damaged end
			}
		case s.token == startTag && s.depth == 3 && s.name == "row":
			r.beginRow()
			r.readCells()
			return s.err == nil
		case s.token == startTag:
			s.skipElement()
		}
	}
	return false
}

func (r *Rows) beginRow() {
	r.row = Row{Number: r.last + 1, Cells: r.row.Cells[:0]}
	r.text = r.text[:0]
	if number := r.scan.attribute("r"); number != "" {
		n, err := strconv.Atoi(number)
		if err != nil || n <= r.last {
			r.scan.fail("row %.20q follows row %d", number, r.last)
		}
		r.row.Number = n
	}
	r.row.Hidden = isTrue(r.scan.attribute("hidden"))
	if r.last = r.row.Number; r.last > MaxRows {
		r.scan.fail("it has more than %d rows", MaxRows)
	}
}

func (r *Rows) readCells() {
	last := -1
	for s := r.scan; s.next(); {
		switch {
		case s.token == endTag && s.depth == 2:
			for i := range r.row.Cells {
				c := &r.row.Cells[i]
				c.Text = r.text[c.start:c.end]
			}
			return
		case s.token != startTag:
		case s.depth == 4 && s.name == "c":
			last = r.readCell(last)
		default:
			s.skipElement()
		}
	}
}

// readCell reads a cell after the column last, and returns its column.
func (r *Rows) readCell(last int) int {
	s := r.scan
	c := Cell{Column: last + 1, start: len(r.text)}
	if address := s.attribute("r"); address != "" {
		column, row, ok := parseAddress(address)
		if !ok || row != r.row.Number || column <= last {
			s.fail("cell %.20q is in the wrong place of row %d", address, r.row.Number)
		}
		c.Column = column
	}
	if style := s.attribute("s"); style != "" {
		var err error
		if c.style, err = strconv.Atoi(style); err != nil {
			s.fail("bad style %.20q", style)
		}
	}
	kind := s.attribute("t")
	if c.Column >= MaxColumns {
		s.fail("row %d has more than %d columns", r.row.Number, MaxColumns)
	}
	if found := r.content(&c); s.err == nil {
		r.addCell(c, kind, found)
	}
	return c.Column
}

// content reads to the end of a cell and appends its value to the row's text; found reports whether it has a value.
func (r *Rows) content(c *Cell) (found bool) {
	for s := r.scan; s.next(); {
		switch {
		case s.token == endTag && s.depth == 3:
			return found
		case s.token == startTag && s.depth == 5 && s.name == "f":
			c.Formula = true
			s.skipElement()
		case s.token == startTag && s.depth == 5 && (s.name == "v" || s.name == "is"):
			if len(r.text) > c.start { // together they would be a text that stands nowhere
				r.failCell(c, "the cell has two values")
			}
			found = true
		case s.token == startTag && (s.name == "t" || s.name == "r"):
		case s.token == startTag:
			s.skipElement() // such as rPh, how the text is pronounced
		case s.token == text && (s.local() == "t" || s.local() == "v"):
			r.text = append(r.text, s.text...)
			r.checkSize()
		}
	}
	return found
}

func (r *Rows) checkSize() {
	if len(r.text) > maxRow {
		r.scan.fail("row %d has more than 1 MiB of text", r.row.Number)
	}
}

func (r *Rows) failCell(c *Cell, message string) {
	address := Address(c.Column, r.row.Number)
	r.scan.keep(&Error{Part: r.scan.part, Cell: address, Message: message, hint: hintSaveAgain})
}

// addShared replaces value, the number of a shared string, with its text. An empty number is an empty cell, of kind 0.
func (r *Rows) addShared(c *Cell, value []byte) {
	value = bytes.TrimSpace(value)
	number, err := strconv.Atoi(string(value))
	ok := err == nil
	r.text = r.text[:c.start]
	switch {
	case len(value) == 0:
		return
	case r.book.strings == nil:
		r.failCell(c, "the cell refers to a text, and the workbook has none")
	case ok:
		r.text, ok, err = r.book.strings.append(r.text, number)
		r.scan.keep(err)
	}
	if c.Kind = Text; !ok {
		c.Kind = LostText
	}
	r.checkSize()
}

// addCell adds a cell to the row. Its value, as written, is at the end of the row's text.
func (r *Rows) addCell(c Cell, kind string, found bool) {
	value := r.text[c.start:]
	switch kind {
	case "s":
		if r.addShared(&c, value); c.Kind == 0 {
			return
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
			return // empty
		}
		c.Kind = NoValue
	}
	r.row.Cells = append(r.row.Cells, c)
}

// Value converts a cell for [Writer], with its number format. The days of a date count from 1900.
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
