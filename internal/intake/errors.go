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

// FileError says that an input can't be read, or not any further than its place.
type FileError struct {
	File    string
	Line    int // physical, 1-based; 0 for all of the input
	Column  int // character of the line, 1-based; 0 if the line is meant
	Message string
	hint    string
}

func (e *FileError) Error() string {
	at := showName(e.File)
	if e.Line > 0 {
		at += fmt.Sprintf(":%d", e.Line)
	}
	if e.Column > 0 {
		at += fmt.Sprintf(":%d", e.Column)
	}
	return at + ": " + e.Message
}

// Hint says what to do about it.
func (e *FileError) Hint() string { return e.hint }

// foreignFile returns the error of an input of a kind that can't be read.
func foreignFile(file, kind, hint string) error {
	return &FileError{File: file, Message: "this is " + kind + ", not XLSX, CSV or JSON", hint: hint}
}

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
