package intake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// maxDepth is how deep a record may be nested; an item needs two levels.
const maxDepth = 64

const jsonHint = "fix the file or export it again; nothing after this place was read"

type position struct {
	line int // physical, 1-based
	char int // character of the line, 1-based
}

// after returns the position after text, which begins at p. Lines end with LF, CRLF or CR.
func (p position) after(text []byte) position {
	for {
		n := bytes.IndexAny(text, "\r\n")
		if n < 0 {
			p.char += utf8.RuneCount(text)
			return p
		}
		if text[n] == '\r' && n+1 < len(text) && text[n+1] == '\n' {
			n++
		}
		p.line, p.char = p.line+1, 1
		text = text[n+1:]
	}
}

// jsonText reads JSON value by value. It keeps its first error, errEnd at the end of the text, and then reads no more.
type jsonText struct {
	file string
	win  *window
	pos  position // of the beginning of win
	err  error
}

func jsonSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func (t *jsonText) discard(n int) {
	t.pos = t.pos.after(t.win.bytes()[:n])
	t.win.drop(n)
}

// fail keeps an error about the byte at that offset in the window.
func (t *jsonText) fail(at int, message, hint string) {
	if t.err == nil {
		p := t.pos.after(t.win.bytes()[:at])
		t.err = &FileError{File: t.file, Line: p.line, Column: p.char, Message: message, hint: hint}
	}
}

// peek skips white space and returns the next byte without consuming it; 0 at the end of the text.
func (t *jsonText) peek() byte {
	for t.err == nil {
		text := t.win.bytes()
		n := jsonscan.SkipSpace(text, 0)
		if n < len(text) {
			t.discard(n)
			return text[n]
		}
		if n > 0 && text[n-1] == '\r' {
			n-- // the next byte may belong to the same line end
		}
		t.discard(n)
		if !t.win.more() {
			t.discard(len(t.win.bytes()))
			t.err = t.win.err
		}
	}
	return 0
}

// expect is peek, but the end of the text is an error.
func (t *jsonText) expect() byte {
	c := t.peek()
	if errors.Is(t.err, errEnd) {
		t.err = nil
		t.fail(0, "unexpected end of file", "check that the file is complete, or export it again")
	}
	return c
}

// take consumes the next byte if it is c. The end of the text is an error.
func (t *jsonText) take(c byte) bool {
	if t.expect() != c {
		return false
	}
	t.discard(1)
	return true
}

// peekAt returns the first byte at or after from that is not white space, with its offset; 0 at the end.
func (t *jsonText) peekAt(from int) (int, byte) {
	for at := from; at <= MaxRecord; at++ {
		text := t.win.fill(at + 1)
		if at >= len(text) {
			return at, 0
		}
		if !jsonSpace(text[at]) {
			return at, text[at]
		}
	}
	return MaxRecord, 0
}

// value returns the next value, valid JSON. It does not drop it; the bytes are valid until the window moves.
func (t *jsonText) value() []byte {
	n := t.valueLength()
	if n > MaxRecord {
		t.tooLong()
	}
	if t.err != nil {
		return nil
	}
	raw := t.win.bytes()[:n]
	if json.Valid(raw) {
		return raw
	}
	if n == 0 {
		t.fail(0, "missing value", jsonHint)
		return nil
	}
	var discard json.RawMessage
	err := json.Unmarshal(raw, &discard)
	at, message := 0, "invalid JSON"
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at, message = int(min(max(syntax.Offset-1, 0), int64(n-1))), "invalid JSON: "+syntax.Error()
	}
	t.fail(at, message, jsonHint)
	return nil
}

func (t *jsonText) tooLong() {
	t.fail(0, "the item is longer than 1 MiB",
		"a list of items must be an array, or an object with an array named data and nothing else")
}

// valueLength returns the length of the next value, found only from its brackets and quotes.
func (t *jsonText) valueLength() int {
	var e valueScan
	for t.err == nil {
		text := t.win.bytes()
		done, wrong := e.scan(text)
		switch {
		case wrong != "":
			t.fail(e.at, wrong, jsonHint)
		case done:
			return e.at
		case e.at > MaxRecord:
			t.tooLong()
		case t.win.more():
		case !errors.Is(t.win.err, errEnd):
			t.err = t.win.err
		case e.depth == 0 && !e.inString:
			return len(text)
		default:
			t.fail(0, "the file ends inside the value that starts here",
				"check that the file is complete, or export it again")
		}
	}
	return 0
}

// valueScan is a resumable search for the end of a value in text that is not validated yet.
type valueScan struct {
	at       int // next byte to scan, or the end of the value
	depth    int // open brackets
	inString bool
}

// scan continues to the end of the value, and returns true, or to the end of text. wrong is the error at e.at.
func (e *valueScan) scan(text []byte) (done bool, wrong string) {
	for ; e.at < len(text); e.at++ {
		c := text[e.at]
		switch {
		case e.inString && c == '\\':
			e.at++
		case e.inString && c < ' ':
			return false, "line end or control character inside a string"
		case c == '"':
			if e.inString = !e.inString; !e.inString && e.depth == 0 {
				e.at++
				return true, ""
			}
		case e.inString:
		case c == '{' || c == '[':
			if e.depth++; e.depth > maxDepth {
				return false, fmt.Sprintf("brackets nested deeper than %d", maxDepth)
			}
		case e.depth == 0 && (c == '}' || c == ']' || c == ',' || c == ':' || jsonSpace(c)):
			return true, ""
		case c == '}' || c == ']':
			if e.depth--; e.depth == 0 {
				e.at++
				return true, ""
			}
		}
	}
	return false, ""
}

type member struct {
	jsonscan.Value
	key string // the name; as written if it is not valid Unicode
}

// members returns the fields of the object at i, in valid JSON.
func members(raw []byte, i int) iter.Seq[member] {
	return func(yield func(member) bool) {
		for v := range jsonscan.Values(raw, i) {
			if !yield(member{v, key(v.Name)}) {
				return
			}
		}
	}
}

// key returns the name of a field. Known names are not allocated.
func key(raw []byte) string {
	for _, known := range knownFields {
		if string(raw[1:len(raw)-1]) == known {
			return known
		}
	}
	s, _ := text(raw)
	return s
}

// text returns a JSON string. One that is not valid, by an unpaired \u escape or bytes that are not UTF-8, is
// returned as written.
func text(raw []byte) (s string, valid bool) {
	if s, valid = jsonscan.Text(raw); !valid {
		s = string(raw[1 : len(raw)-1])
	}
	return s, valid
}
