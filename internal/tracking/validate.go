package tracking

import (
	"fmt"
	"slices"
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

// Problem is something wrong, or worth a note, in one field of an item.
type Problem struct {
	Field   string `json:"-"`               // one of the Field constants
	Value   string `json:"value,omitempty"` // as read, cut when it is long
	Message string `json:"message"`         // what is wrong, for the reader of the file
	Hint    string `json:"hint,omitempty"`  // what to do about it
	Note    bool   `json:"-"`               // true if the item is good all the same
	Odd     bool   `json:"-"`               // neither carriers nor orders have such a value; the user may say otherwise
	Kind    string `json:"-"`               // one of the Kind constants; empty for most
}

// Rules are what the user allows in an item: with AcceptOdd, odd values are only notes.
type Rules struct{ AcceptOdd bool }

// Validate returns the problems of the item: broken rules of the interface, values that a spreadsheet damaged, and
// placeholders. The item can be sent if every problem is a note.
//
// Interface: Resources and their fields, tracking creation item.
func (it Item) Validate(r Rules) []Problem {
	var ps []Problem
	if it.totalsLine() {
		ps = []Problem{{
			Field: FieldNumber, Value: it.Number, Odd: true, Kind: KindPlaceholder,
			Message: "the row is a totals line", Hint: "remove the row",
		}}
	} else {
		ps = identifier(ps, FieldReferID, it.ReferID)
		ps = identifier(ps, FieldNumber, it.Number)
	}
	ps = it.carrierCode(ps)
	for i := range ps {
		switch p := &ps[i]; {
		case !p.Odd:
		case r.AcceptOdd:
			p.Note, p.Hint = true, "it is sent as it is"
		default:
			p.Hint += "; " + acceptOddHint
		}
	}
	return ps
}

// LikeCarrierName reports whether a carrier code looks like a carrier's name, such as "UPS" or "DHL Express":
// it has capital letters or spaces.
//
// Assumed: codes are written without either.
func LikeCarrierName(code string) bool {
	return strings.ContainsFunc(code,
		func(r rune) bool { return unicode.IsUpper(r) || unicode.IsTitle(r) || unicode.IsSpace(r) })
}

// carrierCode adds the problem of the carrier code. It is sent as written unless it is a placeholder, or the cells of
// a torn row have shifted: then the number is a name or place, and the code a number or a street.
func (it Item) carrierCode(ps []Problem) []Problem {
	code := it.CarrierCode
	if code == "" {
		return ps
	}
	p, found := badText(FieldCarrierCode, code)
	if !found {
		p, found = odd(FieldCarrierCode, code)
	}
	switch {
	case found:
		return append(ps, p)
	case !LikeCarrierName(code):
		return ps
	case strings.ContainsAny(code, decimals) && !strings.ContainsAny(it.Number, decimals):
		return append(ps, Problem{
			Field: FieldCarrierCode, Value: code, Odd: true,
			Message: FieldCarrierCode + " looks like no code, and " + FieldNumber + " like no number",
			Hint:    "check that each value of the row is in its column",
		})
	}
	return append(ps, Problem{
		Field: FieldCarrierCode, Value: code, Note: true, Kind: KindCarrierName,
		Message: FieldCarrierCode + " looks like a carrier's name",
		Hint:    "it is sent as it is; --carrier-map NAME=CODE sends a code",
	})
}

const decimals = "0123456789"

// plain reports whether no rule below applies to s, as for nearly every identifier.
func plain(s string) bool {
	if len(s) < 8 || len(s) > maxIdentifier {
		return false
	}
	hyphens, count, run, longest := false, 0, 0, 0 // digits, and how many in a row
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			count++
			run++
			longest = max(longest, run)
			continue
		case c == '-':
			if i > 0 && s[i-1]|0x20 == 'e' {
				return false
			}
			hyphens = true
		case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z':
		default:
			return false
		}
		run = 0
	}
	if count == len(s) {
		return s[len(s)-1] != '0'
	}
	return count > 0 && (!hyphens || longest > len("2024"))
}

// CheckIdentifier returns what makes it impossible that an identifier s was created; odd values do not. field is the
// name used in messages.
func CheckIdentifier(field, s string) []Problem {
	return slices.DeleteFunc(identifier(nil, field, s), func(p Problem) bool { return p.Note || p.Odd })
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
	if field == FieldNumber && strings.ContainsFunc(s, unicode.IsSpace) {
		return append(ps, Problem{
			Field: field, Value: s, Kind: KindSpace, Message: "white space inside " + field,
			Hint: "fix the value, or pass --strip-spaces to remove the spaces",
		})
	}
	if strings.Contains(s, "  ") || strings.ContainsFunc(s, func(r rune) bool { return r != ' ' && unicode.IsSpace(r) }) {
		return append(ps, Problem{
			Field: field, Value: s, Note: true, Kind: KindSpace, Message: "unusual white space inside " + field,
			Hint: "it is sent as it is; replace it by single spaces if it is not intended",
		})
	}
	if at := strings.IndexFunc(s, Invisible); at >= 0 {
		r, _ := utf8.DecodeRuneInString(s[at:])
		p := Problem{Field: field, Value: s, Kind: KindInvisible}
		p.Message = fmt.Sprintf("%s contains the invisible character U+%04X", field, r)
		if field == FieldNumber {
			p.Odd, p.Hint = true, "remove it"
		} else {
			p.Note, p.Hint = true, "it is sent as it is; remove it if it is not intended"
		}
		return append(ps, p)
	}
	if p, found := odd(field, s); found {
		ps = append(ps, p)
	}
	return ps
}

func badText(field, s string) (Problem, bool) {
	if !utf8.ValidString(s) {
		return Problem{
			Field: field, Value: s, Message: field + " is not valid UTF-8",
			Hint: "save the file as UTF-8, or pass its encoding with --encoding",
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

// Invisible reports whether r has no width, or changes the order in which other characters are shown.
func Invisible(r rune) bool {
	return r >= 0xad && unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
