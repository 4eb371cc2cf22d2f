package intake

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// maxUnknown is how many unknown fields of one item are named.
const maxUnknown = 10

// Position of the next value in a JSON text.
type jsonState int

const (
	atTop   jsonState = iota
	inArray           // of items
	inData            // the data member of an object
)

// items reads JSON items: from arrays, from objects with only an array data, and from consecutive objects.
type items struct {
	jsonText
	opt          Options
	sum          *Summary
	carrier      *carriers
	state        jsonState
	afterElement bool // the current array has had a value
}

func openJSON(r *Reader, win *window, o Options) error {
	it := &items{opt: o, sum: &r.sum, carrier: newCarriers(o)}
	it.jsonText = jsonText{file: r.name, win: win, pos: position{1, 1}}
	r.rows, r.carriers, r.sum.Format = it, it.carrier, JSON
	if it.peek() == '{' && it.dataPrefix() == 0 {
		r.sum.Format = JSONL
	}
	if errors.Is(it.err, errEnd) {
		return nil
	}
	return it.err
}

// dataPrefix returns the offset of the first item in an object that begins with an array named data, else 0.
func (it *items) dataPrefix() int {
	const key = `"data"`
	at, _ := it.peekAt(1)
	if !bytes.HasPrefix(it.win.fill(at + len(key))[min(at, len(it.win.bytes())):], []byte(key)) {
		return 0
	}
	at, c := it.peekAt(at + len(key))
	if c != ':' {
		return 0
	}
	if at, c = it.peekAt(at + 1); c != '[' {
		return 0
	}
	return at + 1
}

func (it *items) next() (Record, error) {
	for it.err == nil {
		if it.state != atTop {
			if it.hasElement() {
				return it.record()
			}
			continue
		}
		switch c := it.peek(); {
		case c == '"' && it.opt.Refs:
			return it.record()
		case c == '{':
			n := it.dataPrefix()
			if n == 0 {
				return it.record()
			}
			it.discard(n)
			it.state, it.afterElement = inData, false
		case c == '[':
			it.discard(1)
			it.state, it.afterElement = inArray, false
		case c == ',':
			it.fail(0, "comma between two objects",
				"write one object per line without commas, or put them all between [ and ]")
		default:
			it.fail(0, "expected an object or an array", jsonHint)
		}
	}
	return Record{}, it.err
}

// hasElement skips to the next element of an array. At the end of the array it skips that too and returns false.
func (it *items) hasElement() bool {
	if it.take(']') {
		if it.state == inData {
			it.unwrap()
		}
		it.state = atTop
		return false
	}
	if it.afterElement {
		if !it.take(',') {
			it.fail(0, "expected a comma or ]", jsonHint)
		}
		if it.expect() == ']' {
			it.fail(0, "expected a value after the comma", "remove the comma before ]")
		}
	}
	it.afterElement = true
	return it.err == nil
}

// unwrap skips the end of the object around an array of items.
func (it *items) unwrap() {
	if it.take('}') {
		return
	}
	if !it.take(',') {
		it.fail(0, "expected a comma or }", jsonHint)
	}
	if it.expect() != '"' {
		it.fail(0, "expected the name of a field", jsonHint)
	}
	if raw := it.value(); it.err == nil {
		key, _ := text(raw)
		it.fail(0, "unknown field "+show(key)+" next to data", "remove it: only data is sent")
	}
}

func (it *items) record() (Record, error) {
	raw := it.value()
	if it.err != nil {
		return Record{}, it.err
	}
	if it.opt.Refs {
		rec := it.ref(raw)
		it.discard(len(raw))
		return rec, nil
	}
	rec := it.item(raw)
	if it.opt.KeepText || !rec.Good() {
		rec.text = compact(raw)
	}
	it.discard(len(raw))
	return rec, nil
}

var knownFields = [...]string{
	tracking.FieldReferID, tracking.FieldNumber, tracking.FieldMetadata, tracking.FieldCarrierCode, errorColumn,
}

type itemDecoder struct {
	*items
	raw           []byte
	rec           Record
	at            [len(knownFields)]int  // offsets of the values of known fields; 0 if not met
	hasProblem    [len(knownFields)]bool // known fields that already have a problem
	unknownFields int                    // number of unknown fields
	printed       bool                   // waybill printed it; valid once examined
	examined      bool
	isList        bool // it is a list of items, where an item is expected
}

func (it *items) item(raw []byte) Record {
	d := &itemDecoder{items: it, raw: raw, rec: Record{File: it.file, Line: it.pos.line}}
	if raw[0] != '{' {
		d.problem(0, "", tracking.Problem{
			Value: string(raw), Message: "an item must be an object, not " + kindName(raw),
			Hint: `write {"referId": …, "rawTrackingNumber": …}`,
		})
		return d.rec
	}
	for m := range members(raw, 0) {
		d.field(m)
	}
	if d.unknownFields > maxUnknown {
		message := fmt.Sprintf("%d more unknown fields", d.unknownFields-maxUnknown)
		d.problem(0, "", tracking.Problem{Message: message, Hint: "remove them"})
	}
	if d.isList {
		return d.rec
	}
	for _, p := range d.carrier.validate(d.rec.Item, d.opt.Rules) {
		i := slices.Index(knownFields[:], p.Field)
		if d.hasProblem[i] {
			continue
		}
		if d.at[i] == 0 {
			p.Message, p.Hint = p.Field+" is missing", "add it, or remove the item"
		}
		d.problem(d.at[i], fieldPath(p.Field), p)
	}
	return d.rec
}

func fieldPath(field string) string {
	if field == tracking.FieldCarrierCode {
		return carrierCodePath
	}
	return field
}

func (d *itemDecoder) problem(at int, header string, p tracking.Problem) {
	where := d.pos.after(d.raw[:at])
	p.Value = Shorten(p.Value)
	if i := slices.Index(knownFields[:], p.Field); i >= 0 && !p.Note {
		d.hasProblem[i] = true
	}
	d.rec.Problems = append(d.rec.Problems,
		Problem{File: d.file, Line: where.line, Column: where.char, Header: header, Problem: p})
}

func (d *itemDecoder) field(m member) {
	switch m.key {
	case tracking.FieldReferID:
		if d.firstTime(m, m.key) {
			d.rec.Item.ReferID = d.string(m, m.key)
		}
	case tracking.FieldNumber:
		if d.firstTime(m, m.key) {
			d.rec.Item.Number = d.number(m, m.key)
		}
	case tracking.FieldMetadata:
		if d.firstTime(m, m.key) {
			d.metadata(m)
		}
	case errorColumn:
		d.firstTime(m, m.key)
	case "data":
		d.isList = true
		d.problem(m.NameAt, m.key, tracking.Problem{
			Message: "data found where an item is expected",
			Hint:    "data must be an array and the only field of the outermost object",
		})
	default:
		d.otherField(m)
	}
}

// otherField reads a field that items do not have. Rows printed by waybill have a state and further fields.
func (d *itemDecoder) otherField(m member) {
	if !d.examined {
		d.examined = true
		for other := range members(d.raw, 0) {
			d.printed = d.printed || other.key == "state" && other.Raw[0] == '"'
		}
	}
	switch {
	case !d.printed:
		d.unknownField(m, m.key)
	case m.key == "trackingNumber":
		m.key = tracking.FieldNumber
		d.field(m)
	case m.key == tracking.FieldCarrierCode:
		d.carrierCode(m)
	}
}

func (d *itemDecoder) carrierCode(m member) {
	if d.firstTime(m, carrierCodePath) && m.Raw[0] != 'n' {
		d.rec.Item.CarrierCode = d.carrier.fromCode([]byte(d.string(m, m.key)))
	}
}

// firstTime reports whether a known field was not read before; a repeated field becomes a problem.
func (d *itemDecoder) firstTime(m member, path string) bool {
	i := slices.Index(knownFields[:], m.key)
	if d.at[i] > 0 {
		message := path + " appears twice in one object"
		d.problem(m.NameAt, path, tracking.Problem{Field: m.key, Message: message, Hint: "keep one of them"})
		return false
	}
	d.at[i] = m.At
	return true
}

func (d *itemDecoder) unknownField(m member, path string) {
	if d.unknownFields++; d.unknownFields > maxUnknown {
		return
	}
	hint := "remove it: an item has referId, rawTrackingNumber and metadata.carrierCode"
	if other := intendedField(path); other != "" && other != path {
		hint = "write " + other + "; names are case-sensitive"
	}
	d.problem(m.NameAt, path, tracking.Problem{Message: "unknown field " + show(path), Hint: hint})
}

func (d *itemDecoder) metadata(m member) {
	switch m.Raw[0] {
	case 'n':
		return
	case '{':
	default:
		d.problem(m.At, tracking.FieldMetadata, tracking.Problem{
			Field: tracking.FieldMetadata, Value: string(m.Raw),
			Message: "metadata must be an object, not " + kindName(m.Raw), Hint: `write {"carrierCode": …}, or omit it`,
		})
		return
	}
	for in := range members(d.raw, m.At) {
		if in.key == tracking.FieldCarrierCode {
			d.carrierCode(in)
		} else {
			d.unknownField(in, tracking.FieldMetadata+"."+in.key)
		}
	}
}

// number reads a tracking number; field is its name in messages.
func (d *itemDecoder) number(m member, field string) string {
	s := d.string(m, field)
	if d.opt.StripSpaces {
		s = stripSpaces(s, d.sum)
	}
	return s
}

func (d *itemDecoder) string(m member, field string) string {
	raw := m.Raw
	if raw[0] != '"' {
		message := field + " must be a string, not " + kindName(raw)
		p := tracking.Problem{Field: field, Value: string(raw), Message: message, Hint: "put it in quotes"}
		if raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
			p.Hint = "export it in quotes: a JSON number can lose digits and leading zeros"
		}
		d.problem(m.At, fieldPath(field), p)
		return ""
	}
	s, valid := text(raw)
	if !valid && utf8.ValidString(s) {
		d.problem(m.At, fieldPath(field), tracking.Problem{
			Field: field, Value: s, Message: field + " contains an unpaired surrogate",
			Hint: "export the file again as UTF-8",
		})
		return ""
	}
	trimmed := trim([]byte(s))
	if len(trimmed) != len(s) {
		d.sum.Trimmed++
	}
	if p, gone := lostCharacter(field, trimmed, d.sum.Encoding); gone && valid {
		d.problem(m.At, fieldPath(field), p)
	}
	return string(trimmed)
}

// kindNames are indexed by the first byte of a value; other first bytes begin numbers.
var kindNames = map[byte]string{
	'{': "an object", '[': "an array", '"': "a string", 't': "true or false", 'f': "true or false", 'n': "null",
}

func kindName(raw []byte) string { return cmp.Or(kindNames[raw[0]], "a number") }

// compact returns an item on one line without waybillError. Anything but an item becomes an object's field "value".
func compact(raw []byte) string {
	var b bytes.Buffer
	part := func(raw []byte) { _ = json.Compact(&b, raw) } // it is valid
	if _, lists := (jsonscan.Pointer{"data"}).Find(raw); raw[0] != '{' || lists > 0 {
		b.WriteString(`{"value":`)
		part(raw)
		return b.String() + "}"
	}
	b.WriteByte('{')
	for m := range members(raw, 0) {
		if m.key == errorColumn {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		part(m.Name)
		b.WriteByte(':')
		part(m.Raw)
	}
	return b.String() + "}"
}
