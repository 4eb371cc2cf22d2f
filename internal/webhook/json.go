package webhook

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The functions of this file walk over JSON that is known to be valid. They
// keep places and bytes, where package encoding/json would fold names, let the
// last of two win and mend bad UTF-8.

// skipSpace returns the place of the first byte from i on that is no white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the place behind the string that begins at i.
func skipString(b []byte, i int) int {
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

// ends reports whether c cannot be part of a number, true, false or null.
func ends(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', ',', ':', ']', '}':
		return true
	}
	return false
}

// skipValue returns the place behind the value that begins at i, and how many
// levels of objects and arrays it has: 0 for a scalar.
func skipValue(b []byte, i int) (end, depth int) {
	level := 0
	for {
		switch b[i] {
		case '"':
			i = skipString(b, i)
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
			for i < len(b) && !ends(b[i]) {
				i++
			}
		}
		if level == 0 {
			return i, depth
		}
	}
}

// element is a value with its place.
type element struct {
	offset int
	raw    []byte
	depth  int
}

// elements yields the elements of the array that begins at i.
func elements(b []byte, i int) iter.Seq[element] {
	return func(yield func(element) bool) {
		for i = skipSpace(b, i+1); b[i] != ']'; i = skipSpace(b, i) {
			if b[i] == ',' {
				i = skipSpace(b, i+1)
			}
			end, depth := skipValue(b, i)
			if !yield(element{i, b[i:end:end], depth}) {
				return
			}
			i = end
		}
	}
}

// members yields the names and values of an object, which begins obj. A name
// that is no clean text is yielded as its literal, quotes included, so that it
// equals no name that is looked for.
func members(obj []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for i := skipSpace(obj, 1); obj[i] != '}'; i = skipSpace(obj, i) {
			if obj[i] == ',' {
				i = skipSpace(obj, i+1)
			}
			end := skipString(obj, i)
			name := bareName(obj[i:end])
			i = skipSpace(obj, skipSpace(obj, end)+1) // over the colon
			end, _ = skipValue(obj, i)
			if !yield(name, obj[i:end:end]) {
				return
			}
			i = end
		}
	}
}

func bareName(literal []byte) []byte {
	inner := literal[1 : len(literal)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner // names that are looked for are valid text: bad UTF-8 equals none
	}
	if name, clean := text(literal); clean {
		return []byte(name)
	}
	return literal
}

// text returns what a string literal says. It is not clean if it holds bytes
// or escapes that are no Unicode text, which read as U+FFFD, or NUL, which does
// so too; so it can be stored anywhere.
func text(literal []byte) (s string, clean bool) {
	inner := literal[1 : len(literal)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), true
	}
	if json.Unmarshal(literal, &s) != nil {
		return strings.ToValidUTF8(string(inner), string(utf8.RuneError)), false
	}
	s = strings.ReplaceAll(s, "\x00", string(utf8.RuneError))
	return s, !strings.ContainsRune(s, utf8.RuneError)
}

// scalar returns the text of a string, or the literal of a number or boolean;
// false for null, objects, arrays and text that is not clean.
func scalar(raw []byte) (string, bool) {
	switch raw[0] {
	case '"':
		return text(raw)
	case '{', '[', 'n':
		return "", false
	default:
		return string(raw), true
	}
}

// splitPointer returns the parts of an RFC 6901 pointer; false if it is none,
// or is empty: the whole document is never meant.
func splitPointer(pointer string) ([]string, bool) {
	if !strings.HasPrefix(pointer, "/") || !utf8.ValidString(pointer) {
		return nil, false
	}
	parts := strings.Split(pointer[1:], "/")
	for i, part := range parts {
		bare := strings.ReplaceAll(strings.ReplaceAll(part, "~0", ""), "~1", "")
		if strings.Contains(bare, "~") {
			return nil, false
		}
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	}
	return parts, true
}

// lookUp returns the literal that a pointer's parts name in body, and how often
// it is there: more than once if a name on the way to it is repeated.
func lookUp(body []byte, parts []string) (raw []byte, times int) {
	start := skipSpace(body, 0)
	end, _ := skipValue(body, start)
	raw, times = body[start:end], 1
	for _, part := range parts {
		var here int
		switch raw[0] {
		case '{':
			raw, here = member(raw, part)
		case '[':
			raw, here = item(raw, part)
		}
		if here == 0 {
			return nil, 0
		}
		times = max(times, here)
	}
	return raw, times
}

// member returns the first member of that name and how many there are.
func member(obj []byte, name string) (raw []byte, times int) {
	for n, value := range members(obj) {
		if string(n) == name {
			if times++; times == 1 {
				raw = value
			}
		}
	}
	return raw, times
}

// item returns the element that one part of a pointer names.
func item(array []byte, part string) (raw []byte, times int) {
	want, err := strconv.Atoi(part)
	if err != nil || strconv.Itoa(want) != part {
		return nil, 0
	}
	n := 0
	for e := range elements(array, 0) {
		if n == want {
			return e.raw, 1
		}
		n++
	}
	return nil, 0
}
