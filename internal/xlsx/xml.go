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
	maxDepth = 64       // elements within each other
	readSize = 64 << 10 // bytes
)

type token byte

const (
	startTag token = iota + 1
	endTag
	text
)

// scanner reads a part of XML as a stream, within limits. Only elements in the name space of the root, transitional
// or strict, have a name. It refuses a DOCTYPE, so there are no entities but the five of XML.
type scanner struct {
	in      *input
	decoder *xml.Decoder

	name    string     // of a tag, without prefix; empty in another name space than the root's
	attrs   []xml.Attr // of a start tag
	text    []byte     // valid until the next token
	depth   int        // of the tag, 1 for the root
	open    []string   // names of the open elements, without prefix
	root    string     // name space of the root
	started bool
}

// input counts the bytes that are read for one token, and knows how the last tag ends.
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

func newScanner(r io.Reader) *scanner {
	in := &input{Reader: bufio.NewReaderSize(r, readSize)}
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" {
		_, _ = in.Discard(len(mark)) // it is there
	}
	s := &scanner{in: in, decoder: xml.NewDecoder(in)}
	s.decoder.CharsetReader = func(name string, r io.Reader) (io.Reader, error) {
		if !strings.EqualFold(name, "US-ASCII") {
			return nil, syntaxError(fmt.Sprintf("the part is in %.40q, not UTF-8", name))
		}
		return r, nil
	}
	return s
}

type syntaxError string

func (e syntaxError) Error() string { return string(e) }

// next finds the next tag or text. It returns io.EOF after the root's end.
func (s *scanner) next() (token, error) {
	for {
		s.in.size = 0
		t, err := s.decoder.Token()
		if err != nil {
			return 0, s.endError(err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			return startTag, s.begin(t)
		case xml.EndElement:
			s.depth--
			s.name, s.text, s.open = s.known(t.Name), nil, s.open[:s.depth]
			return endTag, nil
		case xml.CharData:
			if s.text = t; s.depth > 0 {
				return text, nil
			}
			if len(bytes.TrimSpace(t)) > 0 {
				return 0, syntaxError("text outside the root element")
			}
		case xml.Directive:
			return 0, syntaxError("it has a DOCTYPE or an entity declaration, which no workbook needs")
		}
	}
}

// each calls do for every further start tag, up to the root's end.
func (s *scanner) each(do func() error) error {
	for {
		t, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && t == startTag {
			err = do()
		}
		if err != nil {
			return err
		}
	}
}

func (s *scanner) begin(t xml.StartElement) error {
	if s.depth == maxDepth {
		return syntaxError(fmt.Sprintf("elements are nested deeper than %d", maxDepth))
	}
	if s.depth == 0 {
		if s.started {
			return syntaxError("it has two root elements")
		}
		s.started, s.root = true, t.Name.Space
	}
	s.depth++
	s.name, s.attrs, s.open = s.known(t.Name), t.Attr, append(s.open, t.Name.Local)
	return nil
}

// known returns the name of an element without prefix, or nothing in another name space than the root's.
func (s *scanner) known(name xml.Name) string {
	if name.Space != s.root {
		return ""
	}
	return name.Local
}

// plainWords has what errors of package encoding/xml mean in words for people.
var plainWords = strings.NewReplacer("illegal character code", "a text contains the control character",
	"invalid character entity", "unknown reference", "unexpected EOF", "the part ends inside an element",
	"invalid UTF-8", "a text is not valid UTF-8")

func (s *scanner) endError(err error) error {
	if wrong, ok := errors.AsType[*xml.SyntaxError](err); ok {
		return syntaxError(fmt.Sprintf("%.200s", plainWords.Replace(wrong.Msg)))
	}
	if errors.Is(err, io.EOF) && !s.started {
		return syntaxError("the part is empty")
	}
	return err
}

// local returns the name of the innermost open element.
func (s *scanner) local() string {
	if s.depth == 0 {
		return ""
	}
	return s.open[s.depth-1]
}

// skipElement passes over what is left of the element whose start tag was read.
func (s *scanner) skipElement() error {
	for depth := s.depth; ; {
		t, err := s.next()
		if err != nil {
			return err
		}
		if t == endTag && s.depth < depth {
			return nil
		}
	}
}

// maxPrefix is how many bytes stand at most between < and the name of an end tag.
const maxPrefix = 64

// skipTo passes over what is left of the element whose start tag was read, as
// bytes: it is not checked. In no workbook does the end tag stand in a comment.
func (s *scanner) skipTo(name string) error {
	for s.in.before != '/' { // else the start tag is the end too
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
				return s.skipElement()
			}
			at += n + 1
		}
		if errors.Is(err, io.EOF) {
			return syntaxError("the part ends inside an element")
		}
		if err != nil {
			return err
		}
		_, _ = s.in.Discard(passed) // it is there
	}
	return s.skipElement()
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

// isXML reports whether XML 1.0 can hold a character.
func isXML(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= utf8.MaxRune &&
		(r < 0xd800 || r > 0xdfff) && r != 0xfffe && r != 0xffff
}
