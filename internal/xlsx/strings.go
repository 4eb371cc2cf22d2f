package xlsx

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Sizes for keeping shared strings.
const (
	maxBuffer = 4 << 20 // bytes of text held in memory; more goes to a file
	groupSize = 32      // strings that share one index entry, and are read from the file at once
)

// sharedStrings holds the texts that cells refer to by number, one after the other, each after its length. The index
// has every groupSize-th. Cells refer to texts mostly in order, so that a group is usually read once.
type sharedStrings struct {
	count  int
	index  []int64 // start of each group
	buffer []byte  // all texts; with a file, those not yet written
	file   *os.File
	size   int64 // bytes in file
	temp   func() (*os.File, error)

	group  []byte // the last group read
	number int    // its position in the index; -1 for none
}

func (b *Workbook) readStrings(part string, temp func() (*os.File, error)) error {
	s := b.scan(part, maxStrings)
	defer s.close()
	t := &sharedStrings{temp: temp, number: -1}
	b.strings = t
	var value []byte
	for s.next() {
		switch {
		case s.token == startTag && s.depth == 2:
			value = value[:0]
		case s.token == startTag && s.name == "rPh":
			s.skipElement() // how the text is pronounced
		case s.token == text && s.local() == "t":
			if value = append(value, s.text...); len(value) > maxToken {
				s.fail("a text is longer than 1 MiB")
			}
		case s.token == endTag && s.depth == 1:
			s.keep(t.add(unescape(value)))
		}
	}
	if s.err != nil || t.file == nil {
		return s.err
	}
	err := t.spill()
	t.buffer = nil
	return err
}

func (t *sharedStrings) add(value []byte) error {
	if t.count%groupSize == 0 {
		t.index = append(t.index, t.size+int64(len(t.buffer)))
	}
	t.count++
	t.buffer = append(binary.AppendUvarint(t.buffer, uint64(len(value))), value...)
	if len(t.buffer) < maxBuffer {
		return nil
	}
	return t.spill()
}

func (t *sharedStrings) spill() error {
	if t.file == nil {
		f, err := t.temp()
		if err != nil {
			return fmt.Errorf("unpack shared strings: %w", err)
		}
		t.file = f
	}
	n, err := t.file.Write(t.buffer)
	t.size += int64(n)
	t.buffer = t.buffer[:0]
	if err != nil {
		return fmt.Errorf("unpack shared strings: %w", err)
	}
	return nil
}

func (t *sharedStrings) append(dst []byte, number int) (_ []byte, ok bool, err error) {
	if number < 0 || number >= t.count {
		return dst, false, nil
	}
	if number/groupSize != t.number {
		if err := t.read(number / groupSize); err != nil {
			return dst, false, err
		}
	}
	left := t.group
	for skip := number % groupSize; ; skip-- {
		size, n := binary.Uvarint(left)
		left = left[n:]
		if skip == 0 {
			return append(dst, left[:size]...), true, nil
		}
		left = left[size:]
	}
}

func (t *sharedStrings) read(number int) error {
	from, to := t.index[number], t.size+int64(len(t.buffer))
	if number+1 < len(t.index) {
		to = t.index[number+1]
	}
	t.number = number
	if t.file == nil {
		t.group = t.buffer[from:to]
		return nil
	}
	t.group = slices.Grow(t.group[:0], int(to-from))[:to-from]
	if _, err := t.file.ReadAt(t.group, from); err != nil {
		t.number = -1
		return fmt.Errorf("read shared strings: %w", err)
	}
	return nil
}

// escapeSize is the length of an escape such as _x000D_.
const escapeSize = 7

// escapedUnit decodes the escape of a UTF-16 code unit at the start of b.
func escapedUnit(b []byte) (rune, bool) {
	if len(b) < escapeSize || b[0] != '_' || b[1] != 'x' || b[6] != '_' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}

// unescape decodes escapes of characters that XML does not allow, in place. Half a surrogate pair stays as written.
func unescape(b []byte) []byte {
	at := bytes.Index(b, []byte("_x"))
	if at < 0 {
		return b
	}
	out := b[:at]
	for at < len(b) {
		r, ok := escapedUnit(b[at:])
		size := escapeSize
		if ok && utf16.IsSurrogate(r) {
			low, _ := escapedUnit(b[at+escapeSize:])
			r, size = utf16.DecodeRune(r, low), 2*escapeSize
			ok = r != utf8.RuneError
		}
		if !ok {
			out = append(out, b[at])
			at++
			continue
		}
		out = utf8.AppendRune(out, r)
		at += size
	}
	return out
}

// appendEscaped appends a text as XML. It escapes characters that XML does not keep, and text like an escape.
func appendEscaped(dst []byte, s string) []byte {
	for i, r := range s {
		switch {
		case r == '&':
			dst = append(dst, "&amp;"...)
		case r == '<':
			dst = append(dst, "&lt;"...)
		case r == '>':
			dst = append(dst, "&gt;"...)
		case r == '"':
			dst = append(dst, "&quot;"...)
		case r == '\r', !isXML(r):
			dst = fmt.Appendf(dst, "_x%04X_", r)
		case r == '_':
			// Even without its end: the next character may become an escape, which begins with _.
			if _, ok := escapedUnit([]byte(s[i:min(len(s), i+escapeSize-1)] + "_")); ok {
				dst = append(dst, "_x005F"...)
			}
			dst = append(dst, '_')
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}
