package intake

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Limits of foreign text in a message or a problem.
const (
	maxShown = 60  // characters of a name
	maxValue = 256 // bytes of a value
)

// FileError reports that an input can't be read, or not beyond a place.
type FileError struct {
	File    string
	Line    int // physical, 1-based; 0 for the whole input
	Column  int // character of the line, 1-based; 0 for the whole line
	Message string
	hint    string
	row     int // of a table, as a spreadsheet numbers it; 0 otherwise
}

func (e *FileError) Error() string {
	at := showName(e.File)
	switch {
	case e.row > 0:
		return RowPlace(at, e.Line, e.row, "") + ": " + e.Message
	case e.Line > 0:
		at += fmt.Sprintf(":%d", e.Line)
	}
	if e.Column > 0 {
		at += fmt.Sprintf(":%d", e.Column)
	}
	return at + ": " + e.Message
}

// Hint says what to do about it.
func (e *FileError) Hint() string { return e.hint }

func foreignFile(file, kind, hint string) error {
	return &FileError{File: file, Message: "this is " + kind + ", not XLSX, CSV or JSON", hint: hint}
}

// ReadError reports that an input could not be read to its end.
type ReadError struct {
	File string
	Err  error // the reader's error
}

func (e *ReadError) Error() string { return fmt.Sprintf("read %s: %v", showName(e.File), e.Err) }

func (e *ReadError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *ReadError) Hint() string {
	return "check the disk or device, or copy the input elsewhere; then run the command again"
}

// OptionError reports that [Options] are wrong or contradict each other, whatever the input is.
type OptionError struct {
	Option string // the flag, such as --encoding
	Value  string // as given
	Reason string
	hint   string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("%s %s: %s", e.Option, show(e.Value), e.Reason)
}

// Hint says what to do about it.
func (e *OptionError) Hint() string { return e.hint }

// MixError reports that rows of two inputs can't go into one file of rejects: their columns or formats differ.
type MixError struct {
	First string // name of the input whose rows are there already
	File  string
}

func (e *MixError) Error() string {
	return fmt.Sprintf("--rejects: %s and %s have different columns or formats", showName(e.First), showName(e.File))
}

// Hint says what to do about it.
func (e *MixError) Hint() string {
	return "read one file at a time, each with its own --rejects"
}

// show makes foreign text visible and short enough for a message.
func show(s string) string {
	n := 0
	for i := range s {
		if n++; n > maxShown {
			return tracking.Quote(s[:i] + "…")
		}
	}
	return tracking.Quote(s)
}

// showName returns a file name for messages, quoted only if it could be misread.
func showName(name string) string {
	if name == "" || !graphic(name) || strings.ContainsAny(name, `"\`) {
		return tracking.Quote(name)
	}
	return name
}

// graphic reports whether every character of s is valid and visible.
func graphic(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// Shorten cuts a value to the length that a problem may carry.
func Shorten(s string) string {
	if len(s) <= maxValue {
		return s
	}
	n := maxValue
	for n > maxValue-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// maxHeader is how many names of a header a message shows.
const maxHeader = 40

// Mapping is one --map flag.
type Mapping struct {
	Field  string
	Header string // name of the column
}

// ColumnError reports that the columns of some fields can't be determined.
type ColumnError struct {
	File   string
	Sheet  string    // of a workbook; Line is then the row's number
	Line   int       // physical line of the header, 1-based
	Fields []string  // the fields that are missing or ambiguous
	Header []string  // every column found, in order
	Found  []string  // for one ambiguous field, the columns that could be it
	Maps   []Mapping // --map flags that fit: at most one per field, or one per choice for an ambiguous field
	Saved  []string  // saved mappings that fit the header: see [ColumnError.Offer]
	reason string
	others string // further sheets that were tried, with their numbers
	data   bool   // the line has values instead of names
	taken  []bool // columns already assigned to other fields
}

// Offer records in Saved which of the saved mappings, from field to column, fit the header: they map all missing
// fields, and each of their columns is there exactly once.
func (e *ColumnError) Offer(saved map[string]map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(saved)) {
		mapping := saved[name]
		fits := !slices.ContainsFunc(e.Fields, func(field string) bool { return mapping[field] == "" })
		for _, column := range mapping {
			fits = fits && len((&resolver{header: e.Header}).columnsLike(column)) == 1
		}
		if fits {
			e.Saved = append(e.Saved, name)
		}
	}
}

func (e *ColumnError) Error() string {
	if e.data {
		return e.where() + ": " + e.reason
	}
	var names []string
	for _, name := range e.Header[:min(len(e.Header), maxHeader)] {
		names = append(names, show(name))
	}
	if more := len(e.Header) - maxHeader; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s: %s; the header is: %s", e.where(), e.reason, strings.Join(names, ", "))
}

func (e *ColumnError) where() string {
	if e.Sheet != "" {
		return place(e.File, e.Sheet, strconv.Itoa(e.Line))
	}
	return fmt.Sprintf("%s:%d", showName(e.File), e.Line)
}

// Hint names the exact flags to type.
func (e *ColumnError) Hint() string {
	if e.others != "" {
		return e.mapHint() + "; other sheets: " + e.others + " (--sheet)"
	}
	return e.mapHint()
}

const addHeader = "add a first line with the names of the columns, such as referId and rawTrackingNumber"

func (e *ColumnError) mapHint() string {
	flags := make([]string, 0, len(e.Fields))
	for _, m := range e.Maps {
		flags = append(flags, "--map "+m.Field+"="+shell.Word(m.Header))
	}
	switch {
	case len(e.Saved) > 0:
		return "add --map @" + strings.Join(e.Saved, " or --map @") + ", a saved mapping that fits"
	case len(flags) == 0 && len(e.Found) > 1:
		return "rename one of the columns in the file: both have the same name"
	case e.data, e.free() < len(e.Fields)-len(e.Maps):
		return addHeader
	case len(e.Found) > 1:
		return "add " + strings.Join(flags, " or ")
	case len(flags) == len(e.Fields):
		return "add " + strings.Join(flags, " ")
	}
	for _, field := range e.Fields {
		if !slices.ContainsFunc(e.Maps, func(m Mapping) bool { return m.Field == field }) {
			flags = append(flags, "--map "+field+"=NAME")
		}
	}
	hint := "add " + strings.Join(flags, " ") + ", with the column's name for NAME"
	if len(e.Maps) == 0 {
		hint += "; if this line has no names, " + addHeader
	}
	return hint
}

// free counts the columns that --map can name for a missing field.
func (e *ColumnError) free() (n int) {
	for i, name := range e.Header {
		if (len(e.taken) == 0 || !e.taken[i]) && typable(name) {
			n++
		}
	}
	return n
}

// fail keeps an error about fields without a column; found are the columns that compete for one field.
func (r *resolver) fail(fields []string, reason string, found []int) {
	if r.err != nil {
		return
	}
	e := &ColumnError{File: r.file, Line: r.line, Fields: fields, Header: r.header, reason: reason}
	r.err = e
	for _, i := range found {
		name := r.header[i]
		e.Found = append(e.Found, name)
		if typable(name) && count(r.header, name) == 1 {
			e.Maps = append(e.Maps, Mapping{fields[0], name})
		}
	}
	if len(found) > 0 {
		return
	}
	e.taken = slices.Clone(r.mapped)
	for _, field := range refFields {
		for _, i := range r.bestColumns(field) {
			e.taken[i] = e.taken[i] || !slices.Contains(fields, field)
		}
	}
}

// typable reports whether a name can be typed as it is shown.
func typable(name string) bool {
	return name != "" && len(name) <= maxValue && graphic(name)
}
