package tracking

import (
	"bytes"
	"encoding/json"
	"iter"
	"reflect"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// maxDepth is the maximum nesting of an answer that is parsed; documented objects have three levels.
const maxDepth = 200

type kind int

const (
	scalar kind = iota
	object
	list
)

// value is one JSON value. Members keep their exact names and order; duplicates are kept.
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

// parse parses one whole JSON value that is not nested too deeply. The value shares the bytes of raw.
func parse(raw []byte) (*value, bool) {
	if !json.Valid(raw) {
		return nil, false
	}
	deep := false
	v := readValue(raw, jsonscan.SkipSpace(raw, 0), 0, &deep)
	return v, !deep
}

// readValue parses valid JSON. It sets deep if the value is nested too deeply.
func readValue(raw []byte, i, depth int, deep *bool) *value {
	v := &value{}
	*deep = *deep || depth > maxDepth
	switch raw[i] {
	case '{':
		v.kind = object
	case '[':
		v.kind = list
	}
	var end int
	if v.kind == scalar || *deep {
		end, _ = jsonscan.SkipValue(raw, i)
	} else {
		end = jsonscan.Each(raw, i, func(name []byte, _, at int) int {
			inner := readValue(raw, at, depth+1, deep)
			if name == nil {
				v.items = append(v.items, inner)
			} else {
				text, _ := jsonscan.Text(name)
				v.members = append(v.members, member{text, inner})
			}
			return at + len(inner.raw)
		})
	}
	v.raw = raw[i:end]
	return v
}

func (v *value) get(name string) *value {
	for _, m := range v.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func (v *value) null() bool { return v.kind == scalar && string(v.raw) == "null" }

func (v *value) text() string {
	if v == nil || v.kind != scalar || len(v.raw) == 0 || v.raw[0] != '"' {
		return ""
	}
	text, _ := jsonscan.Text(v.raw)
	return text
}

func (v *value) str(name string) string { return v.get(name).text() }

// literal returns a scalar as sent, "" if it is absent, null or not a scalar.
func (v *value) literal(name string) string {
	m := v.get(name)
	if m == nil || m.kind != scalar || m.null() {
		return ""
	}
	return string(m.raw)
}

// Body is the body of an answer, parsed once. A nil Body means that there is no answer: it is not JSON and has no
// content. It is not safe for concurrent use.
type Body struct {
	raw    []byte
	root   *value  // nil if raw is not one whole JSON value
	answer *Answer // nil until asked for
}

// ReadBody parses raw, which must not change afterwards.
func ReadBody(raw []byte) *Body {
	b := &Body{raw: raw}
	if root, ok := parse(raw); ok {
		b.root = root
	}
	return b
}

// JSON reports whether the body is one whole JSON value.
func (b *Body) JSON() bool { return b != nil && b.root != nil }

// Wrong reports whether the body has a sign of error: `success: false`, a non-null `error`, or `code` or `meta.code`
// of 400 and above. A body that is not JSON has none.
//
// Assumed: what success of a create looks like is not shown; `create.accepted` refines it.
func (b *Body) Wrong() bool { return b.JSON() && signOfError(b.root) }

// ErrorText returns the message of an error body: the text of `message`, `error`, `error.message`, `detail` or
// `title`, or "".
//
// Assumed: the structure of error bodies is not shown.
func (b *Body) ErrorText() string {
	if !b.JSON() || b.root.kind != object {
		return ""
	}
	return errorText(b.root, 0)
}

// Pointer returns the JSON literal that an RFC 6901 pointer names, and false if there is none.
func (b *Body) Pointer(pointer string) (json.RawMessage, bool) {
	p, ok := jsonscan.ParsePointer(pointer)
	if !ok || !b.JSON() {
		return nil, false
	}
	raw, times := p.Find(b.root.raw)
	return raw, times > 0
}

// DistinctivePointers yields pointers to values that may distinguish one kind of answer from another: the whole body
// if it is a scalar or empty, else those of its members that are, in order.
func (b *Body) DistinctivePointers() iter.Seq[string] {
	return func(yield func(string) bool) {
		if !b.JSON() {
			return
		}
		if b.root.distinctive() {
			yield("")
			return
		}
		for _, m := range b.root.members {
			if m.value.distinctive() && !yield("/"+jsonscan.Escape(m.name)) {
				return
			}
		}
	}
}

func (v *value) distinctive() bool { return v.kind == scalar || len(v.members)+len(v.items) == 0 }

// Match requires one value in an answer of the service. The zero Match requires nothing.
type Match struct {
	Path   string // RFC 6901 pointer; empty for the whole answer
	Equals string // JSON literal: `"ok"`, `true`, `200`, `null`
}

// Holds reports whether an answer has the value. Numbers are compared as written.
func (m Match) Holds(body *Body) bool {
	got, ok := body.Pointer(m.Path)
	x, errX := decodeJSON(got)
	y, errY := decodeJSON([]byte(m.Equals))
	return ok && errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// Absent is one form that "no such tracking" may take. All that is set must hold; the zero Absent never holds.
//
// Assumed: the interface does not show what it looks like.
type Absent struct {
	Status  int    // HTTP status; 0 for any
	Message string // text of the answer's `message`; empty for any
	Match   Match  // zero for any
}

// Holds reports whether an answer has this form.
func (a Absent) Holds(status int, body *Body) bool {
	if a == (Absent{}) || (a.Status != 0 && a.Status != status) {
		return false
	}
	if a.Message != "" && a.Message != body.Answer().Message {
		return false
	}
	return a.Match == (Match{}) || a.Match.Holds(body)
}

func decodeJSON(raw []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}
