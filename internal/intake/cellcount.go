package intake

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	forms "github.com/waybill-cli/waybill/internal/carriers"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// checkCellCount reports a record whose cells can't be assigned to columns.
func (t *table) checkCellCount() {
	have, want := len(t.rec.cells), len(t.cols.header)
	switch f := t.rec.fault; {
	case f != nil:
		f.Value = string(t.rec.raw[t.rec.cells[have-1].start:])
		t.report(*f, have-1)
	case have > want:
		t.checkSurplusCells()
	case have < want:
		t.reportMissingCells()
	default:
		t.fullRowSeen = true
	}
}

func (t *table) widthMessage() string {
	return fmt.Sprintf("the row has %s, the header has %d", plural(len(t.rec.cells), "cell"), len(t.cols.header))
}

func (t *table) reportMissingCells() {
	if len(t.rec.cells) == 1 {
		t.afterLoneCell = t.rec.line + t.scan.recordLines
	}
	p := tracking.Problem{
		Message: t.widthMessage(),
		Hint:    "complete the row; an empty cell needs its " + delimiterName(t.scan.delim) + " as well",
	}
	switch {
	case len(t.rec.cells) <= t.cols.last:
		first := t.cols.last
		for _, at := range []int{t.cols.ref, t.cols.number, t.cols.code} {
			if at >= len(t.rec.cells) {
				first = min(first, at)
			}
		}
		p.Message += "; no cell for " + show(t.cols.header[first])
	case !t.rec.lineEnd:
		p.Message = "the file ends inside this row: " + p.Message
		p.Hint = "check that the file is complete, or complete the row"
	}
	t.report(p, none)
}

// checkSurplusCells reports cells beyond the last column. It ignores empty ones if all rows have the same number of
// them and the tracking number can't have moved.
func (t *table) checkSurplusCells() {
	want, have := len(t.cols.header), len(t.rec.cells)
	p := tracking.Problem{
		Message: t.widthMessage(),
		Hint:    "put a cell that contains a " + delimiterName(t.scan.delim) + " in quotes, or remove the extra cell",
	}
	for i := want; i < have; i++ {
		v := t.cell(i)
		if len(v.text) == 0 {
			continue
		}
		p.Value = string(v.text)
		if bytes.IndexByte(t.rec.raw, '\r') >= 0 {
			p.Hint = "the line contains a lone carriage return: save the file with one kind of line end; or " + p.Hint
		}
		t.report(p, i)
		return
	}
	if t.fullRowSeen && have-want != t.extraCells || !t.cellsInPlace() {
		t.report(p, want)
		return
	}
	t.fullRowSeen, t.extraCells = true, have-want
}

// checkExtraCells returns an error for a record without the empty last cells of earlier ones: cells may have moved.
func (t *table) checkExtraCells() error {
	if t.extraCells == 0 || t.rec.fault != nil || len(t.rec.cells) != len(t.cols.header) {
		return nil
	}
	return &FileError{
		File: t.file, Line: t.rec.line, row: t.rec.row,
		Message: fmt.Sprintf("%s and the rows before it have %d", t.widthMessage(), len(t.cols.header)+t.extraCells),
		hint:    "empty cells at the end are ignored only where every row has them: give every row the same number of cells",
	}
}

// Likeness of a cell to a tracking number, in ascending order.
const (
	likeEmpty = iota // it is empty
	likeText
	likeDigits // it has a digit
	likeNumber
)

func (t *table) numberLikeness(at int) int {
	switch text := t.cell(at).text; {
	case len(text) == 0:
		return likeEmpty
	case tracking.LikeNumber(string(text)):
		return likeNumber
	case bytes.ContainsAny(text, "0123456789"):
		return likeDigits
	}
	return likeText
}

// cellsInPlace reports whether no cell of a record with surplus cells can have moved: the number looks more like a
// tracking number than any later cell, and no unused column precedes the referId or the carrier code.
func (t *table) cellsInPlace() bool {
	number := t.numberLikeness(t.cols.number)
	if number < likeDigits || number < likeNumber && t.unusedBefore(t.cols.number) || t.unusedBefore(t.cols.ref) {
		return false
	}
	for i := t.cols.number + 1; i < len(t.cols.header); i++ {
		if !t.inUse(i) && t.numberLikeness(i) >= number {
			return false
		}
	}
	code := t.cols.code
	if len(t.opt.Carriers) > 0 && t.cols.carrier != none {
		code = t.cols.carrier
	}
	return len(t.cell(code).text) == 0 || !t.unusedBefore(code)
}

func (t *table) inUse(at int) bool {
	return at == t.cols.ref || at == t.cols.number || at == t.cols.code || at == t.cols.carrier
}

func (t *table) unusedBefore(at int) bool {
	for i := range at {
		if !t.inUse(i) {
			return true
		}
	}
	return false
}

// checkShifted reports a number that is in one of the next two cells instead: an extra and a missing delimiter leave
// the row as wide as the header.
func (t *table) checkShifted() {
	number := t.out.Item.Number
	if t.opt.AcceptOdd || tracking.LikeNumber(number) {
		return
	}
	text := t.numberLikeness(t.cols.number) < likeDigits
	for i := t.cols.number + 1; i < min(t.cols.number+3, len(t.cols.header)); i++ {
		other := string(t.cell(i).text)
		if i == t.cols.ref || !tracking.LikeNumber(other) ||
			!text && !(tracking.Item{ReferID: other, Number: number}).Exchanged() {
			continue
		}
		t.report(tracking.Problem{
			Field: tracking.FieldNumber, Value: number, Odd: true,
			Message: fmt.Sprintf("this does not look like a tracking number, but %s does: the cells may have moved",
				show(other)),
			Hint: "put a cell that contains a " + delimiterName(t.scan.delim) +
				" in quotes; --accept-odd-values sends it as it is",
		}, t.cols.number)
		return
	}
}

// checkBrokenRow reports a line with one cell next to the record, which a line end may have split.
func (t *table) checkBrokenRow() {
	want := len(t.cols.header)
	if want == 1 || len(t.rec.cells) != want || t.sheet != nil {
		return
	}
	const message = "%s has 1 cell, the header has %d: it may belong to this row"
	p := tracking.Problem{Hint: "join the two lines, or remove the one with 1 cell"}
	if t.inUse(0) && t.afterLoneCell == t.rec.line {
		p.Message = fmt.Sprintf(message, "the line before", want)
		t.report(p, 0)
		return
	}
	if !t.inUse(want - 1) {
		return
	}
	if next := t.scan.peek(&t.rec); len(bytes.TrimSpace(next)) > 0 && bytes.IndexByte(next, t.scan.delim) < 0 {
		p.Message = fmt.Sprintf(message, "the next line", want)
		t.report(p, want-1)
	}
}

// checkTruncated reports a last number that is shorter than all others: the file may have been cut inside it.
func (t *table) checkTruncated() {
	n, number := &t.numbers, t.out.Item.Number
	if t.rec.lineEnd || t.cols.number != len(t.rec.cells)-1 || len(number) >= len(n.shortest) {
		if n.count++; n.count == 1 || len(number) < len(n.shortest) {
			n.shortest = number
		}
		n.longest = max(n.longest, len(number))
		return
	}
	last := forms.Read(number)
	right := last.Known() && !last.Wrong()
	if n.count > 1 && n.longest == len(n.shortest) { // only a check digit justifies another length
		right = right && last.Form.Checked && !last.Form.Loose
	} else if !right {
		right = !forms.Read(n.shortest).Known()
	}
	if right {
		return
	}
	t.report(tracking.Problem{
		Field: tracking.FieldNumber, Value: number, Odd: true, Note: t.opt.AcceptOdd,
		Message: "the file ends in this number without a line end, and all other numbers are longer: it may be cut off",
		Hint:    "check that the file is complete; if it is, end its last line, or --accept-odd-values sends it as it is",
	}, t.cols.number)
}

// checkSwallowedRows reports quoted cells whose lines look like rows: only a note if no column in use follows.
func (t *table) checkSwallowedRows() {
	for i, c := range t.rec.cells {
		text := t.rec.raw[c.start:c.end]
		n := t.scan.countLineEnds(text)
		if n == 0 {
			continue
		}
		lines := bytes.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
		joined := i <= max(t.cols.last, t.cols.ref) && t.joinsRows(lines, i)
		isRow := func(line []byte) bool { return bytes.Count(line, []byte{t.scan.delim}) >= max(len(t.cols.header)-1, 1) }
		if !joined && !slices.ContainsFunc(lines[min(1, len(lines)):], isRow) {
			continue
		}
		first := t.rec.line + t.scan.countLineEnds(t.rec.raw[:c.start])
		p := tracking.Problem{
			Note: !joined, Message: fmt.Sprintf("a quoted cell spans lines %d to %d, which look like rows", first, first+n),
			Hint: "the lines are read as one cell; if they are rows, close the quote",
		}
		if joined {
			p.Hint = "close the quote in the row where it starts"
		}
		t.report(p, i)
	}
}

// joinsRows reports whether a quoted cell holds a tracking number, or as many delimiters as a break between two rows.
func (t *table) joinsRows(lines [][]byte, at int) bool {
	delim := []byte{t.scan.delim}
	for _, line := range lines {
		for cell := range bytes.SplitSeq(line, delim) {
			if tracking.LikeNumber(string(trim(cell))) {
				return true
			}
		}
	}
	before, after := len(t.cols.header)-1-at, at
	return len(lines) > 1 && bytes.Count(lines[0], delim) == before && bytes.Count(lines[len(lines)-1], delim) == after
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

var delimiterNames = map[byte]string{',': "comma", ';': "semicolon", '\t': "tab"}

func delimiterName(delim byte) string {
	return cmp.Or(delimiterNames[delim], "delimiter "+show(string(rune(delim))))
}

func appendQuoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	dst = append(dst, strings.ReplaceAll(string(text), `"`, `""`)...)
	return append(dst, '"')
}
