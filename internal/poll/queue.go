package poll

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/disk"
)

// await makes an entry wait, after entries that are due at the same time.
func (p *poller[K, R]) await(e *entry[K]) {
	i, _ := slices.BinarySearchFunc(p.waiting, e, func(w, e *entry[K]) int { return cmp.Or(w.Due.Compare(e.Due), -1) })
	p.waiting = slices.Insert(p.waiting, i, e)
}

// hold makes an alike entry a scout or extends its pause, while all keys fit in memory.
func (p *poller[K, R]) hold(e *entry[K]) {
	if !p.drained || p.later.len() > 0 || len(p.waiting) >= maxWaiting {
		return
	}
	if p.scouts < scouts {
		p.scouts, e.scout = p.scouts+1, true
		return
	}
	pause := longestAlike
	if !p.deadline.IsZero() {
		pause = min(pause, time.Until(p.deadline)/2)
	}
	if due := time.Now().Add(pause); due.After(e.Due) {
		e.usual, e.epoch, e.Due = e.Due, p.epoch, due
	}
}

func (p *poller[K, R]) release() {
	p.epoch++
	for _, e := range p.waiting {
		p.unhold(e)
	}
	slices.SortStableFunc(p.waiting, func(a, b *entry[K]) int { return a.Due.Compare(b.Due) })
}

// unhold restores the short pauses of an entry if release was called since hold.
func (p *poller[K, R]) unhold(e *entry[K]) {
	if !e.usual.IsZero() && e.epoch != p.epoch {
		e.Due, e.usual = e.usual, time.Time{}
	}
}

// retire makes an entry no longer a scout: its question was answered, or it is done.
func (p *poller[K, R]) retire(e *entry[K]) {
	if e.scout {
		p.scouts, e.scout = p.scouts-1, false
	}
}

// backlog is a queue of any length: first in, first out. The first maxWaiting
// entries are in memory, the others in files that nobody else can open.
type backlog[K any] struct {
	first   []*entry[K]
	read    *spool[K] // with older entries than written; both are nil until needed
	written *spool[K]
	spilled int // entries in files
}

type spool[K any] struct {
	file *os.File
	w    *bufio.Writer
	enc  *json.Encoder
	dec  *json.Decoder
	left int // entries not read
}

func (b *backlog[K]) len() int { return len(b.first) + b.spilled }

func (b *backlog[K]) push(e *entry[K]) error {
	if b.spilled == 0 && len(b.first) < maxWaiting {
		b.first = append(b.first, e)
		return nil
	}
	if b.written == nil {
		f, err := disk.Temp()
		if err != nil {
			return err
		}
		w := bufio.NewWriter(f)
		b.written = &spool[K]{file: f, w: w, enc: json.NewEncoder(w), dec: json.NewDecoder(bufio.NewReader(f))}
	}
	b.spilled++
	b.written.left++
	return b.written.enc.Encode(e)
}

func (b *backlog[K]) pop() (*entry[K], error) {
	if len(b.first) > 0 {
		e := b.first[0]
		b.first = b.first[1:]
		return e, nil
	}
	if b.read == nil || b.read.left == 0 {
		if err := b.readWritten(); err != nil {
			return nil, err
		}
	}
	b.read.left--
	b.spilled--
	e := new(entry[K])
	return e, b.read.dec.Decode(e)
}

// readWritten replaces the file that was read to its end by the one that was written.
func (b *backlog[K]) readWritten() error {
	if b.read != nil {
		if err := b.read.file.Close(); err != nil {
			return err
		}
	}
	b.read, b.written = b.written, nil
	if err := b.read.w.Flush(); err != nil {
		return err
	}
	_, err := b.read.file.Seek(0, io.SeekStart)
	return err
}

func (b *backlog[K]) close() {
	for _, s := range []*spool[K]{b.read, b.written} {
		if s != nil {
			_ = s.file.Close() // not read again
		}
	}
}
