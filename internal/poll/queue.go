package poll

import (
	"bufio"
	"container/heap"
	"encoding/json"
	"io"
	"os"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/pace"
)

type queue[K any] []*entry[K]

func (q queue[K]) Len() int           { return len(q) }
func (q queue[K]) Less(i, j int) bool { return q[i].Due.Before(q[j].Due) }
func (q queue[K]) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push is for [heap.Push].
func (q *queue[K]) Push(x any) { *q = append(*q, x.(*entry[K])) } //nolint:forcetypeassert // nothing else is pushed

// Pop is for [heap.Pop].
func (q *queue[K]) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return e
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
		s, err := newSpool[K]()
		if err != nil {
			return err
		}
		b.files[i] = s
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

func newSpool[K any]() (*spool[K], error) {
	f, err := disk.Temp()
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriter(f)
	return &spool[K]{file: f, w: w, enc: json.NewEncoder(w)}, nil
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

const (
	samples      = 8               // alike keys that are asked about after each pause
	longestAlike = 5 * time.Minute // the longest pause of an alike key
)

// alike holds entries that wait for what comes for all at about the same time, see
// [Verdict]. A few are asked about after each pause, the least recently asked first.
type alike[K any] struct {
	entries []*entry[K] // in the order in which they were asked, at most maxWaiting
	pauses  pace.Backoff
	at      time.Time // end of the pause
	now     int       // entries that are still to be asked about after the last pause
}

// add adds an entry whose pause is set.
func (a *alike[K]) add(e *entry[K], pauses pace.Backoff) {
	if a.pauses.Max == 0 {
		a.pauses = pauses
		a.at = time.Now().Add(a.pauses.Next())
	}
	e.usual, e.Due = e.Due, time.Now().Add(longestAlike)
	a.entries = append(a.entries, e)
}

// due returns when next returns an entry, or other if that is earlier.
func (a *alike[K]) due(other time.Time) time.Time {
	if len(a.entries) == 0 {
		return other
	}
	if a.now > 0 {
		return time.Time{} // at once
	}
	return slices.MinFunc([]time.Time{a.at, a.entries[0].Due, other}, time.Time.Compare)
}

// next takes an entry that is to be asked about now, or returns nil.
func (a *alike[K]) next() *entry[K] {
	now := time.Now()
	if len(a.entries) == 0 || now.Before(a.due(now.Add(time.Hour))) {
		return nil
	}
	if !now.Before(a.at) {
		a.now, a.at = min(samples, len(a.entries)), now.Add(a.pauses.Next())
	}
	a.now = max(a.now-1, 0)
	e := a.entries[0]
	a.entries = a.entries[1:]
	return e
}

// release moves all entries to others, with the pauses that they would have alone.
func (a *alike[K]) release(others *queue[K]) {
	for _, e := range a.entries {
		e.Due, e.usual = e.usual, time.Time{}
		heap.Push(others, e)
	}
	*a = alike[K]{}
}
