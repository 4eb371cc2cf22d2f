package xlsx

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Limits of an XML part.
const (
	maxToken = 1 << 20  // bytes in one tag or text
	maxDepth = 64       // nested elements
	readSize = 64 << 10 // bytes
)

type token byte

const (
	startTag token = iota + 1
	endTag
	text
)

// scanner reads a part of XML as a stream, within limits. Only elements in the name space of the root, transitional
// or strict, have a name. It refuses a DOCTYPE, so there are no entities but the five of XML. It keeps its first error,
// and reads nothing after it.
type scanner struct {
	part    string        // name of the part
	err     error         // as partError returns it
	r       io.ReadCloser // nil if the part can't be opened
	in      *input
	decoder *xml.Decoder

	token   token      // found by next
	name    string     // of a tag, without prefix; empty in another name space than the root's
	attrs   []xml.Attr // of a start tag
	text    []byte     // valid until the next token
	depth   int        // of the tag, 1 for the root
	open    []string   // names of the open elements, without prefix
	root    string     // name space of the root
	started bool
}

// input counts the bytes read for one token, and keeps the last two bytes.
type input struct {
	*bufio.Reader
	size         int
	before, last byte
}

// ReadByte refuses a token that is too long.
func (in *input) ReadByte() (byte, error) {
	if in.size++; in.size > maxToken {
		return 0, syntaxError("a tag or text is longer than 1 MiB")
	}
	c, err := in.Reader.ReadByte()
	in.before, in.last = in.last, c
	return c, err
}

// scan begins to read a part of up to limit bytes. The caller closes the scanner.
func (b *Workbook) scan(part string, limit int64) *scanner {
	s := &scanner{part: part}
	if s.r, s.err = b.parts.open(part, limit); s.err != nil {
		return s
	}
	s.in = &input{Reader: bufio.NewReaderSize(s.r, readSize)}
	if mark, _ := s.in.Peek(3); string(mark) == "\ufeff" {
		_, _ = s.in.Discard(len(mark)) // it is there
	}
	s.decoder = xml.NewDecoder(s.in)
	s.decoder.CharsetReader = func(name string, r io.Reader) (io.Reader, error) {
		if !strings.EqualFold(name, "US-ASCII") {
			return nil, syntaxError(fmt.Sprintf("the part is in %.40q, not UTF-8", name))
		}
		return r, nil
	}
	return s
}

func (s *scanner) close() {
	if s.r != nil {
		_ = s.r.Close() // only read from
	}
}

type syntaxError string

func (e syntaxError) Error() string { return string(e) }

// keep keeps err if it is the first error.
func (s *scanner) keep(err error) {
	if err != nil && s.err == nil {
		s.err = partError(s.part, err)
	}
}

// fail keeps an error about the content of the part.
func (s *scanner) fail(format string, args ...any) { s.keep(syntaxError(fmt.Sprintf(format, args...))) }

// next finds the next tag or text. It returns false after the end of the root, or an error.
func (s *scanner) next() bool {
	for s.err == nil {
		s.in.size = 0
		t, err := s.decoder.Token()
		if err != nil {
			s.end(err)
			return false
		}
		switch t := t.(type) {
		case xml.StartElement:
			s.begin(t)
			return s.err == nil
		case xml.EndElement:
			s.depth--
			s.token, s.name, s.text, s.open = endTag, s.known(t.Name), nil, s.open[:s.depth]
			return true
		case xml.CharData:
			if s.text = t; s.depth > 0 {
				s.token = text
				return true
			}
			if len(bytes.TrimSpace(t)) > 0 {
				s.fail("text outside the root element")
			}
		case xml.Directive:
			s.fail("it has a DOCTYPE or an entity declaration, which no workbook needs")
		}
	}
	return false
}

// nextStart is next for start tags.
func (s *scanner) nextStart() bool {
	for s.next() {
		if s.token == startTag {
			return true
		}
	}
	return false
}

func (s *scanner) begin(t xml.StartElement) {
	if s.depth == maxDepth {
		s.fail("elements are nested deeper than %d", maxDepth)
	}
	if s.depth == 0 {
		if s.started {
			s.fail("it has two root elements")
		}
		s.started, s.root = true, t.Name.Space
	}
	s.depth++
	s.token, s.name, s.attrs, s.open = startTag, s.known(t.Name), t.Attr, append(s.open, t.Name.Local)
}

// known returns the name of an element without prefix, or "" if its name space is not the root's.
func (s *scanner) known(name xml.Name) string {
	if name.Space != s.root {
		return ""
	}
	return name.Local
}

// plainWords rewords errors of package encoding/xml for users.
var plainWords = strings.NewReplacer("illegal character code", "a text contains the control character",
	"invalid character entity", "unknown reference", "unexpected EOF", "the part ends inside an element",
	"invalid UTF-8", "a text is not valid UTF-8")

// end handles the reason why the decoder has no more tokens.
func (s *scanner) end(err error) {
	wrong, isSyntax := errors.AsType[*xml.SyntaxError](err)
	switch {
	case isSyntax:
		s.fail("%.200s", plainWords.Replace(wrong.Msg))
	case !errors.Is(err, io.EOF):
		s.keep(err)
	case !s.started:
		s.fail("the part is empty")
	}
}

// local returns the name of the element around a text.
func (s *scanner) local() string { return s.open[s.depth-1] }

// skipElement skips the rest of the element whose start tag was read.
func (s *scanner) skipElement() {
	for depth := s.depth; s.next(); {
		if s.token == endTag && s.depth < depth {
			return
		}
	}
}

// maxPrefix is the maximum number of bytes between < and the name of an end tag.
const maxPrefix = 64

// skipTo skips the rest of the element whose start tag was read, without parsing or checking it. In no workbook does a
// comment contain the end tag.
func (s *scanner) skipTo(name string) {
	for s.err == nil && s.in.before != '/' { // else the start tag is the end too
		window, err := s.in.Peek(readSize)
		passed := max(0, len(window)-len(name)-maxPrefix)
		for at := 0; ; {
			n := bytes.Index(window[at:], []byte(name+">"))
			if n < 0 {
				passed = max(passed, at)
				break
			}
			from := max(0, at+n-maxPrefix)
			if tag := bytes.LastIndexByte(window[from:at+n], '<'); tag >= 0 && window[from+tag+1] == '/' {
				_, _ = s.in.Discard(from + tag) // it is there
				s.skipElement()
				return
			}
			at += n + 1
		}
		if errors.Is(err, io.EOF) {
			s.fail("the part ends inside an element")
		}
		s.keep(err)
		_, _ = s.in.Discard(passed) // it is there
	}
	s.skipElement()
}

// attribute returns an attribute of the start tag, with any prefix; empty if there is none.
func (s *scanner) attribute(name string) string {
	for _, a := range s.attrs {
		if a.Name.Local == name && a.Name.Space != "xmlns" {
			return a.Value
		}
	}
	return ""
}

// isXML reports whether XML 1.0 allows a character.
func isXML(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= utf8.MaxRune &&
		(r < 0xd800 || r > 0xdfff) && r != 0xfffe && r != 0xffff
}
