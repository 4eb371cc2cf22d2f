package webhook

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// MaxDepth is how many levels of objects and arrays an event may have; the
// documented one has four. Deeper ones are kept unread, as
// anomalies, so that no later reader can overflow its stack.
const MaxDepth = 200

// maxElements is how many elements an array of that many bytes may have to be
// read as events. Real events are larger; without the limit a few megabytes of
// empty elements would become gigabytes of rows.
func maxElements(size int) int { return 10_000 + size/128 }

const notObject = "not an object"

// Batch is the content of a body. Every element is in Events or in Fragments.
type Batch struct {
	Events    []Event    // in order
	Fragments []Fragment // in order; what is not an event
	Single    bool       // the body was one object instead of an array
	Anomaly   string     // what is wrong with the whole body, empty if nothing; the body is then the only Fragment
}

// Fragment is a part of a body that is not an event.
type Fragment struct {
	Index   int    // place in the array, from 0
	Offset  int    // bytes from the start of the body
	Length  int    // bytes
	Anomaly string // what is wrong with it
}

// Decode splits a body into its events. It never fails and loses nothing: what
// it can't read is in Fragments with its offset: the whole body if that is not
// JSON, or has more than 10,000 elements and one for every 128 bytes. Events
// share the bytes of body, which must not change while they are in use.
//
// Interface: Events.
// Assumed: a body of one object instead of an array is one event.
func Decode(body []byte) Batch {
	if len(body) == 0 {
		return unreadable(body, "the body is empty")
	}
	if !json.Valid(body) {
		return unreadable(body, syntax(body))
	}
	start := jsonscan.SkipSpace(body, 0)
	var b Batch
	switch body[start] {
	case '{':
		b.Single = true
		b.add(body, start, 0)
	case '[':
		n := 0
		end := jsonscan.Each(body, start, func(_ []byte, _, at int) int {
			if n == maxElements(len(body)) {
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
	return Batch{Anomaly: why, Fragments: []Fragment{{Length: len(body), Anomaly: why}}}
}

// add adds the value that begins at i as an event, or as a fragment if it is not
// one, and returns the offset behind it.
func (b *Batch) add(body []byte, i, index int) (end int) {
	if body[i] != '{' {
		end, _ := jsonscan.SkipValue(body, i)
		b.Fragments = append(b.Fragments, Fragment{Index: index, Offset: i, Length: end - i, Anomaly: notObject})
		return end
	}
	e, depth := decodeEvent(body, i)
	e.Index = index
	if depth > MaxDepth {
		b.Fragments = append(b.Fragments, Fragment{Index: index, Offset: i, Length: e.Length, Anomaly: fmt.Sprintf("nested deeper than %d levels", MaxDepth)})
	} else {
		b.Events = append(b.Events, e)
	}
	return i + e.Length
}

// syntax returns why body is not JSON.
func syntax(body []byte) string {
	var raw json.RawMessage
	var se *json.SyntaxError
	if err := json.Unmarshal(body, &raw); errors.As(err, &se) {
		return fmt.Sprintf("not JSON at byte %d: %v", se.Offset, se)
	}
	return "not JSON"
}
