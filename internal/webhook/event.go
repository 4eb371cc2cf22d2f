package webhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// Event is one element of a delivery. Fields that it lacks are empty. All text is valid UTF-8 without NUL; Raw has
// the bytes as sent.
//
// Interface: Events.
type Event struct {
	Index  int // place in the array, from 0
	Offset int // bytes from the start of the body
	Length int // bytes

	EventID        string // eventId; also empty if it is ambiguous or not text
	Kind           string // event; any kind, known or unknown
	EventTime      string // eventTime, as sent
	TrackingNumber string
	Status         string // JSON literal as sent: 1, or "x" with its quotes
	StatusTrack    string
	StatusLabel    string
	LatestEvent    string
	RouterID       string

	Data    json.RawMessage // the data member; nil if it is absent, or given several times with different values
	Raw     json.RawMessage // part of the body, not a copy
	Anomaly string          // what is wrong with it, empty if nothing
}

// Key returns the key for deduplicating an event: [IDKey] of its eventId, or without one the SHA-256 of its bytes.
func (e Event) Key() []byte {
	if e.EventID != "" {
		return IDKey(e.EventID)
	}
	sum := sha256.Sum256(e.Raw)
	return sum[:]
}

// IDKey returns the key of the events with that eventId: the 16 bytes of a UUID in either case, or 32 bytes derived
// from any other text.
//
// Interface: Events.
func IDKey(id string) []byte {
	if key, ok := uuid(id); ok {
		return key
	}
	sum := sha256.Sum256([]byte("eventId\x00" + id))
	return sum[:]
}

// IDKeyRange returns the least and greatest keys of the UUIDs that begin with prefix, and false if no UUID can.
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

type member struct {
	name    string
	raw     []byte   // its first value; nil if there is none
	torn    bool     // it also has a different value
	members []member // wanted members, if it is an object
}

// readMembers reads each byte once. It returns the offset after the object at i, and its depth.
func readMembers(b []byte, i int, wanted []member) (end, depth int) {
	end = jsonscan.Each(b, i, func(name []byte, _, at int) int {
		var m *member
		for k := range wanted {
			if (jsonscan.Value{Name: name}).Named(wanted[k].name) {
				m = &wanted[k]
				break
			}
		}
		var end, below int
		if m != nil && m.members != nil && b[at] == '{' {
			end, below = readMembers(b, at, m.members)
		} else {
			end, below = jsonscan.SkipValue(b, at)
		}
		depth = max(depth, below)
		switch raw := b[at:end:end]; {
		case m == nil:
		case m.raw == nil:
			m.raw = raw
		case !bytes.Equal(m.raw, raw):
			m.torn = true
		}
		return end
	})
	return end, depth + 1
}

func (m *member) forget() {
	m.raw, m.torn = nil, false
	for i := range m.members {
		m.members[i].forget()
	}
}

type fieldReader struct {
	anomalies []string
}

func (r *fieldReader) note(words string) { r.anomalies = append(r.anomalies, words) }

// noteTorn drops members that have two different values, because either could be the right one.
func (r *fieldReader) noteTorn(members []member) {
	for i := range members {
		if m := &members[i]; m.torn {
			m.forget()
			r.note(m.name + " appears twice with different values")
		}
	}
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

// id returns the eventId. It is empty if the eventId has an anomaly, because two events could then get the same one.
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

// DecodeEvent reads one event from the bytes of its object, such as the Raw of an earlier one. Its Index and Offset
// are 0. It never fails: for anything but an object it returns an Event with only Length, Raw and Anomaly.
//
// Interface: Webhook delivery data object (`data` inside each delivered event).
func DecodeEvent(raw []byte) Event {
	start := jsonscan.SkipSpace(raw, 0)
	if start == len(raw) || raw[start] != '{' || !json.Valid(raw) {
		return Event{Length: len(raw), Raw: raw, Anomaly: notObject}
	}
	raw = raw[start:]
	e, _ := decodeEvent(raw, 0)
	e.Raw, e.Length = raw, len(raw)
	return e
}

// decodeEvent reads the object that begins at i in valid JSON. It also returns its depth.
func decodeEvent(b []byte, i int) (e Event, depth int) {
	detail := [...]member{{name: "trackingNumber"}}
	summary := [...]member{{name: "trackingNumber"}, {name: "status"}, {name: "statusLabel"}, {name: "latestEvent"}}
	data := [...]member{
		{name: "trackingNumber"},
		{name: "status"},
		{name: "statusTrack"},
		{name: "routerId"},
		{name: "summary", members: summary[:]},
		{name: "detail", members: detail[:]},
	}
	top := [...]member{{name: "eventId"}, {name: "event"}, {name: "eventTime"}, {name: "data", members: data[:]}}
	end, depth := readMembers(b, i, top[:])
	var r fieldReader
	r.noteTorn(top[:])
	e = Event{
		Offset:    i,
		Length:    end - i,
		Raw:       b[i:end:end],
		EventID:   r.id(top[0].raw),
		Kind:      r.text("event", top[1].raw),
		EventTime: r.text("eventTime", top[2].raw),
		Data:      top[3].raw,
	}
	if e.Data != nil && e.Data[0] != '{' && e.Data[0] != 'n' {
		r.note("data is not an object")
	}
	r.noteTorn(data[:])
	r.noteTorn(summary[:])
	r.noteTorn(detail[:])
	e.TrackingNumber = r.text("trackingNumber", first(data[0].raw, summary[0].raw, detail[0].raw))
	e.Status = r.literal("status", first(data[1].raw, summary[1].raw))
	e.StatusTrack = r.text("statusTrack", data[2].raw)
	e.RouterID = r.text("routerId", data[3].raw)
	e.StatusLabel = r.text("statusLabel", summary[2].raw)
	e.LatestEvent = r.text("latestEvent", summary[3].raw)
	e.Anomaly = strings.Join(r.anomalies, "; ")
	return e, depth
}

func first(values ...[]byte) []byte {
	for _, v := range values {
		if v != nil && v[0] != 'n' {
			return v
		}
	}
	return nil
}

// MaxDepth is how many levels an event may have; the documented event has four. Deeper
// events are kept unread, as anomalies, so that no later reader can overflow its stack.
const MaxDepth = 200

const notObject = "not an object"

// Batch is the content of a body.
type Batch struct {
	Rows    []Row  // in order
	Single  bool   // the body was one object instead of an array
	Anomaly string // what is wrong with the whole body, empty if nothing; the body is then the only row
}

// Row is one element of a body, or a whole body that is unreadable.
type Row struct {
	Event
	Part bool // it is not an event: of the fields, only its place, Raw and Anomaly are set
}

// Decode splits a body into its events. It never fails and loses nothing: an unreadable element is a Part, at its
// place. So is the whole body if it is not JSON (a leading byte order mark is skipped), or has more than 10,000
// elements plus one per 128 bytes. Rows share the bytes of body, which must not change during their use.
//
// Interface: Events.
// Assumed: a body of one object instead of an array is one event.
func Decode(body []byte) Batch { return decode(body, 10_000) }

// DecodeUnverified is [Decode] for an unauthenticated body: up to 100 elements, not 10,000, plus one per 128 bytes.
func DecodeUnverified(body []byte) Batch { return decode(body, 100) }

// decode limits the elements: a few megabytes of empty ones would otherwise become gigabytes of rows.
func decode(body []byte, most int) Batch {
	most += len(body) / 128
	if len(body) == 0 {
		return unreadable(body, "the body is empty")
	}
	text := bytes.TrimPrefix(body, []byte("\uFEFF"))
	if !json.Valid(text) {
		return unreadable(body, syntax(body))
	}
	start := jsonscan.SkipSpace(body, len(body)-len(text))
	var b Batch
	switch body[start] {
	case '{':
		b.Single = true
		b.add(body, start, 0)
	case '[':
		n := 0
		end := jsonscan.Each(body, start, func(_ []byte, _, at int) int {
			if n == most {
				return -1
			}
			n++
			return b.add(body, at, n-1)
		})
		switch {
		case end < 0:
			return unreadable(body, fmt.Sprintf("more than %d elements", n))
		case n == 0:
			return unreadable(body, "the array is empty")
		}
	default:
		return unreadable(body, "neither an array nor an object")
	}
	return b
}

func unreadable(body []byte, why string) Batch {
	return Batch{Anomaly: why, Rows: []Row{unreadablePart(body, 0, len(body), why)}}
}

func unreadablePart(body []byte, start, end int, why string) Row {
	return Row{Event{Offset: start, Length: end - start, Raw: body[start:end:end], Anomaly: why}, true}
}

// add adds the value at i, and returns the offset after it.
func (b *Batch) add(body []byte, i, index int) (end int) {
	row, depth := Row{}, 0
	if body[i] == '{' {
		row.Event, depth = decodeEvent(body, i)
		end = i + row.Length
	} else {
		end, _ = jsonscan.SkipValue(body, i)
		row = unreadablePart(body, i, end, notObject)
	}
	if depth > MaxDepth {
		row = unreadablePart(body, i, end, fmt.Sprintf("nested deeper than %d levels", MaxDepth))
	}
	row.Index = index
	b.Rows = append(b.Rows, row)
	return end
}

func syntax(body []byte) string {
	var raw json.RawMessage
	if se, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(body, &raw)); ok {
		return fmt.Sprintf("not JSON at byte %d: %v", se.Offset, se)
	}
	return "not JSON"
}
