package store

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// names are searched for in texts: as words, or as several words with separators between them.
type names struct {
	numbers map[string]bool // folded
	refs    map[string]bool // exactly
}

// Names that are shorter may mean anything, such as 1001, and are found in no text. A
// number of digits alone is found in several words from minSpaced digits on: the parts
// of a date are none.
const (
	minWord   = 8
	minMixed  = 6 // with letters
	minSpaced = 11
)

// maxParts is how many words of a text one name may have.
const maxParts = 12

func (n names) addNumber(number string) {
	if folded := tracking.FoldNumber(number); folded != "" {
		n.numbers[folded] = true
	}
}

var escape = regexp.MustCompile(`\\(?:u[0-9a-fA-F]{4}|.)`)

// inBytes reports whether bytes, JSON or not, hold one of the names.
func (n names) inBytes(b []byte) bool {
	text := string(b)
	if strings.Contains(text, `\`) && json.Valid(b) {
		text = escape.ReplaceAllStringFunc(text, func(e string) string {
			r, err := strconv.ParseUint(e[2:], 16, 16)
			if err != nil || utf16.IsSurrogate(rune(r)) {
				return " " // a quote, the end of a line, half of an emoji
			}
			return string(rune(r))
		})
	}
	return n.inText(text)
}

func (n names) inText(s string) bool {
	if len(n.numbers)+len(n.refs) == 0 {
		return false
	}
	var starts, ends []int
	inside := false
	for i, r := range s {
		if is := unicode.IsLetter(r) || unicode.IsDigit(r) || r == utf8.RuneError; is != inside {
			if inside = is; is {
				starts = append(starts, i)
			} else {
				ends = append(ends, i)
			}
		}
	}
	if inside {
		ends = append(ends, len(s))
	}
	for i, start := range starts {
		for parts, end := range ends[i:min(i+maxParts, len(ends))] {
			if n.isName(s[start:end], parts > 0) {
				return true
			}
		}
	}
	return false
}

// isName reports whether a part of a text, perhaps of several words, is one of the names.
func (n names) isName(s string, several bool) bool {
	letters := strings.ContainsFunc(s, unicode.IsLetter)
	if len(s) < minMixed || len(s) < minWord && !letters {
		return false
	}
	if n.refs[s] && letters && strings.ContainsFunc(s, unicode.IsDigit) {
		return true
	}
	folded := tracking.FoldNumber(s)
	return n.numbers[folded] && (letters || !several || len(folded) >= minSpaced)
}
