package jsonscan

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Pointer is an RFC 6901 pointer: the names and indexes on the way to a value,
// without escapes. An empty one is the whole text.
type Pointer []string

// ParsePointer reads a pointer such as /meta/code, and returns false if s is
// not one.
func ParsePointer(s string) (Pointer, bool) {
	if s == "" {
		return Pointer{}, true
	}
	if s[0] != '/' || !utf8.ValidString(s) {
		return nil, false
	}
	parts := strings.Split(s[1:], "/")
	for i, part := range parts {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(part), "~") {
			return nil, false
		}
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts, true
}

// String returns the pointer as [ParsePointer] reads it.
func (p Pointer) String() string {
	var s strings.Builder
	for _, part := range p {
		s.WriteString("/" + Escape(part))
	}
	return s.String()
}

// Escape returns a name as a part of a pointer.
func Escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// Find returns the literal of the value that p names in valid JSON, nil if
// there is none. times is how often it is there: more than once if a name on
// the way to it is repeated; then raw is the first. A name that is not Unicode
// text is never found.
func (p Pointer) Find(b []byte) (raw []byte, times int) {
	raw, times = Whole(b).Raw, 1
	for _, part := range p {
		var here int
		switch raw[0] {
		case '{':
			raw, here = member(raw, part)
		case '[':
			raw, here = element(raw, part)
		}
		if here == 0 {
			return nil, 0
		}
		times = max(times, here)
	}
	return raw, times
}

func member(object []byte, name string) (raw []byte, times int) {
	for v := range Values(object, 0) {
		if v.Named(name) {
			if times++; times == 1 {
				raw = v.Raw
			}
		}
	}
	return raw, times
}

// Named reports whether the value is a member of that name. No name is equal
// to one that is not Unicode text.
func (v Value) Named(name string) bool {
	if v.Name == nil {
		return false
	}
	inner := v.Name[1 : len(v.Name)-1]
	if string(inner) == name {
		return strings.IndexByte(name, '\\') < 0
	}
	if len(inner) <= len(name) || bytes.IndexByte(inner, '\\') < 0 { // escapes are longer than what they mean
		return false
	}
	text, valid := Text(v.Name)
	return valid && text == name
}

func element(array []byte, part string) (raw []byte, times int) {
	want, err := strconv.Atoi(part)
	if err != nil || strconv.Itoa(want) != part {
		return nil, 0
	}
	for v := range Values(array, 0) {
		if want == 0 {
			return v.Raw, 1
		}
		want--
	}
	return nil, 0
}
