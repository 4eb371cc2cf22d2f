package xlsx

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Loss says how the displayed text of a cell may differ from the text that was entered.
type Loss byte

// Losses, each with the content of Shown.Text.
const (
	None       Loss = iota
	Padded          // no loss: the format adds zeros or text, which Text includes
	Digits          // more than 15 digits, of which a spreadsheet keeps 15; as saved
	Scientific      // shown as 1.23E+11; all digits
	Fraction        // trailing zeros may be lost; as saved
	Formatted       // a format such as #,##0 or 0% displays another text; as saved
	Date            // shown as a date or time; in ISO 8601
	Truth           // TRUE or FALSE
	Failed          // a formula error, such as #N/A
	Unsaved         // a formula without a saved value; empty
	Malformed       // not a number where one is expected; as saved
	Lost            // a text missing in the workbook; empty
)

// Shown is the displayed content of a cell.
type Shown struct {
	Text   string
	Loss   Loss
	Format string // the code of its number format, such as 0.00E+00
}

// maxDigits is the number of digits that a spreadsheet keeps.
const maxDigits = 15

type pattern byte

const (
	general pattern = iota
	digits          // 0 and # with surrounding text
	scientific
	date
	other
)

type format struct {
	code    string
	pattern pattern
	parts   []formatPart // of pattern digits, in order
}

// formatPart is a literal text, or placeholders: 0 always shows a digit, # only one that the number has.
type formatPart struct {
	text   string
	digits bool
}

// builtIn has the codes of the built-in formats, which files do not contain.
var builtIn = map[int]string{
	0: "General", 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00",
	9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??",
	14: isoDate, 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy",
	18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm",
	37: "#,##0 ;(#,##0)", 38: "#,##0 ;(#,##0)", 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)",
	41: "#,##0", 42: "$#,##0", 43: "#,##0.00", 44: "$#,##0.00",
	45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0", 49: "@",
}

const isoDate = "yyyy-mm-dd"

// builtInCode returns the code of a built-in format; empty if unknown. East Asian editions have more date formats.
func builtInCode(id int) string {
	if id >= 27 && id <= 36 || id >= 50 && id <= 58 {
		return isoDate
	}
	return builtIn[id]
}

func (b *Workbook) readStyles(part string) error {
	codes := map[int]string{}
	inCells := false
	var ids []int
	s := b.scan(part, maxList)
	defer s.close()
	for s.nextStart() {
		if s.depth == 2 {
			inCells = s.name == "cellXfs"
		}
		if s.depth != 3 || s.name != "numFmt" && !(inCells && s.name == "xf") {
			continue
		}
		n, _ := strconv.Atoi(s.attribute("numFmtId")) // 0 if absent
		if s.name == "numFmt" {
			codes[n] = s.attribute("formatCode")
		} else {
			ids = append(ids, n)
		}
		if len(ids) > 1<<17 || len(codes) > 1<<16 {
			s.fail("it has too many styles")
		}
	}
	known := map[int]format{}
	for _, id := range ids {
		f, ok := known[id]
		if !ok {
			f = parseFormat(cmp.Or(codes[id], builtInCode(id), "General"))
			known[id] = f
		}
		b.formats = append(b.formats, f)
	}
	return s.err
}

func parseFormat(code string) format {
	f := format{code: code, pattern: digits}
	section, conditional := firstSection(code)
	parts, bare, texts := formatParts(section)
	switch plain := bare == "general" || bare == "standard" || bare == "@"; {
	case section == "", plain && texts == "":
		f.pattern = general
	case plain, strings.Contains(bare, "general"), conditional:
		f.pattern = other
	case strings.Contains(bare, "e+"), strings.Contains(bare, "e-"):
		f.pattern = scientific
	case strings.ContainsAny(bare, "ymdhsegb"):
		f.pattern = date
	case strings.Trim(bare, "0# -+$():!^&'~{}<>=") != "" || !strings.ContainsAny(bare, "0#"):
		f.pattern = other // decimals, thousands, percent, fractions, fill, unknown signs
	default:
		f.parts = parts
	}
	return f
}

// formatToken splits off the first token of a code: a placeholder or another sign, or a text in quotes or after a
// backslash. A color or currency counts as an empty text, an elapsed time such as [h] as signs.
func formatToken(code string) (token string, isText bool, rest string) {
	var end int
	switch code[0] {
	case '"':
		end = strings.IndexByte(code[1:], '"')
	case '[':
		end = strings.IndexByte(code[1:], ']')
	case '\\':
		if len(code) > 1 {
			return code[1:2], true, code[2:]
		}
		return "", true, ""
	default:
		return code[:1], false, code[1:]
	}
	if end < 0 {
		return code[1:], true, ""
	}
	inner, rest := code[1:end+1], code[end+2:]
	if code[0] == '"' {
		return inner, true, rest
	}
	if strings.Trim(strings.ToLower(inner), "hms") == "" {
		return inner, false, rest
	}
	return "", true, rest
}

// formatParts returns the parts of a code, the code in lower case without its texts, and the texts.
func formatParts(code string) (parts []formatPart, bare, texts string) {
	for code != "" {
		token, isText, rest := formatToken(code)
		if isText {
			texts += token
		} else {
			bare += token
		}
		placeholder := !isText && (token == "0" || token == "#")
		last := len(parts) - 1
		if last < 0 || parts[last].digits != placeholder {
			parts = append(parts, formatPart{digits: placeholder})
			last++
		}
		parts[last].text += token
		code = rest
	}
	return parts, strings.ToLower(bare), texts
}

// firstSection returns the section for positive numbers, and whether a condition such as [<100] may choose another.
func firstSection(code string) (section string, conditional bool) {
	quoted := false
	for i := 0; i < len(code); i++ {
		switch c := code[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\\':
			i++
		case c == '[' && i+1 < len(code) && strings.IndexByte("<>=", code[i+1]) >= 0:
			conditional = true
		case c == ';' && section == "":
			section = code[:i]
			if section == "" {
				return `""`, conditional
			}
		}
	}
	return cmp.Or(section, code), conditional
}

func (b *Workbook) formatOf(c Cell) format {
	if c.style < 0 || c.style >= len(b.formats) {
		return format{code: "General"}
	}
	return b.formats[c.style]
}

// losses maps cells that are neither texts nor numbers to their losses.
var losses = map[CellKind]Loss{Bool: Truth, ErrorCell: Failed, ISODate: Date, NoValue: Unsaved, LostText: Lost}

// Shown returns the displayed content of a cell, and what may be lost of its value.
func (b *Workbook) Shown(c Cell) Shown {
	f := b.formatOf(c)
	out := Shown{Text: string(c.Text), Loss: losses[c.Kind], Format: f.code}
	if c.Kind == Number {
		out.Text, out.Loss = b.number(out.Text, f)
	}
	return out
}

func (b *Workbook) number(text string, f format) (string, Loss) {
	number, ok := parseDecimal(strings.TrimSpace(text))
	switch {
	case !ok:
		return text, Malformed
	case f.pattern == date:
		value, _ := strconv.ParseFloat(text, 64) // digits, as parsed before
		return b.date(value, f.code), Date
	case number.count() > maxDigits:
		return number.String(), Digits
	case f.pattern == scientific:
		return number.String(), Scientific
	case number.exponent < 0:
		return number.String(), Fraction
	case f.pattern == general:
		return number.String(), None
	case f.pattern == other, number.negative:
		return number.String(), Formatted
	}
	shown := f.fill(number.String())
	if shown == number.String() {
		return shown, None
	}
	return shown, Padded
}

// fill applies a format to digits: from the right, each placeholder takes one digit; the first group takes the rest.
func (f format) fill(digits string) string {
	first := slices.IndexFunc(f.parts, func(p formatPart) bool { return p.digits })
	shown := ""
	for i, p := range slices.Backward(f.parts) {
		if !p.digits {
			shown = p.text + shown
			continue
		}
		group := digits
		if i > first {
			group = digits[max(0, len(digits)-len(p.text)):]
		}
		digits = digits[:len(digits)-len(group)]
		for n := len(group); n < len(p.text); n++ {
			if p.text[len(p.text)-n-1] == '0' {
				group = "0" + group
			}
		}
		shown = group + shown
	}
	return shown
}

// decimal is a number as written: digits × 10^exponent.
type decimal struct {
	negative bool
	digits   string // without leading and trailing zeros
	exponent int
}

// maxExponent limits the exponent and the number of digits; no number of a spreadsheet exceeds it.
const maxExponent = 400

func parseDecimal(s string) (decimal, bool) {
	var d decimal
	s, d.negative = strings.CutPrefix(s, "-")
	mantissa, exponent, scaled := strings.Cut(strings.ToUpper(s), "E")
	if scaled {
		n, err := strconv.Atoi(exponent)
		if err != nil || n > maxExponent || n < -maxExponent {
			return d, false
		}
		d.exponent = n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	if all == "" || strings.Trim(all, "0123456789") != "" || len(all) > maxExponent {
		return d, false
	}
	d.exponent -= len(fraction)
	d.digits = strings.TrimLeft(all, "0")
	short := strings.TrimRight(d.digits, "0")
	d.exponent += len(d.digits) - len(short)
	if d.digits = short; short == "" {
		d.exponent, d.negative = 0, false
	}
	return d, true
}

// count returns the number of digits of a whole number, or of significant digits of another number.
func (d decimal) count() int { return len(d.digits) + max(0, d.exponent) }

// String returns all digits, without an exponent.
func (d decimal) String() string {
	sign := ""
	if d.negative {
		sign = "-"
	}
	switch n := len(d.digits) + d.exponent; {
	case d.digits == "":
		return "0"
	case d.exponent >= 0:
		return sign + d.digits + strings.Repeat("0", d.exponent)
	case n <= 0:
		return sign + "0." + strings.Repeat("0", -n) + d.digits
	default:
		return sign + d.digits[:n] + "." + d.digits[n:]
	}
}

// from1904 is day 0 of counting from 1904, in days that count from 1900.
const from1904 = 1462

func dateParts(code string) (hasDate, hasTime bool) {
	section, _ := firstSection(strings.ToLower(code))
	hasTime = strings.ContainsAny(section, "hs")
	return strings.ContainsAny(section, "yd") || !hasTime, hasTime
}

// date formats a number of days as a date, a time, or both, as its format does.
func (b *Workbook) date(days float64, code string) string {
	hasDate, hasTime := dateParts(code)
	if math.IsNaN(days) || days < 0 || days >= 2_958_466 { // the day after 9999-12-31
		return strconv.FormatFloat(days, 'g', -1, 64)
	}
	switch {
	case b.date04:
		days += from1904
	case days < 60:
		days++ // Excel has a 29 February 1900
	}
	t := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC).Add(time.Duration(math.Floor(days)) * 24 * time.Hour)
	t = t.Add(time.Duration(math.Round((days-math.Floor(days))*86_400_000)) * time.Millisecond).Round(time.Second)
	switch {
	case hasDate && hasTime:
		return t.Format("2006-01-02T15:04:05")
	case hasTime:
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateOnly)
}
