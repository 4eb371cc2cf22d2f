package term

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// Visible escapes s for one line of human output. Newline and tab become `\n` and `\t`, any other character that
// controls, reorders or hides text an escape such as `\u{202e}`, and a byte that is not UTF-8 one such as `\x{ff}`.
// It does not allocate if there is nothing to escape.
func Visible(s string) string { return visible(s, oneLine) }

// VisibleText is [Visible] for multi-line text: newline and tab stay.
func VisibleText(s string) string { return visible(s, severalLines) }

func visible(s string, layout string) string {
	clean := cleanPrefix(s, layout)
	if clean == len(s) {
		return s
	}
	dst := make([]byte, 0, len(s)+len(s)/4+16)
	dst = append(dst, s[:clean]...)
	return string(appendVisible(dst, []byte(s[clean:]), layout))
}

// Layouts: the control characters that are not escaped.
const (
	oneLine      = ""
	severalLines = "\n\t"
)

// cleanPrefix returns the length of the prefix of s that needs no escape. layout is oneLine or severalLines.
func cleanPrefix[T string | []byte](s T, layout string) int {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c >= ' ' && c < 0x7f, c < ' ' && strings.IndexByte(layout, c) >= 0:
			i++
			continue
		case c < utf8.RuneSelf:
			return i
		}
		r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if (r == utf8.RuneError && size == 1) || hidden(r) {
			return i
		}
		i += size
	}
	return len(s)
}

func appendVisible(dst, p []byte, layout string) []byte {
	for {
		n := cleanPrefix(p, layout)
		dst = append(dst, p[:n]...)
		if p = p[n:]; len(p) == 0 {
			return dst
		}
		r, size := utf8.DecodeRune(p)
		dst = appendEscape(dst, r, p[:size])
		p = p[size:]
	}
}

func appendEscape(dst []byte, r rune, raw []byte) []byte {
	switch {
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\t':
		return append(dst, `\t`...)
	case r == utf8.RuneError && len(raw) == 1:
		dst = append(dst, `\x{`...)
		dst = strconv.AppendUint(dst, uint64(raw[0]), 16)
	default:
		dst = append(dst, `\u{`...)
		dst = strconv.AppendUint(dst, uint64(r), 16)
	}
	return append(dst, '}')
}

// emojiStyle selects the coloured form of the preceding character. It is common, has no width, and is harmless.
const emojiStyle = '\ufe0f'

// hidden reports whether r controls the terminal, changes the order of text, or is not visible. Newline and tab are
// hidden too; spaces are not.
func hidden(r rune) bool {
	switch {
	case r < ' ':
		return true
	case r < 0x7f:
		return false
	case r < 0xa0, r == 0xad: // DEL and C1, soft hyphen
		return true
	case r < 0x300: // Latin
		return false
	case r >= 0xe000 && r <= 0xf8ff: // private use: fonts differ
		return true
	case r > 0x3164 && r < 0xd800, r == emojiStyle: // CJK and Hangul syllables
		return false
	}
	return unicode.In(r,
		unicode.Cf, // bidi controls, zero-width, tags
		unicode.Co, // private use
		unicode.Zl, // line separator
		unicode.Zp, // paragraph separator
		unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector,
		unicode.Noncharacter_Code_Point,
	)
}

// DisplayWidth returns the number of terminal columns that s takes. s must be visible text, see [Visible].
func DisplayWidth(s string) int { return displaywidth.String(s) }

// Truncate cuts s to at most width columns, ending in `…` if it was longer. It never splits a grapheme cluster. It
// returns "" for a width below 1.
func Truncate(s string, width int) string {
	if width < 1 {
		return ""
	}
	return displaywidth.TruncateString(s, width, "…")
}

// Style is the highlighting of a piece of text if colour is on.
type Style int

// The styles. Normal is the zero value and changes nothing.
const (
	Normal Style = iota
	Heading
	Good
	Bad
	Caution
	Faint
	Accent
)

// Styled is a result of [Writer.Style]: foreign text in it is escaped, and its colours are our own.
type Styled string

const resetSequence = "\x1b[0m"

// styleSequences turn styles on. A styled write may contain only these sequences and the reset.
var styleSequences = [...]string{
	Heading: "\x1b[1m",
	Good:    "\x1b[32m",
	Bad:     "\x1b[31m",
	Caution: "\x1b[33m",
	Faint:   "\x1b[2m",
	Accent:  "\x1b[36m",
}

func (s Style) sequence() string { return styleSequences[s] }

// Style returns text as one visible line, in colour if w has colour.
func (w *Writer) Style(s Style, text string) Styled {
	text = Visible(text)
	if s == Normal || text == "" || !w.color {
		return Styled(text)
	}
	return Styled(s.sequence() + text + resetSequence)
}

func ownSequence(p []byte) []byte {
	if bytes.HasPrefix(p, []byte(resetSequence)) {
		return p[:len(resetSequence)]
	}
	for s := Heading; s <= Accent; s++ {
		if on := s.sequence(); bytes.HasPrefix(p, []byte(on)) {
			return p[:len(on)]
		}
	}
	return nil
}

func uncoloured(s Styled) string { return sequences.ReplaceAllString(string(s), "") }
