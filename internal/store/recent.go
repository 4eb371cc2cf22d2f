package store

import (
	"sync"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// Bounds of what is kept in memory of the events stored last. Both hold.
const (
	maxRecent      = 2048
	maxRecentBytes = 4 << 20 // of their bytes
)

// recent holds the events that this process stored last, with consecutive numbers: who
// reads on in the inbox reads most of them a moment after they came, and then asks no
// database. They are as they were when they came, see [inbox.Query.AsStored].
type recent struct {
	mu     sync.Mutex
	events []inbox.Event // the oldest first
	bytes  int
}

// add adds events that were committed, in the order of their numbers.
func (r *recent) add(lines []eventLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range lines {
		e := l.stored()
		if n := len(r.events); n > 0 && r.events[n-1].Seq+1 != e.Seq {
			r.events, r.bytes = nil, 0 // others stored some between
		}
		r.events = append(r.events, e)
		r.bytes += sizeOf(e)
	}
	drop := 0
	for drop < len(r.events) && (len(r.events)-drop > maxRecent || r.bytes > maxRecentBytes) {
		r.bytes -= sizeOf(r.events[drop])
		drop++
	}
	clear(r.events[:drop])
	r.events = r.events[drop:]
}

// sizeOf returns how many bytes an event holds that a sender chose.
func sizeOf(e inbox.Event) int { return len(e.Raw) + len(e.Data) }

// after returns up to limit events behind the one with that number; none if the next one
// is not here. atEnd is true if that one is the last here.
func (r *recent) after(seq int64, limit int) (events []inbox.Event, atEnd bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 {
		return nil, false
	}
	from := seq + 1 - r.events[0].Seq
	if n := int64(len(r.events)); from < 0 || from >= n {
		return nil, from == n
	}
	return append([]inbox.Event(nil), r.events[from:from+min(int64(limit), int64(len(r.events))-from)]...), false
}
