// Package report renders trackings as one self-contained HTML page: it loads no resource, its policy allows only its
// own style and script, and it can be read without the script.
package report

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/term"
)

// Limits of a page. Its table omits rows beyond them, and the page says so.
const (
	MaxRows  = 10_000    // of the table
	MaxBytes = 5_000_000 // of the page
)

// Class is the group of statuses that a tracking belongs to.
type Class int

// The classes, in the order in which charts stack them.
const (
	Delivered Class = iota
	UnderWay
	Problem
	NotReported
)

// Split is the number of trackings in each class.
type Split [4]int64

// Total returns the number of trackings in all classes.
func (s Split) Total() int64 { return s[Delivered] + s[UnderWay] + s[Problem] + s[NotReported] }

// Page is the content of a report. Texts may be foreign: they are escaped.
type Page struct {
	Number func(int64) string // formats a count

	Title   string
	Facts   []Fact // whose trackings, when the report was made, what was selected
	Summary string // of all trackings, on one line

	Counts     Split
	Stuck      int64
	StuckText  string // how long stuck trackings have no checkpoint, such as "for 7 days"
	Delivered  string // share of delivered trackings; empty if not known
	Exceptions []Line // statuses of problems
	Days       []Bar  // the last days on which trackings were created
	Before     Bar    // all earlier days
	NoDay      int64  // trackings whose day of creation is unknown
	Sums       []Table

	FirstProblems, FirstStuck []Row // shown before the table

	Rows    []Row  // trackings that need attention come first
	Zone    string // offset of the times of rows that have none, such as +01:00
	Command string // writes all trackings; shown if the table lacks some
}

// Fact is a line in the head of a page.
type Fact struct{ Name, Value string }

// Bar is the number of trackings of a day in each class.
type Bar struct {
	Name string // the day
	Axis string // the day in short form
	Split
}

// Table is a list of counts, each with a bar.
type Table struct {
	Title, Note string
	Columns     []string // the first is for the names; the bar has none
	Lines       []Line
}

// Line is a line of a [Table].
type Line struct {
	Name  string
	Cells []string
	Split // of its bar
}

// Row is a tracking. A time includes its offset if that differs from the page's Zone.
type Row struct {
	Reference, Number, Carrier, Status, Event, Checkpoint, Updated string

	Own   string // further columns of the input; empty for none
	Class Class
	Stuck string // how long there was no checkpoint, such as "9 days"; empty if not stuck
}

// Write writes the page and returns the number of rows in its table.
func Write(w io.Writer, p *Page) (shown int, err error) {
	var head, rows writer
	p.writeHead(&head)
	tail := p.tail()
	shown = p.writeRows(&rows, MaxBytes-head.Len()-tail.Len()-sizeOfTable)
	p.writeTableHead(&head, shown)
	for _, part := range []*bytes.Buffer{&head.Buffer, &rows.Buffer, &tail.Buffer} {
		if _, err := part.WriteTo(w); err != nil {
			return 0, err
		}
	}
	return shown, nil
}

// markup is HTML. A constant string converts to it implicitly, a text from outside does not.
type markup string

// writer writes HTML: markup unchanged, and everything else escaped.
type writer struct{ bytes.Buffer }

func (w *writer) html(m markup) { w.WriteString(string(m)) }

// put writes markup with values in place of its verbs. It rounds a float64, a coordinate, to hundredths. In a string,
// it escapes characters that end, control, reorder or hide text.
func (w *writer) put(format markup, values ...any) {
	for i, v := range values {
		switch v := v.(type) {
		case string:
			values[i] = escapes.Replace(term.Visible(v))
		case float64:
			values[i] = strconv.FormatFloat(float64(int64(v*100+0.5))/100, 'f', -1, 64)
		}
	}
	fmt.Fprintf(w, string(format), values...)
}

// escapes replaces the characters that end a text or the value of an attribute.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")
