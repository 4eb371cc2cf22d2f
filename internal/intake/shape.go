package intake

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// shape returns what is wrong with the cells of a record as a whole: then it
// can't be told which cell is which.
func (t *table) shape() (Problem, bool) {
	have, want := len(t.rec.cells), len(t.cols.header)
	if f := t.rec.fault; f != nil {
		p := t.problem(tracking.Problem{Value: string(t.rec.raw[t.rec.cells[have-1].start:]), Message: f.message, Hint: f.hint}, have-1)
		return p, true
	}
	if have > want {
		return t.surplus(have, want)
	}
	if have == want {
		return Problem{}, false
	}
	cells := fmt.Sprintf("the row has %s where the header has %d", plural(have, "cell"), want)
	switch {
	case have <= t.cols.last:
		return t.problem(tracking.Problem{
			Message: fmt.Sprintf("%s: nothing stands for %s", cells, show(t.cols.header[t.firstMissing()])),
			Hint:    "complete the row; an empty cell needs its " + delimiterName(t.scan.delim) + " too",
		}, none), true
	case !t.rec.ended:
		return t.problem(tracking.Problem{
			Message: "the file ends inside this row: " + cells,
			Hint:    "the file may have been cut off: export it again, or complete the row",
		}, none), true
	}
	return Problem{}, false
}

// surplus finds a cell with something in it beyond the last column.
func (t *table) surplus(have, want int) (Problem, bool) {
	for i := want; i < have; i++ {
		v := t.cell(i)
		if len(v.text) == 0 {
			continue
		}
		p := tracking.Problem{
			Value: string(v.text), Message: fmt.Sprintf("the row has %s where the header has %d", plural(have, "cell"), want),
			Hint: "put a cell that holds a " + delimiterName(t.scan.delim) + " in quotes, or remove the extra cell",
		}
		if bytes.IndexByte(t.rec.raw, '\r') >= 0 {
			p.Hint = "the line holds a lone carriage return: save the file again with one kind of line end; or " + p.Hint
		}
		return t.problem(p, i), true
	}
	return Problem{}, false
}

// firstMissing returns the first column in use that the record does not reach.
func (t *table) firstMissing() int {
	first := t.cols.last
	for _, at := range []int{t.cols.ref, t.cols.number, t.cols.code} {
		if at >= len(t.rec.cells) {
			first = min(first, at)
		}
	}
	return first
}

// swallowed adds a note if a quoted cell goes over lines that look like rows:
// its opening quote may be a mistake.
func (t *table) swallowed(ps []Problem) []Problem {
	for i, c := range t.rec.cells {
		text := t.rec.raw[c.start:c.end]
		n := t.scan.breaks(text)
		if n == 0 || !looksLikeRows(text, t.scan.delim, len(t.cols.header)) {
			continue
		}
		p := t.problem(tracking.Problem{Note: true, Hint: "they are read as one cell; close the quote if they are rows"}, i)
		p.Message = fmt.Sprintf("a quoted cell goes on over lines %d to %d, which look like rows", p.Line, p.Line+n)
		ps = append(ps, p)
	}
	return ps
}

// looksLikeRows reports whether a whole line inside text has as many cells as
// a row.
func looksLikeRows(text []byte, delim byte, width int) bool {
	lines := bytes.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for _, line := range lines[min(1, len(lines)):] {
		if bytes.Count(line, []byte{delim}) >= max(width-1, 1) {
			return true
		}
	}
	return false
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func delimiterName(delim byte) string {
	switch delim {
	case ',':
		return "comma"
	case ';':
		return "semicolon"
	case '\t':
		return "tab"
	}
	return "delimiter " + show(string(rune(delim)))
}

// appendQuoted appends text as a quoted cell.
func appendQuoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	dst = append(dst, strings.ReplaceAll(string(text), `"`, `""`)...)
	return append(dst, '"')
}
