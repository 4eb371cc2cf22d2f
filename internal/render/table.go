package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/term"
)

// Column is one column of a table.
type Column struct {
	Name   string // header
	CSV    string // CSV header and JSON name; empty for Name in camel case, "-" for spreadsheets only
	Flex   bool   // may be cut to fit a terminal
	Right  bool   // aligned to the right
	ID     bool   // identifies something: CSV for Excel keeps it from being changed
	Rank   int    // 0 stays on every terminal; of the others the highest is the first to go where it is narrow
	Clock  bool   // a cell such as 2026-11-20 14:03:05 is a time in a workbook
	Sparse bool   // left out on a terminal where no row has a cell
}

// CSVName returns the column's header in CSV.
func (c Column) CSVName() string {
	switch c.CSV {
	case "-":
		return c.Name
	case "":
		words := strings.Fields(strings.ToLower(c.Name))
		for i, w := range words[1:] {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
		return strings.Join(words, "")
	}
	return c.CSV
}

// Cell is a cell of a row.
type Cell struct {
	Text  string // may be foreign
	Style term.Style
	Time  time.Time // the time that Text shows, if it is generated here
}

// Rows writes the rows of a table or of CSV as they are added, in constant memory. It is not safe for concurrent use.
//
// On a terminal a table is aligned, and fits the first [pageRows] rows. Columns get room in the order of
// [Column].Rank, each as much as its widest cell; flexible ones up to 40 columns, identifiers up to 36. A column
// without room is then left out; the last one, if flexible, may be cut to 20 first. Remaining room goes to flexible
// columns and wide identifiers. If the columns that must stay are too wide, flexible ones get 8, and identifiers 24.
// An identifier wider than its column shifts the rest of its line; one of more than 64 columns is cut. Further rows
// have the same columns; a cell wider than its column is cut if the column is flexible, else it shifts the rest of
// its line. On other outputs cells are complete and separated by tabs.
type Rows struct {
	sink    sink
	columns []Column
	cells   []Cell // of the last [Rows.Row]
	form    form
	begun   bool
	err     error
}

// form writes rows in one format. A row has as many cells as there are columns.
type form interface {
	// begin writes the header.
	begin(r *Rows) error
	// row writes or holds one row. It does not keep the slice.
	row(r *Rows, cells []Cell) error
	// end writes buffered rows.
	end(r *Rows) error
}

// NewTable begins a table.
func NewTable(out *term.Writer, columns ...Column) *Rows {
	r := &Rows{sink: sink{out: out, styled: true}, columns: columns, form: tabbed{}}
	if out.IsTerminal() {
		r.form = newPage(columns)
	}
	return r
}

// Row writes a row of plain cells: see [Rows.Add].
func (r *Rows) Row(texts ...string) error {
	r.cells = r.cells[:0]
	for _, text := range texts {
		r.cells = append(r.cells, Cell{Text: text})
	}
	return r.Add(r.cells)
}

// Add writes a row, or holds a copy. Missing cells are empty; too many are an error. A failed write is returned again.
func (r *Rows) Add(cells []Cell) error {
	if r.err != nil {
		return r.err
	}
	if len(cells) > len(r.columns) {
		return fmt.Errorf("row of %d cells for %d columns", len(cells), len(r.columns))
	}
	if len(cells) < len(r.columns) {
		cells = append(slices.Clip(cells), make([]Cell, len(r.columns)-len(cells))...)
	}
	if r.start() == nil {
		r.err = r.form.row(r, cells)
	}
	return r.err
}

// Flush writes buffered rows. It must be called after the last row. A table without rows still has a header.
func (r *Rows) Flush() error {
	if r.start() == nil {
		r.err = r.form.end(r)
	}
	if r.err == nil {
		r.err = r.sink.flush()
	}
	return r.err
}

func (r *Rows) start() error {
	if r.err == nil && !r.begun {
		r.begun = true
		r.err = r.form.begin(r)
	}
	return r.err
}

func (r *Rows) add(text term.Styled) { r.sink.buf = append(r.sink.buf, text...) }

type tabbed struct{}

func (t tabbed) begin(r *Rows) error { return t.row(r, header(r.columns)) }

func (tabbed) row(r *Rows, cells []Cell) error {
	for i, c := range cells {
		r.add(r.sink.out.Style(c.Style, c.Text))
		if i+1 < len(cells) {
			r.add("\t")
		} else {
			r.add("\n")
		}
	}
	return r.sink.ended()
}

func (tabbed) end(*Rows) error { return nil }

const withOffset = "2006-01-02 15:04:05 -07:00"

// LocalTime returns t in the local time zone, "2025-11-21 14:03:05 +01:00"; empty for the zero time.
func LocalTime(t time.Time) string { return timeIn(t, time.Local, withOffset) }

// UTCTime returns t as RFC 3339 in UTC; empty for the zero time.
func UTCTime(t time.Time) string { return timeIn(t, time.UTC, time.RFC3339) }

// LocalMinute is [LocalTime] without seconds.
func LocalMinute(t time.Time) string { return timeIn(t, time.Local, "2006-01-02 15:04 -07:00") }

// LocalDateTime is [LocalTime] without the offset, a form that spreadsheets read as a time.
func LocalDateTime(t time.Time) string { return timeIn(t, time.Local, time.DateTime) }

func timeIn(t time.Time, zone *time.Location, layout string) string {
	if t.IsZero() {
		return ""
	}
	return t.In(zone).Format(layout)
}

// Field is a named value of one object.
type Field struct {
	Name  string
	Value string // may be foreign; an empty field is left out
	Style term.Style
}

// minWrap is the minimum width in which values are wrapped.
const minWrap = 16

// Fields writes fields one below the other, with aligned values. On a terminal, long values wrap, at spaces only.
func Fields(out *term.Writer, fields ...Field) error {
	width := 0
	for _, f := range fields {
		if f.Value != "" {
			width = max(width, term.DisplayWidth(term.Visible(f.Name)))
		}
	}
	width += len(":") + gap
	room := out.Width() - width
	s := sink{out: out, styled: true}
	for _, f := range fields {
		if f.Value == "" {
			continue
		}
		name := term.Visible(f.Name)
		s.buf = append(s.buf, out.Style(term.Heading, name+":")...)
		space := width - term.DisplayWidth(name) - len(":")
		for _, line := range Wrap(term.Visible(f.Value), room) {
			s.buf = append(s.buf, strings.Repeat(" ", space)...)
			s.buf = append(s.buf, out.Style(f.Style, line)...)
			s.buf = append(s.buf, '\n')
			space = width
		}
	}
	return s.flush()
}

// Wrap breaks visible text at spaces into lines of at most room columns; a longer word has a line of its own. With
// room below 16, the text stays on one line.
func Wrap(text string, room int) []string {
	if room < minWrap || term.DisplayWidth(text) <= room {
		return []string{text}
	}
	var lines []string
	for word := range strings.FieldsSeq(text) {
		last := len(lines) - 1
		if last >= 0 && term.DisplayWidth(lines[last]+" "+word) <= room {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
