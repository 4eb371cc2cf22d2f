package intake

import (
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// evidence tells UTF-8 from another encoding that was asked for, by the bytes
// of an input.
type evidence struct {
	needed  int    // characters of several bytes that are no coincidence
	found   int    // such characters
	invalid bool   // some bytes are not UTF-8, or are those of UTF-16
	rest    []byte // the beginning of a character, up to 3 bytes
}

// newEvidence returns evidence against a charset. One such character decides
// where each byte is a character of its own: two or more letters in a row would
// have to be rare ones. In other encodings some common characters are valid
// UTF-8 too.
func newEvidence(against charset) *evidence {
	if _, single := against.codec.(*charmap.Charmap); single {
		return &evidence{needed: 1}
	}
	return &evidence{needed: 4}
}

// add takes the next bytes into account.
func (e *evidence) add(p []byte) {
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

// decides reports whether head, with which the input begins, is UTF-8.
func (e *evidence) decides(head []byte) bool {
	e.add(head)
	return !e.invalid && e.found >= e.needed
}

// checked reads r and returns err instead of its end if all of it was UTF-8.
type checked struct {
	r   io.Reader
	e   *evidence
	err error
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.e.add(p[:n])
	if err == io.EOF && c.e.decides(nil) && len(c.e.rest) == 0 {
		err = c.err
	}
	return n, err
}
