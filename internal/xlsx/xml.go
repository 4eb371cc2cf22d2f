package xlsx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
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

// scanner reads a part of XML as a stream, in constant memory. Unlike encoding/xml, which tests compare it with, it
// has limits, makes no garbage and is several times faster. Only elements in the name space of the root, transitional
// or strict, have a name. It knows no DOCTYPE, so no entities but the five of XML.
type scanner struct {
	r          io.Reader
	buf        []byte
	start, end int
	readErr    error

	name    []byte // of a tag, without prefix; empty in another name space than the root's
	attrs   []byte // of a start tag, as written
	text    []byte // as written; see [scanner.appendText]
	literal bool   // text is a CDATA section
	depth   int    // of the tag, 1 for the root
	open    []byte // names of the open elements, as written
	opened  []int  // where they begin
	spaces  []space
	root    string // name space of the root
	closing bool   // the last start tag closed itself
	started bool
}

func newScanner(r io.Reader) *scanner { return &scanner{r: r, buf: make([]byte, readSize)} }

type syntaxError string

func (e syntaxError) Error() string { return string(e) }

// more reads further bytes; what is in the buffer stays, but moves.
func (s *scanner) more() bool {
	if s.readErr != nil {
		return false
	}
	if s.start > 0 {
		copy(s.buf, s.buf[s.start:s.end])
		s.start, s.end = 0, s.end-s.start
	}
	if s.end == len(s.buf) {
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	var n int
	n, s.readErr = io.ReadAtLeast(s.r, s.buf[s.end:], 1)
	s.end += n
	return n > 0
}

// find returns where sep is in what is not read yet, from an offset on.
func (s *scanner) find(from int, sep string) (int, error) {
	for {
		window := s.buf[s.start:s.end]
		if n := bytes.Index(window[min(from, len(window)):], []byte(sep)); n >= 0 {
			return from + n, nil
		}
		from = max(from, len(window)-len(sep)+1)
		if len(window) > maxToken {
			return 0, syntaxError("a tag or text is longer than 1 MiB")
		}
		if !s.more() {
			return 0, s.endError()
		}
	}
}

func (s *scanner) endError() error {
	if errors.Is(s.readErr, io.EOF) {
		return syntaxError("the part ends inside an element")
	}
	return s.readErr
}

// next finds the next tag or text. It returns io.EOF after the root's end.
func (s *scanner) next() (token, error) {
	if s.closing {
		s.closing = false
		return s.close()
	}
	for {
		if s.start == s.end && !s.more() {
			if errors.Is(s.readErr, io.EOF) && s.depth == 0 && s.started {
				return 0, io.EOF
			}
			return 0, s.endError()
		}
		if !s.started {
			if err := s.begin(); err != nil {
				return 0, err
			}
		}
		var t token
		var err error
		if s.buf[s.start] == '<' {
			t, err = s.markup()
		} else {
			t, err = s.plainText()
		}
		if t != 0 || err != nil {
			return t, err
		}
	}
}

func (s *scanner) begin() error {
	for s.end-s.start < 4 && s.more() {
	}
	head := s.buf[s.start:s.end]
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		s.start += 3
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}), bytes.IndexByte(head[:min(4, len(head))], 0) >= 0:
		return syntaxError("the part is not UTF-8")
	}
	s.started = true
	return nil
}

// plainText takes the text up to the next tag. Text outside the root is none.
func (s *scanner) plainText() (token, error) {
	n, err := s.find(0, "<")
	if err != nil {
		if s.depth > 0 || !errors.Is(s.readErr, io.EOF) {
			return 0, err
		}
		n = s.end - s.start
	}
	s.text, s.literal = s.buf[s.start:s.start+n], false
	s.start += n
	if s.depth > 0 {
		return text, nil
	}
	if len(bytes.TrimSpace(s.text)) > 0 {
		return 0, syntaxError("text outside the root element")
	}
	return 0, nil
}

// markup takes what begins with <. What is neither a tag nor text is passed over.
func (s *scanner) markup() (token, error) {
	for s.end-s.start < len("<![CDATA[") && s.more() {
	}
	window := s.buf[s.start:s.end]
	switch {
	case bytes.HasPrefix(window, []byte("<!--")):
		n, err := s.find(4, "-->")
		s.start += n + 3
		return 0, err
	case bytes.HasPrefix(window, []byte("<?")):
		return 0, s.instruction()
	case bytes.HasPrefix(window, []byte("<![CDATA[")) && s.depth > 0:
		n, err := s.find(9, "]]>")
		if err != nil {
			return 0, err
		}
		s.text, s.literal = s.buf[s.start+9:s.start+n], true
		s.start += n + 3
		return text, nil
	case bytes.HasPrefix(window, []byte("<!")):
		return 0, syntaxError("it has a DOCTYPE or an entity declaration, which no workbook needs")
	case bytes.HasPrefix(window, []byte("</")):
		n, err := s.find(2, ">")
		if err != nil {
			return 0, err
		}
		name := bytes.TrimRight(s.buf[s.start+2:s.start+n], spaces)
		if s.depth == 0 || !bytes.Equal(name, s.open[s.opened[s.depth-1]:]) {
			return 0, syntaxError(fmt.Sprintf("</%.40s> closes no open element", name))
		}
		s.start += n + 1
		return s.close()
	}
	return s.startTag()
}

// instruction passes over <?…?>, and checks the encoding that the first one names.
func (s *scanner) instruction() error {
	n, err := s.find(2, "?>")
	if err != nil {
		return err
	}
	in := s.buf[s.start+2 : s.start+n]
	s.start += n + 2
	_, rest, found := bytes.Cut(in, []byte("encoding="))
	if !found || !bytes.HasPrefix(in, []byte("xml ")) || len(rest) == 0 {
		return nil
	}
	name, _, _ := bytes.Cut(rest[1:], rest[:1])
	if !bytes.EqualFold(name, []byte("UTF-8")) && !bytes.EqualFold(name, []byte("US-ASCII")) {
		return syntaxError(fmt.Sprintf("the part is in %.40q, not UTF-8", name))
	}
	return nil
}

func (s *scanner) tagEnd() (int, error) {
	var quote byte
	at := 1
	for {
		window := s.buf[s.start:s.end]
		for ; at < len(window); at++ {
			switch c := window[at]; {
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '"' || c == '\'':
				quote = c
			case c == '>':
				return at, nil
			case c == '<':
				return 0, syntaxError("a tag is not closed")
			}
		}
		if len(window) > maxToken {
			return 0, syntaxError("a tag or text is longer than 1 MiB")
		}
		if !s.more() {
			return 0, s.endError()
		}
	}
}

func (s *scanner) startTag() (token, error) {
	n, err := s.tagEnd()
	if err != nil {
		return 0, err
	}
	tag := s.buf[s.start+1 : s.start+n]
	s.start += n + 1
	if len(tag) > 0 && tag[len(tag)-1] == '/' {
		s.closing = true
		tag = tag[:len(tag)-1]
	}
	stop := bytes.IndexAny(tag, spaces)
	if stop < 0 {
		stop = len(tag)
	}
	if stop == 0 {
		return 0, syntaxError("a tag has no name")
	}
	if s.depth == maxDepth {
		return 0, syntaxError(fmt.Sprintf("elements are nested deeper than %d", maxDepth))
	}
	if s.depth == 0 && len(s.opened) > 0 {
		return 0, syntaxError("it has two root elements")
	}
	s.opened = append(s.opened[:s.depth], len(s.open))
	s.open = append(s.open, tag[:stop]...)
	s.depth++
	s.attrs = tag[stop:]
	if bytes.Contains(s.attrs, []byte("xmlns")) {
		if err := s.declare(); err != nil {
			return 0, err
		}
	}
	if s.depth == 1 {
		s.root = s.spaceOf(tag[:stop])
	}
	s.name = s.known(tag[:stop])
	return startTag, nil
}

func (s *scanner) close() (token, error) {
	if s.text = nil; s.depth == 0 {
		return 0, syntaxError("an end tag closes no open element")
	}
	from := s.opened[s.depth-1]
	s.name = s.known(s.open[from:])
	s.open = s.open[:from]
	for n := len(s.spaces); n > 0 && s.spaces[n-1].depth == s.depth; n-- {
		s.spaces = s.spaces[:n-1]
	}
	s.depth--
	return endTag, nil
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

// skipTo passes over what is left of the element whose start tag was read, as
// bytes: it is not checked. In no workbook does the end tag stand in a comment.
func (s *scanner) skipTo(name string) error {
	if s.closing {
		return s.skipElement()
	}
	for {
		for {
			window := s.buf[s.start:s.end]
			n := bytes.Index(window, []byte(name+">"))
			if n < 0 {
				s.start += max(0, len(window)-len(name)-maxPrefix)
				break
			}
			before := window[max(0, n-maxPrefix):n]
			s.start += n + len(name) + 1
			if at := bytes.LastIndexByte(before, '<'); at >= 0 && at+1 < len(before) && before[at+1] == '/' {
				_, err := s.close()
				return err
			}
		}
		if !s.more() {
			return s.endError()
		}
	}
}

const spaces = " \t\r\n"

// maxPrefix is how many bytes stand at most between < and the name of an end tag.
const maxPrefix = 64

// attr splits the first attribute off a start tag's. It returns no name at the end.
func attr(attrs []byte) (name, value, rest []byte, err error) {
	attrs = bytes.TrimLeft(attrs, spaces)
	if len(attrs) == 0 {
		return nil, nil, nil, nil
	}
	n := bytes.IndexByte(attrs, '=')
	if n <= 0 {
		return nil, nil, nil, syntaxError("an attribute has no value")
	}
	name, rest = bytes.TrimRight(attrs[:n], spaces), bytes.TrimLeft(attrs[n+1:], spaces)
	if len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
		return nil, nil, nil, syntaxError("the value of an attribute is not in quotes")
	}
	end := bytes.IndexByte(rest[1:], rest[0])
	if end < 0 {
		return nil, nil, nil, syntaxError("the value of an attribute is not in quotes")
	}
	return name, rest[1 : end+1], rest[end+2:], nil
}

func (s *scanner) appendText(dst []byte) ([]byte, error) {
	if !s.literal {
		return appendUnescaped(dst, s.text)
	}
	return append(dst, s.text...), checkText(s.text)
}

// checkText refuses what is no text of XML.
func checkText(b []byte) error {
	if !utf8.Valid(b) {
		return syntaxError("a text is not valid UTF-8")
	}
	for _, c := range b {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return syntaxError(fmt.Sprintf("a text contains the control character U+%04X", c))
		}
	}
	return nil
}

// appendUnescaped appends text with its references resolved and its line ends as line feeds.
func appendUnescaped(dst, raw []byte) ([]byte, error) {
	plain := true
	for _, c := range raw {
		if c < ' ' || c == '&' || c >= utf8.RuneSelf {
			plain = false
			break
		}
	}
	if plain {
		return append(dst, raw...), nil
	}
	if err := checkText(raw); err != nil {
		return dst, err
	}
	for {
		n := bytes.IndexAny(raw, "&\r")
		if n < 0 {
			return append(dst, raw...), nil
		}
		dst = append(dst, raw[:n]...)
		if raw[n] == '\r' {
			if dst = append(dst, '\n'); n+1 < len(raw) && raw[n+1] == '\n' {
				n++
			}
			raw = raw[n+1:]
			continue
		}
		end := bytes.IndexByte(raw[n:], ';')
		if end < 0 {
			return dst, syntaxError("an & that begins no reference")
		}
		r, err := reference(string(raw[n+1 : n+end]))
		if err != nil {
			return dst, err
		}
		dst, raw = utf8.AppendRune(dst, r), raw[n+end+1:]
	}
}

var entities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

func reference(name string) (rune, error) {
	if r, ok := entities[name]; ok {
		return r, nil
	}
	if len(name) > 1 && name[0] == '#' {
		digits, base := name[1:], 10
		if digits[0] == 'x' {
			digits, base = digits[1:], 16
		}
		n, err := strconv.ParseUint(digits, base, 32)
		if r := rune(n); err == nil && n <= utf8.MaxRune && isXML(r) {
			return r, nil
		}
	}
	return 0, syntaxError(fmt.Sprintf("unknown reference &%.20q;", name))
}

func isXML(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r < 0xd800 || r >= 0xe000 && r < 0xfffe || r > 0xffff && r <= utf8.MaxRune
}
