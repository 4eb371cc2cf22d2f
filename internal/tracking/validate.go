package tracking

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names of an item's fields, as the service spells them.
//
// Interface: Resources and their fields, tracking creation item.
const (
	FieldReferID     = "referId"
	FieldNumber      = "rawTrackingNumber"
	FieldMetadata    = "metadata"
	FieldCarrierCode = "carrierCode"
)

// Problem is one thing wrong, or worth a note, in one field of an item.
type Problem struct {
	Field   string // one of the Field constants
	Value   string // as read; not made visible yet
	Message string // what is wrong, for the reader of the file
	Hint    string // what to do about it
	Note    bool   // true if the item is good all the same
}

var (
	// scientific is what a spreadsheet makes of a long number: 1.23E+15, in
	// some languages 1,23E+15.
	scientific = regexp.MustCompile(`^[+-]?\d+(?:[.,]\d*)?[eE][+-]\d+$`)
	// formulaErrors are what a failed lookup or formula leaves in a cell.
	formulaErrors = map[string]bool{
		"#N/A": true, "#NAME?": true, "#NULL!": true, "#NUM!": true, "#REF!": true,
		"#VALUE!": true, "#DIV/0!": true, "#SPILL!": true, "#CALC!": true,
		"#GETTING_DATA": true, "#ERROR!": true, "#FIELD!": true, "#BLOCKED!": true,
		"#CONNECT!": true, "#UNKNOWN!": true, "#NV": true, "#BEZUG!": true, "#WERT!": true,
		"#ZAHL!": true, "#ÜBERLAUF!": true,
	}
)

// precise is how many digits of a number a spreadsheet keeps; it writes zeros
// for the rest. Programs that go through a float may keep one more.
const precise = 15

// Validate returns what is wrong with the item: rules that the interface
// states, and damage that a spreadsheet did and nobody can repair. It is
// good to send when every problem is a note.
//
// Interface: Resources and their fields, tracking creation item.
func (it Item) Validate() []Problem {
	var ps []Problem
	ps = identifier(ps, FieldReferID, it.ReferID)
	ps = identifier(ps, FieldNumber, it.Number)
	if p, bad := badText(FieldCarrierCode, it.CarrierCode); bad {
		ps = append(ps, p)
	}
	return ps
}

// plain reports whether s is non-empty and made of characters that need no
// closer look, which nearly every identifier is.
func plain(s string) bool {
	if s == "" || s[0] == '#' {
		return false
	}
	digits := true
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || c == '+' || (c == '-' && i > 0 && s[i-1]|0x20 == 'e') {
			return false
		}
		digits = digits && c >= '0' && c <= '9'
	}
	return !digits || len(s) <= precise || s[len(s)-1] != '0'
}

func identifier(ps []Problem, field, s string) []Problem {
	if plain(s) {
		return ps
	}
	if s == "" {
		return append(ps, Problem{Field: field, Message: field + " is empty", Hint: "fill it in, or remove the row"})
	}
	if p, bad := badText(field, s); bad {
		return append(ps, p)
	}
	if strings.ContainsFunc(s, unicode.IsSpace) {
		return append(ps, Problem{
			Field: field, Value: s, Message: "white space inside " + field,
			Hint: "mend the value, or pass --strip-spaces to remove the spaces",
		})
	}
	if p, bad := spreadsheetDamage(field, s); bad {
		return append(ps, p)
	}
	if r, found := invisible(s); found {
		ps = append(ps, Problem{
			Field: field, Value: s, Note: true, Message: fmt.Sprintf("%s holds the invisible character U+%04X", field, r),
			Hint: "it is sent as it is; remove it if it is not meant",
		})
	}
	return ps
}

func badText(field, s string) (Problem, bool) {
	if !utf8.ValidString(s) {
		return Problem{
			Field: field, Value: s, Message: field + " is not valid UTF-8",
			Hint: "save the file as UTF-8, or name its encoding with --encoding",
		}, true
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return Problem{
				Field: field, Value: s, Message: fmt.Sprintf("control character U+%04X in %s", r, field),
				Hint: "remove it from the cell",
			}, true
		}
	}
	return Problem{}, false
}

func invisible(s string) (rune, bool) {
	for _, r := range s {
		if unicode.Is(unicode.Cf, r) {
			return r, true
		}
	}
	return 0, false
}

func spreadsheetDamage(field, s string) (Problem, bool) {
	switch {
	case scientific.MatchString(s):
		return Problem{
			Field: field, Value: s, Message: "a spreadsheet turned " + field + " into a rounded number",
			Hint: "its digits are lost: export again with the column formatted as text",
		}, true
	case formulaErrors[strings.ToUpper(s)]:
		return Problem{
			Field: field, Value: s, Message: field + " is a spreadsheet error",
			Hint: "mend the formula or lookup, then export again",
		}, true
	}
	n, kept := trailingZeros(s)
	switch {
	case n >= 18 && kept <= precise, n >= 20 && kept <= precise+1:
		return Problem{
			Field: field, Value: s, Message: fmt.Sprintf("%s has %d digits with only zeros from number %d on: a spreadsheet rounded it", field, n, kept+1),
			Hint: "its digits are lost: export again with the column formatted as text",
		}, true
	case n > precise && kept <= precise:
		return Problem{
			Field: field, Value: s, Note: true, Message: fmt.Sprintf("%s has %d digits with only zeros from number %d on", field, n, kept+1),
			Hint: "check that a spreadsheet did not round it",
		}, true
	}
	return Problem{}, false
}

// trailingZeros returns the length of s and how many digits stand before its
// trailing zeros, if it is all digits and longer than a spreadsheet keeps;
// else zeros.
func trailingZeros(s string) (n, kept int) {
	if len(s) <= precise || strings.Trim(s, "0123456789") != "" {
		return 0, 0
	}
	return len(s), max(len(strings.TrimRight(s, "0")), precise)
}
