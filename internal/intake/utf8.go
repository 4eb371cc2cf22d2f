package intake

import (
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// utf8Evidence collects from the bytes of an input whether it is UTF-8 although
// another encoding was given.
type utf8Evidence struct {
	needed  int    // multi-byte characters that prove UTF-8
	found   int    // such characters
	invalid bool   // some bytes are not UTF-8, or are those of UTF-16
	rest    []byte // the beginning of a character, up to 3 bytes
}

// newEvidence returns evidence against a charset. One such character decides
// where each byte is a character of its own: two or more letters in a row would
// have to be rare ones. In other encodings some common characters are valid
// UTF-8 too.
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
		c := p[i]
		if c < utf8.RuneSelf {
			if c == 0 {
				e.invalid = true
				return
			}
			i++
			continue
		}
		if !utf8.FullRune(p[i:]) {
			e.rest = append([]byte(nil), p[i:]...)
			return
		}
		r, size := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError && size == 1 {
			e.invalid = true
			return
		}
		e.found++
		i += size
	}
}

// isUTF8 reports whether head, with which the input begins, is UTF-8.
func (e *utf8Evidence) isUTF8(head []byte) bool {
	e.add(head)
	return !e.invalid && e.found >= e.needed
}

// utf8Guard reads r and returns err instead of its end if all of it was UTF-8.
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
