package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendJSON appends v as JSON in one line, without a newline. Every control
// and format character is written as \uXXXX, invalid UTF-8 as \ufffd, and
// `<>&` as they are. [json.RawMessage] keeps its numbers' digits, its order
// and its duplicate names.
func AppendJSON(dst []byte, v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return dst, err
	}
	return EscapeJSON(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// AppendString appends s as [AppendJSON] does, faster.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			dst, _ = AppendJSON(dst, s) // a string never fails
			return dst
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// EscapeJSON appends src, which must be valid JSON, with every control and
// format character inside its strings as \uXXXX (two of them beyond U+FFFF),
// and invalid UTF-8 as \ufffd, which is how it is decoded anyway. The value
// is the same, and nothing else changes. Doing it twice changes nothing more.
func EscapeJSON(dst, src []byte) []byte {
	start := 0
	for i := 0; i < len(src); {
		if src[i] < 0x7f { // JSON has no raw control characters in strings
			i++
			continue
		}
		r, size := utf8.DecodeRune(src[i:])
		invalid := r == utf8.RuneError && size == 1
		if invalid || hidden(r) {
			dst = append(dst, src[start:i]...)
			dst = appendUnicode(dst, r)
			start = i + size
		}
		i += size
	}
	return append(dst, src[start:]...)
}

func appendUnicode(dst []byte, r rune) []byte {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		return appendUnicode(appendUnicode(dst, high), low)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}
