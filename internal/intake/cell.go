package intake

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// trim cuts the white space around a value, no-break spaces and a stray byte
// order mark in front included.
func trim(b []byte) []byte {
	if len(b) == 0 || (needsNoTrim(b[0]) && needsNoTrim(b[len(b)-1])) {
		return b
	}
	b = bytes.TrimFunc(b, unicode.IsSpace)
	if rest, ok := bytes.CutPrefix(b, []byte(utf8BOM)); ok {
		return bytes.TrimFunc(rest, unicode.IsSpace)
	}
	return b
}

// needsNoTrim reports whether c, at an end of a value, is not white space.
func needsNoTrim(c byte) bool { return c > ' ' && c < utf8.RuneSelf }

// stripSpaces removes the spaces inside an identifier, and counts it if it
// changed. Line ends and tabs stay and are found by its validation: they stand
// between two values rather than within one.
func stripSpaces(s string, sum *Summary) string {
	after := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Zs, r) {
			return -1
		}
		return r
	}, s)
	if len(after) != len(s) {
		sum.Stripped++
	}
	return after
}

// unquote undoes the doubling of quotes in b. It appends to dst and returns
// what it appended.
func unquote(dst, b []byte) (all, text []byte) {
	from := len(dst)
	for {
		n := bytes.Index(b, []byte(`""`))
		if n < 0 {
			dst = append(dst, b...)
			return dst, dst[from:]
		}
		dst = append(dst, b[:n+1]...)
		b = b[n+2:]
	}
}

// formulaText returns the text of a formula ="…", which exports write to keep
// spreadsheets from reading identifiers as numbers.
func formulaText(dst, b []byte) (all, text []byte, ok bool) {
	if len(b) < 3 || b[0] != '=' || b[1] != '"' || b[len(b)-1] != '"' {
		return dst, nil, false
	}
	inner := b[2 : len(b)-1]
	if bytes.IndexByte(inner, '"') < 0 {
		return dst, inner, true
	}
	if bytes.Contains(bytes.ReplaceAll(inner, []byte(`""`), nil), []byte{'"'}) {
		return dst, nil, false
	}
	dst, text = unquote(dst, inner)
	return dst, text, true
}

// lostCharacter returns a problem if s contains U+FFFD, which replaces a
// character that was lost when the file was made or decoded.
func lostCharacter(field string, s []byte, encoding string) (tracking.Problem, bool) {
	if !bytes.Contains(s, []byte("\ufffd")) {
		return tracking.Problem{}, false
	}
	p := tracking.Problem{
		Field: field, Value: string(s), Message: "a character in " + field + " was lost (read as U+FFFD)",
		Hint: "export the file again as UTF-8",
	}
	if encoding != utf8Name {
		p.Hint = "check that " + encoding + " is the file's encoding, or export it again as UTF-8"
	}
	return p, true
}
