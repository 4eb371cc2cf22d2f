package findings

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/carriers"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/tracking"
)

const compareHint = "compare it with the label or the carrier's own list"

// examine reports oddities of a row. unlike reports whether its number has no known form, without a reason found.
func (c *Collector) examine(rec intake.Record, at *columns) (unlike bool) {
	it := rec.Item
	c.examineText(it.ReferID, tracking.FieldReferID, &at.ref)
	odd := c.examineText(it.Number, tracking.FieldNumber, &at.number)
	r, alike := c.examineForm(it.Number, it.CarrierCode, &at.number)
	return !odd && !alike && c.examineCarrier(it.Number, cmp.Or(it.CarrierCode, rec.Carrier), r, &at.number)
}

var unknownForm = carriers.Form{Carrier: "unknown"}

func (c *Collector) examineCarrier(number, carrier string, r carriers.Reading, at *Finding) (unlike bool) {
	known, ok := c.codes[carrier]
	if !ok && carrier != "" {
		known = carriers.Any(func(f carriers.Form) bool { return isCodeOf(carrier, f) })
		if len(c.codes) < intake.MaxCarriers {
			c.codes[carrier] = known
		}
	}
	if r.Known() {
		fits := func(f carriers.Form) bool { return f.Shared || isCodeOf(carrier, f) }
		if known && !r.Form.Loose && !fits(r.Form) && !carriers.Has(number, fits) {
			message := fmt.Sprintf("a number of %s, and the row has the carrier %s", r.Form.Carrier, tracking.Quote(carrier))
			c.report(at.with(Warning, OtherCarrier, number, message, compareHint))
		}
		return false
	}
	if message, hint := noNumber(number); message != "" {
		c.report(at.with(Warning, NoForm, number, message, hint))
		return false
	}
	return known || carrier == ""
}

const length1Z = 18

// noNumber returns why a value without a known form is not a number; empty if it may be a number.
func noNumber(s string) (message, hint string) {
	upper := strings.ToUpper(s)
	parts := strings.FieldsFunc(upper, func(r rune) bool { return (r < '0' || r > '9') && (r < 'A' || r > 'Z') })
	if at := strings.LastIndex(upper, "1Z"); at >= 0 && len(upper) > length1Z {
		parts = append(parts, upper[at:min(at+length1Z, len(upper))])
	}
	at := slices.IndexFunc(parts, func(part string) bool {
		r := carriers.Read(part)
		return part != upper && r.Known() && !r.Form.Loose && !r.Wrong() // the whole value has no form
	})
	switch {
	case at >= 0:
		return "the value contains the number " + parts[at], "write the number alone"
	case strings.Contains(s, "://"), strings.HasPrefix(upper, "WWW."):
		return "the value is a URL", "write the number that it leads to"
	case strings.Contains(s, "@"):
		return "the value is an e-mail address", "check that it is the right column"
	case !strings.ContainsAny(s, "0123456789"):
		return "the value has no digit", "check that it is the right column"
	case strings.HasPrefix(upper, "1Z"):
		return fmt.Sprintf("UPS numbers that begin with 1Z have %d characters, and this one %d",
			length1Z, len(s)), compareHint
	}
	return "", ""
}

// examineText reports the first oddity in the text of a field.
func (c *Collector) examineText(s, field string, at *Finding) (odd bool) {
	if simple(s) {
		return false
	}
	for _, examine := range []func(s, field string) (Kind, string, string){lookAlike, markup, quoted, severalInCell} {
		if kind, message, hint := examine(s, field); kind != "" {
			c.report(at.with(Warning, kind, s, message, hint))
			return true
		}
	}
	return false
}

// simple reports whether s has only characters that carriers and most orders use.
func simple(s string) bool {
	for i := range len(s) {
		if b := s[i]; (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'z') && b != '-' && b != '_' {
			return false
		}
	}
	return true
}

// twins are letters of other scripts; latins are the Latin letters that look the same, in the same order.
const (
	twins  = "АВЕЅІЈКМНОРСТУХаеорсухіјѕΑΒΕΖΗΙΚΜΝΟΡΤΥΧο"
	latins = "ABESIJKMHOPCTYXaeopcyxijsABEZHIKMNOPTYXo"
)

// latin returns the ASCII character that r looks like, or r.
func latin(r rune) rune {
	if r >= '！' && r <= '～' {
		return r - '！' + '!'
	}
	if r > unicode.MaxASCII && unicode.IsDigit(r) {
		zero := r
		for unicode.IsDigit(zero-1) && r-zero < 9 {
			zero--
		}
		return '0' + (r - zero)
	}
	if at := strings.IndexRune(twins, r); at >= 0 {
		return rune(latins[utf8.RuneCountInString(twins[:at])])
	}
	return r
}

// lookAlike finds characters that look like Latin letters or digits. It accepts an order in another script alone.
func lookAlike(s, field string) (kind Kind, message, hint string) {
	var first rune
	ascii := false
	plain := strings.Map(func(r rune) rune {
		l := latin(r)
		if l != r && first == 0 {
			first = r
		}
		ascii = ascii || r <= unicode.MaxASCII && unicode.IsLetter(r)
		return l
	}, s)
	otherScript := field != tracking.FieldNumber && !ascii && first < '！'
	if first == 0 || otherScript || strings.ContainsFunc(plain, func(r rune) bool { return r > unicode.MaxASCII }) {
		return "", "", ""
	}
	return LookAlike, fmt.Sprintf("%c (U+%04X) looks like %c", first, first, latin(first)), "write " + plain
}

func markup(s, _ string) (kind Kind, message, hint string) {
	if plain := html.UnescapeString(s); plain != s && strings.Contains(s, ";") {
		return Markup, "the value has an HTML entity", "write " + plain
	}
	if open := strings.IndexByte(s, '<'); open >= 0 && strings.IndexByte(s[open:], '>') > 1 {
		return Markup, "the value has an HTML tag", "remove it"
	}
	for i := 0; i+2 < len(s); i++ {
		if s[i] == '%' && s[i+1] == '2' && strings.IndexByte("0123BCFbcf", s[i+2]) >= 0 {
			return Markup, s[i:i+3] + " is a character of a URL", "export the value itself"
		}
	}
	return "", "", ""
}

const quoteMarks = `"'` + "`“”„‘’‚«»‹›"

func quoted(s, _ string) (kind Kind, message, hint string) {
	inner := strings.Trim(s, quoteMarks)
	if inner == s || inner == "" || strings.HasPrefix(s, inner) || strings.HasSuffix(s, inner) {
		return "", "", ""
	}
	return Quotes, "the value has quotes around it", "write " + inner
}

func severalInCell(s, field string) (kind Kind, message, hint string) {
	if field != tracking.FieldNumber {
		return "", "", ""
	}
	parts := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(",;|/+& \t\n", r) })
	if len(parts) < 2 || slices.ContainsFunc(parts, func(part string) bool { return !tracking.LikeNumber(part) }) {
		return "", "", ""
	}
	message = fmt.Sprintf("one cell has %d numbers", len(parts))
	return SeveralInCell, message, "give each number a row of its own, with the same referId"
}

// isCodeOf reports whether a code is of a form's carrier. Codes are the service's own: dhl-paket is one of DHL Paket.
func isCodeOf(code string, f carriers.Form) bool {
	if strings.EqualFold(code, f.Carrier) {
		return true
	}
	code = foldOrder(code)
	for name := range strings.SplitSeq(f.Carrier, ", ") {
		first, _, _ := strings.Cut(name, " ")
		if strings.Contains(code, foldOrder(first)) || strings.Contains(foldOrder(name), code) {
			return true
		}
	}
	return false
}

// ofCarrier drops failed forms of other carriers that are identified only by their length.
func ofCarrier(r carriers.Reading, code string) carriers.Reading {
	if !r.Wrong() || code == "" {
		return r
	}
	r.Failed = slices.DeleteFunc(r.Failed, func(f carriers.Form) bool { return f.Loose && !isCodeOf(code, f) })
	if !r.Wrong() {
		return carriers.Reading{}
	}
	r.Form = r.Failed[0]
	return r
}

// examineForm counts the form of a number and returns it. It reports wrong characters and check digits. alike reports
// whether replacing look-alike characters makes it a valid number.
func (c *Collector) examineForm(number, code string, at *Finding) (r carriers.Reading, alike bool) {
	r = ofCarrier(carriers.Read(number), code)
	form := r.Form
	if !r.Known() {
		form = unknownForm
	}
	n := c.forms[form]
	if n == nil {
		n = &FormCount{Carrier: form.Carrier, Form: form.Name}
		c.forms[form] = n
	}
	n.Rows++
	c.lengths.add(number)
	if r.Known() && strings.ToUpper(number) != number {
		c.report(at.with(Note, LowerCase, number, "carriers write capital letters", ""))
	}
	fixed := ""
	if !r.Known() || r.Wrong() {
		fixed, alike = carriers.Corrected(number)
	}
	switch {
	case alike:
		if r.Wrong() {
			n.Wrong++
		}
		c.report(at.with(Warning, LookAlike, number, "a wrong character for "+carriers.Read(fixed).Form.String(),
			"write "+fixed))
	case r.Form.Checked && r.Form.Loose:
		c.countRule(number, at, r, n)
	case r.Wrong():
		n.Wrong++
		f := wrongDigit(number, at, r)
		if code != "" && !isCodeOf(code, r.Form) && !strings.ContainsFunc(number, unicode.IsLetter) {
			f.Severity = Note // another carrier's number may have these digits
		}
		c.report(f)
	}
	return r, alike
}

func wrongDigit(number string, at *Finding, r carriers.Reading) Finding {
	names := make([]string, len(r.Failed))
	for i, f := range r.Failed {
		names[i] = f.String()
	}
	message := "the check digit is wrong for " + names[0]
	if len(names) > 1 {
		message += ", and for " + strings.Join(names[1:], ", ")
	}
	return at.with(Warning, CheckDigit, number, message, compareHint)
}

// manyFailed is the minimum number of failed numbers of a length, which must outnumber the rest, for [UnknownCarrier].
const manyFailed = 30

// countRule counts numbers by length. If most of a length fail, they are of a carrier without a published rule.
func (c *Collector) countRule(number string, at *Finding, r carriers.Reading, n *FormCount) {
	group := fmt.Sprint(len(number))
	count := c.rules[group]
	if count == nil {
		count = &ruleCount{}
		c.rules[group] = count
	}
	if !r.Wrong() {
		count.fit++
		return
	}
	count.failed++
	n.Wrong++
	f := wrongDigit(number, at, r)
	f.group = group
	c.report(f)
}

// dropped reports whether the findings of a group are dropped, see [Collector.countRule].
func (c *Collector) dropped(group string) bool {
	n := c.rules[group]
	return n != nil && n.failed >= manyFailed && n.failed > n.fit
}

func (c *Collector) reportUnknownCarriers() {
	for _, group := range slices.Sorted(maps.Keys(c.rules)) {
		if n := c.rules[group]; c.dropped(group) {
			message := fmt.Sprintf(
				"%d of %d numbers with %s digits fit no published check digit: they are likely of a carrier without one",
				n.failed, n.failed+n.fit, group)
			place := Finding{Problem: intake.Problem{File: c.cols[0].number.File}}
			c.report(place.with(Note, UnknownCarrier, "", message, ""))
		}
	}
}

// Summary adds what reading found about a file as a whole.
func (c *Collector) Summary(name string, s intake.Summary) error {
	report := func(severity Severity, kind Kind, header, message, hint string) {
		place := Finding{Problem: intake.Problem{File: name, Header: header}}
		c.report(place.with(severity, kind, "", message, hint))
	}
	for _, column := range s.HiddenCols {
		if !slices.Contains(s.Ignored, column) {
			report(Warning, HiddenColumn, column, "the column is hidden, and is read all the same",
				"map another column with --map if it is not meant, or unhide it")
		}
	}
	for _, column := range s.Ignored {
		message, hint := "the column is not used", ""
		if slices.Contains(s.Own, column) {
			message = "the column is kept with the rows, and not sent"
		}
		if slices.Contains(s.HiddenCols, column) {
			message = "the column is hidden, and is not used"
		}
		switch intake.SoundsLike(column) {
		case tracking.FieldNumber:
			hint = "if it has further numbers, give each a row of its own, with the same referId"
		case intake.FieldCarrier:
			hint = "if it has the service's carrier codes, add --map carrierCode=" + shell.Word(column)
		}
		report(Note, UnusedColumn, column, message, hint)
	}
	if message, hint := s.LeftOutText(); message != "" {
		report(Note, LeftOut, "", message, hint)
	}
	if message, hint := s.ExchangedText(); message != "" {
		severity := Warning
		if s.Swapped() {
			severity = Error
		}
		report(severity, Exchanged, s.Number, message, hint)
	}
	return c.err
}
