// Package carriers recognizes the forms of carriers' tracking numbers, and checks their check digits where the rules
// are published. It finds the carrier whose form a number has; it can't find out whether the number exists.
package carriers

import (
	"cmp"
	"slices"
	"strings"
)

// Form is a form of the tracking numbers of one carrier or several.
type Form struct {
	Carrier string // such as "UPS"; [Several] if only a length is known
	Name    string // such as "1Z"
	Source  string // publication of the form and its rule
	Checked bool   // it has a check digit with a published rule
	Loose   bool   // recognized only by its length and ranges of digits
	Shared  bool   // other carriers deliver what has it: a postal service, or who prints labels for others
}

// Several is the carrier of forms that many carriers use.
const Several = "several carriers"

// String returns the carrier and the name.
func (f Form) String() string { return f.Carrier + " " + f.Name }

// Reading is the result of [Read].
type Reading struct {
	// Form is the form of the number: the first of the table whose check digit fits, else one without a check digit,
	// else the first of Failed; the zero Form if none is known.
	Form Form
	// Failed has the forms whose check digit is wrong. It is empty if the number has another form: one whose check
	// digit fits, or one without a check digit.
	Failed []Form
}

// Known reports whether the number has a known form.
func (r Reading) Known() bool { return r.Form.Carrier != "" }

// Wrong reports whether the check digit is wrong in all forms of the number.
func (r Reading) Wrong() bool { return len(r.Failed) > 0 }

// Read recognizes the form of a number. It ignores spaces, hyphens and the case of letters.
func Read(number string) Reading {
	s := clean(number)
	var failed []Form
	var open, loose Form // without a check digit; loose ones are known only by length
	prefixed := false
	for _, f := range forms() {
		if !f.matches(s) {
			continue
		}
		named := f.named(s)
		switch {
		case f.fits == nil && f.Loose:
			loose = named
		case f.fits == nil:
			if open.Carrier == "" {
				open = named
			}
		case f.fits(f.prepend + s[f.from:]):
			return Reading{Form: named}
		default:
			failed = append(failed, named)
		}
		prefixed = prefixed || !f.Loose
	}
	switch {
	case open.Carrier != "":
		return Reading{Form: open}
	case loose.Carrier != "" && !prefixed:
		return Reading{Form: loose}
	case len(failed) > 0:
		return Reading{Form: failed[0], Failed: failed}
	}
	return Reading{}
}

// Has reports whether a number has a form that match accepts, whatever its check digit.
func Has(number string, match func(Form) bool) bool {
	s := clean(number)
	return slices.ContainsFunc(forms(), func(f *form) bool { return f.matches(s) && match(f.named(s)) })
}

// Any reports whether match accepts any form of a named carrier.
func Any(match func(Form) bool) bool {
	return slices.ContainsFunc(forms(),
		func(f *form) bool { return f.Carrier != "" && f.Carrier != Several && match(f.Form) })
}

// ByCarrier returns a row for each carrier of the forms that match accepts, in the order of the table: the carrier, and
// the names of its forms separated by commas.
func ByCarrier(match func(Form) bool) (all [][2]string) {
	for _, f := range forms() {
		carrier := cmp.Or(f.Carrier, "postal services")
		i := slices.IndexFunc(all, func(row [2]string) bool { return row[0] == carrier })
		switch {
		case !match(f.Form):
		case i < 0:
			all = append(all, [2]string{carrier, f.Name})
		default:
			all[i][1] += ", " + f.Name
		}
	}
	return all
}

// lookalikes replaces letters with the digits that they are mistaken for.
var lookalikes = strings.NewReplacer("O", "0", "Q", "0", "I", "1", "L", "1", "S", "5")

const s10Length = 13

// Corrected returns the number with likely mistakes corrected, if only that gives it a form whose check digit fits. It
// replaces the letters O, Q, I, L and S with the digits that they look like, and restores 1Z if one of its characters
// is wrong. It corrects only numbers with letters: of numbers of digits alone, one in ten would fit by chance.
func Corrected(number string) (string, bool) {
	s := clean(number)
	nearly1Z := len(s) == 18 && (s[0] == '1') != (s[1] == 'Z') &&
		(isLetter(s[1]) || s[1] == '2' && strings.ContainsFunc(s[2:], isLetter))
	if !nearly1Z && !strings.ContainsAny(s, "OQILS") {
		return "", false
	}
	if r := Read(s); r.Known() && !r.Wrong() {
		return "", false
	}
	fits := func(fixed string) bool {
		r := Read(fixed)
		return fixed != s && r.Form.Checked && !r.Wrong()
	}
	// Such letters stay in a prefix and in the country of S10. Many prefixes of carriers without a published rule
	// have an S.
	if len(s) == s10Length {
		if fixed := s[:2] + lookalikes.Replace(s[2:11]) + s[11:]; fits(fixed) {
			return fixed, true
		}
	}
	first := strings.IndexFunc(s, func(r rune) bool { return r >= '0' && r <= '9' })
	for keep := range min(len(s), 4) {
		if keep < first && strings.Contains(s[keep:first], "S") {
			continue
		}
		if fixed := s[:keep] + lookalikes.Replace(s[keep:]); fits(fixed) {
			return fixed, true
		}
	}
	if nearly1Z && fits("1Z"+s[2:]) {
		return "1Z" + s[2:], true
	}
	return "", false
}

func isLetter[T byte | rune](c T) bool { return c >= 'A' && c <= 'Z' }

// clean removes spaces and hyphens from a number and converts it to upper case.
func clean(number string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return -1
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		}
		return r
	}, number)
}
