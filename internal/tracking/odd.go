package tracking

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/carriers"
)

// maxIdentifier is the maximum length of an identifier in characters; order names and tracking numbers are far
// shorter.
//
// Assumed: the interface states no limit; --accept-odd-values sends longer ones.
const maxIdentifier = 255

// precise is how many digits a spreadsheet keeps; programs that convert to float may keep one more.
const precise = 15

const (
	exportAsText  = "format the column as text and export again"
	acceptOddHint = "--accept-odd-values sends it as it is"
)

type severity int

const (
	ignored severity = iota
	noted
	refused
)

// oddity is one kind of value that no carrier uses. Tracking numbers have known forms, but order names have not: so in
// referId, only values that can't be order names are refused.
type oddity struct {
	found   func(string) bool
	message string   // %s is the name of the field
	hint    string   // what to do about it
	referID severity // in referId; in rawTrackingNumber every oddity is refused
	code    severity // in carrierCode
	kind    string
}

// Kinds of problems with values.
const (
	KindDamaged     = "damaged"      // a spreadsheet or an export changed the value
	KindPlaceholder = "placeholder"  // stands for a missing value
	KindInvisible   = "invisible"    // an invisible character
	KindSpace       = "white-space"  // white space inside an identifier
	KindCarrierName = "carrier-name" // a carrier code that looks like a name
)

// oddities are checked from the top; the first match counts.
var oddities = []oddity{
	{tooLong, "%s is longer than 255 characters", "check that it is the right column " +
		"and that no quote is missing", refused, refused, ""},
	{formulaError, "%s is a spreadsheet error", "fix the formula or lookup, " +
		"then export again", refused, refused, KindDamaged},
	{hashes, "%s is ####, which a spreadsheet shows when a column is too narrow", "widen the column, " +
		"then export again", refused, refused, KindDamaged},
	{blank, "%s has no letter and no digit", "fill it in, or remove the row", refused, refused, KindPlaceholder},
	{numeral(scientific), "Excel rounded this number; " +
		"its last digits are lost", exportAsText, refused, refused, KindDamaged},
	{shortExponent, "%s looks like a number with an exponent", exportAsText, ignored, ignored, KindDamaged},
	{numeral(grouped), "%s has thousands separators", exportAsText, noted, ignored, KindDamaged},
	{numeral(decimal), "%s is a decimal number", exportAsText, noted, ignored, KindDamaged},
	{formula, "%s is a formula", "export the value that it shows", noted, refused, KindDamaged},
	{apostrophe, "%s starts with the apostrophe " +
		"that a spreadsheet puts before text", "remove the apostrophe", noted, noted, KindDamaged},
	{isDate, "%s is a date or time", exportAsText, noted, ignored, KindDamaged},
	{nullWord, "%s is a placeholder for a missing value", "fill it in, " +
		"or remove the row", refused, refused, KindPlaceholder},
	{placeholder, "%s is a placeholder", "fill it in, or remove the row", noted, refused, KindPlaceholder},
	{zeros, "%s is only zeros", "fill in the carrier's number, or remove the row", ignored, refused, KindPlaceholder},
	{tooShort, "%s has fewer than 4 digits", "fill in the carrier's number, " +
		"or remove the row", ignored, ignored, KindPlaceholder},
}

func odd(field, s string) (Problem, bool) {
	for _, o := range oddities {
		level, hint := refused, o.hint
		switch field {
		case FieldReferID:
			level = o.referID
		case FieldCarrierCode:
			level, hint = o.code, "write the service's code, or leave it empty"
		}
		if level == ignored || !o.found(s) {
			continue
		}
		p := Problem{Field: field, Value: s, Hint: hint, Note: level == noted, Odd: level == refused, Kind: o.kind}
		p.Message = strings.Replace(o.message, "%s", field, 1)
		if p.Note {
			p.Hint = "it is sent as it is; if it is wrong, " + p.Hint
		}
		return p, true
	}
	if field == FieldCarrierCode {
		return Problem{}, false
	}
	return rounded(field, s)
}

func tooLong(s string) bool {
	return len(s) > maxIdentifier && utf8.RuneCountInString(s) > maxIdentifier
}

// formulaErrors are the errors that do not end in ! or ?.
var formulaErrors = []string{"#N/A", "#N/D", "#N/B", "#N/DISP", "#NV", "#BRAK", "#GETTING_DATA", "#Н/Д"}

// formulaError matches errors of lookups and formulas in the languages of Excel, and in LibreOffice.
func formulaError(s string) bool {
	if s[0] != '#' {
		return libreError().MatchString(s)
	}
	if len(s) < 3 || s[1] >= '0' && s[1] <= '9' {
		return false
	}
	last := s[len(s)-1]
	marked := (last == '!' || last == '?') && strings.ContainsFunc(s, unicode.IsLetter)
	return marked || slices.Contains(formulaErrors, strings.ToUpper(s))
}

func hashes(s string) bool { return len(s) > 1 && strings.Trim(s, "#") == "" }

// blank matches texts of marks only.
func blank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || r > unicode.MaxASCII && !unicode.IsPunct(r)
	})
}

// Forms that spreadsheets turn identifiers into, compiled on first use: that takes longer than most commands.
var (
	libreError = form(`^(?i:err):5\d\d$`)
	// scientific has a sign or a decimal mark, unlike any identifier: 9.4E+21, 9,4e21, 94E+20, 9.4×10^21.
	scientific = form(`^[+−-]?(?:\d[\d.,'’]*(?:[eE][+−-]\d{1,3}|[x×*·]10\^[+−-]?\d{1,3})|` +
		`\d[\d'’]*[.,][\d.,]*[eE]\d{1,3})$`)
	// grouped has groups of three digits, or, with commas, of two or three (India). Swiss Post's 99.60.123456.12345678
	// has other groups.
	grouped = form(`^[+−-]?\d{1,3}(?:(?:,\d{2,3})+(?:\.\d*)?|(?:\.\d{3})+(?:,\d*)?|(?:['’]\d{3})+(?:[.,]\d*)?)$`)
	decimal = form(`^[+−-]?\d*[.,]\d*$`)
)

func form(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// numeral matches a form of numbers that contain a mark. It is cheap for all other texts.
func numeral(form func() *regexp.Regexp) func(string) bool {
	return func(s string) bool {
		return strings.IndexByte("0123456789+-.,\xe2", s[0]) >= 0 && strings.ContainsAny(s, ".,'’eE^") &&
			form().MatchString(s)
	}
}

// shortExponent matches 123E4. With 8 or more characters it may be a GLS number.
func shortExponent(s string) bool {
	at := strings.IndexAny(s, "eE")
	return len(s) < 8 && at > 0 && digits(s[:at]) && digits(s[at+1:])
}

// formula matches =A1, and ="0012" as a whole; texts with further quotes are left for the reader to judge.
func formula(s string) bool {
	inner, ok := strings.CutPrefix(s, "=")
	return ok && !strings.Contains(strings.TrimSuffix(strings.TrimPrefix(inner, `"`), `"`), `"`)
}

func apostrophe(s string) bool {
	return strings.HasPrefix(s, "'") || strings.HasPrefix(s, "’") || strings.HasPrefix(s, "‘")
}

func digits(s string) bool { return s != "" && strings.Trim(s, decimals) == "" }

func zeros(s string) bool { return strings.Trim(s, "0") == "" }

func tooShort(s string) bool { return digits(s) && len(s) < 4 }

// nullWord matches what programs write for a missing value.
func nullWord(s string) bool {
	nulls := []string{"null", "nan", "undefined", "n/a", "n/d", "object object", "objectobject"}
	return len(s) <= 20 && slices.Contains(nulls, strings.ToLower(strings.Trim(s, "<>()[]{}\"'\\*")))
}

// placeholder matches placeholderWords, and any number of the letter x.
func placeholder(s string) bool {
	if len(s) > 40 || strings.ContainsFunc(s, unicode.IsDigit) {
		return false
	}
	word := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
	_, known := slices.BinarySearch(placeholderWords, word)
	return known || word != "" && strings.Trim(strings.Trim(s, "<>()[]{}"), "xX") == ""
}

// totals are the words that precede the number of rows in the last line of an export.
var totals = strings.Fields(`total totals grandtotal subtotal sum summe gesamt gesamtsumme anzahl count totale totaal
	suma soma somme razem итого всего 合計 合计 总计`)

// placeholderWords are sorted, in lower case and without marks between and around their letters.
var placeholderWords = slices.Sorted(slices.Values(slices.Concat(totals, []string{
	"na", "nd", "nv", "nul", "nil", "none", "nat", "inf", "infinity", "undef", "empty", "blank", "leer", "vide", "void",
	"vacio", "missing", "true", "false", "wahr", "falsch", "vrai", "faux", "verdadero", "falso", "vero", "yes", "no", "ja",
	"nein", "oui", "non", "tbd", "tba", "tbc", "todo", "tobedetermined", "tobeannounced", "tobeconfirmed", "pending",
	"open", "offen", "awaiting", "waiting", "unknown", "unbekannt", "inconnu", "desconocido", "sconosciuto",
	"notavailable", "notapplicable", "notfound", "notyet", "notshipped", "unshipped", "notyetshipped", "notassigned",
	"unassigned", "nottracked", "untracked", "notracking", "notrackingnumber", "comingsoon", "keine", "ohne",
	"nichtverfügbar", "ausstehend", "aucun", "enattente", "pendiente", "ninguno", "nessuno", "shipped", "delivered",
	"cancelled", "canceled", "refunded", "returned", "processing", "hold", "onhold", "backorder", "pickup", "error",
	"placeholder", "dummy", "sample", "example", "test", "testing", "tracking", "trackingnumber", "trackingno", "number",
})))

// totalsLine reports whether the item is a word such as Total and a number of rows.
func (it Item) totalsLine() bool {
	if it.Number == "" || len(it.Number) >= 8 || strings.Trim(it.Number, "0123456789.,'") != "" {
		return false
	}
	word := strings.NewReplacer(" ", "", "-", "", "_", "").Replace(it.ReferID)
	return slices.Contains(totals, strings.ToLower(strings.TrimRight(word, ":.=")))
}

// rounded finds zeros in place of digits that a spreadsheet lost. A number with a correct check digit really ends in
// zeros.
func rounded(field, s string) (Problem, bool) {
	if len(s) <= precise || !digits(s) {
		return Problem{}, false
	}
	n, kept := len(s), max(len(strings.TrimRight(s, "0")), precise) // digits, and digits before the trailing zeros
	certain := n >= 18 && kept <= precise || n >= 20 && kept <= precise+1
	if !certain && kept > precise {
		return Problem{}, false
	}
	if r := carriers.Read(s); r.Form.Checked && !r.Wrong() {
		return Problem{}, false
	}
	p := Problem{Field: field, Value: s, Odd: certain, Note: !certain, Kind: KindDamaged}
	p.Message = fmt.Sprintf("%s has %d digits and only zeros from digit %d on", field, n, kept+1)
	p.Hint = "check that a spreadsheet did not round it"
	if certain {
		p.Message += ": a spreadsheet rounded it"
		p.Hint = "its digits are lost: " + exportAsText
	}
	return p, true
}

// Exchanged reports whether the referId looks like a tracking number, and the number like an order name.
func (it Item) Exchanged() bool { return LikeNumber(it.ReferID) && likeOrder(it.Number) }

// LikeNumber reports whether s may be a tracking number: at least 10 letters and digits, at least 8 of them digits.
func LikeNumber(s string) bool {
	if len(s) < 10 {
		return false
	}
	count := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			count++
		case c|0x20 < 'a' || c|0x20 > 'z':
			return false
		}
	}
	return count >= 8
}

// likeOrder matches short texts, and texts with a mark that carriers do not use, except for air waybills.
func likeOrder(s string) bool {
	if prefix, serial, ok := strings.Cut(s, "-"); ok && len(prefix) == 3 && len(serial) == 8 && digits(prefix+serial) {
		return false
	}
	return len(s) < 8 || strings.ContainsAny(s, "#-_/")
}

// months are prefixes of the names of months, in the languages of common spreadsheets.
var months = []string{
	"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
	"mär", "mrz", "mai", "okt", "dez", // German
	"fév", "fev", "avr", "juin", "juil", "aoû", "aou", "déc", // French
	"ene", "abr", "ago", "dic", // Spanish
	"gen", "mag", "giu", "lug", "set", "ott", // Italian
	"mrt", "maa", "mei", // Dutch
	"out",                                                                // Portuguese
	"sty", "lut", "kwi", "maj", "cze", "lip", "sie", "wrz", "paź", "gru", // Polish
}

// isDate reports whether s is a numeric date (2024-03-01, 01.03.2024, 3/1/24), a date with a month's name (Mar-24,
// 24-Mär-2024), either with a time, or a time alone. Hyphens in tracking numbers separate longer groups: 020-12345678.
func isDate(s string) bool {
	if len(s) > len("2024-september-24T00:00:00.000000000+00:00") {
		return false
	}
	if day, time, ok := cutTime(s); ok {
		return clock(time) && (day == "" || isDay(day))
	}
	return isDay(s)
}

// cutTime cuts a time from the end of s. It begins with up to two digits before the first colon.
func cutTime(s string) (day, time string, ok bool) {
	colon := strings.IndexByte(s, ':')
	if colon < 0 {
		return s, "", false
	}
	from := colon
	for from > 0 && colon-from < 2 && s[from-1] >= '0' && s[from-1] <= '9' {
		from--
	}
	return strings.TrimRight(s[:from], "T ,"), s[from:], true
}

func clock(s string) bool {
	hour, rest, _ := strings.Cut(s, ":")
	minute := rest[:min(2, len(rest))]
	return between(hour, 0, 24) && len(minute) == 2 && between(minute, 0, 59) &&
		strings.Trim(rest, "0123456789:.,+-ZAPMapm") == ""
}

// isDay reports whether s is a day or a month, in two or three parts.
func isDay(s string) bool {
	s = strings.TrimRight(s, ".日")
	parts := strings.FieldsFunc(s, dateMark)
	if len(parts) < 2 || len(parts) > 3 || strings.TrimFunc(s, dateMark) != s {
		return false
	}
	named := slices.IndexFunc(parts, month)
	switch {
	case named >= 0 && len(parts) == 2:
		other := parts[1-named]
		return between(other, 1, 31) || len(other) == 2 && between(other, 0, 99) || year(other)
	case named >= 0:
		rest := slices.Delete(parts, named, named+1)
		return dayAndYear(rest[0], rest[1]) || dayAndYear(rest[1], rest[0])
	case len(parts) == 2:
		return year(parts[0]) && between(parts[1], 1, 12) || between(parts[0], 1, 12) && year(parts[1])
	case year(parts[0]):
		return between(parts[1], 1, 12) && between(parts[2], 1, 31)
	}
	short := len(parts[2]) == 2 && between(parts[2], 0, 99)
	dayFirst := between(parts[0], 1, 31) && between(parts[1], 1, 12)
	monthFirst := between(parts[0], 1, 12) && between(parts[1], 1, 31)
	return (dayFirst || monthFirst) && (short || year(parts[2]))
}

func dayAndYear(day, of string) bool {
	return between(day, 1, 31) && (year(of) || len(of) == 2 && between(of, 0, 99))
}

func dateMark(r rune) bool { return strings.ContainsRune("-/.年月–", r) }

func month(s string) bool {
	if len(s) > len("septembre")+2 || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return false
	}
	s = strings.ToLower(s)
	return slices.ContainsFunc(months, func(m string) bool { return strings.HasPrefix(s, m) })
}

func year(s string) bool { return len(s) == 4 && between(s, 1900, 2099) }

// between reports whether s is a number of at most four digits from low to high.
func between(s string, low, high int) bool {
	n, err := strconv.Atoi(s)
	return err == nil && len(s) <= 4 && digits(s) && n >= low && n <= high
}
