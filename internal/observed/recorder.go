package observed

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// Recorder gathers what answers and events hold. Answers that are alike but for the
// values in them cost one pass over their bytes. It takes a bounded amount of memory.
// It is safe for concurrent use.
type Recorder struct {
	seed maphash.Seed

	mu      sync.Mutex
	entries map[Key]*Entry
	count   map[Kind]int
	alike   map[uint64][]*Entry // what all that hash so hold
}

// NewRecorder returns a recorder that has gathered nothing.
func NewRecorder() *Recorder {
	return &Recorder{seed: maphash.MakeSeed(), entries: map[Key]*Entry{}, count: map[Kind]int{}, alike: map[uint64][]*Entry{}}
}

// maxAlike is how many kinds of answers are told apart by their hash.
const maxAlike = 1024

// Answer adds what an answer holds. It keeps none of its bytes.
func (r *Recorder) Answer(a Answer, at time.Time) {
	a.JSON = a.JSON && len(a.Body) <= maxBody
	r.add(a.Source, a.Body, a.JSON, a.Header, a.Status, at, func(x *extractor) { x.answer(a) })
}

// Event adds what an event holds. It keeps none of its bytes.
func (r *Recorder) Event(e Event, at time.Time) {
	r.add(Delivery, e.Body, len(e.Body) <= maxBody, e.Header, 0, at, func(x *extractor) { x.event(e) })
}

func (r *Recorder) add(source Source, body []byte, isJSON bool, header map[string][]string, status int, at time.Time, extract func(*extractor)) {
	h := maphash.String(r.seed, string(source)) + uint64(status)
	for name := range header {
		h += maphash.String(r.seed, name) // in any order
	}
	if isJSON {
		sum, _ := r.hash(body, jsonscan.SkipSpace(body, 0), false)
		h = mix(h, sum)
	} else if len(body) > 0 {
		h = mix(h, uint64(body[0]))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	alike, ok := r.alike[h]
	if !ok {
		x := extractor{source: source, found: map[Key]bool{}}
		extract(&x)
		alike = r.entriesOf(x.found)
		if len(r.alike) >= maxAlike {
			clear(r.alike)
		}
		r.alike[h] = alike
	}
	for _, e := range alike {
		if e.Count == 0 {
			e.First = at
		}
		e.Count++
		e.Last = at
	}
}

// entriesOf returns the entries of what was found, which it makes if need be.
func (r *Recorder) entriesOf(found map[Key]bool) []*Entry {
	var all []*Entry
	beyond := map[Kind]bool{} // each once
	for k, documented := range found {
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
		all = append(all, e)
	}
	return all
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

// mix returns a hash of two in their order.
func mix(a, b uint64) uint64 { return (a^b)*0x9e3779b97f4a7c15 + b>>29 }

// hash returns a hash of all that an extractor may tell apart in the value that begins
// at i, and the offset behind it. exact: of a scalar too.
func (r *Recorder) hash(b []byte, i int, exact bool) (h uint64, end int) {
	switch b[i] {
	case '{':
		h = 1
		end = jsonscan.Each(b, i, func(name []byte, _, at int) int {
			sum, end := r.hash(b, at, isVocabulary(name))
			h = mix(mix(h, maphash.Bytes(r.seed, name)), sum)
			return end
		})
		return h, end
	case '[':
		h = 2
		last := uint64(0)
		end = jsonscan.Each(b, i, func(_ []byte, _, at int) int {
			sum, end := r.hash(b, at, false)
			if sum != last {
				h, last = mix(h, sum), sum
			}
			return end
		})
		return h, end
	}
	end, _ = jsonscan.SkipValue(b, i)
	switch {
	case exact:
		return maphash.Bytes(r.seed, b[i:end]), end
	case b[i] == '-' || b[i] >= '0' && b[i] <= '9':
		return '0', end
	case b[i] == 'f':
		return 't', end
	}
	return uint64(b[i]), end
}

// isVocabulary reports whether the value of a member with that literal as its name is
// recorded, or its class.
func isVocabulary(name []byte) bool {
	switch string(name) {
	case `"status"`, `"statusLabel"`, `"statusTrack"`, `"event"`, `"code"`, `"type"`, `"errorCode"`, `"reason"`:
		return true
	}
	return false
}
