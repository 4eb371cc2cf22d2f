package tracking

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// FoldNumber returns a tracking number in the form in which numbers are
// compared: without spaces and hyphens, and with letters in one case, all three
// in the sense of Unicode. Folding again changes nothing.
func FoldNumber(s string) string {
	return strings.Map(func(r rune) rune {
		if separates(r) {
			return -1
		}
		return foldCase(r)
	}, s)
}

// SameNumber reports whether a and b are the same tracking number written
// with other case, spaces or hyphens. Two empty numbers are not the same.
func SameNumber(a, b string) bool {
	folded := FoldNumber(a)
	return folded != "" && folded == FoldNumber(b)
}

// FoldStatus returns the name or number of a status in the form in which
// statuses are compared: letters in one case, and one underscore for any
// spaces, hyphens and underscores between words. A sign stays: -1 is not 1.
func FoldStatus(s string) string {
	var b strings.Builder
	between := false
	for _, r := range strings.TrimSpace(s) {
		if r != '_' && !separates(r) {
			b.WriteRune(foldCase(r))
		} else if !between {
			b.WriteByte('_')
		}
		between = r == '_' || separates(r)
	}
	return b.String()
}

// NamesStatus reports whether want names a status, as [FoldStatus] compares
// them: by its number, label or track. The number is a JSON literal, and want
// may be one.
//
// Interface: States and transitions.
func NamesStatus(want, number, label, track string) bool {
	folded := FoldStatus(want)
	if folded == "" {
		return false
	}
	text := number
	if strings.HasPrefix(number, `"`) {
		text, _ = jsonscan.Text([]byte(number))
	}
	return folded == FoldStatus(number) || folded == FoldStatus(text) || folded == FoldStatus(label) || folded == FoldStatus(track)
}

// HasStatus reports whether want names the tracking's status, see
// [NamesStatus].
func (t Tracking) HasStatus(want string) bool {
	return NamesStatus(want, t.Status, t.StatusLabel, t.StatusTrack)
}

// separates reports whether r is a space or a hyphen: white space, dash
// punctuation, a soft hyphen or a minus sign.
func separates(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '-' || unicode.IsSpace(r)
	}
	return r == '\u00ad' || r == '\u2212' || unicode.IsSpace(r) || unicode.Is(unicode.Pd, r)
}

// foldCase returns the first of the letters that differ from r in case alone:
// of ASCII letters the capital.
func foldCase(r rune) rune {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' {
			r += 'A' - 'a'
		}
		return r
	}
	first := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		first = min(first, f)
	}
	return first
}
