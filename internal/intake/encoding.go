package intake

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
)

const (
	utf8Name    = "utf-8"
	utf16leName = "utf-16le"
	utf16beName = "utf-16be"
)

const utf8BOM = "\ufeff"

// charset says how an input's bytes become text. Bytes that represent no character become U+FFFD; invalid UTF-8 is
// left to the check of each value.
type charset struct {
	name    string
	bomSize int               // length of the byte order mark
	codec   encoding.Encoding // nil for UTF-8, whose bytes are used unchanged
}

// headSize is how many leading bytes determine the kind of an input.
const headSize = 4096

const saveAsUTF8 = "save the sheet as CSV UTF-8 and use that file"

// detectEncoding returns the charset of an input from its first bytes and the --encoding given.
func detectEncoding(file string, head []byte, asked string) (charset, error) {
	named, err := lookupEncoding(asked)
	if err != nil {
		return charset{}, err
	}
	marked, err := byBOM(file, head)
	switch {
	case err != nil:
		return charset{}, err
	case marked.bomSize > 0 && asked != "" && marked.name != named.name &&
		!(marked.codec != nil && strings.EqualFold(strings.TrimSpace(asked), "utf-16")):
		reason := "has the byte order mark of " + strings.ToUpper(marked.name)
		return charset{}, encodingConflict(file, asked, reason, marked.name)
	case marked.bomSize > 0:
		return marked, nil
	case asked != "":
		if named.codec != nil && newEvidence(named).isUTF8(head) {
			return charset{}, utf8Conflict(file, asked)
		}
		return named, nil
	}
	return charset{name: utf8Name}, nil
}

// byBOM returns the charset that a byte order mark indicates; without one its bomSize is 0.
func byBOM(file string, head []byte) (charset, error) {
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00")), bytes.HasPrefix(head, []byte("\x00\x00\xfe\xff")):
		const message = "the text is UTF-32, which is not supported"
		return charset{}, &FileError{File: file, Message: message, hint: "save it as UTF-8"}
	case bytes.HasPrefix(head, []byte(utf8BOM)):
		return charset{name: utf8Name, bomSize: len(utf8BOM)}, nil
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return charset{name: utf16leName, bomSize: 2, codec: utf16(unicode.LittleEndian)}, nil
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return charset{name: utf16beName, bomSize: 2, codec: utf16(unicode.BigEndian)}, nil
	}
	return charset{}, nil
}

// encodingConflict returns the error for an input whose encoding differs from --encoding.
func encodingConflict(file, asked, reason, name string) error {
	return &FileError{
		File: file, Message: "the text " + reason + ", but --encoding is " + show(asked),
		hint: "omit --encoding, or pass --encoding " + name,
	}
}

func utf8Conflict(file, asked string) error {
	return encodingConflict(file, asked, "is valid UTF-8 with multi-byte characters", utf8Name)
}

func utf16(order unicode.Endianness) encoding.Encoding {
	return unicode.UTF16(order, unicode.IgnoreBOM)
}

func lookupEncoding(name string) (charset, error) {
	if name == "" {
		return charset{name: utf8Name}, nil
	}
	unknown := &OptionError{
		Option: "--encoding", Value: name, Reason: "no such encoding",
		hint: "common encodings: utf-8, utf-16le, windows-1252, windows-1250, iso-8859-15, macintosh, " +
			"shift_jis, gb18030, big5, euc-kr",
	}
	codec, err := htmlindex.Get(name)
	if err == nil {
		canonical, err := htmlindex.Name(codec)
		switch {
		case err != nil || canonical == "replacement" || canonical == "x-user-defined":
			return charset{}, unknown
		case canonical == utf8Name:
			return charset{name: utf8Name}, nil
		case canonical == utf16leName:
			codec = utf16(unicode.LittleEndian)
		case canonical == utf16beName:
			codec = utf16(unicode.BigEndian)
		}
		return charset{name: canonical, codec: codec}, nil
	}
	codec, err = ianaindex.IANA.Encoding(strings.TrimSpace(name))
	if err != nil || codec == nil {
		return charset{}, unknown
	}
	canonical, err := ianaindex.IANA.Name(codec)
	if err != nil {
		return charset{}, unknown
	}
	return charset{name: strings.ToLower(canonical), codec: codec}, nil
}

// utf8Evidence detects that an input is UTF-8 although another encoding was given.
type utf8Evidence struct {
	needed  int    // multi-byte characters that prove UTF-8
	found   int    // such characters
	invalid bool   // some bytes are not UTF-8, or look like UTF-16
	rest    []byte // an incomplete character, up to 3 bytes
}

// newEvidence returns evidence against a charset. One multi-byte character is enough against a single-byte charset:
// there it would be two or more rare letters in a row.
func newEvidence(against charset) *utf8Evidence {
	if _, single := against.codec.(*charmap.Charmap); single {
		return &utf8Evidence{needed: 1}
	}
	return &utf8Evidence{needed: 4}
}

func (e *utf8Evidence) add(p []byte) {
	if e.invalid {
		return
	}
	if len(e.rest) > 0 {
		p = append(e.rest, p...)
		e.rest = nil
	}
	for i := 0; i < len(p); {
		r, size := rune(p[i]), 1
		if r >= utf8.RuneSelf {
			if !utf8.FullRune(p[i:]) {
				e.rest = bytes.Clone(p[i:])
				return
			}
			r, size = utf8.DecodeRune(p[i:])
			e.found++
		}
		if r == 0 || r == utf8.RuneError && size == 1 {
			e.invalid = true
			return
		}
		i += size
	}
}

func (e *utf8Evidence) isUTF8(head []byte) bool {
	e.add(head)
	return !e.invalid && e.found >= e.needed
}

// utf8Guard reads r. If all of it was UTF-8, it returns err in place of EOF.
type utf8Guard struct {
	r   io.Reader
	e   *utf8Evidence
	err error
}

func (c *utf8Guard) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.e.add(p[:n])
	if err == io.EOF && c.e.isUTF8(nil) && len(c.e.rest) == 0 {
		err = c.err
	}
	return n, err
}
