package observed

import (
	"sync"
	"time"
)

// Recorder gathers what answers and events hold. It takes a bounded amount of memory.
// It is safe for concurrent use.
type Recorder struct {
	mu      sync.Mutex
	entries map[Key]*Entry
	count   map[Kind]int
}

// NewRecorder returns a recorder that has gathered nothing.
func NewRecorder() *Recorder {
	return &Recorder{entries: map[Key]*Entry{}, count: map[Kind]int{}}
}

// Answer adds what an answer holds. It keeps none of its bytes.
func (r *Recorder) Answer(a Answer, at time.Time) {
	a.JSON = a.JSON && len(a.Body) <= maxBody
	r.add(a.Source, at, func(x *extractor) { x.answer(a) })
}

// Event adds what an event holds. It keeps none of its bytes.
func (r *Recorder) Event(e Event, at time.Time) {
	r.add(Delivery, at, func(x *extractor) { x.event(e) })
}

func (r *Recorder) add(source Source, at time.Time, extract func(*extractor)) {
	x := extractor{source: source, found: map[Key]bool{}}
	extract(&x)
	r.mu.Lock()
	defer r.mu.Unlock()
	beyond := map[Kind]bool{} // each once
	for k, documented := range x.found {
		e, ok := r.entries[k]
		if !ok && r.count[k.Kind] >= MaxEntries {
			if beyond[k.Kind] {
				continue
			}
			beyond[k.Kind] = true
			k, documented = Key{Kind: k.Kind}, false
			e, ok = r.entries[k]
		}
		if !ok {
			e = &Entry{Key: k, Documented: documented}
			r.entries[k] = e
			r.count[k.Kind]++
		}
		if e.Count == 0 {
			e.First = at
		}
		e.Count++
		e.Last = at
	}
}

// Take returns what was added since the last Take.
func (r *Recorder) Take() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var taken []Entry
	for _, e := range r.entries {
		if e.Count > 0 {
			taken = append(taken, *e)
			e.Count = 0
		}
	}
	return taken
}
