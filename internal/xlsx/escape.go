package xlsx

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

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
