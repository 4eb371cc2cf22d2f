package findings

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/waybill-cli/waybill/internal/carriers"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// grouped calls do for every key with several entries. The entries are in the order of their places.
func grouped(list []entry, key func(entry) string, do func([]entry)) {
	first, groups := make(map[uint64]int, len(list)), map[string][]entry{}
	for i, e := range list {
		at, known := first[e.hash]
		if !known {
			first[e.hash] = i
			continue
		}
		k := key(e)
		if groups[k] == nil && key(list[at]) == k {
			groups[k] = []entry{list[at]}
		}
		groups[k] = append(groups[k], e)
	}
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		slices.SortStableFunc(groups[k],
			func(a, b entry) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line)) })
		do(groups[k])
	}
}

// foldOrder folds an order but keeps one mark between words: A-11 is not A1-1.
func foldOrder(s string) string { return tracking.FoldStatus(s) }

// compareNumbers compares rows by number. It also reports findings that depend on the counts of all numbers.
func (c *Collector) compareNumbers() error {
	usual := c.lengths.usual()
	return eachPart(&c.keeper.numbers, func(list []entry) {
		for _, e := range list {
			c.reportLostZeros(e, usual)
			c.reportUnlike(e)
		}
		grouped(list, func(e entry) string { return tracking.FoldNumber(e.number) }, c.compareNumber)
	})
}

// compareNumber compares the rows of one number with the first row and reports oddities.
func (c *Collector) compareNumber(rows []entry) {
	first := rows[0]
	where := c.atEntry(first)
	same := map[[2]string]entry{} // the first row of each tracking
	for i, e := range rows {
		at := c.placesOf(e).number
		tracked := [2]string{e.order, e.number}
		before, known := same[tracked]
		if !known {
			same[tracked] = e
		}
		var f Finding
		switch {
		case known && before.carrier != e.carrier:
			f = at.with(Error, Contradiction, e.number, fmt.Sprintf("same tracking as at %s, which has carrier code %s",
				c.atEntry(before), tracking.Quote(before.carrier)), "keep one of the two rows")
			c.contradictory[Row{f.File, e.line, tracking.Item{
				ReferID: strings.Clone(e.order), Number: strings.Clone(e.number), CarrierCode: strings.Clone(e.carrier),
			}}] = f
		case i == 0:
			continue
		case foldOrder(e.order) != foldOrder(first.order):
			message := where + " has this number too, for order " + tracking.Quote(first.order)
			f = at.with(Warning, SharedNumber, e.number, message, "check which order it belongs to")
		case e.number != first.number:
			message := where + " has the same number, written " + tracking.Quote(first.number) + ": both would be created"
			f = at.with(Warning, Spelling, e.number, message, "write it in one way")
		case e.order == first.order:
			f = at.with(Note, RepeatedRow, e.number, "the same row as "+where, "it is sent once")
		default:
			continue // the orders differ in spelling: see compareOrder
		}
		c.report(f)
	}
}

func (c *Collector) compareOrder(rows []entry) {
	first := rows[0]
	numbers := map[string]bool{}
	for _, e := range rows {
		numbers[tracking.FoldNumber(e.number)] = true
		if e.order != first.order {
			message := fmt.Sprintf("%s has %s: these are two orders", c.atEntry(first), tracking.Quote(first.order))
			c.report(c.placesOf(e).ref.with(Warning, Spelling, e.order, message, "write it in one way if it is one order"))
		}
	}
	if len(numbers) > 1 {
		message := fmt.Sprintf("the order has %d numbers", len(numbers))
		c.report(c.placesOf(first).ref.with(Note, SeveralNumbers, first.order, message,
			"right for an order in several parcels"))
	}
}

// lengths counts the lengths of all-digit numbers.
type lengths struct {
	count, zeroFirst map[int]int64
	all              int64
}

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func (l *lengths) add(number string) {
	if !allDigits(number) {
		return
	}
	l.all++
	l.count[len(number)]++
	if number[0] == '0' {
		l.zeroFirst[len(number)]++
	}
}

// Limits of [LostZeros].
const (
	fewNumbers = 5 // with fewer numbers the usual length is unknown
	usualShare = 8 // of 10 numbers have the usual length
	mostZeros  = 3 // more leading zeros are unlikely to be lost
)

// usual returns the length that nearly all numbers have, or 0.
func (l *lengths) usual() int {
	for n, count := range l.count {
		if l.all >= fewNumbers && count*10 >= l.all*usualShare {
			return n
		}
	}
	return 0
}

// reportLostZeros reports a number that is shorter than usual, if some numbers of the usual length begin with a zero,
// or if its check digit fits only with zeros before it.
func (c *Collector) reportLostZeros(e entry, usual int) {
	missing := usual - len(e.number)
	if missing < 1 || missing > mostZeros || !allDigits(e.number) {
		return
	}
	whole := strings.Repeat("0", missing) + e.number
	now, then := carriers.Read(e.number), carriers.Read(whole)
	fits := then.Form.Checked && !then.Wrong() && (!now.Form.Checked || now.Wrong())
	if !fits && c.lengths.zeroFirst[usual] == 0 || now.Form.Checked && !now.Wrong() || then.Wrong() {
		return
	}
	message := fmt.Sprintf("the number has %d digits, and nearly all others have %d: leading zeros may be lost",
		len(e.number), usual)
	c.report(c.placesOf(e).number.with(Warning, LostZeros, e.number, message, "if so, write "+whole))
}

// reportUnlike reports a number without a known form if nearly all others have one.
func (c *Collector) reportUnlike(e entry) {
	if !e.unlike {
		return
	}
	var all, known int64
	for form, n := range c.forms {
		all += n.Rows
		if form != unknownForm {
			known += n.Rows
		}
	}
	if known >= fewNumbers && known*10 >= all*usualShare {
		message := fmt.Sprintf("%d of %d numbers have the form of a carrier, and this one has none", known, all)
		c.report(c.placesOf(e).number.with(Warning, NoForm, e.number, message, compareHint))
	}
}

// entry is the data of a row that is kept to compare it with others.
type entry struct {
	number, order string
	carrier       string // carrier code
	file          int
	line, row     int
	unlike        bool   // the number has no known form, and has no other finding
	hash          uint64 // of the key under which the entry is kept
}

// placesOf returns the places of an entry's cells, valid until the next call.
func (c *Collector) placesOf(e entry) *columns {
	at := &c.cols[e.file]
	at.ref.Line, at.ref.Row = e.line, e.row
	at.number.Line, at.number.Row = e.line, e.row
	return at
}

func (e entry) appendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, e.hash)
	for _, text := range []string{e.number, e.order, e.carrier} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	b = binary.AppendUvarint(b, uint64(e.file))
	b = binary.AppendUvarint(b, uint64(e.row))
	line := uint64(e.line) << 1
	if e.unlike {
		line |= 1
	}
	return binary.AppendUvarint(b, line)
}

// eachPart calls do with the entries of each part. A part has all entries of a key, in the order in which they were
// added. The texts of a part share memory.
func eachPart(kept *disk.Spill, do func([]entry)) error {
	var list []entry
	return kept.Parts(func(records []byte) error {
		list = list[:0]
		for rest := string(records); rest != ""; {
			var e entry
			e, rest = cutEntry(rest)
			list = append(list, e)
		}
		do(list)
		return nil
	})
}

func cutEntry(s string) (entry, string) {
	e := entry{hash: binary.LittleEndian.Uint64([]byte(s[:8]))}
	s = s[8:]
	number := func() int {
		v, n := binary.Uvarint([]byte(s[:min(len(s), binary.MaxVarintLen64)]))
		s = s[n:]
		return int(v) // appendTo wrote a length, an index or a line
	}
	text := func() (t string) {
		n := number()
		t, s = s[:n], s[n:]
		return t
	}
	e.number, e.order, e.carrier = text(), text(), text()
	e.file, e.row = number(), number()
	line := number()
	e.line, e.unlike = line>>1, line&1 == 1
	return e, s
}

// keeper keeps entries by the hashes of their numbers and of their orders, in a goroutine of its own.
type keeper struct {
	numbers, orders disk.Spill
	chunk           []entry // being filled
	chunks          chan []entry
	end             func() error // stops keeping, and returns its error; then the entries can be read
}

const keptChunk = 512

func newKeeper() *keeper {
	k, ended := &keeper{chunks: make(chan []entry, 1)}, make(chan error)
	k.end = sync.OnceValue(func() error {
		k.chunks <- k.chunk
		close(k.chunks)
		return <-ended
	})
	go func() { ended <- k.keepAll() }()
	return k
}

func (k *keeper) add(e entry) {
	if k.chunk = append(k.chunk, e); len(k.chunk) == keptChunk {
		k.chunks <- k.chunk
		k.chunk = make([]entry, 0, keptChunk)
	}
}

func (k *keeper) keepAll() (err error) {
	seed, record := maphash.MakeSeed(), []byte(nil)
	keep := func(kept *disk.Spill, e entry, key string) error {
		e.hash = maphash.String(seed, key)
		record = e.appendTo(record[:0])
		return kept.Add(e.hash, record...)
	}
	for chunk := range k.chunks {
		for i := 0; i < len(chunk) && err == nil; i++ {
			if err = keep(&k.numbers, chunk[i], tracking.FoldNumber(chunk[i].number)); err == nil {
				err = keep(&k.orders, chunk[i], foldOrder(chunk[i].order))
			}
		}
	}
	return err
}
