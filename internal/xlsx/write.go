package xlsx

import (
	"archive/zip"
	"cmp"
	"compress/flate"
	"embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ErrFull says that a sheet has the maximum number of rows.
var ErrFull = fmt.Errorf("a sheet has at most %d rows", MaxRows)

// Value is a cell to write. The zero value is an empty cell.
type Value struct {
	Kind   CellKind
	Text   string    // for a number its digits, as in JSON; for a truth value TRUE or FALSE
	Time   time.Time // date and time in its own zone; Text is then unused
	Format string    // code of the number format of a number, empty for General
}

// minWidth and maxWidth limit the widths of columns, in characters.
const (
	minWidth     = 8
	maxWidth     = 60
	bufferedRows = 200 // rows used to determine the widths
	maxStyles    = 1000
)

// Indexes of the styles that every workbook has.
const (
	styleGeneral = iota
	styleHeader
	styleText
	styleTime
	firstStyle // first style of the values' formats
)

const timeFormat = "yyyy-mm-dd hh:mm:ss"

// Writer writes a workbook, one sheet after the other, in memory that does not grow
// with the rows. Each sheet has a header, which stays in view and filters the rows.
// Text is text, whatever it begins with. It keeps its first error of writing. It is not safe for concurrent use.
type Writer struct {
	z        *zip.Writer
	err      error
	part     io.Writer // of the sheet at hand; nil between sheets
	names    []string
	styles   map[string]int // by number format
	formats  []string       // of styles, in order
	header   []string
	buffered [][]Value // first rows, until the widths are known
	rows     int       // of the current sheet, with the header
	begun    bool      // the header is written
	cut      int64
	buf      []byte
}

// NewWriter begins a workbook. It writes nothing before the first sheet.
func NewWriter(w io.Writer) *Writer {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestSpeed)
	})
	return &Writer{z: z, styles: map[string]int{}}
}

// Cut returns how many texts were longer than [MaxText] and cut.
func (w *Writer) Cut() int64 { return w.cut }

// Sheet ends the current sheet and begins another, with a header. It changes a name that is not valid or is taken.
func (w *Writer) Sheet(name string, header []string) error {
	if w.z == nil {
		return errors.New("the workbook is closed")
	}
	w.endSheet()
	if len(w.names) == 0 {
		w.put("[Content_Types].xml", "contenttypes.xml")
		w.put("_rels/.rels", "relations.xml")
	}
	w.names = append(w.names, w.freeName(name))
	w.part = w.create(fmt.Sprintf("xl/worksheets/sheet%d.xml", len(w.names)))
	w.header, w.buffered, w.rows, w.begun = header, nil, 1, false
	return w.err
}

func (w *Writer) freeName(name string) string {
	const longest = 31
	name = strings.Trim(strings.Map(func(r rune) rune {
		if strings.ContainsRune(`[]:*?/\`, r) || !isXML(r) || r < ' ' {
			return '_'
		}
		return r
	}, name), "'")
	name = cmp.Or(name, "Sheet")
	for n := 1; ; n++ {
		suffix := ""
		if n > 1 {
			suffix = " " + strconv.Itoa(n)
		}
		short := cutText(name, longest-len(suffix)) + suffix
		if !slices.ContainsFunc(w.names, func(other string) bool { return strings.EqualFold(other, short) }) {
			return short
		}
	}
}

// Row writes a row, or holds it until the widths are known. Missing values are empty. A full sheet returns [ErrFull].
func (w *Writer) Row(values []Value) error {
	if w.part == nil {
		return errors.New("no sheet was begun")
	}
	if w.rows == MaxRows {
		return ErrFull
	}
	w.rows++
	if w.begun {
		w.row(w.rows, values)
	} else if w.buffered = append(w.buffered, append([]Value(nil), values...)); len(w.buffered) == bufferedRows {
		w.begin()
	}
	return w.err
}

func (w *Writer) begin() {
	w.begun = true
	w.buf = append(w.buf[:0], xmlHead+`<worksheet xmlns="`+mainSpace+`"><sheetViews><sheetView workbookViewId="0"`...)
	if len(w.names) == 1 {
		w.buf = append(w.buf, ` tabSelected="1"`...)
	}
	w.buf = append(w.buf, `><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>`...)
	w.buf = append(w.buf, `</sheetView></sheetViews><sheetFormatPr defaultRowHeight="15"/>`...)
	if len(w.header) > 0 {
		w.buf = append(w.buf, `<cols>`...)
		for i := range w.header {
			w.buf = fmt.Appendf(w.buf, `<col min="%d" max="%d" width="%d" customWidth="1"/>`, i+1, i+1, w.width(i))
		}
		w.buf = append(w.buf, `</cols>`...)
	}
	w.buf = append(w.buf, `<sheetData><row r="1">`...)
	for i, name := range w.header {
		w.appendText(i, 1, styleHeader, name)
	}
	w.buf = append(w.buf, `</row>`...)
	w.flush()
	for i, row := range w.buffered {
		w.row(i+2, row)
	}
	w.buffered = nil
}

// flush writes the buffer to the current sheet.
func (w *Writer) flush() {
	if w.err == nil {
		_, w.err = w.part.Write(w.buf)
	}
}

func (w *Writer) width(column int) int {
	const filterButton = 3
	width := utf8.RuneCountInString(w.header[column]) + filterButton
	for _, row := range w.buffered {
		if column >= len(row) {
			continue
		}
		n := utf8.RuneCountInString(row[column].Text)
		if !row[column].Time.IsZero() {
			n = len(timeFormat)
		}
		width = max(width, n+1)
	}
	return min(max(width, minWidth), maxWidth)
}

func (w *Writer) row(number int, values []Value) {
	w.buf = fmt.Appendf(w.buf[:0], `<row r="%d">`, number)
	for i, v := range values {
		w.appendValue(i, number, v)
	}
	w.buf = append(w.buf, `</row>`...)
	w.flush()
}

func (w *Writer) appendValue(column, row int, v Value) {
	switch {
	case !v.Time.IsZero():
		if days, ok := serial(v.Time); ok {
			w.appendNumber(column, row, styleTime, days)
		} else {
			w.appendText(column, row, styleText, v.Time.Format(time.DateTime))
		}
	case v.Kind == 0 || v.Text == "" && v.Kind != Text:
	case v.Kind == Number:
		w.appendNumber(column, row, w.style(v.Format), v.Text)
	case v.Kind == Bool:
		on := "0"
		if v.Text == "TRUE" {
			on = "1"
		}
		w.buf = fmt.Appendf(w.buf, `<c r="%s" t="b"><v>%s</v></c>`, Address(column, row), on)
	case v.Kind == ErrorCell:
		w.buf = append(appendEscaped(fmt.Appendf(w.buf, `<c r="%s" t="e"><v>`, Address(column, row)), v.Text), `</v></c>`...)
	default:
		w.appendText(column, row, styleText, v.Text)
	}
}

func (w *Writer) appendNumber(column, row, style int, number string) {
	w.appendCell(column, row, style)
	w.buf = append(appendEscaped(append(w.buf, `><v>`...), number), `</v></c>`...)
}

// appendCell appends the start tag of a cell, without its closing >.
func (w *Writer) appendCell(column, row, style int) {
	w.buf = append(append(w.buf, `<c r="`...), Column(column)...)
	w.buf = append(strconv.AppendInt(w.buf, int64(row), 10), '"')
	if style != styleGeneral {
		w.buf = append(strconv.AppendInt(append(w.buf, ` s="`...), int64(style), 10), '"')
	}
}

func (w *Writer) appendText(column, row, style int, text string) {
	if text == "" {
		return
	}
	short := cutText(text, MaxText)
	if len(short) < len(text) {
		w.cut++
	}
	w.appendCell(column, row, style)
	w.buf = append(w.buf, ` t="inlineStr"><is><t xml:space="preserve">`...)
	w.buf = append(appendEscaped(w.buf, short), `</t></is></c>`...)
}

// cutText cuts text to at most limit UTF-16 code units. A text that was cut ends in an ellipsis.
func cutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	n, keep := 0, 0
	for i, r := range text {
		size := 1
		if r > 0xffff {
			size = 2
		}
		if n+size <= limit-1 {
			keep = i + utf8.RuneLen(r)
		}
		if n += size; n > limit {
			return text[:min(keep, len(text))] + "…"
		}
	}
	return text
}

// serial returns a time as a number of days; false before 1 March 1900, where spreadsheets disagree, and after 9999.
func serial(t time.Time) (string, bool) {
	day := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	days := int64(day.Sub(time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)) / (24 * time.Hour))
	if days < 61 || t.Year() > 9999 {
		return "", false
	}
	seconds := t.Hour()*3600 + t.Minute()*60 + t.Second()
	return strconv.FormatFloat(float64(days)+float64(seconds)/86400, 'f', 10, 64), true
}

func (w *Writer) style(format string) int {
	if format == "" || format == "General" {
		return styleGeneral
	}
	n, ok := w.styles[format]
	if !ok {
		if len(w.formats) == maxStyles {
			return styleGeneral
		}
		n = firstStyle + len(w.formats)
		w.styles[format] = n
		w.formats = append(w.formats, format)
	}
	return n
}

func (w *Writer) endSheet() {
	if w.part == nil {
		return
	}
	if !w.begun {
		w.begin()
	}
	w.buf = append(w.buf[:0], `</sheetData>`...)
	if len(w.header) > 0 {
		all := "A1:" + Address(len(w.header)-1, w.rows)
		w.buf = fmt.Appendf(w.buf, `<autoFilter ref="%s"/><ignoredErrors>`, all)
		w.buf = fmt.Appendf(w.buf, `<ignoredError sqref="%s" numberStoredAsText="1"/></ignoredErrors>`, all)
	}
	w.buf = append(w.buf, `</worksheet>`...)
	w.flush()
	w.part = nil
}

// Close completes the workbook, which must have a sheet. It does not close the underlying writer.
func (w *Writer) Close() error {
	w.endSheet()
	var sheets, relations []byte
	for i, name := range w.names {
		sheets = appendEscaped(append(sheets, `<sheet name="`...), name)
		sheets = fmt.Appendf(sheets, `" sheetId="%d" r:id="rId%d"/>`, i+1, i+1)
		relations = fmt.Appendf(relations, `<Relationship Id="rId%d" Type="%sworksheet" `, i+1, relationSpace)
		relations = fmt.Appendf(relations, `Target="worksheets/sheet%d.xml"/>`, i+1)
	}
	var formats, cells []byte
	for i, code := range w.formats {
		id := firstFormat + 1 + i
		formats = appendEscaped(fmt.Appendf(formats, `<numFmt numFmtId="%d" formatCode="`, id), code)
		formats = append(formats, `"/>`...)
		cells = fmt.Appendf(cells, `<xf numFmtId="%d" fontId="0" fillId="0" borderId="0" xfId="0" `, id)
		cells = append(cells, `applyNumberFormat="1"/>`...)
	}
	w.put("xl/workbook.xml", "workbook.xml", sheets)
	w.put("xl/_rels/workbook.xml.rels", "workbookrelations.xml", relations)
	w.put("xl/styles.xml", "styles.xml", len(w.formats)+1, formats, firstStyle+len(w.formats), cells)
	if w.err == nil {
		w.err = w.z.Close()
	}
	w.z = nil
	return w.err
}

// templates has the parts of a workbook except its sheets.
//
//go:embed parts
var templates embed.FS

// create begins a part.
func (w *Writer) create(name string) (part io.Writer) {
	if w.err == nil {
		part, w.err = w.z.Create(name)
	}
	return part
}

// put writes a part. Line breaks of its template are only for readers, and removed.
func (w *Writer) put(name, template string, args ...any) {
	text, _ := templates.ReadFile("parts/" + template) // embedded
	if part := w.create(name); w.err == nil {
		_, w.err = fmt.Fprintf(part, xmlHead+strings.ReplaceAll(string(text), "\n", ""), args...)
	}
}

// firstFormat is the number of [timeFormat]; the formats of values follow.
const firstFormat = 164

const (
	xmlHead       = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	mainSpace     = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	relationSpace = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
)
