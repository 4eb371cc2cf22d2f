package webhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// Event is one element of a delivery. Fields that it did not hold are empty.
// All text is valid UTF-8 without NUL; Raw has what was really sent.
//
// Interface: Events.
type Event struct {
	Index  int // place in the array, from 0
	Offset int // bytes from the start of the body
	Length int // bytes

	ID             string // eventId; empty too if it is ambiguous or no text
	Kind           string // event; any kind, known or not
	Time           string // eventTime, as sent
	TrackingNumber string
	Status         string // JSON literal as sent: 1, or "x" with its quotes
	StatusTrack    string
	StatusLabel    string
	LatestEvent    string
	RouterID       string

	Data    json.RawMessage // the data member; nil if there is none or several that differ
	Raw     json.RawMessage // part of the body, not a copy
	Anomaly string          // what is odd about it, empty if nothing
}

// Key returns what an event is deduplicated by: [IDKey] of its identifier, or,
// without one, the SHA-256 of its bytes.
func (e Event) Key() []byte {
	if e.ID != "" {
		return IDKey(e.ID)
	}
	sum := sha256.Sum256(e.Raw)
	return sum[:]
}

// IDKey returns the key of the events with that eventId: the 16 bytes of a
// UUID, however its letters are cased, or 32 bytes made from any other text.
//
// Interface: Events.
func IDKey(id string) []byte {
	if key, ok := uuid(id); ok {
		return key
	}
	sum := sha256.Sum256([]byte("eventId\x00" + id))
	return sum[:]
}

// IDKeyRange returns the least and the greatest key of the UUIDs that begin with
// prefix, and false if none can.
func IDKeyRange(prefix string) (least, greatest []byte, ok bool) {
	const low, high = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
	if len(prefix) > len(low) {
		return nil, nil, false
	}
	least, ok = uuid(prefix + low[len(prefix):])
	greatest, _ = uuid(prefix + high[len(prefix):])
	return least, greatest, ok
}

func uuid(s string) ([]byte, bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return nil, false
	}
	key, err := hex.DecodeString(s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:])
	return key, err == nil
}

// fieldReader reads fields of objects and collects anomalies.
type fieldReader struct {
	anomalies []string
}

func (r *fieldReader) note(words string) { r.anomalies = append(r.anomalies, words) }

// pick returns the values of those members of an object, nil where there is
// none. A name with two different values counts as absent, as either could be
// the right one.
func (r *fieldReader) pick(obj []byte, names ...string) [][]byte {
	values := make([][]byte, len(names))
	if len(obj) == 0 || obj[0] != '{' {
		return values
	}
	var torn uint64 // bit i: names[i] contradicts itself
	for m := range jsonscan.Values(obj, 0) {
		for i, want := range names {
			switch {
			case !m.Named(want):
			case values[i] == nil:
				values[i] = m.Raw
			case !bytes.Equal(values[i], m.Raw):
				torn |= 1 << i
			}
		}
	}
	for i, name := range names {
		if torn&(1<<i) != 0 {
			values[i] = nil
			r.note(name + " appears twice with different values")
		}
	}
	return values
}

// text returns the text of a scalar member, empty if it is absent or null.
func (r *fieldReader) text(name string, raw []byte) string {
	if raw == nil || raw[0] == 'n' {
		return ""
	}
	if raw[0] == '{' || raw[0] == '[' {
		r.note(name + " is not a text")
		return ""
	}
	s, ok := scalar(raw)
	if !ok {
		r.note(name + " is not valid Unicode")
	}
	return s
}

// id returns the eventId, empty if it has an anomaly: two events could get the
// same one.
func (r *fieldReader) id(raw []byte) string {
	s := r.text("eventId", raw)
	if slices.ContainsFunc(r.anomalies, func(words string) bool { return strings.HasPrefix(words, "eventId ") }) {
		return ""
	}
	if s == "" {
		r.note("eventId missing")
	}
	return s
}

// literal returns a scalar member as sent.
func (r *fieldReader) literal(name string, raw []byte) string {
	if raw == nil || raw[0] == 'n' {
		return ""
	}
	if raw[0] == '{' || raw[0] == '[' {
		r.note(name + " is not a single value")
		return ""
	}
	return strings.ToValidUTF8(string(raw), string(utf8.RuneError))
}

// DecodeEvent reads one event from the bytes of its object, such as the Raw of
// an earlier one. Its Index and Offset are 0. It never fails: for what
// is not an object it returns an Event with Raw and Anomaly alone.
//
// Interface: Webhook delivery data object (`data` inside each delivered event).
func DecodeEvent(raw []byte) Event {
	start := jsonscan.SkipSpace(raw, 0)
	if start == len(raw) || raw[start] != '{' || !json.Valid(raw) {
		return Event{Length: len(raw), Raw: raw, Anomaly: notObject}
	}
	return decodeEvent(raw[start:])
}

// decodeEvent reads an object that is known to be valid and begins raw.
func decodeEvent(raw []byte) Event {
	var r fieldReader
	top := r.pick(raw, "eventId", "event", "eventTime", "data")
	id, data := top[0], top[3]
	e := Event{
		Length: len(raw),
		Raw:    raw,
		ID:     r.id(id),
		Kind:   r.text("event", top[1]),
		Time:   r.text("eventTime", top[2]),
		Data:   data,
	}
	if data != nil && data[0] != '{' && data[0] != 'n' {
		r.note("data is not an object")
	}
	own := r.pick(data, "trackingNumber", "status", "statusTrack", "routerId", "summary", "detail")
	summary := r.pick(own[4], "trackingNumber", "status", "statusLabel", "latestEvent")
	detail := r.pick(own[5], "trackingNumber")
	e.TrackingNumber = r.text("trackingNumber", first(own[0], summary[0], detail[0]))
	e.Status = r.literal("status", first(own[1], summary[1]))
	e.StatusTrack = r.text("statusTrack", own[2])
	e.RouterID = r.text("routerId", own[3])
	e.StatusLabel = r.text("statusLabel", summary[2])
	e.LatestEvent = r.text("latestEvent", summary[3])
	e.Anomaly = strings.Join(r.anomalies, "; ")
	return e
}

// first returns the first value that is there and not null.
func first(values ...[]byte) []byte {
	for _, v := range values {
		if v != nil && v[0] != 'n' {
			return v
		}
	}
	return nil
}
