package store

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// words are names that texts are searched for: as whole values, as words, or as several
// words with separators between them. Names that may mean anything, such as 1001 or
// DELIVERED, are found as values of referId or of a number alone.
type words struct {
	numbers map[string]bool // folded
	refs    map[string]bool // exactly
}

// maxParts is how many words of a text one name may have.
const maxParts = 12

// isPlain are the members that the service documents as a status, a kind or a time.
var isPlain = map[string]bool{
	"status": true, "statusLabel": true, "statusTrack": true, "event": true, "eventTime": true, "created": true, "updated": true,
	"latestCheckpointTime": true, "eventTimestamp": true, "GMTTimestamp": true, "transitTime": true,
}

// date is a day in a text: its parts are no parts of a number.
var date = regexp.MustCompile(`\b(?:(?:19|20)\d\d-[01]\d-[0-3]\d|[0-3]\d-[01]\d-(?:19|20)\d\d)(?:$|[^-\d])`)

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
	named, plain := false, false // the next value is a referId or a number; a status or a time
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			end := jsonscan.SkipString(b, i)
			text, _ := jsonscan.Text(b[i:end])
			if named && w.isName(text) || !plain && w.inText(text) {
				return true
			}
			i = jsonscan.SkipSpace(b, end)
			member := strings.ToLower(text)
			isMember := i < len(b) && b[i] == ':'
			plain = isMember && isPlain[text]
			named = isMember && (strings.HasSuffix(member, "referid") || strings.HasSuffix(member, "number"))
		case c == '-' || '0' <= c && c <= '9':
			end, _ := jsonscan.SkipValue(b, i)
			if text := string(b[i:end]); named && w.isName(text) || !plain && w.inText(text) {
				return true
			}
			i, named, plain = end, false, false
		case c == ':' || c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		default:
			i, named, plain = i+1, false, false
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
			if w.isAt(s, start, end) {
				return true
			}
		}
	}
	return w.isAt(s, 0, len(s))
}

// isAt reports whether a part of a text is one of the names, and can mean nothing else.
func (w words) isAt(s string, start, end int) bool {
	name := s[start:end]
	switch folded := tracking.FoldNumber(name); {
	case !isDistinct(name):
		return false
	case w.refs[name] && strings.ContainsFunc(name, unicode.IsLetter) && strings.ContainsFunc(name, unicode.IsDigit):
		return true
	case !w.numbers[folded]:
		return false
	case folded == name || strings.ContainsFunc(folded, unicode.IsLetter):
		return true
	}
	return !slices.ContainsFunc(date.FindAllStringIndex(s, -1), func(at []int) bool { return at[0] < end && start < at[1] })
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
