package findings

import (
	"encoding/binary"
	"fmt"

	"github.com/waybill-cli/waybill/internal/disk"
)

// entry is what is kept of a row to be compared with others.
type entry struct {
	number, order string
	file, line    int
}

// record returns an entry as it is kept.
func (e entry) record() []byte {
	b := make([]byte, 0, len(e.number)+len(e.order)+4*binary.MaxVarintLen32)
	b = binary.AppendUvarint(b, uint64(len(e.number)))
	b = append(b, e.number...)
	b = binary.AppendUvarint(b, uint64(len(e.order)))
	b = append(b, e.order...)
	b = binary.AppendUvarint(b, uint64(e.file))
	return binary.AppendUvarint(b, uint64(e.line))
}

// eachPart calls do with the entries of one part after the other: all entries of a key
// are in one, in the order in which they were added.
func eachPart(kept *disk.Spill, do func([]entry) error) error {
	var list []entry
	return kept.Parts(func(rest []byte) error {
		list = list[:0]
		for len(rest) > 0 {
			var e entry
			e, rest = cutEntry(rest)
			list = append(list, e)
		}
		return do(list)
	})
}

// cutEntry cuts the first entry from b.
func cutEntry(b []byte) (entry, []byte) {
	var e entry
	number := func() int {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return int(v) // record wrote a length, an index or a line
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

// keep keeps an entry for the comparison with others, by the hashes of its number and
// its order.
func (c *Collector) keep(e entry, number, order uint64) error {
	record := e.record()
	err := c.numbers.Add(number, record...)
	if err == nil {
		err = c.orders.Add(order, record...)
	}
	if err != nil {
		return fmt.Errorf("compare the rows: %w", err)
	}
	return nil
}
