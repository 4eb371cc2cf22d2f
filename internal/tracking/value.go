package tracking

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
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

// parse reads one whole JSON value; false if raw is anything else, or nested
// too deeply. The value shares the bytes of raw.
func parse(raw []byte) (*value, bool) {
	if !json.Valid(raw) {
		return nil, false
	}
	p := parser{raw: raw, names: map[string]string{}}
	v := p.value(0)
	return v, !p.deep
}

// parser walks over bytes that are known to be valid JSON.
type parser struct {
	raw   []byte
	at    int
	deep  bool
	free  []value           // made at once, to be handed out one by one
	names map[string]string // each name is made once
}

// grown is how many values are made at once.
const grown = 64

func (p *parser) value(depth int) *value {
	if len(p.free) == 0 {
		p.free = make([]value, grown)
	}
	v := &p.free[0]
	p.free = p.free[1:]
	start := p.skip()
	switch c := p.raw[start]; {
	case depth > maxDepth:
		p.deep = true
		p.at = len(p.raw)
	case c == '{':
		v.kind = object
		p.elements(func() {
			name := p.name()
			p.skip()
			p.at++ // the colon
			v.members = append(v.members, member{name, p.value(depth + 1)})
		})
	case c == '[':
		v.kind = list
		p.elements(func() { v.items = append(v.items, p.value(depth+1)) })
	case c == '"':
		p.text()
	default:
		for p.at < len(p.raw) && !endsLiteral(p.raw[p.at]) {
			p.at++
		}
	}
	v.raw = p.raw[start:p.at]
	return v
}

// elements reads what stands between an opening bracket and its closing one.
func (p *parser) elements(one func()) {
	p.at++
	for !p.deep {
		switch p.raw[p.skip()] {
		case ',':
			p.at++
		case '}', ']':
			p.at++
			return
		default:
			one()
		}
	}
}

// skip goes over white space and returns where it is then.
func (p *parser) skip() int {
	for p.raw[p.at] <= ' ' {
		p.at++
	}
	return p.at
}

func endsLiteral(c byte) bool { return c <= ' ' || c == ',' || c == '}' || c == ']' }

// text goes over a string.
func (p *parser) text() {
	for p.at++; p.raw[p.at] != '"'; p.at++ {
		if p.raw[p.at] == '\\' {
			p.at++
		}
	}
	p.at++
}

// name reads the name of a member.
func (p *parser) name() string {
	start := p.at
	p.text()
	literal := p.raw[start:p.at]
	name, ok := p.names[string(literal)]
	if !ok {
		name = unquote(literal)
		p.names[string(literal)] = name
	}
	return name
}

// unquote returns the text of a JSON string.
func unquote(literal []byte) string {
	inner := literal[1 : len(literal)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	if json.Unmarshal(literal, &s) != nil {
		return ""
	}
	return s
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
	return unquote(v.raw)
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
