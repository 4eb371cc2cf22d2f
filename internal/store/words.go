package store

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// words are names that texts are searched for: as whole values, as words, or as several
// words with separators between them. Names that may mean anything, such as 1001, are
// found as values of referId or of a number alone.
type words struct {
	numbers map[string]bool // folded
	refs    map[string]bool // exactly
}

// maxParts is how many words of a text one name may have.
const maxParts = 12

func newWords() words { return words{map[string]bool{}, map[string]bool{}} }

func (w words) addNumber(number string) {
	if folded := tracking.FoldNumber(number); folded != "" {
		w.numbers[folded] = true
	}
}

func (w words) empty() bool { return len(w.numbers)+len(w.refs) == 0 }

// isName reports whether a text is one of the names.
func (w words) isName(s string) bool { return w.refs[s] || w.numbers[tracking.FoldNumber(s)] }

// isDistinct reports whether a name can mean nothing else: it has letters, or many digits.
func isDistinct(name string) bool {
	return len(name) >= 8 || len(name) >= 6 && strings.ContainsFunc(name, unicode.IsLetter)
}

// inBytes reports whether bytes, JSON or not, hold one of the names.
func (w words) inBytes(b []byte) bool {
	switch {
	case w.empty() || len(b) == 0:
		return false
	case !json.Valid(b):
		return w.inText(string(b))
	}
	named := false // the next value is a referId or a number
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			end := jsonscan.SkipString(b, i)
			text, _ := jsonscan.Text(b[i:end])
			if named && w.isName(text) || w.inText(text) {
				return true
			}
			i = jsonscan.SkipSpace(b, end)
			member := strings.ToLower(text)
			named = i < len(b) && b[i] == ':' && (strings.HasSuffix(member, "referid") || strings.HasSuffix(member, "number"))
		case c == '-' || '0' <= c && c <= '9':
			end, _ := jsonscan.SkipValue(b, i)
			if text := string(b[i:end]); named && w.isName(text) || w.inText(text) {
				return true
			}
			i, named = end, false
		case c == ':' || c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		default:
			i, named = i+1, false
		}
	}
	return false
}

// inText reports whether a text holds one of the names.
func (w words) inText(s string) bool {
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
		for _, end := range ends[i:min(i+maxParts, len(ends))] {
			if name := s[start:end]; isDistinct(name) && w.isName(name) {
				return true
			}
		}
	}
	return isDistinct(s) && w.isName(s)
}

// inHeader reports whether a kept header holds one of the names.
func (w words) inHeader(b []byte) bool {
	fields, err := unpackHeader(b)
	if err != nil {
		return w.inText(string(b))
	}
	for _, f := range fields {
		if w.inText(f.Name) || w.inText(f.Value) {
			return true
		}
	}
	return false
}
