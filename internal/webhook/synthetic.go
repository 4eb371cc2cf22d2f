package webhook

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// KindDelivered is the only kind of event that the interface shows.
//
// Interface: Events.
const KindDelivered = "router.delivered"

// syntheticStatus is the status of synthetic events of other kinds.
const syntheticStatus = 9000

// SyntheticEvents makes deliveries for testing a receiver. Equal fields make equal deliveries.
//
// Assumed: kinds, statuses and names other than delivered are not shown; those
// of other kinds are invented, and Set replaces them.
type SyntheticEvents struct {
	Kind   string    // of the event; empty for [KindDelivered]
	Number string    // tracking number; empty for a new one in each event
	At     time.Time // time of the first event; each further one is 1 ms later
	Seed   uint64
	Set    []Change
}

// Change sets one value in an event.
type Change struct {
	path    jsonscan.Pointer
	literal []byte // JSON
}

// ErrChange reports that a change can't be parsed, or does not fit the event.
var ErrChange = errors.New("write it as /POINTER=VALUE, a JSON pointer into the event")

// ParseChange reads POINTER=VALUE. A value that is not JSON is a string.
func ParseChange(text string) (Change, error) {
	pointer, value, ok := strings.Cut(text, "=")
	path, valid := jsonscan.ParsePointer(pointer)
	if !ok || !valid || len(path) == 0 {
		return Change{}, fmt.Errorf("%q: %w", text, ErrChange)
	}
	if json.Valid([]byte(value)) {
		return Change{path, []byte(value)}, nil
	}
	literal, err := json.Marshal(value)
	return Change{path, literal}, err
}

// value returns a new copy of the value to set.
func (c Change) value() (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(c.literal))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

// Body returns the body of the n-th delivery, from 0: an array of one event. Its error matches [ErrChange].
//
// Interface: Webhook delivery data object (`data` inside each delivered event).
func (m SyntheticEvents) Body(n int) ([]byte, error) {
	return encodeChanged([]any{m.event(n)}, m.Set)
}

// SetMembers applies changes to each event of a body and returns the new body. Members are rewritten in the order
// of their names. The error matches [ErrChange], also if the body is not JSON.
func SetMembers(body []byte, changes []Change) ([]byte, error) {
	v, err := Change{literal: bytes.TrimPrefix(body, []byte("\uFEFF"))}.value()
	if err != nil || !json.Valid(body) {
		return nil, fmt.Errorf("the body is not JSON: %w", ErrChange)
	}
	return encodeChanged(v, changes)
}

// encodeChanged applies changes to each element of an array, or to a single value, and encodes the result.
func encodeChanged(v any, changes []Change) ([]byte, error) {
	events, many := v.([]any)
	if !many {
		events = []any{v}
	}
	for i := range events {
		for _, c := range changes {
			value, err := c.value()
			object, _ := events[i].(map[string]any)
			_, has := object[c.path[0]]
			if _, err := strconv.Atoi(c.path[0]); err == nil && object != nil && !has {
				return nil, fmt.Errorf("%s: leave out /%s: the pointer begins in the event: %w", c.path, c.path[0], ErrChange)
			}
			if err == nil {
				events[i], err = setAt(events[i], c.path, value)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.path, err)
			}
		}
	}
	if !many {
		v = events[0]
	}
	return jsonscan.Marshal(v)
}

const syntheticTime = "2006-01-02T15:04:05.000Z"

func (m SyntheticEvents) event(n int) map[string]any {
	kind := cmp.Or(m.Kind, KindDelivered)
	number, routerID := m.Number, m.id("router", n)
	if number == "" {
		number = "TEST" + strings.ToUpper(routerID[:8])
	} else {
		routerID = m.id("router "+number, 0)
	}
	track := kind[strings.LastIndexByte(kind, '.')+1:]
	status, text := syntheticStatus, track
	if kind == KindDelivered {
		status, text = 1, "Delivered"
	}
	at := m.At.UTC().Add(time.Duration(n) * time.Millisecond)
	then, begun := at.Format(syntheticTime), at.Add(-72*time.Hour).Format(syntheticTime)
	return map[string]any{
		"eventId": m.id("event", n), "event": kind, "eventTime": then,
		"data": map[string]any{
			"trackingNumber": number, "status": status, "statusTrack": strings.ToLower(track), "routerId": routerID,
			"summary": map[string]any{
				"id": routerID, "trackingNumber": number, "status": status, "statusLabel": strings.ToUpper(track),
				"latestEvent": text, "latestCheckpointTime": then, "transitTime": 3, "created": begun, "updated": then,
			},
			"detail": map[string]any{
				"trackingNumber": number, "statusSummary": text,
				"trackingEvents": []any{checkpoint(text, at), checkpoint("Picked up", at.Add(-72*time.Hour))},
			},
			"error": nil,
		},
	}
}

func checkpoint(text string, at time.Time) map[string]any {
	return map[string]any{
		"eventType": text, "eventCity": "London", "eventState": "ENG", "eventZIPCode": "TW6 2GW",
		"eventTimestamp": at.Format("2006-01-02T15:04:05"), "GMTTimestamp": at.Format("2006-01-02T15:04:05Z"),
	}
}

// id returns a UUID derived from the seed, its purpose and n.
func (m SyntheticEvents) id(what string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d", m.Seed, what, n))
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// setAt returns in with value set at path. It creates missing objects. An index must exist or be the next one,
// which may also be written as -.
func setAt(in any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	switch in := in.(type) {
	case nil:
		return setAt(map[string]any{}, path, value)
	case map[string]any:
		var err error
		in[path[0]], err = setAt(in[path[0]], path[1:], value)
		return in, err
	case []any:
		i, err := strconv.Atoi(path[0])
		if path[0] == "-" {
			i, err = len(in), nil
		}
		if err != nil || i < 0 || i > len(in) {
			return nil, fmt.Errorf("the array has no element %q: %w", path[0], ErrChange)
		}
		if i == len(in) {
			in = append(in, nil)
		}
		in[i], err = setAt(in[i], path[1:], value)
		return in, err
	default:
		return nil, fmt.Errorf("no object or array for %q: %w", path[0], ErrChange)
	}
}
