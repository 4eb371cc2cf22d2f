// Package jsonscan walks over valid JSON, and resolves RFC 6901 pointers in it. It preserves offsets and bytes,
// whereas package encoding/json folds the names of members, keeps the last of two with one name, and replaces invalid
// UTF-8.
//
// Except for [ParsePointer] and [Escape], functions may panic on invalid JSON: check it with [json.Valid] first.
package jsonscan

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// SkipSpace returns the offset of the first byte from i on that is not white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// SkipString returns the offset after the string that begins at i.
func SkipString(b []byte, i int) int {
	for start := i + 1; ; start = i + 1 {
		i = start + bytes.IndexByte(b[start:], '"')
		escapes := 0
		for i-escapes > start && b[i-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// endsScalar reports whether c cannot be part of a number, true, false or null.
func endsScalar(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', ',', ':', ']', '}':
		return true
	}
	return false
}

// SkipValue returns the offset after the value at i, and how many levels it has: 0 for a scalar.
func SkipValue(b []byte, i int) (end, depth int) {
	level := 0
	for {
		switch b[i] {
		case '"':
			i = SkipString(b, i)
		case '{', '[':
			level++
			depth = max(depth, level)
			i++
		case '}', ']':
			level--
			i++
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
			continue
		default:
			for i < len(b) && !endsScalar(b[i]) {
				i++
			}
		}
		if level == 0 {
			return i, depth
		}
	}
}

// Value is a value with its position in a text.
type Value struct {
	Name   []byte // literal of the member's name, with its quotes; nil if the value is not a member
	NameAt int    // offset of Name
	At     int    // offset of Raw
	Raw    []byte // the literal; part of the text, not a copy
}

// Whole returns the single value of a text.
func Whole(b []byte) Value { return valueAt(b, SkipSpace(b, 0)) }

func valueAt(b []byte, i int) Value {
	end, _ := SkipValue(b, i)
	return Value{At: i, Raw: b[i:end:end]}
}

// Values yields the members of the object, or the elements of the array, at i, in order, with duplicate names.
func Values(b []byte, i int) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		Each(b, i, func(name []byte, nameAt, at int) int {
			v := valueAt(b, at)
			v.Name, v.NameAt = name, nameAt
			if !yield(v) {
				return -1
			}
			return at + len(v.Raw)
		})
	}
}

// Each visits the members of the object, or the elements of the array, at i, and returns the offset after it. visit
// gets the literal of a member's name, nil for an element, and the offsets of name and value. It returns the offset
// after the value, or -1 to stop: then Each returns -1. So a walk through all levels reads each byte once.
func Each(b []byte, i int, visit func(name []byte, nameAt, at int) (end int)) (end int) {
	object := b[i] == '{'
	for i = SkipSpace(b, i+1); b[i] != '}' && b[i] != ']'; i = SkipSpace(b, i) {
		if b[i] == ',' {
			i = SkipSpace(b, i+1)
		}
		var name []byte
		nameAt := i
		if object {
			end := SkipString(b, i)
			name = b[i:end:end]
			i = SkipSpace(b, SkipSpace(b, end)+1) // over the colon
		}
		if i = visit(name, nameAt, i); i < 0 {
			return i
		}
	}
	return i + 1
}

// Text returns the text of a string's literal; valid is false if some is not Unicode, which is read as U+FFFD.
func Text(literal []byte) (s string, valid bool) {
	inner := literal[1 : len(literal)-1]
	valid = utf8.Valid(inner)
	if valid && bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	var text string // using s would allocate for every string
	if err := json.Unmarshal(literal, &text); err != nil {
		return "", false // not a valid literal
	}
	return text, valid && !Unpaired(inner)
}

// Unpaired reports whether JSON, or a string's content, has an unpaired surrogate, which encoding/json makes U+FFFD.
func Unpaired(b []byte) bool {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return false
		}
		size := 2
		if b[i+1] == 'u' {
			size = 6
			if r := unit(b[i:]); utf16.IsSurrogate(r) {
				size = 12
				if utf16.DecodeRune(r, unit(b[i+6:])) == utf8.RuneError {
					return true
				}
			}
		}
		b = b[i+size:]
	}
}

// unit returns the code unit of the escape \uXXXX at the beginning of b, or -1.
func unit(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// Unescape returns the first character of b, the rest of a string's literal, and its length in b. A byte that begins
// no escape is returned as is; half of a surrogate pair is U+FFFD.
func Unescape(b []byte) (char []byte, size int) {
	const escapes, meant = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if b[0] != '\\' || len(b) < 2 {
		return b[:1], 1
	}
	if i := strings.IndexByte(escapes, b[1]); i >= 0 {
		return []byte{meant[i]}, 2
	}
	c := unit(b)
	if c < 0 {
		return b[:1], 1
	}
	if utf16.IsSurrogate(c) {
		if pair := utf16.DecodeRune(c, unit(b[6:])); pair != utf8.RuneError {
			return utf8.AppendRune(nil, pair), 12
		}
	}
	return utf8.AppendRune(nil, c), 6
}

// Contains reports whether b, JSON or not, contains a text in any case, plain or escaped. lower is in lower case.
func Contains(b, lower []byte) bool {
	if bytes.Contains(bytes.ToLower(b), lower) {
		return true
	}
	var plain []byte
	for i := bytes.IndexByte(b, '\\'); i >= 0; i = bytes.IndexByte(b, '\\') {
		char, size := Unescape(b[i:])
		plain, b = append(append(plain, b[:i]...), char...), b[i+size:]
	}
	return len(plain) > 0 && bytes.Contains(bytes.ToLower(append(plain, b...)), lower)
}

// Marshal returns v as JSON on one line, with <, > and & unescaped.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Pointer is an RFC 6901 pointer: unescaped names and indexes. An empty one is the whole text.
type Pointer []string

// ParsePointer parses a pointer such as /meta/code, and returns false if s is not one.
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

// String returns the pointer in the form that [ParsePointer] parses.
func (p Pointer) String() string {
	var s strings.Builder
	for _, part := range p {
		s.WriteString("/" + Escape(part))
	}
	return s.String()
}

// Escape returns a name escaped as a part of a pointer.
func Escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// Find returns the literal of the value that p names in valid JSON, nil if there is none. times is how often it
// occurs: more than once if a name on the path is repeated; then raw is the first. Names that are not valid Unicode
// are never found.
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

// Named reports whether the value is a member with that name, which must be valid Unicode.
func (v Value) Named(name string) bool {
	if v.Name == nil {
		return false
	}
	inner := v.Name[1 : len(v.Name)-1]
	if string(inner) == name {
		return strings.IndexByte(name, '\\') < 0
	}
	if len(inner) <= len(name) || bytes.IndexByte(inner, '\\') < 0 { // escapes are longer than their characters
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
