package inbox

import (
	"context"
	"iter"
	"time"
)

// Bounds of the evidence that a store keeps of refused deliveries. Both hold.
const (
	MaxRefused      = 4096
	MaxRefusedBytes = 64 << 20 // bodies and headers together
)

// RowBytes is how much a row of an unverified delivery counts: what it takes with its indexes, about.
const RowBytes = 512

// Store keeps deliveries and events. Implementations are safe for concurrent use by several
// goroutines and, where the database allows it, several processes. Any method may return an
// error that matches [ErrFull], [ErrLocked], [ErrReadOnly] or [ErrUnreachable].
//
// Every implementation of this package's contracts must pass the suites Inbox and Outbox of package storetest.
type Store interface {
	// Put stores d and its rows (see [Prepare]) in one transaction and returns when they are on disk for good, or stores
	// nothing and returns an error. d.Seq and the rows' Seq, Delivery and marks are not read, but for the mark
	// [Anomaly], which is kept as it is and never compared with others.
	//
	// Each other row is compared with the current one of the same Key that is as
	// synthetic as it is, rows of the same delivery in their order:
	//   - there is none: it is current;
	//   - it is verified and the other is not, or it counts and the other does
	//     not: it is current, and the other becomes Superseded;
	//   - its bytes equal the other's: Duplicate;
	//   - else: Conflict. The first stays current.
	//
	// Method, Path, RawQuery, Header and Body may hold any bytes whatever and
	// are kept as they are. The rows' text is UTF-8 without NUL.
	//
	// A current row whose bytes were pruned is compared by what was kept of them, such as their hash.
	//
	// The numbers grow in the order in which rows become visible: a reader that saw a Seq never finds a smaller one later.
	Put(ctx context.Context, d Delivery, rows []Event) (Receipt, error)

	// PutRefused keeps d as evidence of a refusal, within [MaxRefused] and [MaxRefusedBytes], and returns its number, 0 if
	// it is not kept. Refused deliveries have numbers of their own and no events. It need not be on disk when it returns.
	//
	// Anybody may send what is refused, so a flood of it must not evict genuine deliveries. There are three classes: no
	// well-formed signature (see [webhook.Reason.WellFormed]); a well-formed one; and a well-formed one from an address
	// that a verified delivery came from. Beyond the bounds, the largest class loses a delivery from the remote address
	// or the minute of receipt, whichever has most of that class. In that address it is the minute that has most, and
	// the other way round. What is left of an address and a minute is a uniform sample: neither first nor last ones are
	// favoured.
	PutRefused(ctx context.Context, d Delivery) (int64, error)

	// Refused yields refused deliveries whose Seq is greater than after, in
	// order, with bodies and headers. An error ends it.
	Refused(ctx context.Context, after int64) iter.Seq2[Delivery, error]

	// Events yields the rows that match q. An error ends it. What is put while
	// it runs may or may not be seen. The loop's body may call the store.
	Events(ctx context.Context, q Query) iter.Seq2[Event, error]

	// Event returns one row with its bytes, or [ErrNoEvent].
	Event(ctx context.Context, seq int64) (Event, error)

	// Delivery returns one delivery with its body and headers, or [ErrNoDelivery].
	Delivery(ctx context.Context, seq int64) (Delivery, error)

	// Readmitted returns the number of the delivery that a refused one became, see [Verdicts.Readmit], or [ErrNoDelivery].
	Readmitted(ctx context.Context, refused int64) (int64, error)

	// Counts returns how much there is.
	Counts(ctx context.Context) (Counts, error)
}

// Verdicts changes the verdict on stored and refused deliveries, for schemes and secrets that were set after they came.
type Verdicts interface {
	// SetVerdict gives the stored delivery d.Seq the verdict that d has: Verified, Reason,
	// Scheme, SecretName and BodyAuthenticated. Nothing else of d is read.
	//
	// A delivery that becomes verified is released: each of its events is added once more, with a new number, and
	// compared with the current ones as Put does; the unverified rows become Superseded. So a reader that continues from
	// the last number reads it once more. Anomalies, and deliveries that do not become verified, keep their rows, with
	// the new verdict.
	//
	// A delivery that is verified, or whose bytes were pruned, does not change, and the
	// receipt has no rows. The error is [ErrNoDelivery] if there is none of that number.
	SetVerdict(ctx context.Context, d Delivery) (Receipt, error)

	// Readmit puts d and its rows as [Store.Put] does, and in the same transaction deletes the refused delivery with
	// that number, which d was. If there is none it does nothing and returns [ErrNoDelivery].
	Readmit(ctx context.Context, refused int64, d Delivery, rows []Event) (Receipt, error)
}

// Retention keeps an inbox within bounds.
type Retention interface {
	// UnverifiedBytes returns how much is kept of deliveries that did not verify, refused
	// ones not included: bytes of paths, queries, headers and bodies, and [RowBytes] for each row.
	UnverifiedBytes(ctx context.Context) (int64, error)

	// Prune drops the headers and bodies of deliveries that were received before that time, and the evidence of refusals
	// before it. Events that verified keep their numbers, keys, fields and marks, so that nothing becomes new a second
	// time. Rows that did not verify go, and the paths and queries of their deliveries: they have no part in what is
	// known, and anybody may send them. Deliveries that wait in an outbox stay whole until they were sent or given up,
	// those that a sink has not read yet for a day. Of attempts to send them that of success stays. Dead entries are
	// deleted with the bytes. It works in portions: an error leaves some of it done.
	Prune(ctx context.Context, before time.Time) (PruneResult, error)
}

// Listeners knows which listeners take deliveries into the store.
type Listeners interface {
	// AddListener records that this process takes deliveries, until the store is closed or others take the process for
	// dead. To record the same again does nothing; what is recorded of the same URL takes the place of what was.
	AddListener(ctx context.Context, l Listener) error

	// RunningListeners returns those that run now, in any order.
	RunningListeners(ctx context.Context) ([]Listener, error)
}

// Listener is a process that takes deliveries.
type Listener struct {
	URL   string  `json:"url"`   // where, as its own computer reaches it
	Host  string  `json:"host"`  // its computer; empty if that was not recorded
	Sinks []int64 `json:"sinks"` // that it sends to, in order

	// Verify says how it verifies: equal for those that verify alike, empty if that was not recorded. It holds no secret.
	Verify string `json:"verify"`
}

// Changes says when something is stored.
type Changes interface {
	// Watch returns a channel that holds a value when another process may have stored something since the last value was
	// taken: a delivery, an update of trackings, or the result of an outbox entry. It is a hint: many changes make one
	// value, some make none, and a value may be about nothing. So whoever waits for a change looks from time to time
	// too. Once ctx has ended, no more values come. Of a store that has no such hints the channel is nil.
	Watch(ctx context.Context) <-chan struct{}

	// Revision returns a text that differs from what it was before whenever anything was
	// stored meanwhile, by this process or another. It may differ though nothing was.
	Revision(ctx context.Context) (string, error)
}

// PruneResult is what a prune dropped.
type PruneResult struct {
	Deliveries int64 // whose bytes were dropped
	Bytes      int64 // of their headers and bodies, and of the paths and queries that went with them
	Refused    int64 // pieces of evidence
	Dead       int64 // entries that had been given up
	Waiting    int64 // deliveries that were left whole, since they wait for a sink
}

// Receipt says what became of a delivery that was put.
type Receipt struct {
	Delivery int64
	Rows     []Placement // one for each row, in their order
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

// Placement is where one row was put.
type Placement struct {
	Seq  int64
	Mark Mark
}

// Query says which rows are asked for. The zero Query asks for all, oldest first. All that is set must hold.
type Query struct {
	After  int64 // only rows whose Seq is greater
	Before int64 // only rows whose Seq is smaller; 0 for no bound
	Limit  int   // at most so many; 0 for no bound
	Newest bool  // greatest Delivery first, of one the greatest Seq: what was verified again stays in its place

	Delivery       int64  // of this delivery; 0 for any
	EventID        string // rows whose Key is [webhook.IDKey] of it; empty for any, likewise below
	EventIDPrefix  string // rows whose EventID begins so; of UUIDs however cased
	Kind           string
	TrackingNumber string        // compared as sent
	Trackings      *TrackingKeys // about one of these trackings; nil for any
	Since          time.Time
	Verified       []Verified // any of these; nil for all
	Genuine        bool       // leaves out synthetic events
	Marks          []Mark     // any of these; nil for all, anomalies too
}

// TrackingKeys names trackings by what events call them. An event is about one of them if it has one of the numbers,
// compared without case, spaces and hyphens, or one of the identifiers, compared without case.
type TrackingKeys struct {
	Numbers   []string
	RouterIDs []string
}

// Counts is how much a store holds.
type Counts struct {
	Deliveries int64
	Refused    int64 // as far as evidence is kept
	LastEvent  int64 // greatest Seq of a row, 0 if there is none

	RefusedDropped int64 // refused deliveries of which no evidence is kept, since there were too many; without pruned ones
}
