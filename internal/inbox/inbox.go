// Package inbox says what is remembered of webhook deliveries and the events
// they hold, and what a store of them promises.
//
// A sender that got a 2xx forgets what it sent. So a delivery is on disk, whole and byte for byte, before it is
// answered; what could not be read is kept beside what could; and an event is listed once however often it was sent.
package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// Errors of the inbox that callers tell apart. A store wraps them around the
// cause. The last five go away with their cause: a later call may succeed.
var (
	// ErrNoEvent says that there is no such event.
	ErrNoEvent = errors.New("no such event")
	// ErrNoDelivery says that there is no such delivery.
	ErrNoDelivery = errors.New("no such delivery")
	// ErrNotClaimed says that an entry of an outbox is not this process's any more.
	ErrNotClaimed = errors.New("entry is not claimed")
	// ErrFull says that the disk, or the share of it the store may use, is full.
	ErrFull = errors.New("store is full")
	// ErrLocked says that another process held the store for too long.
	ErrLocked = errors.New("store is locked by another process")
	// ErrReadOnly says that the store may be read but not written.
	ErrReadOnly = errors.New("store is read-only")
	// ErrUnreachable says that there is no connection to the store's server.
	ErrUnreachable = errors.New("server is unreachable")
)

// IsTemporary reports whether err of a store passes by itself, or once somebody has removed its cause: the same call
// may then succeed. Who runs for long tries again; any other error of a store ends it.
func IsTemporary(err error) bool {
	var own interface{ IsTemporary() bool }
	if errors.As(err, &own) && own.IsTemporary() {
		return true
	}
	temporary := []error{ErrNotClaimed, ErrFull, ErrLocked, ErrReadOnly, ErrUnreachable}
	return slices.ContainsFunc(temporary, func(e error) bool { return errors.Is(err, e) })
}

// Verified says whether a delivery was shown to come from the service.
type Verified string

// The answers. Events of a delivery that is not Yes are unverified.
const (
	Yes      Verified = "yes"      // its signature verified
	No       Verified = "no"       // a scheme is set, and its signature did not verify
	Unknown  Verified = "unknown"  // no scheme is set
	Unsigned Verified = "unsigned" // nothing is to be verified, by the user's word: it counts as it came
)

// Counts reports whether what was received may change trackings and be forwarded unasked.
func (v Verified) Counts() bool { return v == Yes || v == Unsigned }

// Counting are the answers that count.
func Counting() []Verified { return []Verified{Yes, Unsigned} }

// Outranks reports whether an event takes the place of another one with its key.
func (v Verified) Outranks(other Verified) bool {
	return v == Yes && other != Yes || v == Unsigned && !other.Counts()
}

// Delivery is one request that was received.
type Delivery struct {
	Seq        int64 // given by the store, from 1, growing; 0 before it is stored
	ReceivedAt time.Time
	Method     string
	Path       string          // escaped as sent, without the query
	RawQuery   string          // escaped as sent, without the question mark
	RemoteAddr string          // host and port it came from
	Header     []webhook.Field // repeated names kept
	Body       []byte          // as received; nil once pruned

	Verified          Verified
	Reason            webhook.Reason // why not, empty unless Verified is No
	Scheme            string         // name of the scheme it was judged by, empty if none
	SecretName        string         // which secret matched, such as env:NAME; never its value
	BodyAuthenticated bool           // verified, and the signature covers every byte of the body

	Single  bool   // the body was one object instead of an array
	Anomaly string // what is wrong with the body as a whole, empty if nothing
}

// Request returns the delivery as it was received.
func (d Delivery) Request() webhook.Request {
	return webhook.Request{Method: d.Method, Path: d.Path, RawQuery: d.RawQuery, Header: d.Header, Body: d.Body}
}

// Judged returns d as a verdict by a scheme leaves it: verified or not, and why.
func (d Delivery) Judged(scheme string, v webhook.Verdict) Delivery {
	d.Verified, d.Scheme, d.Reason = No, scheme, v.Reason
	d.SecretName, d.BodyAuthenticated = v.SecretName, v.BodyAuthenticated
	if v.OK {
		d.Verified = Yes
	}
	return d
}

// Mark says how an event relates to those that were stored before.
type Mark string

// The marks. Of all events with one key exactly one has the mark Current, and so
// has one of the synthetic ones with that key.
const (
	// Current is the event that counts.
	Current Mark = ""
	// Duplicate is an event whose key and bytes were there before.
	Duplicate Mark = "duplicate"
	// Conflict is an event whose key is there with other bytes.
	Conflict Mark = "conflict"
	// Superseded is an unverified event whose place a verified one took.
	Superseded Mark = "superseded"
	// Anomaly is a part of a delivery that is no event: an element that is not
	// an object, or a whole body that is not JSON. It has a place and no key.
	Anomaly Mark = "anomaly"
)

// Erased is Anomaly of an event that was erased, which has the mark [Anomaly], and of a delivery that lost one.
const Erased = "erased"

// Event is one element of a delivery's body. Its bytes are stored once, with
// the delivery; Offset and Length say where they are.
//
// Interface: Events.
type Event struct {
	Seq        int64 // given by the store, from 1, growing; 0 before it is stored
	Delivery   int64 // Seq of the delivery it came with
	ReceivedAt time.Time
	Index      int // place in the array, from 0
	Offset     int // bytes from the start of the body
	Length     int // bytes

	Key            []byte // what it is deduplicated by: 16 or 32 bytes; nil for an anomaly
	EventID        string // empty if there was none; the fields below likewise
	Kind           string // event, as sent
	EventTime      string // as sent
	TrackingNumber string
	Status         string // JSON literal as sent: 1, or "x" with its quotes
	StatusTrack    string
	StatusLabel    string
	LatestEvent    string
	RouterID       string

	Verified          Verified
	Reason            webhook.Reason // of its delivery
	BodyAuthenticated bool           // of its delivery
	Synthetic         bool           // made up by waybill: its delivery says so, see [HeaderSynthetic]
	Mark              Mark
	Anomaly           string // what is odd about it, empty if nothing

	Data json.RawMessage // its data member; nil if it had none, or once pruned
	Raw  json.RawMessage // its bytes as received; nil once pruned
}

// ID is the number of the event: that of its delivery, and from the second event
// on its place in it, such as 12.2. It stays when the delivery is verified again.
func (e Event) ID() string {
	if e.Index == 0 {
		return strconv.FormatInt(e.Delivery, 10)
	}
	return fmt.Sprintf("%d.%d", e.Delivery, e.Index+1)
}

// HeaderSynthetic is the header of a delivery that waybill made up, whatever its value. Anybody may add it to a
// delivery, so that its events count for less than those of others, and never for more.
const HeaderSynthetic = "Waybill-Synthetic"

// IsSynthetic reports whether the delivery says that waybill made it up.
func (d Delivery) IsSynthetic() bool {
	return slices.ContainsFunc(d.Header, func(f webhook.Field) bool { return strings.EqualFold(f.Name, HeaderSynthetic) })
}

// MadeUp returns d as one that says that waybill made it up.
func (d Delivery) MadeUp() Delivery {
	if !d.IsSynthetic() {
		d.Header = append(slices.Clone(d.Header), webhook.Field{Name: HeaderSynthetic, Value: "1"})
	}
	return d
}

// Decode reads d's body. It returns d with Single and Anomaly set, and its rows, see [Prepare].
func Decode(d Delivery) (Delivery, []Event) {
	decode := webhook.DecodeUnverified
	if d.Verified == Yes {
		decode = webhook.Decode
	}
	batch := decode(d.Body)
	d.Single, d.Anomaly = batch.Single, batch.Anomaly
	return d, Prepare(d, batch)
}

// IsRepeat reports whether the event was known, byte for byte, when it came.
func (e Event) IsRepeat() bool { return e.Mark == Duplicate }

// Prepare returns the rows that a decoded body makes, in the order of their places: its events, and its odd parts
// with the mark Anomaly. Seq, Delivery and the other marks are the store's to set.
func Prepare(d Delivery, b webhook.Batch) []Event {
	rows := make([]Event, 0, len(b.Events)+len(b.Fragments))
	odd := b.Fragments
	for _, e := range b.Events {
		for len(odd) > 0 && odd[0].Offset < e.Offset {
			rows = append(rows, anomaly(d.Body, odd[0]))
			odd = odd[1:]
		}
		rows = append(rows, event(e))
	}
	for _, f := range odd {
		rows = append(rows, anomaly(d.Body, f))
	}
	synthetic := d.IsSynthetic()
	for i := range rows {
		r := &rows[i]
		r.ReceivedAt, r.Synthetic = d.ReceivedAt, synthetic
		r.Verified, r.Reason, r.BodyAuthenticated = d.Verified, d.Reason, d.BodyAuthenticated
	}
	return rows
}

func event(e webhook.Event) Event {
	return Event{
		Index:          e.Index,
		Offset:         e.Offset,
		Length:         e.Length,
		Key:            e.Key(),
		EventID:        e.ID,
		Kind:           e.Kind,
		EventTime:      e.Time,
		TrackingNumber: e.TrackingNumber,
		Status:         e.Status,
		StatusTrack:    e.StatusTrack,
		StatusLabel:    e.StatusLabel,
		LatestEvent:    e.LatestEvent,
		RouterID:       e.RouterID,
		Anomaly:        e.Anomaly,
		Data:           e.Data,
		Raw:            e.Raw,
	}
}

func anomaly(body []byte, f webhook.Fragment) Event {
	return Event{
		Index:   f.Index,
		Offset:  f.Offset,
		Length:  f.Length,
		Mark:    Anomaly,
		Anomaly: f.Anomaly,
		Raw:     json.RawMessage(body[f.Offset : f.Offset+f.Length]),
	}
}

// MaxOverviewEvents is how many events an [Overview] has at most.
const MaxOverviewEvents = 5

// Overviews lists deliveries without what may be large of them.
type Overviews interface {
	// Overviews returns the deliveries of a range, newest first. However many they are,
	// it takes the same number of queries, and reads no header and no body.
	Overviews(ctx context.Context, r DeliveryRange) ([]Overview, error)

	// Bodies returns the bodies of the deliveries of a range by delivery number, without pruned bodies. All bodies are
	// in memory at once: Size of an [Overview] says how large a body is.
	Bodies(ctx context.Context, r DeliveryRange) (map[int64][]byte, error)
}

// DeliveryRange names deliveries by their numbers. The zero DeliveryRange is all of them.
type DeliveryRange struct {
	From, To int64 // the first and the last number; To is 0 for no bound
	Limit    int   // the newest so many of them; 0 for no bound
	Refused  bool  // the refused ones, which have numbers of their own
	Bare     bool  // of an [Overview], the delivery and its size alone
}

// Overview is what a list shows of a delivery.
type Overview struct {
	Delivery // without Header and Body

	Size        int64        // of the body in bytes; -1 once it was pruned
	Events      []Event      // the first of its rows by place, each as it is now, without Data and Raw
	EventCount  int          // of all its rows
	Forwardings []Forwarding // in the sinks' order: only ID, SinkKey and Cursor are set; HeldBy of what waits is not read
}
