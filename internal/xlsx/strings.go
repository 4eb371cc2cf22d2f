package xlsx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// Sizes of what is kept of shared strings.
const (
	heldStrings = 4 << 20 // bytes of text that are held in memory; more goes to a file
	groupSize   = 32      // strings that share one place in the index
	pageSize    = 8 << 10 // bytes that are read from the file at once
	pages       = 512     // such pages that are held
)

// sharedStrings are the texts that the cells of a workbook refer to by number.
// They stand one behind the other, each with its length; the index has every
// groupSize-th. Cells refer to them mostly in order, so that a page of the file
// is read once for many of them.
type sharedStrings struct {
	count int
	index []int64 // where each group begins
	held  []byte  // all of them; with a file, those not yet written
	file  *os.File
	size  int64 // bytes in file
	temp  func() (*os.File, error)

	nextNumber int   // the string behind the one that was read last
	nextAt     int64 // where it begins

	page   [pages][]byte
	number [pages]int64 // of the page that is held, -1 for none
}

func (b *Workbook) readStrings(part string, o Options) error {
	r, err := b.parts.open(part, maxStrings)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // only read from
	t := &sharedStrings{temp: o.Temp}
	b.strings = t
	s := newScanner(r)
	var value []byte
	for {
		token, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil:
		case token == startTag && s.depth == 2:
			value = value[:0]
		case token == startTag && s.name == "rPh":
			err = s.skipElement() // how the text is pronounced
		case token == text && s.local() == "t":
			value = append(value, s.text...)
			if len(value) > maxToken {
				err = syntaxError("a text is longer than 1 MiB")
			}
		case token == endTag && s.depth == 1:
			err = t.add(unescape(value))
		}
		if err != nil {
			return partError(part, err)
		}
	}
	return t.finish()
}

func (t *sharedStrings) add(value []byte) error {
	if t.count%groupSize == 0 {
		t.index = append(t.index, t.size+int64(len(t.held)))
	}
	t.count++
	t.held = append(binary.AppendUvarint(t.held, uint64(len(value))), value...)
	if len(t.held) < heldStrings {
		return nil
	}
	return t.spill()
}

// spill moves what is held to the file.
func (t *sharedStrings) spill() error {
	if t.file == nil {
		f, err := t.temp()
		if err != nil {
			return fmt.Errorf("unpack shared strings: %w", err)
		}
		t.file = f
		for i := range t.number {
			t.number[i] = -1
		}
	}
	n, err := t.file.Write(t.held)
	t.size += int64(n)
	t.held = t.held[:0]
	if err != nil {
		return fmt.Errorf("unpack shared strings: %w", err)
	}
	return nil
}

func (t *sharedStrings) finish() error {
	if t.file == nil {
		return nil
	}
	err := t.spill()
	t.held = nil
	return err
}

func (t *sharedStrings) close() {
	if t.file != nil {
		_ = t.file.Close() // it is gone then
	}
}

// append appends the text of a number to dst; false if there is none.
func (t *sharedStrings) append(dst []byte, number int) (_ []byte, ok bool, err error) {
	if t == nil || number < 0 || number >= t.count {
		return dst, false, nil
	}
	at, skip := t.index[number/groupSize], number%groupSize
	if number == t.nextNumber && number > 0 {
		at, skip = t.nextAt, 0
	}
	for ; ; skip-- {
		var length [binary.MaxVarintLen64]byte
		head, err := t.read(length[:0], at, len(length))
		if err != nil {
			return dst, false, err
		}
		size, n := binary.Uvarint(head)
		at += int64(n)
		if skip == 0 {
			t.nextNumber, t.nextAt = number+1, at+int64(size)
			dst, err = t.read(dst, at, int(size))
			return dst, true, err
		}
		at += int64(size)
	}
}

// read appends n bytes from a place, or as many as there are.
func (t *sharedStrings) read(dst []byte, at int64, n int) ([]byte, error) {
	if t.file == nil {
		end := min(at+int64(n), int64(len(t.held)))
		return append(dst, t.held[at:end]...), nil
	}
	for n > 0 && at < t.size {
		number := at / pageSize
		slot := number % pages
		if t.number[slot] != number {
			if t.page[slot] == nil {
				t.page[slot] = make([]byte, pageSize)
			}
			size, err := t.file.ReadAt(t.page[slot][:pageSize], number*pageSize)
			if err != nil && !errors.Is(err, io.EOF) {
				t.number[slot] = -1
				return dst, fmt.Errorf("read shared strings: %w", err)
			}
			t.page[slot], t.number[slot] = t.page[slot][:size], number
		}
		page := t.page[slot][min(at%pageSize, int64(len(t.page[slot]))):]
		page = page[:min(n, len(page))]
		if len(page) == 0 {
			break
		}
		dst = append(dst, page...)
		at, n = at+int64(len(page)), n-len(page)
	}
	return dst, nil
}
