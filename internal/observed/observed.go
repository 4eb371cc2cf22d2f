// Package observed records which statuses, event kinds, fields, headers, HTTP statuses and errors were seen from the
// service, and which of them the interface document has.
//
// It is a register of words. No value of a shipment gets into it, and names that look like identifiers are left out.
// Its size is limited, whatever is sent.
package observed

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind says what an entry is about.
type Kind string

// The kinds.
const (
	Status     Kind = "status"      // number and name: 1 DELIVERED
	EventKind  Kind = "event"       // such as router.delivered
	Field      Kind = "field"       // source and path: query data.summary.status
	Header     Kind = "header"      // answer or delivery, and the name
	HTTPStatus Kind = "http-status" // source and number
	Error      Kind = "error"       // source, path and codes of an error that is not null
)

// Kinds returns all kinds in the order in which they are listed.
func Kinds() []Kind { return []Kind{Status, EventKind, Field, Header, HTTPStatus, Error} }

// Source is where something was seen: the operation of an answer, or Delivery.
type Source string

// The sources that the code names.
const (
	Query    Source = "query"
	Delivery Source = "delivery"
)

// Limits of the register.
const (
	MaxEntries = 500 // per kind and origin
	maxValue   = 200 // bytes
)

// Key identifies an entry. An entry without a value counts what was seen beyond [MaxEntries].
type Key struct {
	Kind  Kind   `json:"kind"`
	Value string `json:"value"`
}

// Compare orders keys.
func (k Key) Compare(o Key) int {
	return cmp.Or(strings.Compare(string(k.Kind), string(o.Kind)), strings.Compare(k.Value, o.Value))
}

// Entry is one thing that was seen. It is documented if the interface document or a standard of HTTP has it.
type Entry struct {
	Key
	Count      int64     `json:"count"` // answers and events
	First      time.Time `json:"first"`
	Last       time.Time `json:"last"`
	Documented bool      `json:"documented"`
}

// Origin is what something was seen in.
type Origin string

// The origins: responses of the service, and deliveries by whether they verified.
const (
	Responses  Origin = "responses"
	Verified   Origin = "verified"
	Unverified Origin = "unverified"
)

// Store keeps the register. It is safe for concurrent use by several goroutines and processes.
//
// Every implementation must pass the suite Observed of package storetest.
type Store interface {
	// Observe adds what was seen in responses of the service. Beyond [MaxEntries] of a kind, new entries are only
	// counted.
	Observe(ctx context.Context, met []Entry) error

	// ObserveEvents adds what was seen in verified and in unverified events up to number to, unless others have read
	// events after from meanwhile: then it adds nothing and returns false.
	ObserveEvents(ctx context.Context, verified, unverified []Entry, from, to int64) (bool, error)

	// EventsObserved returns up to which event ObserveEvents was called, and the last event.
	EventsObserved(ctx context.Context) (to, last int64, err error)

	// Observed returns the register of an origin in any order.
	Observed(ctx context.Context, of Origin) ([]Entry, error)
}

// limits decides which keys a register takes: known ones, and new ones up to [MaxEntries] of a kind.
type limits struct {
	known map[Key]bool
	count map[Kind]int // of known keys
}

func newLimits() limits { return limits{map[Key]bool{}, map[Kind]int{}} }

func (l limits) take(k Key) {
	l.known[k] = true
	l.count[k.Kind]++
}

// admit returns the key that an observation is counted by: a key without a value if the register is full.
func (l limits) admit(k Key) Key {
	if !l.known[k] {
		if k.Value == "" || l.count[k.Kind] >= MaxEntries {
			return Key{Kind: k.Kind}
		}
		l.take(k)
	}
	return k
}

// Admit returns the entries of met that a register with the entries of known takes: known keys, and new ones up to
// [MaxEntries] of a kind. The others are counted by an entry without a value. There is one entry per key, in key
// order, so that all writers lock rows in the same order.
func Admit(known, met []Entry) []Entry {
	l := newLimits()
	for _, e := range known {
		if e.Value != "" {
			l.take(e.Key)
		}
	}
	admitted := map[Key]Entry{}
	for _, e := range met {
		e.Key = l.admit(e.Key)
		e.Documented = e.Documented && e.Value != ""
		admitted[e.Key] = admitted[e.Key].plus(e)
	}
	return slices.SortedFunc(maps.Values(admitted), func(a, b Entry) int { return a.Compare(b.Key) })
}

// plus returns the sum of two entries with the same key; the zero entry adds nothing.
func (e Entry) plus(o Entry) Entry {
	if e.Count == 0 {
		return o
	}
	e.Count += o.Count
	if o.First.Before(e.First) {
		e.First = o.First
	}
	if o.Last.After(e.Last) {
		e.Last = o.Last
	}
	return e
}

// Sum returns the merged entries of several registers, in the order of [Kinds] and by value, and how many observations
// of each kind were not kept.
func Sum(registers ...[]Entry) (all []Entry, notKept map[Kind]int64) {
	sums := map[Key]Entry{}
	notKept = map[Kind]int64{}
	for _, entries := range registers {
		for _, e := range entries {
			if e.Value == "" {
				notKept[e.Kind] += e.Count
				continue
			}
			sums[e.Key] = sums[e.Key].plus(e)
		}
	}
	order := Kinds()
	all = slices.SortedFunc(maps.Values(sums), func(a, b Entry) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)), cmp.Compare(a.Value, b.Value))
	})
	return all, notKept
}

// Recorder collects what answers and events contain, in a limited amount of memory. It is safe for concurrent use.
type Recorder struct {
	mu      sync.Mutex
	entries map[Key]Entry
	limits  limits
}

// NewRecorder returns an empty recorder.
func NewRecorder() *Recorder { return &Recorder{entries: map[Key]Entry{}, limits: newLimits()} }

// Answer adds what an answer contains. It keeps none of its bytes.
func (r *Recorder) Answer(a Answer, at time.Time) {
	a.JSON = a.JSON && len(a.Body) <= maxBody
	r.add(a.Source, at, func(x *extractor) { x.answer(a) })
}

// Event adds what an event contains. It keeps none of its bytes.
func (r *Recorder) Event(e Event, at time.Time) {
	r.add(Delivery, at, func(x *extractor) { x.event(e) })
}

func (r *Recorder) add(source Source, at time.Time, extract func(*extractor)) {
	x := extractor{source: source, found: map[Key]bool{}}
	extract(&x)
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range x.found {
		if admitted := r.limits.admit(k); admitted != k { // counted once for all of its kind
			delete(x.found, k)
			x.found[admitted] = false
		}
	}
	for k, documented := range x.found {
		r.entries[k] = r.entries[k].plus(Entry{k, 1, at, at, documented})
	}
}

// Take returns what was added since the last Take.
func (r *Recorder) Take() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := slices.Collect(maps.Values(r.entries))
	clear(r.entries)
	return taken
}
