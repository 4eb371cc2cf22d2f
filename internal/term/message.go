package term

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

const maxValue = 60

// Failure is a message about something that went wrong. Texts may be foreign.
type Failure struct {
	Code       string        // a word from the table of exit statuses
	Reason     string        // a word that distinguishes causes of one code; empty for none
	Label      string        // replaces the program's name before Message; empty for the name
	Message    string        // may have several lines
	Hint       string        // what to do; empty for none
	Next       string        // the command that continues, quoted; empty for none
	HTTPStatus int           // 0 without a response
	RetryAfter time.Duration // requested by the service; 0 for none
	Errors     []Issue       // problems, each at one place of an input
	More       int           // how many problems are not in Errors
	Place      *Issue        // place of the error in Message; JSON lists it in errors; nil for none
}

// Issue is a fault in one place of an input.
type Issue struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`   // physical line, 1-based; 0 for the whole file
	Column  int    `json:"column,omitempty"` // 1-based; 0 for the whole line
	Sheet   string `json:"sheet,omitempty"`  // of a workbook; line is then the row's number
	Cell    string `json:"cell,omitempty"`   // of a table: its address in a spreadsheet, such as B17
	Place   string `json:"-"`                // place as people see it, unless it is FILE:LINE:COLUMN
	Header  string `json:"header,omitempty"` // name of the column or field
	Value   string `json:"value,omitempty"`
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
	Row     int    `json:"row,omitempty"` // of a table, as a spreadsheet numbers it
	Field   string `json:"-"`             // the subject of Message; people see Header and Value instead
}

// message is the JSON form of all messages except progress.
type message struct {
	Type              string  `json:"type"`
	Code              string  `json:"code,omitempty"`
	Reason            string  `json:"reason,omitempty"`
	Message           string  `json:"message,omitempty"`
	Hint              string  `json:"hint,omitempty"`
	NextCommand       string  `json:"nextCommand,omitempty"`
	HTTPStatus        int     `json:"httpStatus,omitempty"`
	RetryAfterSeconds int64   `json:"retryAfterSeconds,omitempty"`
	Errors            []Issue `json:"errors,omitempty"`
	ErrorsOmitted     int     `json:"errorsOmitted,omitempty"`
}

// Note prints information about a result. Arguments may be foreign, the format not: see [Writer.Printf].
func (t *IO) Note(format string, args ...any) {
	if !t.options.Quiet {
		t.Announce(format, args...)
	}
}

// Announce is [IO.Note] for information that the user asked for: it is never hidden.
func (t *IO) Announce(format string, args ...any) {
	t.write(message{Type: "note", Message: uncolouredText(format, args)}, string(sprintf(format, args))+"\n")
}

// Detail is [IO.Note] for verbose output.
func (t *IO) Detail(format string, args ...any) {
	if t.options.Verbose {
		t.Note(format, args...)
	}
}

// Hint prints what the user can do now. It is hidden like a note.
func (t *IO) Hint(format string, args ...any) {
	if !t.options.Quiet {
		text := uncolouredText(format, args)
		t.write(message{Type: "note", Message: text, Hint: text}, t.labelled(Accent, "hint:", string(sprintf(format, args))))
	}
}

// Next prints the command that continues, quoted for the shell. It is hidden like a note.
func (t *IO) Next(command string) {
	if !t.options.Quiet {
		m := message{Type: "note", Message: "next: " + command, NextCommand: command}
		t.write(m, t.labelled(Accent, "next:", Visible(command)))
	}
}

// Warning is [IO.Note] for something that may need action. It is never hidden.
func (t *IO) Warning(format string, args ...any) {
	m := message{Type: "warning", Message: uncolouredText(format, args)}
	t.write(m, t.labelled(Caution, "warning:", string(sprintf(format, args))))
}

// WarningWith is [IO.Warning] with the fields of a [Failure].
func (t *IO) WarningWith(f Failure) { t.report("warning", Caution, "warning:", f) }

// Fail prints how the command failed. It is never hidden. It stops every progress and page, as it is the last message.
func (t *IO) Fail(f Failure) {
	t.stop()
	t.report("error", Bad, "waybill:", f)
}

func (t *IO) report(kind string, style Style, label string, f Failure) {
	if t.options.JSON {
		if f.Place != nil {
			f.Errors = append([]Issue{*f.Place}, f.Errors...)
		}
		t.object(message{
			Type: kind, Code: f.Code, Reason: f.Reason, Message: strings.TrimPrefix(f.Label+" "+f.Message, " "),
			Hint: f.Hint, NextCommand: f.Next, HTTPStatus: f.HTTPStatus, RetryAfterSeconds: wholeSeconds(f.RetryAfter),
			Errors: f.Errors, ErrorsOmitted: f.More,
		})
		return
	}
	var b strings.Builder
	for i, e := range f.Errors {
		b.WriteString(t.issue(e))
		if e.Hint != "" && (i+1 == len(f.Errors) || f.Errors[i+1].Hint != e.Hint) {
			b.WriteString("  " + t.labelled(Accent, "hint:", VisibleText(e.Hint)))
		}
	}
	if f.More > 0 {
		fmt.Fprintf(&b, "… and %d more\n", f.More)
	}
	b.WriteString(t.labelled(style, cmp.Or(f.Label, label), VisibleText(f.Message)))
	if f.RetryAfter > 0 {
		fmt.Fprintf(&b, "retry after %ds, as the service asked\n", wholeSeconds(f.RetryAfter))
	}
	if f.Hint != "" {
		b.WriteString(t.labelled(Accent, "hint:", VisibleText(f.Hint)))
	}
	if f.Next != "" {
		b.WriteString(t.labelled(Accent, "next:", Visible(f.Next)))
	}
	t.human(b.String())
}

func (t *IO) issue(e Issue) string {
	place := e.File
	if e.Place != "" {
		place = Visible(e.Place)
	}
	for _, n := range []int{e.Line, e.Column} {
		if n == 0 || e.Place != "" {
			break
		}
		if place != "" {
			place += ":"
		}
		place += strconv.Itoa(n)
	}
	var parts []string
	if place != "" {
		parts = append(parts, string(t.Err.Style(Heading, place)))
	}
	what := Visible(e.Header)
	if e.Value != "" {
		what = strings.TrimLeft(what+` "`+Truncate(Visible(e.Value), maxValue)+`"`, " ")
	}
	message := indented(VisibleText(e.Message))
	if rest, ok := strings.CutPrefix(message, e.Field+" "); ok && what != "" && e.Field != "" {
		what, message = what+" "+rest, ""
	} else if e.Field != "" {
		message = strings.ReplaceAll(message, " "+e.Field, " the value")
	}
	parts = slices.DeleteFunc(append(parts, what, message), func(part string) bool { return part == "" })
	return strings.Join(parts, ": ") + "\n"
}

// labelled returns one or more lines after a label. text must be visible.
func (t *IO) labelled(s Style, label, text string) string {
	return string(t.Err.Style(s, label)) + " " + indented(text) + "\n"
}

// indented indents all lines but the first, so that none looks like a separate message.
func indented(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}

// uncolouredText formats text for the JSON form, without colour.
func uncolouredText(format string, args []any) string {
	plain := slices.Clone(args)
	for i, a := range plain {
		if s, ok := a.(Styled); ok {
			plain[i] = uncoloured(s)
		}
	}
	return fmt.Sprintf(format, plain...)
}

func wholeSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

func (t *IO) write(m message, human string) {
	if t.options.JSON {
		t.object(m)
	} else {
		t.human(human)
	}
}

// human writes visible text. Err keeps an error: there is nowhere to report it.
func (t *IO) human(text string) { _, _ = t.Err.WriteStyled([]byte(t.masker().String(text))) }

// object writes one line of JSON. Err keeps an error, as in human.
func (t *IO) object(v any) {
	line, err := EncodeJSON(v)
	if err != nil {
		line, _ = EncodeJSON(message{Type: "warning", Message: "message not shown: " + err.Error()})
	}
	_, _ = t.Err.Write(append(t.masker().Bytes(line), '\n'))
}

// EncodeJSON returns v as JSON on one line, without a newline. Control and format characters become \uXXXX, invalid
// UTF-8 becomes \ufffd, `<>&` stay. A [json.RawMessage] keeps its digits, order and duplicate names.
func EncodeJSON(v any) ([]byte, error) {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return nil, err
	}
	return EscapeJSON(nil, b), nil
}

// EscapeJSON appends src, which must be valid JSON, with control and format characters in strings as \uXXXX (two beyond
// U+FFFF) and invalid UTF-8 as \ufffd, as decoders read it. It changes nothing else, and is idempotent.
func EscapeJSON(dst, src []byte) []byte {
	start := 0
	for i := 0; i < len(src); {
		if src[i] < 0x7f { // JSON has no raw control characters in strings
			i++
			continue
		}
		r, size := utf8.DecodeRune(src[i:])
		invalid := r == utf8.RuneError && size == 1
		if invalid || hidden(r) {
			dst = append(dst, src[start:i]...)
			dst = appendUnicode(dst, r)
			start = i + size
		}
		i += size
	}
	return append(dst, src[start:]...)
}

func appendUnicode(dst []byte, r rune) []byte {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		return appendUnicode(appendUnicode(dst, high), low)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}
