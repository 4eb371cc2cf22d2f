// Package inbox defines what is kept of webhook deliveries and their events, and what a store of them guarantees.
//
// A sender forgets what it sent once it gets a 2xx. So a delivery is on disk, whole and byte for byte, before it is
// answered; unreadable parts are kept beside the readable ones; and an event is listed once, however often it was
// sent.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// Errors of the inbox that callers distinguish. A store wraps them around the cause. The last five are temporary: a
// later call may succeed once their cause is gone.
var (
	// ErrNoEvent says that no event has that number.
	ErrNoEvent = errors.New("no such event")
	// ErrNoDelivery says that no delivery has that number.
	ErrNoDelivery = errors.New("no such delivery")
	// ErrNotClaimed says that this process no longer holds an outbox entry.
	ErrNotClaimed = errors.New("entry is not claimed")
	// ErrFull says that the disk, or the store's share of it, is full.
	ErrFull = errors.New("store is full")
	// ErrLocked says that another process held the store for too long.
	ErrLocked = errors.New("store is locked by another process")
	// ErrReadOnly says that the store can be read but not written.
	ErrReadOnly = errors.New("store is read-only")
	// ErrUnreachable says that there is no connection to the store's server.
	ErrUnreachable = errors.New("server is unreachable")
)

// IsTemporary reports whether err, from a store, goes away by itself or once somebody removes its cause: the same call
// may then succeed. Long-running commands retry after such an error; any other error of a store ends them.
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

// The verdicts. Events of a delivery that is not Yes are unverified.
const (
	Yes      Verified = "yes"      // its signature verified
	No       Verified = "no"       // a scheme is set, but its signature did not verify
	Unknown  Verified = "unknown"  // no scheme is set
	Unsigned Verified = "unsigned" // the user chose not to verify: it counts as it came
)

// Counts reports whether a delivery may change trackings and be forwarded by default.
func (v Verified) Counts() bool { return v == Yes || v == Unsigned }

// Counting returns the verdicts that count, see [Verified.Counts].
func Counting() []Verified { return []Verified{Yes, Unsigned} }

// Outranks reports whether an event with verdict v replaces another one with the same key.
func (v Verified) Outranks(other Verified) bool {
	return v == Yes && other != Yes || v == Unsigned && !other.Counts()
}

// Delivery is one received request.
type Delivery struct {
	Seq        int64 // assigned by the store, from 1, growing; 0 before it is stored
	ReceivedAt time.Time
	Method     string
	Path       string          // escaped as sent, without the query
	RawQuery   string          // escaped as sent, without the question mark
	RemoteAddr string          // host and port it came from
	Header     []webhook.Field // repeated names kept
	Body       []byte          // as received; nil once pruned

	Verified          Verified
	Reason            webhook.Reason // why it did not verify; empty unless Verified is No
	Scheme            string         // name of the scheme that was applied, empty if none
	SecretName        string         // which secret matched, such as env:NAME; never its value
	BodyAuthenticated bool           // verified, and the signature covers every byte of the body

	Single  bool   // the body was one object instead of an array
	Anomaly string // what is wrong with the body as a whole, empty if nothing
}

// Request returns the delivery as it was received.
func (d Delivery) Request() webhook.Request {
	return webhook.Request{Method: d.Method, Path: d.Path, RawQuery: d.RawQuery, Header: d.Header, Body: d.Body}
}

// WithVerdict returns d with the verdict of a scheme: verified or not, and why.
func (d Delivery) WithVerdict(scheme string, v webhook.Verdict) Delivery {
	d.Verified, d.Scheme, d.Reason = No, scheme, v.Reason
	d.SecretName, d.BodyAuthenticated = v.SecretName, v.BodyAuthenticated
	if v.OK {
		d.Verified = Yes
	}
	return d
}

// Mark says how an event relates to the events stored before it.
type Mark string

// The marks. Of all events with the same key, exactly one is Current; synthetic events are compared among themselves.
const (
	// Current is the event that counts.
	Current Mark = ""
	// Duplicate is an event whose key and bytes were stored before.
	Duplicate Mark = "duplicate"
	// Conflict is an event whose key was stored before with other bytes.
	Conflict Mark = "conflict"
	// Superseded is an unverified event that a verified one replaced.
	Superseded Mark = "superseded"
	// Anomaly is a part of a delivery that is not an event: an element that is not an object, or a whole body that is not
	// JSON. It has a place but no key.
	Anomaly Mark = "anomaly"
)

// Erased is the Anomaly of an erased event, which has the mark [Anomaly], and of a delivery that lost one.
const Erased = "erased"

// Event is one element of a delivery's body. Its bytes are stored once, with the delivery, at Offset and Length.
//
// Interface: Events.
type Event struct {
	webhook.Event // Data and Raw are nil if pruned

	Seq        int64 // assigned by the store, from 1, growing; 0 before it is stored
	Delivery   int64 // Seq of the delivery it came with
	ReceivedAt time.Time
	Key        []byte // deduplication key, 16 or 32 bytes; nil for an anomaly

	Verified          Verified
	Reason            webhook.Reason // of its delivery
	BodyAuthenticated bool           // of its delivery
	Synthetic         bool           // made up by waybill: its delivery says so, see [HeaderSynthetic]
	Mark              Mark
}

// ID returns the number of the event: its delivery's number and, from the second event on, its place, such as 12.2. It
// does not change when the delivery is verified again.
func (e Event) ID() string {
	if e.Index == 0 {
		return strconv.FormatInt(e.Delivery, 10)
	}
	return fmt.Sprintf("%d.%d", e.Delivery, e.Index+1)
}

// HeaderSynthetic is the header that marks a delivery as made up by waybill, whatever its value. Anybody may add it to
// a delivery, so its events count less than others, and never more.
const HeaderSynthetic = "Waybill-Synthetic"

// IsSynthetic reports whether the delivery is marked as made up by waybill.
func (d Delivery) IsSynthetic() bool {
	return slices.ContainsFunc(d.Header, func(f webhook.Field) bool { return strings.EqualFold(f.Name, HeaderSynthetic) })
}

// MadeUp returns d with the mark that waybill made it up.
func (d Delivery) MadeUp() Delivery {
	if !d.IsSynthetic() {
		d.Header = append(slices.Clone(d.Header), webhook.Field{Name: HeaderSynthetic, Value: "1"})
	}
	return d
}

// Decode reads the body of d. It returns d with Single and Anomaly set, and its rows, see [Prepare].
func Decode(d Delivery) (Delivery, []Event) {
	decode := webhook.DecodeUnverified
	if d.Verified == Yes {
		decode = webhook.Decode
	}
	batch := decode(d.Body)
	d.Single, d.Anomaly = batch.Single, batch.Anomaly
	return d, Prepare(d, batch)
}

// IsRepeat reports whether the same event was stored before, byte for byte.
func (e Event) IsRepeat() bool { return e.Mark == Duplicate }

// Prepare returns the rows of a decoded body in the order of their places: its events, and its unreadable parts with
// the mark Anomaly. The store sets Seq, Delivery and the other marks.
func Prepare(d Delivery, b webhook.Batch) []Event {
	rows := make([]Event, len(b.Rows))
	synthetic := d.IsSynthetic()
	for i := range rows {
		r := &rows[i]
		r.Event, r.ReceivedAt, r.Synthetic = b.Rows[i].Event, d.ReceivedAt, synthetic
		r.Verified, r.Reason, r.BodyAuthenticated = d.Verified, d.Reason, d.BodyAuthenticated
		if b.Rows[i].Part {
			r.Mark = Anomaly
		} else {
			r.Key = r.Event.Key()
		}
	}
	return rows
}

// MaxOverviewEvents is the maximum number of events in an [Overview].
const MaxOverviewEvents = 5

// Overviews lists deliveries without their large parts.
type Overviews interface {
	// Overviews returns the deliveries of a range, newest first. It takes the same number of queries for any number of
	// deliveries, and reads no headers and no bodies.
	Overviews(ctx context.Context, r DeliveryRange) ([]Overview, error)

	// Bodies returns the bodies of the deliveries of a range by delivery number, except for pruned ones. All bodies are
	// in memory at once; see Size in [Overview] for how large a body is.
	Bodies(ctx context.Context, r DeliveryRange) (map[int64][]byte, error)
}

// DeliveryRange selects deliveries by number. The zero DeliveryRange selects all of them.
type DeliveryRange struct {
	From, To int64 // first and last number; To 0 means unbounded
	Limit    int   // at most so many, the newest; 0 means unbounded
	Refused  bool  // refused deliveries, which have their own numbers
	Bare     bool  // fill in only Delivery and Size of each [Overview]
}

// Overview is a delivery as lists show it.
type Overview struct {
	Delivery // without Header and Body

	Size        int64        // of the body in bytes; -1 if pruned
	Events      []Event      // its first rows by place, in their present state, without Data and Raw
	EventCount  int          // number of all its rows
	Forwardings []Forwarding // in the order of sinks: of Sink only ID, SinkKey and Cursor are set; HeldBy is not read
}
