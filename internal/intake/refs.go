package intake

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// refFields are the fields that can identify a tracking, preferred first.
var refFields = []string{tracking.FieldReferID, tracking.FieldNumber}

// outputNames are further names of those fields in waybill's own output.
var outputNames = map[string][]string{
	tracking.FieldReferID: {"REFERENCE"},
	tracking.FieldNumber:  {"trackingNumber", "NUMBER"},
}

// beginList makes t a table without a header.
func (t *table) beginList() {
	t.list, t.sum.Missing = true, nil
	t.cols = columns{header: []string{""}, number: none, code: none, carrier: none}
}

// resolveRefs finds the columns of referIds and numbers, one of which is enough, and the --map columns that the
// header lacks. A text with a single other column is a list; for sheets findHeader decides that.
func (t *table) resolveRefs(line int, header []string) error {
	t.list, t.sum.Missing = false, nil
	if t.opt.Format == List {
		t.beginList()
		return nil
	}
	r := newResolver(t.file, line, header)
	of := map[string]int{}
	var absent []string
	var unmapped error
	for _, field := range refFields {
		given := t.opt.Map[field]
		if of[field] = none; given == "" || r.err != nil {
			continue
		}
		of[field] = r.byName(field, given)
		if wrong, ok := errors.AsType[*ColumnError](r.err); ok && len(wrong.Found) == 0 { // the header lacks it
			absent, unmapped, r.err = append(absent, given), cmp.Or(unmapped, r.err), nil
		}
	}
	for _, field := range refFields {
		if of[field] != none {
			continue
		}
		if own := r.matching(func(h string) bool { return slices.Contains(outputNames[field], h) }); len(own) == 1 {
			of[field] = own[0]
		} else {
			of[field] = r.byRank(field)
		}
	}
	ref, number := of[tracking.FieldReferID], of[tracking.FieldNumber]
	switch last := max(ref, number); {
	case r.err != nil:
	case last != none:
		t.sum.Missing = absent
		t.cols = columns{header: header, ref: ref, number: number, code: none, carrier: none, last: last}
	case len(header) == 1 && t.sheet == nil:
		t.beginList()
	case unmapped != nil:
		return unmapped
	default:
		r.fail(refFields[:1], "no column for referId or rawTrackingNumber", nil)
	}
	return r.err
}

func (t *table) readRefs() {
	rec := &t.out
	if t.list {
		t.checkListLine()
	} else {
		t.checkCellCount()
	}
	if rec.Problems != nil {
		return
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
			t.report(p, at)
		}
		t.checkCell(name, at, v)
		t.checkDamage(name, at)
	}
	if rec.unnamed() {
		t.report(noRef, none)
	}
	if t.scan.recordLines > 1 && !t.list {
		t.checkSwallowedRows()
	}
	t.checkBrokenRow()
}

const fieldRef = "REF"

var noRef = tracking.Problem{Message: "no referId and no tracking number", Hint: "fill one in, or remove the row"}

func (rec *Record) unnamed() bool { return rec.Ref == "" && rec.Item == (tracking.Item{}) }

func (t *table) checkListLine() {
	if f := t.rec.fault; f != nil {
		f.Value = string(t.rec.raw)
		t.report(*f, none)
		return
	}
	if len(t.rec.cells) == 1 &&
		(t.sheet != nil || t.rec.cells[0].quoting == quoted || !bytes.ContainsAny(trim(t.rec.raw), ";\t")) {
		return
	}
	t.report(tracking.Problem{
		Value: string(t.rec.raw), Message: "several values in one line, and no header line names the columns",
		Hint: "write one REF per line, or add a first line with the names of the columns, " +
			"such as referId and rawTrackingNumber; put a REF that contains a delimiter in quotes",
	}, none)
}

// ref decodes a string, or an object's identifiers of a tracking. It ignores other fields, as in waybill's output.
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
		d.rec.Ref = "" // the object says which field is which
	case d.rec.Ref != "":
		d.rec.Item.ReferID = "" // in waybill's output it repeats a REF that may be a number
	case d.rec.unnamed() && d.rec.Good():
		d.problem(0, "", noRef)
	}
	return d.rec
}

// refValue reads the value of a field; null means absent.
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
