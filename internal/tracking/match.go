package tracking

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// Match asks for one value in an answer of the service. The zero Match asks
// for nothing.
type Match struct {
	Path   string // RFC 6901 pointer; empty is the whole answer
	Equals string // JSON literal: `"ok"`, `true`, `200`, `null`
}

// Holds reports whether an answer has the value. Numbers are compared as they
// are written.
func (m Match) Holds(body *Body) bool {
	got, ok := body.Pointer(m.Path)
	return ok && sameJSON(got, []byte(m.Equals))
}

// Absent is one form that "no such tracking" may take. All that is given must
// hold; the zero Absent never does.
//
// Assumed: the interface does not show what it looks like.
type Absent struct {
	Status  int    // HTTP status; 0 if not asked
	Message string // text of the answer's `message`; empty if not asked
	Match   Match  // zero if not asked
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

func sameJSON(a, b []byte) bool {
	x, errX := decodeJSON(a)
	y, errY := decodeJSON(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decodeJSON(raw []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}
