package webhook

import (
	"strings"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// text returns the text of a string's literal, with U+FFFD in place of what is
// not Unicode text and of NUL, so that it can be stored anywhere; clean is
// false if there is any.
func text(literal []byte) (s string, clean bool) {
	s, clean = jsonscan.Text(literal)
	if strings.IndexByte(s, 0) >= 0 {
		return strings.ReplaceAll(s, "\x00", string(utf8.RuneError)), false
	}
	return s, clean
}

// scalar returns the text of a string, or the literal of a number or boolean;
// false for null, objects, arrays and text that is not clean.
func scalar(raw []byte) (string, bool) {
	switch raw[0] {
	case '"':
		return text(raw)
	case '{', '[', 'n':
		return "", false
	default:
		return string(raw), true
	}
}
