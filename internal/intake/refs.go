package intake

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// refFields are the fields that can name a tracking, the first choice first.
var refFields = []string{tracking.FieldReferID, tracking.FieldNumber}

// outputNames are the names that our own output gives to those fields beside the interface's own.
var outputNames = map[string][]string{
	tracking.FieldReferID: {"REFERENCE"},
	tracking.FieldNumber:  {"trackingNumber", "NUMBER"},
}

// resolveRefs finds the columns of referIds and numbers, of which one is enough, and the columns of
// --map that the header lacks. A table of one other column is a list.
func resolveRefs(file string, line int, header []string, o Options) (c columns, absent []string, list bool, err error) {
	noHeader := columns{header: []string{""}, number: none, code: none, carrier: none}
	if o.Format == List {
		return noHeader, nil, true, nil
	}
	r := &resolver{file: file, line: line, header: header, mapped: make([]bool, len(header))}
	if err := r.checkNames(); err != nil {
		return c, nil, false, err
	}
	of := map[string]int{}
	var unmapped error
	for _, field := range refFields {
		if of[field] = none; o.Map[field] == "" {
			continue
		}
		at, err := r.byName(field, o.Map[field])
		var wrong *ColumnError
		switch {
		case err == nil:
			of[field], r.mapped[at] = at, true
		case errors.As(err, &wrong) && len(wrong.Found) > 0:
			return c, nil, false, err
		default:
			absent, unmapped = append(absent, o.Map[field]), cmp.Or(unmapped, err)
		}
	}
	for _, field := range refFields {
		if of[field] != none {
			continue
		}
		if own := r.matching(func(h string) bool { return slices.Contains(outputNames[field], h) }); len(own) == 1 {
			of[field] = own[0]
		} else if of[field], err = r.byRank(field); err != nil {
			return c, nil, false, err
		}
	}
	c = columns{header: header, ref: of[tracking.FieldReferID], number: of[tracking.FieldNumber]}
	c.code, c.carrier = none, none
	c.last = max(c.ref, c.number)
	switch {
	case c.last != none:
		return c, absent, false, nil
	case len(header) == 1:
		return noHeader, nil, true, nil
	case unmapped != nil:
		return c, nil, false, unmapped
	}
	return c, nil, false, r.fail(refFields[:1], "no column for referId or rawTrackingNumber", nil)
}

func (t *table) refRow() Record {
	rec := Record{File: t.file, Line: t.rec.line, Row: t.rec.row}
	p, bad := t.checkCellCount()
	if t.list {
		p, bad = t.checkListLine()
	}
	if bad {
		rec.Problems = []Problem{p}
		return rec
	}
	for _, field := range refFields {
		at, name, into := t.cols.ref, field, &rec.Item.ReferID
		if field == tracking.FieldNumber {
			at, into = t.cols.number, &rec.Item.Number
		}
		v := t.usedCell(at)
		if len(v.text) == 0 {
			continue
		}
		if t.list {
			name, into = fieldRef, &rec.Ref
		}
		*into = string(v.text)
		if t.opt.StripSpaces && name == tracking.FieldNumber {
			*into = stripSpaces(*into, t.sum)
		}
		for _, p := range tracking.CheckIdentifier(name, *into) {
			rec.Problems = append(rec.Problems, t.problem(p, at))
		}
		rec.Problems = t.addCellProblems(rec.Problems, name, at, v)
		rec.Problems = t.addDamage(rec.Problems, name, at)
	}
	if rec.unnamed() {
		rec.Problems = append(rec.Problems, t.problem(noRef, none))
	}
	if t.scan.recordLines > 1 && !t.list {
		rec.Problems = t.addSwallowedRows(rec.Problems)
	}
	rec.Problems = t.addBrokenRow(rec.Problems)
	if rec.Good() {
		rec.Problems = t.addNUL(rec.Problems)
	}
	return rec
}

const fieldRef = "REF"

var noRef = tracking.Problem{Message: "no referId and no tracking number", Hint: "fill one in, or remove the row"}

func (rec *Record) unnamed() bool { return rec.Ref == "" && rec.Item == (tracking.Item{}) }

func (t *table) checkListLine() (Problem, bool) {
	if f := t.rec.fault; f != nil {
		return t.problem(tracking.Problem{Value: string(t.rec.raw), Message: f.message, Hint: f.hint}, none), true
	}
	if len(t.rec.cells) == 1 &&
		(t.sheet != nil || t.rec.cells[0].quoting == quoted || !bytes.ContainsAny(trim(t.rec.raw), ";\t")) {
		return Problem{}, false
	}
	return t.problem(tracking.Problem{
		Value: string(t.rec.raw), Message: "several values in one line, and no header line names the columns",
		Hint: "write one REF per line, or add a first line with the names of the columns, " +
			"such as referId and rawTrackingNumber; put a REF that contains a delimiter in quotes",
	}, none), true
}

// ref decodes a string, or an object's names for a tracking. Other fields, as in our own output, are passed over.
func (it *items) ref(raw []byte) Record {
	d := &itemDecoder{items: it, raw: raw, rec: Record{File: it.file, Line: it.pos.line}}
	var whole member
	whole.Raw = raw
	switch raw[0] {
	case '"':
		d.refValue(whole, fieldRef, &d.rec.Ref)
	case '{':
		for m := range members(raw, 0) {
			switch m.key {
			case tracking.FieldReferID:
				d.refValue(m, m.key, &d.rec.Item.ReferID)
			case tracking.FieldNumber, "trackingNumber":
				d.refValue(m, m.key, &d.rec.Item.Number)
			case "ref":
				d.refValue(m, m.key, &d.rec.Ref)
			}
		}
	default:
		d.problem(0, "", tracking.Problem{
			Value: string(raw), Message: "a REF must be a string or an object, not " + kindName(raw),
			Hint: `write "REF" or {"referId": …}; put numbers in quotes`,
		})
		return d.rec
	}
	switch {
	case d.rec.Item.Number != "":
		d.rec.Ref = "" // the object says which is which
	case d.rec.Ref != "":
		d.rec.Item.ReferID = "" // in our output it repeats a REF that may be a number
	case d.rec.unnamed() && d.rec.Good():
		d.problem(0, "", noRef)
	}
	return d.rec
}

// refValue reads the value of a field, null for none.
func (d *itemDecoder) refValue(m member, name string, into *string) {
	if m.Raw[0] == 'n' {
		return
	}
	before := len(d.rec.Problems)
	var s string
	if into == &d.rec.Item.Number {
		s = d.number(m, name)
	} else {
		s = d.string(m, name)
	}
	switch {
	case s == "" || len(d.rec.Problems) > before:
		return
	case *into != "" && *into != s:
		message := name + " has two different values"
		d.problem(m.At, name, tracking.Problem{Value: s, Message: message, Hint: "keep one of them"})
	}
	*into = s
	for _, p := range tracking.CheckIdentifier(name, s) {
		d.problem(m.At, name, p)
	}
}
