package intake

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/xlsx"
)

type table struct {
	file          string
	opt           Options
	scan          *scanner
	sheet         *sheet // the records are its rows; nil for text
	rec           record
	out           Record // the current record, as returned
	cols          columns
	own           ownColumns
	carrier       *carriers
	sum           *Summary
	badShape      bool // the current record is not a row of the table
	fullRowSeen   bool // a row with a cell for every column was read
	extraCells    int  // empty cells that every row has after the last column
	afterLoneCell int  // the line after the last record with one cell
	numbers       lengths
	scratch       []byte // for values that differ from the raw text
	list          bool   // there is no header: every line is a REF
	first         bool   // the current record is the first REF of a list, not yet returned
}

// lengths are the lengths of the numbers of good rows, in bytes.
type lengths struct {
	count    int
	shortest string // the first of the shortest
	longest  int
}

type cellValue struct {
	text       []byte // valid until the next record is read
	trimmed    bool
	strayQuote bool // it contains a quote that should be doubled or removed
}

// cell returns the value of a column of the current record; empty if the record lacks it.
func (t *table) cell(at int) cellValue {
	if at < 0 || at >= len(t.rec.cells) {
		return cellValue{}
	}
	c := t.rec.cells[at]
	text := t.rec.raw[c.start:c.end]
	if c.quoting == unquoted {
		v := trim(text)
		return cellValue{text: v, trimmed: len(v) != len(text)}
	}
	if c.quoting == quoted {
		text = text[1 : len(text)-1]
		if bytes.IndexByte(text, '"') >= 0 {
			text = t.unquote(text)
		}
	}
	v := cellValue{text: trim(text)}
	v.trimmed = len(v.text) != len(text)
	shown, ok := t.formulaText(v.text)
	if !ok {
		v.strayQuote = c.quoting == strayQuote
		return v
	}
	v.text = trim(shown)
	v.trimmed = v.trimmed || len(v.text) != len(shown)
	return v
}

func (t *table) next() (Record, error) {
	for {
		if t.first {
			t.first = false
		} else if err := t.read(); err != nil {
			return Record{}, err
		}
		if t.empty() {
			continue
		}
		if err := t.checkExtraCells(); err != nil {
			return Record{}, err
		}
		t.scratch = t.scratch[:0]
		t.out = Record{File: t.file, Line: t.rec.line, Row: t.rec.row}
		if t.opt.Refs {
			t.readRefs()
			return t.out, nil
		}
		t.readItem()
		if t.opt.KeepText || !t.out.Good() {
			t.keep()
		}
		return t.out, nil
	}
}

// empty reports whether all cells of the record are empty, and counts it unless it is a blank line.
func (t *table) empty() bool {
	for _, c := range t.rec.raw {
		if needsNoTrim(c) && c != t.scan.delim && c != '"' {
			return false
		}
	}
	if t.rec.fault != nil || t.sheet != nil && t.sheet.lost() != "" {
		return false
	}
	for i := range t.rec.cells {
		if v := t.cell(i); len(v.text) > 0 {
			return false
		}
	}
	if len(t.rec.cells) > 1 {
		t.sum.Empty++
	}
	return true
}

func (t *table) readItem() {
	rec := &t.out
	rec.Hidden = t.sheet != nil && t.sheet.row.Hidden
	t.checkCellCount()
	if t.badShape = rec.Problems != nil; t.badShape {
		return
	}
	ref, number := t.usedCell(t.cols.ref), t.usedCell(t.cols.number)
	named := t.usedCell(t.cols.ofCarrier())
	rec.Item = t.item(ref.text, number.text)
	if t.cols.carrier == none {
		rec.Item.CarrierCode = t.carrier.fromCode(named.text)
	} else {
		rec.Item.CarrierCode, rec.Carrier = t.carrier.code(named.text)
	}
	if len(t.own.at) > 0 {
		rec.Own = t.ownText()
	}
	if rec.Item.ReferID == t.cols.header[t.cols.ref] && rec.Item.Number == t.cols.header[t.cols.number] {
		t.report(tracking.Problem{Message: "the row repeats the header", Hint: "remove the row"}, none)
		return
	}
	for _, p := range t.carrier.validate(rec.Item, t.opt.Rules) {
		at := t.cols.ref
		switch p.Field {
		case tracking.FieldNumber:
			at = t.cols.number
		case tracking.FieldCarrierCode:
			at = t.cols.ofCarrier()
		}
		t.report(p, at)
	}
	t.checkCell(tracking.FieldReferID, t.cols.ref, ref)
	t.checkCell(tracking.FieldNumber, t.cols.number, number)
	t.checkCarrier(named)
	t.checkDamage(tracking.FieldReferID, t.cols.ref)
	t.checkDamage(tracking.FieldNumber, t.cols.number)
	t.checkDamage(tracking.FieldCarrierCode, t.cols.code)
	if len(rec.Problems) == 0 && t.sheet == nil {
		t.checkShifted()
	}
	if t.scan.recordLines > 1 {
		t.checkSwallowedRows()
	}
	t.checkBrokenRow()
	if rec.Good() {
		t.checkTruncated()
	}
}

func (t *table) usedCell(at int) cellValue {
	v := t.cell(at)
	if v.trimmed {
		t.sum.Trimmed++
	}
	return v
}

// item makes an item from two identifiers in one allocation.
func (t *table) item(ref, number []byte) tracking.Item {
	at := len(t.scratch)
	t.scratch = append(append(t.scratch, ref...), number...)
	both := string(t.scratch[at:])
	it := tracking.Item{ReferID: both[:len(ref)], Number: both[len(ref):]}
	if t.opt.StripSpaces {
		it.Number = stripSpaces(it.Number, t.sum)
	}
	return it
}

func (t *table) checkCell(field string, at int, v cellValue) {
	if v.strayQuote {
		t.report(tracking.Problem{
			Field: field, Value: string(v.text), Message: "quote inside a cell that is not quoted",
			Hint: "remove it, or put the whole cell in quotes and double the quote",
		}, at)
	}
	if p, bad := lostCharacter(field, v.text, t.sum.Encoding); bad {
		t.report(p, at)
	}
}

// checkCarrier reports problems of the carrier's cell. Names are checked only if codes were given.
func (t *table) checkCarrier(v cellValue) {
	switch {
	case t.cols.carrier == none:
		t.checkCell(tracking.FieldCarrierCode, t.cols.code, v)
	case len(t.opt.Carriers) > 0 && !utf8.Valid(v.text):
		t.report(tracking.Problem{
			Field: FieldCarrier, Value: string(v.text), Message: "the carrier name is not valid UTF-8",
			Hint: "save the file as UTF-8, or pass its encoding with --encoding",
		}, t.cols.carrier)
	}
}

// report adds a problem of a column to the current record; at none, of the whole row.
func (t *table) report(p tracking.Problem, at int) {
	p.Value = Shorten(p.Value)
	out := Problem{File: t.file, Line: t.rec.line, Row: t.rec.row, Problem: p}
	if t.sheet != nil {
		out.Sheet = t.sheet.name
	}
	if at != none {
		out.Column, out.Cell = at+1, xlsx.Address(at, t.rec.row)
		if at < len(t.cols.header) {
			out.Header = t.cols.header[at]
		}
		if at < len(t.rec.cells) && t.scan.recordLines > 1 {
			out.Line += t.scan.countLineEnds(t.rec.raw[:t.rec.cells[at].start])
		}
	}
	t.out.Problems = append(t.out.Problems, out)
}

// keep keeps the text of the current record for [Rejects].
func (t *table) keep() {
	if t.sheet == nil {
		t.out.text = t.text()
		return
	}
	t.out.cells = slices.Clone(t.sheet.row.Cells)
	for i, c := range t.out.cells {
		t.out.cells[i].Text = bytes.Clone(c.Text)
	}
}

// text returns the record as written, but without waybillError columns and padded to the width of the header. If
// padding would make the record good, it goes into one cell instead.
func (t *table) text() string {
	have, want := len(t.rec.cells), len(t.cols.header)
	if t.rec.fault != nil || t.badShape && have < want && have > max(t.cols.ref, t.cols.number) {
		return t.oneCell()
	}
	padded := !t.badShape && have > want
	if len(t.cols.errors) == 0 && have >= want && !padded {
		return string(t.rec.raw)
	}
	drop := t.cols.errors
	if t.badShape && have > want && len(drop) > 0 && drop[len(drop)-1] == want-1 {
		drop = append(slices.Clone(drop[:len(drop)-1]), have-1) // in a row that is too long, the error is the last cell
	}
	var b []byte
	n := 0
	for i, c := range t.rec.cells {
		if slices.Contains(drop, i) || padded && i >= want {
			continue
		}
		if n++; n > 1 {
			b = append(b, t.scan.delim)
		}
		b = append(b, t.rec.raw[c.start:c.end]...)
	}
	return string(t.pad(b, n))
}

// oneCell returns the record's text in one cell, so that it can't be read as both identifiers.
func (t *table) oneCell() string {
	var b []byte
	n := 1
	if t.cols.ref == 0 && t.cols.number == 0 {
		b, n = append(b, t.scan.delim), 2
	}
	return string(t.pad(appendQuoted(b, t.rec.raw), n))
}

// pad appends empty cells to b, which has n cells, up to the width of the header.
func (t *table) pad(b []byte, n int) []byte {
	for ; n < len(t.cols.header)-len(t.cols.errors); n++ {
		b = append(b, t.scan.delim)
	}
	return b
}

// trim removes surrounding white space, including no-break spaces, and a leading byte order mark.
func trim(b []byte) []byte {
	if len(b) == 0 || (needsNoTrim(b[0]) && needsNoTrim(b[len(b)-1])) {
		return b
	}
	b = bytes.TrimFunc(b, unicode.IsSpace)
	if rest, ok := bytes.CutPrefix(b, []byte(utf8BOM)); ok {
		return bytes.TrimFunc(rest, unicode.IsSpace)
	}
	return b
}

// needsNoTrim reports whether c, at an end of a value, is certainly not white space.
func needsNoTrim(c byte) bool { return c > ' ' && c < utf8.RuneSelf }

// stripSpaces removes and counts the spaces inside a tracking number. Line ends and tabs separate values: they stay.
func stripSpaces(s string, sum *Summary) string {
	after := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Zs, r) {
			return -1
		}
		return r
	}, s)
	if len(after) != len(s) {
		sum.Stripped++
	}
	return after
}

// unquote undoes the doubling of quotes in b. The result is in scratch.
func (t *table) unquote(b []byte) []byte {
	from := len(t.scratch)
	for {
		n := bytes.Index(b, []byte(`""`))
		if n < 0 {
			t.scratch = append(t.scratch, b...)
			return t.scratch[from:]
		}
		t.scratch = append(t.scratch, b[:n+1]...)
		b = b[n+2:]
	}
}

// formulaText returns the text of a formula ="…", which exports use to keep spreadsheets from reading numbers.
func (t *table) formulaText(b []byte) (text []byte, ok bool) {
	if len(b) < 3 || b[0] != '=' || b[1] != '"' || b[len(b)-1] != '"' {
		return nil, false
	}
	inner := b[2 : len(b)-1]
	if bytes.IndexByte(inner, '"') < 0 {
		return inner, true
	}
	if bytes.Contains(bytes.ReplaceAll(inner, []byte(`""`), nil), []byte{'"'}) {
		return nil, false
	}
	return t.unquote(inner), true
}

// lostCharacter returns a problem if s contains U+FFFD, which replaces a character that was lost before.
func lostCharacter(field string, s []byte, encoding string) (tracking.Problem, bool) {
	if !bytes.Contains(s, []byte("\ufffd")) {
		return tracking.Problem{}, false
	}
	p := tracking.Problem{
		Field: field, Value: string(s), Message: "a character in " + field + " was lost (read as U+FFFD)",
		Hint: "export the file again as UTF-8",
	}
	if encoding != utf8Name {
		p.Hint = "check that " + encoding + " is the file's encoding, or export it again as UTF-8"
	}
	return p, true
}
