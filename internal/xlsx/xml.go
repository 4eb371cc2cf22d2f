package xlsx

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
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

// scanner reads a part of XML as a stream, within limits. Names are those without
// prefix: a workbook has one vocabulary, in two name spaces (transitional and strict).
// It refuses a DOCTYPE, so there are no entities but the five of XML.
type scanner struct {
	in      *input
	decoder *xml.Decoder

	name    string     // of a tag, without prefix
	attrs   []xml.Attr // of a start tag
	text    []byte     // valid until next is called
	depth   int        // of the tag, 1 for the root
	open    []string   // names of the open elements
	started bool
}

// input counts what is read for one token, and remembers how a tag ends.
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
		_, _ = in.Discard(len(mark))
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

// syntaxError is an error in the XML of a part.
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
			if s.depth == maxDepth {
				return 0, syntaxError(fmt.Sprintf("elements are nested deeper than %d", maxDepth))
			}
			if s.depth == 0 && s.started {
				return 0, syntaxError("it has two root elements")
			}
			s.started, s.name, s.attrs = true, t.Name.Local, t.Attr
			s.open = append(s.open, s.name)
			s.depth++
			return startTag, nil
		case xml.EndElement:
			s.depth--
			s.name, s.open = t.Name.Local, s.open[:s.depth]
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

// plainWords says what errors of package encoding/xml mean in words for people.
var plainWords = strings.NewReplacer("illegal character code", "a text contains the control character", "invalid character entity", "unknown reference",
	"unexpected EOF", "the part ends inside an element", "invalid UTF-8", "a text is not valid UTF-8")

// endError says why there is no more.
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
		at := 0 // what is passed over
		for {
			n := bytes.Index(window[at:], []byte(name+">"))
			if n < 0 {
				break
			}
			tag := bytes.LastIndexByte(window[max(0, at+n-maxPrefix):at+n], '<')
			start := max(0, at+n-maxPrefix) + tag
			if tag >= 0 && window[start+1] == '/' {
				_, err := s.in.Discard(start)
				return errors.Join(err, s.skipElement())
			}
			at += n + 1
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return syntaxError("the part ends inside an element")
			}
			return err
		}
		_, _ = s.in.Discard(max(at, len(window)-len(name)-maxPrefix)) // they are there
	}
	return s.skipElement()
}

// attribute returns the value of an attribute of the start tag, empty if there is
// none. A name without prefix stands for those with one too.
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
	return r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r < 0xd800 || r >= 0xe000 && r < 0xfffe || r > 0xffff && r <= utf8.MaxRune
}

// escapeSize is the length of an escape such as _x000D_.
const escapeSize = 7

// escapedUnit returns the UTF-16 code unit that an escape at the beginning of b stands for.
func escapedUnit(b []byte) (rune, bool) {
	if len(b) < escapeSize || b[0] != '_' || b[1] != 'x' || b[6] != '_' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}

// unescape resolves the escapes of characters that XML can't hold, in place. One
// that stands for half a character stays as written.
func unescape(b []byte) []byte {
	at := bytes.Index(b, []byte("_x"))
	if at < 0 {
		return b
	}
	out := b[:at]
	for at < len(b) {
		r, ok := escapedUnit(b[at:])
		size := escapeSize
		if ok && utf16.IsSurrogate(r) {
			low, _ := escapedUnit(b[at+escapeSize:])
			r, size = utf16.DecodeRune(r, low), 2*escapeSize
			ok = r != utf8.RuneError
		}
		if !ok {
			out = append(out, b[at])
			at++
			continue
		}
		out = utf8.AppendRune(out, r)
		at += size
	}
	return out
}

// appendEscaped appends a text of a cell as XML. A character that XML can't hold
// becomes an escape such as _x0001_, and so does what looks like one.
func appendEscaped(dst []byte, s string) []byte {
	for i, r := range s {
		switch {
		case r == '&':
			dst = append(dst, "&amp;"...)
		case r == '<':
			dst = append(dst, "&lt;"...)
		case r == '>':
			dst = append(dst, "&gt;"...)
		case r == '"':
			dst = append(dst, "&quot;"...)
		case r == '\r', !isXML(r):
			dst = fmt.Appendf(dst, "_x%04X_", r)
		case r == '_':
			// Without its end too: what follows may become an escape, which begins with it.
			if _, ok := escapedUnit([]byte(s[i:min(len(s), i+escapeSize-1)] + "_")); ok {
				dst = append(dst, "_x005F"...)
			}
			dst = append(dst, '_')
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}
