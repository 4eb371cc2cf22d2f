package intake

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// Longest foreign text that goes into a message or a problem.
const (
	maxShown = 60  // characters of a name
	maxValue = 256 // bytes of a value
)

// FormatError says that an input is of a kind that can't be read.
type FormatError struct {
	File string
	Kind string // such as "an Excel workbook (xlsx)"
	hint string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s is %s, not XLSX, CSV or JSON", showName(e.File), e.Kind)
}

// Hint says what to do about it.
func (e *FormatError) Hint() string { return e.hint }

// EncodingError says that the bytes of an input can't be turned into text
// without knowing their encoding.
type EncodingError struct {
	File   string
	Reason string // such as "the header is not valid UTF-8"
	hint   string
}

func (e *EncodingError) Error() string { return showName(e.File) + ": " + e.Reason }

// Hint says what to do about it.
func (e *EncodingError) Hint() string { return e.hint }

// ReadError says that an input could not be read to its end.
type ReadError struct {
	File string
	Err  error // of the reader
}

func (e *ReadError) Error() string { return fmt.Sprintf("read %s: %v", showName(e.File), e.Err) }

func (e *ReadError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *ReadError) Hint() string {
	return "check the disk or device, or copy the input elsewhere; then run the command again"
}

// OptionError says that [Options] ask for something that does not exist or
// contradicts itself. It has nothing to do with the input.
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

// SyntaxError says that an input can't be read any further: what follows the
// place can't be told apart.
type SyntaxError struct {
	File    string
	Line    int // physical, 1-based
	Column  int // character of the line, 1-based; 0 if the line is meant
	Message string
	hint    string
}

func (e *SyntaxError) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("%s:%d: %s", showName(e.File), e.Line, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", showName(e.File), e.Line, e.Column, e.Message)
}

// Hint says what to do about it.
func (e *SyntaxError) Hint() string { return e.hint }

// MixError says that rows of two inputs can't stand in one file of rejects,
// since their columns or formats differ.
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
	if utf8.RuneCountInString(s) > maxShown {
		n := 0
		for i := range s {
			if n++; n > maxShown {
				return tracking.Quote(s[:i] + "…")
			}
		}
	}
	return tracking.Quote(s)
}

// showName shows the name of a file, as it is where that can do no harm.
func showName(name string) string {
	if name == "" || !graphic(name) || strings.ContainsAny(name, `"\`) {
		return tracking.Quote(name)
	}
	return name
}

// graphic reports whether every character of s is valid and can be seen.
func graphic(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// Shorten cuts a value to what a problem may carry.
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
