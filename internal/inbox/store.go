package inbox

import (
	"context"
	"iter"
	"time"
)

// Limits of the evidence that a store keeps of refused deliveries. Both apply.
const (
	MaxRefused      = 4096
	MaxRefusedBytes = 64 << 20 // bodies and headers together
)

// RowBytes is the size that a row of an unverified delivery counts as: roughly what it takes with its indexes.
const RowBytes = 512

// Store keeps deliveries and events. Implementations are safe for concurrent use by several goroutines and, where the
// database allows it, several processes. Any method may return an error that matches [ErrFull], [ErrLocked],
// [ErrReadOnly] or [ErrUnreachable].
//
// Every implementation of this package's contracts must pass the suites Inbox and Outbox of package storetest.
type Store interface {
	// Put stores d and its rows (see [Prepare]) in one transaction and returns once they are durable, or stores nothing
	// and returns an error. It ignores d.Seq and the rows' Seq, Delivery and marks, except for the mark [Anomaly], which
	// is stored as it is and never compared with others.
	//
	// Each other row is compared with the current row of the same Key and the same Synthetic, rows of the same delivery
	// in their order:
	//   - there is none: it is current;
	//   - it is verified and the other is not, or it counts and the other does
	//     not: it is current, and the other becomes Superseded;
	//   - its bytes equal the other's: Duplicate;
	//   - else: Conflict. The first stays current.
	//
	// Method, Path, RawQuery, Header and Body may contain any bytes and are stored unchanged. The rows' text is UTF-8
	// without NUL.
	//
	// A current row whose bytes were pruned is compared by what was kept of them, such as their hash.
	//
	// Numbers grow in the order in which rows become visible: after a reader saw a Seq, no smaller one appears.
	Put(ctx context.Context, d Delivery, rows []Event) (Receipt, error)

	// PutRefused keeps d as evidence of a refusal, within [MaxRefused] and [MaxRefusedBytes], and returns its number, 0
	// if it was not kept. Refused deliveries have their own numbers and no events. They need not be on disk when it
	// returns.
	//
	// Anybody may send deliveries that are refused, so a flood of them must not evict genuine ones. There are three
	// classes: no well-formed signature (see [webhook.Reason.WellFormed]); a well-formed one; and a well-formed one from
	// an address that also sent a verified delivery. Beyond the limits, the largest class loses a delivery from the
	// remote address or the minute of receipt, whichever has most of that class: from the minute that has most of that
	// address, or the other way round. What remains of an address and a minute is a uniform sample that favours neither
	// first nor last deliveries.
	PutRefused(ctx context.Context, d Delivery) (int64, error)

	// Refused yields refused deliveries whose Seq is greater than after, in order, with bodies and headers. An error ends
	// the sequence.
	Refused(ctx context.Context, after int64) iter.Seq2[Delivery, error]

	// Events yields the rows that match q. An error ends the sequence. Rows stored meanwhile may or may not be included.
	// The loop's body may call the store.
	Events(ctx context.Context, q Query) iter.Seq2[Event, error]

	// Event returns one row with its bytes, or [ErrNoEvent].
	Event(ctx context.Context, seq int64) (Event, error)

	// Delivery returns one delivery with its body and headers, or [ErrNoDelivery].
	Delivery(ctx context.Context, seq int64) (Delivery, error)

	// Readmitted returns the number of the delivery that a refused one became, see [Verdicts.Readmit], or [ErrNoDelivery].
	Readmitted(ctx context.Context, refused int64) (int64, error)

	// Counts returns how much the store holds.
	Counts(ctx context.Context) (Counts, error)
}

// Verdicts changes the verdict on stored and refused deliveries, for schemes and secrets that were set after they came.
type Verdicts interface {
	// SetVerdict gives the stored delivery d.Seq the verdict of d: Verified, Reason, Scheme, SecretName and
	// BodyAuthenticated. It ignores the rest of d.
	//
	// A delivery that becomes verified is released: each of its events is added again with a new number and compared with
	// the current ones, as Put does; the unverified rows become Superseded. So a reader that continues after the last
	// number reads it again. Anomalies, and deliveries that do not become verified, keep their rows, with the new
	// verdict.
	//
	// A delivery that is already verified, or whose bytes were pruned, does not change, and the receipt has no rows. The
	// error is [ErrNoDelivery] if no delivery has that number.
	SetVerdict(ctx context.Context, d Delivery) (Receipt, error)

	// Readmit stores d and its rows as [Store.Put] does, and deletes the refused delivery with that number, which d was,
	// in the same transaction. If there is none, it does nothing and returns [ErrNoDelivery].
	Readmit(ctx context.Context, refused int64, d Delivery, rows []Event) (Receipt, error)
}

// Retention limits the size of an inbox.
type Retention interface {
	// UnverifiedBytes returns the size of the unverified deliveries, excluding refused ones: bytes of paths, queries,
	// headers and bodies, and [RowBytes] for each row.
	UnverifiedBytes(ctx context.Context) (int64, error)

	// Prune drops the headers and bodies of deliveries received before that time, and the evidence of refusals before it.
	// Verified events keep their numbers, keys, fields and marks, so that no event becomes new again. Unverified rows,
	// and the paths and queries of their deliveries, are deleted: nothing is derived from them, and anybody may send
	// them. Deliveries in an outbox stay whole until they were sent or given up; deliveries that a sink has not read yet
	// stay whole for a day. Only the successful attempt to send a delivery stays. Dead entries are deleted with the
	// bytes. Prune works in portions: after an error, part of the work is done.
	Prune(ctx context.Context, before time.Time) (PruneResult, error)
}

// Listeners records which listeners store their deliveries here.
type Listeners interface {
	// AddListener records that this process takes deliveries, until the store is closed or others declare the process
	// dead. A new record for the same URL replaces the one before.
	AddListener(ctx context.Context, l Listener) error

	// RunningListeners returns the listeners that are running now, in any order.
	RunningListeners(ctx context.Context) ([]Listener, error)
}

// Listener is a process that takes deliveries.
type Listener struct {
	URL   string  `json:"url"`   // where it listens, as its own computer reaches it
	Host  string  `json:"host"`  // its computer; empty if unknown
	Sinks []int64 `json:"sinks"` // IDs of the sinks that it sends to, in order

	// Verify says how it verifies: equal for listeners that verify alike, empty if unknown. It contains no secret.
	Verify string `json:"verify"`
}

// Changes signals that something was stored.
type Changes interface {
	// Watch returns a channel that has a value when another process may have stored something since the last value was
	// taken: a delivery, an update of trackings, or the outcome of an outbox entry. It is a hint: many changes make one
	// value, some make none, and a value may be for nothing. So callers that wait for a change must also poll. After ctx
	// has ended, no more values come. The channel is nil if the store has no such hints.
	Watch(ctx context.Context) <-chan struct{}

	// Revision returns a text that changes whenever this process or another stores something. It may also change without
	// a reason.
	Revision(ctx context.Context) (string, error)
}

// PruneResult is what a prune removed.
type PruneResult struct {
	Deliveries int64 // deliveries whose bytes were dropped
	Bytes      int64 // bytes of their headers and bodies, and of the paths and queries dropped with them
	Refused    int64 // refused deliveries
	Dead       int64 // dead entries
	Waiting    int64 // deliveries that stay whole, since they wait for a sink
}

// Receipt is the result of storing a delivery.
type Receipt struct {
	Delivery int64
	Rows     []Placement // one per row, in their order
}

// CountCurrent returns how many of the rows are current.
func (r Receipt) CountCurrent() int64 {
	var n int64
	for _, p := range r.Rows {
		if p.Mark == Current {
			n++
		}
	}
	return n
}

// Placement is the number and the mark that a row got.
type Placement struct {
	Seq  int64
	Mark Mark
}

// Query selects rows. The zero Query selects all, oldest first. All conditions that are set must hold.
type Query struct {
	After  int64 // only rows with a greater Seq
	Before int64 // only rows with a smaller Seq; 0 if unbounded
	Limit  int   // at most so many rows; 0 if unbounded
	Newest bool  // by Delivery, then Seq, descending: rows that were verified again stay in their place

	Delivery       int64  // of this delivery; 0 for any
	EventID        string // rows whose Key is [webhook.IDKey] of it; empty for any, as are the next fields
	EventIDPrefix  string // rows whose EventID begins with it; UUIDs in any case
	Kind           string
	TrackingNumber string        // compared as sent
	Trackings      *TrackingKeys // about one of these trackings; nil for any
	Since          time.Time
	Verified       []Verified // any of these; nil for all
	Genuine        bool       // leaves out synthetic events
	Marks          []Mark     // any of these; nil for all, anomalies too
}

// TrackingKeys identifies trackings as events do. An event matches if it has one of the numbers, compared without
// case, spaces and hyphens, or one of the identifiers, compared without case.
type TrackingKeys struct {
	Numbers   []string
	RouterIDs []string
}

// Counts is how much a store holds.
type Counts struct {
	Deliveries int64
	Refused    int64 // evidence that is kept
	LastEvent  int64 // greatest Seq of a row, 0 if none

	RefusedDropped int64 // refused deliveries without evidence, since there were too many; does not count pruned ones
}
