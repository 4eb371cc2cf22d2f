package intake

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/xlsx"
)

// errNoText reports that a good row was read without Options.KeepText, so that its text was not kept.
var errNoText = errors.New("the text of the row was not kept")

// dialect says how an input is written, as far as needed to write rows in the same way. The zero value is JSON.
type dialect struct {
	coding charset
	header string // without waybillError columns
	delim  byte   // 0 for JSON
	sep    bool   // a line such as sep=; precedes the header
	eol    string // line end
	book   bool   // a sheet of a workbook; header has the names, each terminated by NUL
}

// dialect returns how the table is written. The header must have been read.
func (t *table) dialect() dialect {
	eol := t.scan.win.bytes()[len(t.rec.raw):t.scan.recordBytes]
	return dialect{
		header: strings.TrimRight(t.text(), "\r"), delim: t.scan.delim, eol: cmp.Or(string(eol), "\n"),
	}
}

func (d dialect) compatible(other dialect) bool {
	return d.header == other.header && d.delim == other.delim && d.coding.name == other.coding.name && d.book == other.book
}

// Rejects writes bad rows as they are in their input, with its columns, delimiter, line ends and encoding, and a last
// column waybillError that says what is wrong and that is not read again. Rows of a workbook go into a workbook with
// one sheet, with their values and number formats. Rows of JSON inputs become JSON Lines with such a field. Inputs in
// other encodings than UTF-8 become UTF-8 with a byte order mark, so that reading needs no encoding. It is not safe
// for concurrent use.
type Rejects struct {
	w     *bufio.Writer
	first *Reader // its dialect is used; nil before the first row
	book  *xlsx.Writer
}

// NewRejects returns a writer of rejected rows to w. It writes nothing to w before the first row.
func NewRejects(w io.Writer) *Rejects { return &Rejects{w: bufio.NewWriter(w)} }

// Flush writes buffered rows. It does not close the underlying writer.
func (j *Rejects) Flush() error {
	var err error
	if j.book != nil {
		err = j.book.Close()
	}
	if err == nil {
		err = j.w.Flush()
	}
	if err != nil {
		return fmt.Errorf("write rejects: %w", err)
	}
	return nil
}

// Write writes rec, which r returned, with its problems except notes; a good row only if r was opened with KeepText.
// It returns a [*MixError] if r and earlier rows have different dialects.
func (j *Rejects) Write(r *Reader, rec Record) error {
	if rec.text == "" && rec.cells == nil {
		return fmt.Errorf("write rejects: line %d: %w", rec.Line, errNoText)
	}
	var err error
	switch {
	case j.first == nil:
		j.first = r
		err = j.open(r)
	case !j.first.dialect.compatible(r.dialect):
		return &MixError{First: j.first.name, File: r.name}
	}
	switch {
	case err != nil:
	case j.book != nil:
		err = j.writeCells(r.book, rec)
	default:
		_, err = j.w.Write(j.first.dialect.row(rec))
	}
	if err != nil {
		return fmt.Errorf("write rejects: %w", err)
	}
	return nil
}

func (j *Rejects) open(r *Reader) error {
	d := r.dialect
	if d.book {
		j.book = xlsx.NewWriter(j.w)
		return j.book.Sheet(r.book.sheet.name, append(r.book.columnNames(), errorColumn))
	}
	var head string
	if d.coding.bomSize > 0 || d.coding.codec != nil {
		head = utf8BOM
	}
	if d.sep {
		head += "sep=" + string(rune(d.delim)) + d.eol
	}
	if strings.Contains(d.header, "\r") {
		head += d.eol // it shows that a carriage return alone does not end a line
	}
	if d.delim != 0 {
		head += d.header + string(rune(d.delim)) + errorColumn + d.eol
	}
	_, err := j.w.WriteString(head)
	return err
}

func (d dialect) row(rec Record) []byte {
	reason := reason(rec)
	if d.delim == 0 {
		b := append(bytes.TrimSuffix([]byte(rec.text), []byte{'}'}), `,"`...)
		if len(b) == len(`{,"`) {
			b = append(b[:0], `{"`...)
		}
		b = append(append(b, errorColumn...), `":`...)
		text, _ := json.Marshal(reason) //nolint:errchkjson // strings always encode
		return append(append(b, text...), "}\n"...)
	}
	b := append([]byte(rec.text), d.delim)
	b = appendQuoted(b, []byte(reason))
	return append(b, d.eol...)
}

// reason says on one line what is wrong with a record. It can't be mistaken for a formula.
func reason(rec Record) string {
	var parts []string
	for _, p := range rec.Problems {
		if p.Note {
			continue
		}
		text := p.Message
		if p.Hint != "" {
			text += " (" + p.Hint + ")"
		}
		if !graphic(text) {
			text = tracking.Quote(text)
		}
		if !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		parts = []string{"rejected"}
	}
	where := fmt.Sprintf("line %d", rec.Line)
	if rec.Row > 0 {
		where = strings.TrimSpace(RowPlace("", rec.Line, rec.Row, ""))
	}
	return where + ": " + strings.Join(parts, "; ")
}

// columnNames returns the names in the header, except waybillError.
func (t *table) columnNames() []string {
	var names []string
	for i, name := range t.cols.header {
		if !slices.Contains(t.cols.errors, i) {
			names = append(names, name)
		}
	}
	return names
}

func (j *Rejects) writeCells(t *table, rec Record) error {
	row := make([]xlsx.Value, 0, len(t.cols.header)+1)
	next := 0 // index of the next cell
	for i := range t.cols.header {
		var v xlsx.Value
		if next < len(rec.cells) && rec.cells[next].Column == i {
			v = t.sheet.book.Value(rec.cells[next])
			next++
		}
		if !slices.Contains(t.cols.errors, i) {
			row = append(row, v)
		}
	}
	return j.book.Row(append(row, xlsx.Value{Kind: xlsx.Text, Text: reason(rec)}))
}
