package findings

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/waybill-cli/waybill/internal/disk"
)

// Sizes of a spill.
const (
	spillParts = 256
	spillBlock = 8 << 10 // bytes of a part that are held
)

// spill keeps a value of each row by a key, in parts: all values of a key are in
// one. A part is held until it is a block long; further blocks go to a file without
// a name.
type spill struct {
	parts [spillParts]spillPart
	file  *os.File // nil while all are held
	end   int64
}

type spillPart struct {
	held   []byte
	blocks []span // in the file
}

type span struct{ at, size int64 }

// entry is what is kept of a row.
type entry struct {
	number, order string
	file, line    int
}

// add keeps an entry under a key.
func (s *spill) add(key uint64, e entry) error {
	p := &s.parts[key%spillParts]
	b := binary.AppendUvarint(p.held, uint64(len(e.number)))
	b = append(b, e.number...)
	b = binary.AppendUvarint(b, uint64(len(e.order)))
	b = append(b, e.order...)
	b = binary.AppendUvarint(b, uint64(e.file))
	p.held = binary.AppendUvarint(b, uint64(e.line))
	if len(p.held) < spillBlock {
		return nil
	}
	if s.file == nil {
		f, err := disk.Temp()
		if err != nil {
			return fmt.Errorf("compare the rows: %w", err)
		}
		s.file = f
	}
	if _, err := s.file.WriteAt(p.held, s.end); err != nil {
		return fmt.Errorf("compare the rows: %w", err)
	}
	size := int64(len(p.held))
	p.blocks = append(p.blocks, span{s.end, size})
	s.end += size
	p.held = p.held[:0]
	return nil
}

// each calls do with the entries of one part after the other, in the order in
// which they were added.
func (s *spill) each(do func([]entry) error) error {
	var all []byte
	var list []entry
	for i := range s.parts {
		p := &s.parts[i]
		all, list = all[:0], list[:0]
		for _, b := range p.blocks {
			from := len(all)
			all = append(all, make([]byte, b.size)...)
			if _, err := s.file.ReadAt(all[from:], b.at); err != nil && err != io.EOF {
				return fmt.Errorf("compare the rows: %w", err)
			}
		}
		all = append(all, p.held...)
		for rest := all; len(rest) > 0; {
			var e entry
			e, rest = cutEntry(rest)
			list = append(list, e)
		}
		if err := do(list); err != nil {
			return err
		}
	}
	return nil
}

// cutEntry cuts the first entry from b, which add wrote.
func cutEntry(b []byte) (entry, []byte) {
	var e entry
	number := func() int {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return int(v) // add wrote a length, an index or a line
	}
	text := func() string {
		n := number()
		s := string(b[:n])
		b = b[n:]
		return s
	}
	e.number, e.order = text(), text()
	e.file, e.line = number(), number()
	return e, b
}

func (s *spill) close() {
	if s.file != nil {
		_ = s.file.Close() // nobody reads it again
	}
}
