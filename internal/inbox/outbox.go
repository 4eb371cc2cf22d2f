package inbox

import (
	"context"
	"errors"
	"iter"
	"time"
)

// ErrNoSink says that no sink has that ID.
var ErrNoSink = errors.New("no such sink")

// MaxRetryDelay is how far ahead an entry may be due. An entry that is due later was stored before the clock was set
// back: it is due now.
const MaxRetryDelay = 24 * time.Hour

// Outbox keeps the cursor of each sink, and its entries: the deliveries that it still has to send. A sink reads the
// deliveries after its cursor and adds those that it accepts to its outbox. An entry is removed once it was sent. So
// nothing is lost if a process dies; what it was sending is sent again.
//
// Implementations are safe for concurrent use by several goroutines and processes. Any method may return an error that
// matches [ErrFull], [ErrLocked], [ErrReadOnly] or [ErrUnreachable]; methods for one sink may return [ErrNoSink].
type Outbox interface {
	// OpenSink returns the sink with that key, created if there is none. from sets its cursor; its outbox stays. If from
	// is nil, a new sink starts after everything stored, and a known one continues where it stopped.
	OpenSink(ctx context.Context, key SinkKey, from *StartPosition) (Sink, error)

	// Sinks returns all sinks, in the order of creation.
	Sinks(ctx context.Context) ([]Sink, error)

	// SkipBacklog moves the sink's cursor to the end and removes the entries of its outbox, except for those that living
	// processes are sending and those that were given up. It returns how many it removed.
	SkipBacklog(ctx context.Context, sink int64) (int64, error)

	// ForgetSink removes the sink, its outbox and its attempts. Deliveries being sent are no longer recorded.
	ForgetSink(ctx context.Context, sink int64) error

	// Advance calls accepts with the rows of up to n deliveries after the cursor, one delivery at a time and in order. It
	// adds the accepted ones to the outbox and moves the cursor, both in one transaction. A delivery that became verified
	// after the cursor had passed it is read again, once, unless it was sent unverified. accepts runs outside of the
	// transaction and may get the same delivery twice.
	Advance(ctx context.Context, sink int64, n int, accepts func(rows []Event) bool) (Progress, error)

	// ClaimEntries returns up to n entries that are due now, or later than [MaxRetryDelay] ahead, in the order of their
	// due times. Nobody else gets them before an outcome is recorded or this process has died. An entry waits until
	// every earlier one of the sink that shares a tracking number (compared without case, spaces and hyphens) was sent or
	// given up. next is when the first of the other entries that wait only for time is due, zero if none.
	ClaimEntries(ctx context.Context, sink int64, n int, now time.Time) (entries []OutboxEntry, next time.Time, err error)

	// RecordAttempt records the outcome of an attempt for a claimed or dead entry. For any other entry it does nothing.
	RecordAttempt(ctx context.Context, entry int64, s AttemptOutcome) error

	// DeadEntries yields the entries that were given up, oldest first. An error ends the sequence.
	DeadEntries(ctx context.Context) iter.Seq2[OutboxEntry, error]
}

// Claims tells which outbox entries this process still holds.
type Claims interface {
	// CheckOwner returns nil while this process holds the claims of owner, see [OutboxEntry].Owner. Else the error
	// matches [ErrNotClaimed]: others declared this process dead, or may have, since it can't reach the store. Senders
	// call it right before each request. It costs nothing.
	CheckOwner(owner string) error
}

// Forwardings shows what sinks did with deliveries, and what entries wait for. It changes nothing.
type Forwardings interface {
	// WaitingEntries yields the entries that were neither sent nor given up, in the order in which they were added. An
	// error ends the sequence.
	WaitingEntries(ctx context.Context) iter.Seq2[WaitingEntry, error]

	// ForwardingsOf returns what each sink did with a delivery, in the order of the sinks.
	ForwardingsOf(ctx context.Context, delivery int64) ([]Forwarding, error)
}

// WaitingEntry is an entry that was not sent yet, with what it waits for.
type WaitingEntry struct {
	OutboxEntry

	Due     time.Time // of the next attempt
	Sending bool      // a living process is sending it
	HeldBy  int64     // delivery that must be sent or given up first, 0 if none
	Number  string    // folded tracking number that it shares with HeldBy
}

// Forwarding is what a sink did with one delivery.
type Forwarding struct {
	Sink     Sink          // without the counts of its entries
	Read     bool          // the cursor has passed the delivery
	Waiting  *WaitingEntry // its entry that waits or was given up; nil if there is none
	SentAt   time.Time     // zero if it was not sent, as are the next two fields
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
	Sent   bool // it succeeded
}

// SinkKey identifies a sink.
type SinkKey struct {
	Name   string // kind of the sink, such as forward
	URL    string // where it sends
	Filter string // what it accepts, in the form of its kind; empty if all
}

// StartPosition is where a sink starts. The zero StartPosition is the oldest delivery.
type StartPosition struct {
	Delivery int64     // first delivery; 0 for the oldest
	Since    time.Time // not before that time of receipt; zero if unbounded. Both bounds apply
}

// Sink is a target of deliveries.
type Sink struct {
	ID int64
	SinkKey
	New bool // created by this call

	Cursor  int64     // Seq of the last delivery that it has read
	Unread  int64     // deliveries after the cursor
	Waiting int64     // entries that wait in the outbox
	Dead    int64     // entries that were given up
	Oldest  time.Time // when the oldest waiting entry was added; zero if none
}

// Progress is the result of one [Outbox.Advance].
type Progress struct {
	Read   int     // deliveries that the cursor passed
	Queued []int64 // the deliveries of these that were added to the outbox
}

// OutboxEntry is a delivery in the outbox of a sink.
type OutboxEntry struct {
	ID       int64
	Sink     int64
	Delivery int64     // Seq of the delivery
	Owner    string    // who claimed it, see [Claims]; empty if unclaimed
	Added    time.Time // when it was added to the outbox

	Attempt      int       // how often sending it was begun, this time included
	Failures     int       // how many attempts failed
	FirstFailure time.Time // zero if never

	GivenUpAt time.Time // zero if it was not given up
	Status    int       // of the last answer; 0 if there was none
	Problem   string    // why the last attempt failed
	Reply     []byte    // start of the last answer
}

// AttemptOutcome is the outcome of an attempt to send an entry.
type AttemptOutcome struct {
	Disposition Disposition
	Attempt     int           // of the claimed [OutboxEntry]: the outcome of an older claim is dropped; 0 for any
	Due         time.Time     // for Retry: when the next attempt is due, within [MaxRetryDelay]
	Now         time.Time     // when the attempt ended
	Took        time.Duration // until the answer, or the failure
	Status      int           // of the answer; 0 if there was none
	Problem     string        // why it failed
	Reply       []byte        // start of the answer
}

// Disposition is what happens to an entry after an attempt.
type Disposition string

// The dispositions.
const (
	Sent     Disposition = "sent"     // it is removed from the outbox
	Retry    Disposition = "retry"    // it failed, and will be retried
	GivenUp  Disposition = "dead"     // it failed for the last time, and stays as a dead entry
	Returned Disposition = "returned" // the attempt was cut short and does not count as a failure
	Unbegun  Disposition = "unbegun"  // no attempt was made
)
