package render

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/term"
)

// newCSV begins CSV with a header: RFC 4180, but lines end with a newline alone. Cells are written unchanged.
//
// With a separator for Excel, the file opens by double click and Excel shows the original values: it has a byte order
// mark and CRLF line ends; an identifier that a spreadsheet would change is written as `="…"`, with its quotes doubled;
// any other cell that a spreadsheet would run as a formula gets a `'` in front. If the separator is a semicolon,
// numbers have a decimal comma.
func newCSV(out *term.Writer, excel byte, columns []Column) *Rows {
	form := csvForm{excel: excel != 0, separator: cmp.Or(excel, ','), newline: "\n"}
	if excel != 0 && !out.IsTerminal() { // a terminal would show them as escapes
		form.mark, form.newline = "\ufeff", "\r\n"
	}
	return &Rows{sink: sink{out: out}, columns: columns, form: form}
}

type csvForm struct {
	excel     bool
	separator byte
	mark      string // byte order mark, empty for none
	newline   string
}

func (f csvForm) begin(r *Rows) error {
	r.sink.buf = append(r.sink.buf, f.mark...)
	for i, c := range r.columns {
		f.cell(r, i, c.CSVName())
	}
	return r.sink.ended()
}

func (f csvForm) row(r *Rows, cells []Cell) error {
	for i := range cells {
		c := cells[i].Text
		switch {
		case !f.excel:
		case r.columns[i].ID && isReinterpreted(c):
			c = `="` + strings.ReplaceAll(c, `"`, `""`) + `"`
		case !r.columns[i].ID && isFormula(c):
			c = "'" + c
		case f.separator == ';' && r.columns[i].Right && c != "" && plainNumber(c):
			c = strings.Replace(c, ".", ",", 1)
		}
		f.cell(r, i, c)
	}
	return r.sink.ended()
}

func (csvForm) end(*Rows) error { return nil }

func (f csvForm) cell(r *Rows, i int, text string) {
	alone := text == "" && len(r.columns) == 1 // a reader would otherwise skip the line as blank
	if alone || strings.ContainsAny(text, "\",;\t\r\n") || strings.HasPrefix(text, " ") || strings.HasSuffix(text, " ") {
		text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	r.sink.buf = append(r.sink.buf, text...)
	if i+1 < len(r.columns) {
		r.sink.buf = append(r.sink.buf, f.separator)
	} else {
		r.sink.buf = append(r.sink.buf, f.newline...)
	}
}

// safeDigits is the maximum number of digits of a whole number that a spreadsheet shows and saves in full: a longer
// one becomes 1.23E+11, and digits beyond 15 are lost for good.
const safeDigits = 11

func isFormula(s string) bool {
	if s == "" || s == "-" || plainNumber(s) {
		return false
	}
	if strings.ContainsRune("\t\r\n", rune(s[0])) {
		return true
	}
	first := strings.TrimLeft(halfWidth(s), " \u00a0\u3000")
	return first != "" && strings.ContainsRune("=+-@", rune(first[0]))
}

// plainNumber reports whether s, which is not empty, is a decimal number with an optional sign.
func plainNumber(s string) bool {
	if s[0] == '-' || s[0] == '+' {
		s = s[1:]
	}
	whole, fraction, ok := strings.Cut(s, ".")
	return digits(whole) && (!ok || digits(fraction))
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// isReinterpreted reports whether some spreadsheet may change the identifier s because it takes it for something other
// than text: a formula, a number (leading zeros, more than [safeDigits], 12E5), a date or time (1-2, MAR5, 12:30),
// money, a truth value or an error value. It reports true if in doubt.
func isReinterpreted(s string) bool {
	if s == "" || digits(s) && len(s) <= safeDigits && (s[0] != '0' || s == "0") {
		return false
	}
	if isFormula(s) || s[0] == '\'' || strings.TrimSpace(s) != s {
		return true
	}
	s = strings.ToLower(halfWidth(s))
	if rest, ok := strings.CutPrefix(s, "#"); ok {
		return !digits(rest) && strings.ContainsAny(rest, "!?/") // #N/A and the like; #1001 is text
	}
	if slices.Contains(truthValues, s) {
		return true
	}
	if strings.ContainsFunc(s, isEmoji) {
		return false
	}
	words := strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
	if len(words) == 0 {
		return true // digits and signs: number, date, time, fraction
	}
	if !strings.ContainsFunc(s, unicode.IsNumber) {
		return false
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Sc, r) }) {
		return true
	}
	first, _ := utf8.DecodeRuneInString(s)
	lead := unicode.IsLetter(first)
	return !slices.ContainsFunc(words, func(w string) bool {
		return !month(w) && !slices.Contains(unitWords, w) && (lead || !slices.Contains(numberWords, w))
	})
}

// isEmoji reports whether r is a pictograph, which no number or date contains. Signs such as ° are not.
func isEmoji(r rune) bool {
	return unicode.Is(unicode.So, r) && (r >= 0x2600 && r < 0x2800 || r >= 0x1f000)
}

// halfWidth replaces full-width ASCII characters, which East Asian spreadsheets read as ASCII, with ASCII.
func halfWidth(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '！' && r <= '～' {
			return r - '！' + '!'
		}
		return r
	}, s)
}

func month(w string) bool {
	if utf8.RuneCountInString(w) < 3 {
		return false
	}
	return slices.ContainsFunc(monthNames, func(name string) bool { return strings.HasPrefix(name, w) })
}

// Words that a spreadsheet does not treat as text.
var (
	// monthNames are the months in English, German, French, Spanish, Italian, Portuguese, Dutch, Danish, Swedish and
	// Polish.
	monthNames = strings.Fields(`
		january february march april may june july august september october november december
		januar jänner februar märz mrz mai juni juli oktober dezember
		janvier février fevrier mars avril juin juillet août aout septembre octobre novembre décembre decembre
		enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre noviembre diciembre
		gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre
		janeiro fevereiro março marco maio junho julho setembro outubro novembro dezembro
		januari februari maart mei augustus
		marts maj augusti
		styczeń luty marzec kwiecień czerwiec lipiec sierpień wrzesień październik listopad grudzień
		stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia`)

	// unitWords turn adjacent digits into a date or money.
	unitWords = strings.Fields("年 月 日 時 时 分 秒 년 월 일 시 분 초 eur usd gbp chf kr kč zł ft lei")

	// numberWords turn the digits before them into a number, a date or a time.
	numberWords = strings.Fields("e d t z a p am pm")

	truthValues = strings.Fields("true false wahr falsch vrai faux verdadero falso vero verdadeiro waar onwaar " +
		"sand falsk sant falskt prawda fałsz")
)
