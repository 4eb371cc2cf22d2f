// Package observed records which statuses, event kinds, fields, headers, HTTP statuses and errors were seen from the
// service, and which of them the interface document has.
//
// It is a register of words. No value of a shipment gets into it, and names that look like identifiers are left out.
// Its size is limited, whatever is sent.
package observed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/jsonscan"
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
	maxFound   = 256 // kinds of answers that a [Recorder] knows
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

// register holds entries by kind and value: up to [MaxEntries] of a kind, and one without a value for further ones.
type register map[Kind]map[string]*Entry

// entry returns the entry that k is counted by.
func (r register) entry(k Key) *Entry {
	if r[k.Kind] == nil {
		r[k.Kind] = map[string]*Entry{"": {Key: Key{Kind: k.Kind}}}
	}
	if _, known := r[k.Kind][k.Value]; !known {
		if len(r[k.Kind]) > MaxEntries {
			return r[k.Kind][""]
		}
		r[k.Kind][k.Value] = &Entry{Key: k}
	}
	return r[k.Kind][k.Value]
}

// take returns the entries with a count in key order, and resets them.
func (r register) take() []Entry {
	var taken []Entry
	for _, entries := range r {
		for _, e := range entries {
			if e.Count > 0 {
				taken = append(taken, *e)
				*e = Entry{Key: e.Key}
			}
		}
	}
	slices.SortFunc(taken, func(a, b Entry) int { return a.Compare(b.Key) })
	return taken
}

// Admit returns the entries of met that a register with the entries of known takes: known keys, and new ones up to
// [MaxEntries] of a kind. The others are counted by an entry without a value. There is one entry per key, in key
// order, so that all writers lock rows in the same order.
func Admit(known, met []Entry) []Entry {
	r := register{}
	for _, e := range known {
		r.entry(e.Key)
	}
	for _, e := range met {
		sum := r.entry(e.Key)
		e.Key = sum.Key
		*sum = sum.plus(e)
	}
	return r.take()
}

// plus returns the sum of two entries with the same key; the zero entry adds nothing. An entry without a value is not
// documented.
func (e Entry) plus(o Entry) Entry {
	if e.Count == 0 {
		o.Documented = o.Documented && o.Value != ""
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
	mu       sync.Mutex
	register register
	found    map[[sha256.Size]byte]map[*Entry]bool // see extractor, by digest of its input
}

// NewRecorder returns an empty recorder.
func NewRecorder() *Recorder { return &Recorder{register: register{}} }

// Event adds what an event contains. It keeps none of its bytes.
func (r *Recorder) Event(e Event, at time.Time) {
	r.Answer(Answer{Source: Delivery, Header: e.Header, Body: e.Body, JSON: true}, at)
}

// Answer adds what an answer contains. It keeps none of its bytes.
func (r *Recorder) Answer(a Answer, at time.Time) {
	body := []byte("0") // nothing is found in a scalar
	if a.JSON && len(a.Body) <= maxBody {
		body, _ = outline(make([]byte, 0, len(a.Body)), a.Body, jsonscan.SkipSpace(a.Body, 0), nil)
	}
	names := slices.Sorted(maps.Keys(a.Header))
	digest := sha256.Sum256(fmt.Appendf(nil, "%s %d %q %s", a.Source, a.Status, names, body))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found[digest] == nil {
		if len(r.found)%maxFound == 0 {
			r.found = map[[sha256.Size]byte]map[*Entry]bool{}
		}
		x := extractor{a.Source, r.register, map[*Entry]bool{}}
		x.answer(a.Status, names, body)
		r.found[digest] = x.found
	}
	for e, documented := range r.found[digest] {
		*e = e.plus(Entry{e.Key, 1, at, at, documented})
	}
}

// Take returns what was added since the last Take.
func (r *Recorder) Take() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.register.take()
}
