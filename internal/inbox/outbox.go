package inbox

import (
	"context"
	"errors"
	"iter"
	"time"
)

// ErrNoSink says that there is no such sink.
var ErrNoSink = errors.New("no such sink")

// MaxRetryDelay is how far ahead an entry may be due. One that is due later was
// stored before the clock was set back: it is due now.
const MaxRetryDelay = 24 * time.Hour

// Outbox keeps the cursor of each sink, and what the sink still has to send. A sink reads deliveries behind its
// cursor and puts those that it accepts into its outbox as entries. An entry leaves it when it was sent. So the death
// of a process loses nothing; what it was sending is sent once more.
//
// Implementations are safe for concurrent use by several goroutines and processes. Any method may return an error
// that matches [ErrFull], [ErrLocked], [ErrReadOnly] or [ErrUnreachable], and those about one sink [ErrNoSink].
type Outbox interface {
	// OpenSink returns the sink with that key, made if there is none. from sets its cursor; what is in its outbox stays.
	// With nil a new sink begins behind all that is stored, and a known one continues where it stopped.
	OpenSink(ctx context.Context, key SinkKey, from *StartPosition) (Sink, error)

	// Sinks returns all sinks, in the order in which they were made.
	Sinks(ctx context.Context) ([]Sink, error)

	// SkipBacklog sets the sink's cursor behind all that is stored and removes the entries of its outbox, but for those
	// that living processes are sending and those that were given up. It returns how many it removed.
	SkipBacklog(ctx context.Context, sink int64) (int64, error)

	// ForgetSink removes the sink, its outbox and what is known of its attempts. What is being sent
	// is not recorded any more.
	ForgetSink(ctx context.Context, sink int64) error

	// Advance calls accepts with the rows of up to n deliveries behind the cursor, one delivery at a time and in order.
	// It adds those that are accepted to the outbox and moves the cursor, both in one transaction. A delivery that
	// became verified after the cursor had passed it is read again, once, unless it was sent unverified. accepts runs
	// outside of the transaction and may get the same delivery twice.
	Advance(ctx context.Context, sink int64, n int, accepts func(rows []Event) bool) (Progress, error)

	// ClaimEntries returns up to n entries that are due now, or later than in [MaxRetryDelay], those due for longest
	// first. Nobody else gets them before they are settled or this process has died. An entry waits until every earlier
	// one of the sink that shares a tracking number (compared without case, spaces and hyphens) was sent or given up.
	// next is when the earliest of the others that wait for nothing but time is due, zero for none.
	ClaimEntries(ctx context.Context, sink int64, n int, now time.Time) (entries []OutboxEntry, next time.Time, err error)

	// SettleEntry records the result of an entry that was claimed, or that is dead. For any other it does nothing.
	SettleEntry(ctx context.Context, entry int64, s AttemptOutcome) error

	// DeadEntries yields the entries that were given up, oldest first. An error ends it.
	DeadEntries(ctx context.Context) iter.Seq2[OutboxEntry, error]
}

// Claims says what of an outbox is still this process's.
type Claims interface {
	// Held returns nil while what was claimed as that [OutboxEntry].Owner is this process's, else an error that matches
	// [ErrNotClaimed]: others took the process for dead, or may have, since it can't reach the store. Whoever sends asks
	// right before each request. It costs nothing.
	Held(owner string) error
}

// Forwardings shows what sinks did with deliveries, and what they wait for. It changes nothing.
type Forwardings interface {
	// WaitingEntries yields the entries that were neither sent nor given up, in
	// the order in which they came into their outbox. An error ends it.
	WaitingEntries(ctx context.Context) iter.Seq2[WaitingEntry, error]

	// ForwardingsOf returns what each sink did with a delivery, in the order of the sinks.
	ForwardingsOf(ctx context.Context, delivery int64) ([]Forwarding, error)
}

// WaitingEntry is an entry that was not sent yet, and what it waits for.
type WaitingEntry struct {
	OutboxEntry

	Due     time.Time // of the next attempt
	Sending bool      // a living process is sending it
	HeldBy  int64     // the delivery that must be sent or given up before, 0 if there is none
	Number  string    // of HeldBy: the tracking number that they share, folded
}

// Forwarding is what a sink did with one delivery.
type Forwarding struct {
	Sink     Sink          // without what waits for it
	Read     bool          // the cursor has passed the delivery
	Waiting  *WaitingEntry // it waits in the outbox, or was given up; nil if neither
	SentAt   time.Time     // zero if it was not sent; likewise below
	Attempts int           // until it was sent
	Status   int           // of the answer
	History  []Attempt     // the last 20 or so, oldest first
}

// Attempt is one attempt to send a delivery.
type Attempt struct {
	At     time.Time // when it ended
	Number int       // since the delivery came into the outbox, from 1
	Status int       // of the answer; 0 if there was none
	Took   time.Duration
	Sent   bool // it was the last one
}

// SinkKey identifies a sink.
type SinkKey struct {
	Name   string // of its kind, such as forward
	URL    string // where it sends to
	Filter string // what it accepts, in the form of its kind; empty for all
}

// StartPosition is where a sink begins. The zero StartPosition is the oldest delivery.
type StartPosition struct {
	Delivery int64     // the first delivery; 0 for the oldest
	Since    time.Time // the first received then or later; zero for no bound. Both bounds hold
}

// Sink is where deliveries go to.
type Sink struct {
	ID int64
	SinkKey
	New bool // it was made by this call

	Cursor  int64     // Seq of the last delivery that was read
	Unread  int64     // deliveries behind the cursor
	Waiting int64     // entries that wait in the outbox
	Dead    int64     // entries that were given up
	Oldest  time.Time // when the oldest that waits was put there; zero if none
}

// Progress is what one step of a cursor did.
type Progress struct {
	Read   int     // deliveries that the cursor passed
	Queued []int64 // of these, what was added to the outbox
}

// OutboxEntry is a delivery in the outbox of a sink.
type OutboxEntry struct {
	ID       int64
	Sink     int64
	Delivery int64     // Seq of the delivery
	Owner    string    // who claimed it, see [Claims]; empty if nobody has
	Added    time.Time // when it came into the outbox

	Attempt      int       // from 1: how often sending it was begun, this time included
	Failures     int       // how often that failed
	FirstFailure time.Time // zero if never

	GivenUpAt time.Time // when it was given up; zero if it was not
	Status    int       // of the last answer; 0 if there was none
	Problem   string    // why the last attempt failed
	Reply     []byte    // start of the last answer
}

// AttemptOutcome is the result of an attempt to send an entry.
type AttemptOutcome struct {
	Disposition Disposition
	Attempt     int           // of the claimed [OutboxEntry]: the outcome of an older claim is dropped; 0 for any
	Due         time.Time     // of Retry: when the next attempt is due, within [MaxRetryDelay]
	Now         time.Time     // when the attempt ended
	Took        time.Duration // until the answer, or until there was none
	Status      int           // of the answer; 0 if there was none
	Problem     string        // why it failed
	Reply       []byte        // start of the answer
}

// Disposition is what becomes of an entry after an attempt.
type Disposition string

// The dispositions.
const (
	Sent     Disposition = "sent"     // it leaves the outbox
	Retry    Disposition = "retry"    // it failed, and is to be tried again
	GivenUp  Disposition = "dead"     // it failed for the last time, and is kept as a dead entry
	Returned Disposition = "returned" // the attempt was cut short; it does not count as a failure
	Unbegun  Disposition = "unbegun"  // there was no attempt
)
