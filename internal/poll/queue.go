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

// await makes an entry wait, behind the entries that are due at the same time.
func (p *poller[K, R]) await(e *entry[K]) {
	i, _ := slices.BinarySearchFunc(p.waiting, e, func(w, e *entry[K]) int { return cmp.Or(w.Due.Compare(e.Due), -1) })
	p.waiting = slices.Insert(p.waiting, i, e)
}

// hold makes an alike entry a scout, or its pause longer, while all keys have room in memory.
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

// unhold gives an entry its short pauses back if release was called since hold.
func (p *poller[K, R]) unhold(e *entry[K]) {
	if !e.usual.IsZero() && e.epoch != p.epoch {
		e.Due, e.usual = e.usual, time.Time{}
	}
}

// retire ends that an entry is a scout: a question about the entry was answered, or the entry is done.
func (p *poller[K, R]) retire(e *entry[K]) {
	if e.scout {
		p.scouts, e.scout = p.scouts-1, false
	}
}

// backlog is a queue of any length: first in, first out. The first maxWaiting
// entries are in memory, the others in a file that nobody else can open.
type backlog[K any] struct {
	first []*entry[K]
	files [2]*spool[K] // one is read, then the other, which is written meanwhile; nil before they are needed
	held  int          // entries in files
}

type spool[K any] struct {
	file *os.File
	w    *bufio.Writer
	enc  *json.Encoder
	dec  *json.Decoder // nil while it is written
	left int           // entries not read
}

func (b *backlog[K]) len() int { return len(b.first) + b.held }

func (b *backlog[K]) push(e *entry[K]) error {
	if b.held == 0 && len(b.first) < maxWaiting {
		b.first = append(b.first, e)
		return nil
	}
	i := 0
	if b.files[0] != nil && b.files[0].dec != nil {
		i = 1
	}
	if b.files[i] == nil {
		f, err := disk.Temp()
		if err != nil {
			return err
		}
		w := bufio.NewWriter(f)
		b.files[i] = &spool[K]{file: f, w: w, enc: json.NewEncoder(w)}
	}
	b.held++
	b.files[i].left++
	return b.files[i].enc.Encode(e)
}

func (b *backlog[K]) pop() (*entry[K], error) {
	if len(b.first) > 0 {
		e := b.first[0]
		b.first = b.first[1:]
		return e, nil
	}
	if b.files[0].left == 0 { // the other one is older now
		if err := b.files[0].file.Close(); err != nil {
			return nil, err
		}
		b.files[0], b.files[1] = b.files[1], nil
	}
	s := b.files[0]
	if s.dec == nil {
		if err := s.rewind(); err != nil {
			return nil, err
		}
	}
	s.left--
	b.held--
	e := new(entry[K])
	return e, s.dec.Decode(e)
}

func (b *backlog[K]) close() {
	for _, s := range b.files {
		if s != nil {
			_ = s.file.Close() // nobody reads it again
		}
	}
}

func (s *spool[K]) rewind() error {
	if err := s.w.Flush(); err != nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	s.dec = json.NewDecoder(bufio.NewReader(s.file))
	return nil
}
