package tracking

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// maxDepth is how deeply an answer may be nested before it is taken as
// unreadable; the documented objects are three deep.
const maxDepth = 200

type kind int

const (
	scalar kind = iota
	object
	list
)

// value is one JSON value with exact names, in order, nothing merged.
type value struct {
	kind    kind
	raw     []byte // the literal as sent
	members []member
	items   []*value
}

type member struct {
	name  string
	value *value
}

var errDepth = errors.New("nested too deeply")

// parse reads one whole JSON value; false if raw is anything else.
func parse(raw []byte) (*value, bool) {
	if !json.Valid(raw) {
		return nil, false
	}
	p := parser{raw: raw, dec: json.NewDecoder(bytes.NewReader(raw))}
	p.dec.UseNumber()
	v, err := p.value(0)
	if err != nil {
		return nil, false
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	return v, true
}

type parser struct {
	raw []byte
	dec *json.Decoder
}

func (p *parser) value(depth int) (*value, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	before := p.dec.InputOffset()
	tok, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	v := &value{kind: scalar}
	switch tok {
	case json.Delim('{'):
		v.kind = object
		err = p.members(v, depth)
	case json.Delim('['):
		v.kind = list
		for p.dec.More() && err == nil {
			var item *value
			item, err = p.value(depth + 1)
			v.items = append(v.items, item)
		}
	}
	if err != nil {
		return nil, err
	}
	if v.kind != scalar {
		if _, err := p.dec.Token(); err != nil { // the closing delimiter
			return nil, err
		}
	}
	v.raw = bytes.TrimLeft(p.raw[before:p.dec.InputOffset()], " \t\r\n,:")
	return v, nil
}

func (p *parser) members(v *value, depth int) error {
	for p.dec.More() {
		tok, err := p.dec.Token()
		if err != nil {
			return err
		}
		name, ok := tok.(string)
		if !ok {
			return errDepth
		}
		m, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		v.members = append(v.members, member{name, m})
	}
	return nil
}

// get returns the first member of that exact name, or nil.
func (v *value) get(name string) *value {
	for _, m := range v.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// child returns the member or element that one part of a pointer names, or nil.
func (v *value) child(part string) *value {
	if v.kind == list {
		i, err := strconv.Atoi(part)
		if err != nil || i < 0 || i >= len(v.items) {
			return nil
		}
		return v.items[i]
	}
	return v.get(part)
}

func (v *value) null() bool { return v.kind == scalar && string(v.raw) == "null" }

// text returns the string of a JSON string, else empty.
func (v *value) text() string {
	if v == nil || v.kind != scalar || len(v.raw) == 0 || v.raw[0] != '"' {
		return ""
	}
	var s string
	if json.Unmarshal(v.raw, &s) != nil {
		return ""
	}
	return s
}

// str returns the string member of that name, else empty.
func (v *value) str(name string) string { return v.get(name).text() }

// literal returns the scalar member of that name as sent, empty if it is
// absent, null or not a scalar.
func (v *value) literal(name string) string {
	m := v.get(name)
	if m == nil || m.kind != scalar || m.null() {
		return ""
	}
	return string(m.raw)
}
