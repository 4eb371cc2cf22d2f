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
// put there by a clock that has been set back since: it is due now.
const MaxRetryDelay = 24 * time.Hour

// Outbox keeps how far each sink has come, and what it still has to send. A
// sink reads on from its own cursor; what it wants of that goes into its
// outbox, as entries, and out of it when it was sent or given up. So nothing
// is lost, whoever dies when; what was being sent then is sent once more.
//
// Implementations are safe for concurrent use by several goroutines and
// processes. Any method may return an error that matches [ErrFull],
// [ErrLocked] or [ErrReadOnly], and those about one sink [ErrNoSink].
//
// Every implementation must pass the suite Outbox of package storetest.
type Outbox interface {
	// OpenSink returns the sink with that key, made if there is none. A new
	// one begins where from says, and behind all that is stored if from is nil.
	// A known one goes on where it stopped if from is nil; else its cursor is
	// set to there, and what is in its outbox stays.
	OpenSink(ctx context.Context, key SinkKey, from *StartPosition) (Sink, error)

	// Sinks returns all sinks, in the order in which they were made.
	Sinks(ctx context.Context) ([]Sink, error)

	// SkipBacklog empties the sink's outbox, but for what living processes are
	// sending and what was given up, and sets its cursor behind all that is stored. It returns how
	// many entries it took out.
	SkipBacklog(ctx context.Context, sink int64) (int64, error)

	// Advance shows wants the rows of up to n deliveries behind the cursor, one
	// delivery at a time and in order, adds those that it wants to the outbox,
	// and moves the cursor on, both in one transaction. A delivery that became
	// verified after the cursor had passed it is shown again, once, unless it
	// was sent unverified. wants runs outside of the transaction and may be
	// shown the same delivery twice.
	Advance(ctx context.Context, sink int64, n int, wants func(rows []Event) bool) (Progress, error)

	// ClaimEntries returns up to n entries that are due now, or later than in
	// [MaxRetryDelay], those due for longest first, and nobody else gets them before they are settled or this process
	// has died. An entry is not due before every earlier one of the sink that
	// shares a tracking number (compared without case, spaces and hyphens) was
	// sent or given up. next is when the earliest of the others is due, zero
	// if none of them is by time alone.
	ClaimEntries(ctx context.Context, sink int64, n int, now time.Time) (entries []OutboxEntry, next time.Time, err error)

	// SettleEntry says what became of an entry that was claimed, or that is dead.
	// For one that is neither, it does nothing.
	SettleEntry(ctx context.Context, entry int64, o Settlement) error

	// EntryOf returns the sink's entry about a delivery, nil if there is none.
	// Then done says why: the delivery was sent, skipped or not wanted, or else
	// the cursor has not come to it yet.
	EntryOf(ctx context.Context, sink, delivery int64) (l *OutboxEntry, done bool, err error)

	// DeadEntries yields the entries that were given up, oldest first. An error ends it.
	DeadEntries(ctx context.Context) iter.Seq2[OutboxEntry, error]
}

// SinkKey is what a sink is known by.
type SinkKey struct {
	Name   string // of its kind, such as forward
	URL    string // where it sends to
	Filter string // what it takes, in the form of its kind; empty for all
}

// StartPosition says where a sink begins. The zero From is the beginning.
type StartPosition struct {
	Delivery int64     // the first delivery; 0 for the oldest
	Since    time.Time // the first received then or later; zero for no bound. Both bounds hold
}

// Sink is where deliveries go to.
type Sink struct {
	ID int64
	SinkKey
	New bool // it was made by this call

	Cursor  int64     // Seq of the last delivery that was looked at
	Unread  int64     // deliveries that were not looked at yet
	Waiting int64     // entries that wait in the outbox
	Dead    int64     // entries that were given up
	Oldest  time.Time // when the oldest that waits was put there; zero if none
}

// Progress is what one step of a cursor did.
type Progress struct {
	Read    int     // deliveries it passed
	Queued  []int64 // those that went into the outbox
	Skipped []int64 // those that did not
}

// OutboxEntry is a delivery in the outbox of a sink.
type OutboxEntry struct {
	ID       int64
	Sink     int64
	Delivery int64     // Seq of the delivery
	Added    time.Time // when it came into the outbox

	Attempt      int       // from 1: how often sending it was begun, this one included
	Failures     int       // how often that failed
	FirstFailure time.Time // zero if never

	GivenUpAt time.Time // when it was given up; zero if it was not
	Status    int       // of the last answer; 0 if there was none
	Problem   string    // why the last try failed
	Reply     []byte    // start of the last answer
}

// Settlement says what became of an entry.
type Settlement struct {
	Disposition Disposition
	Due         time.Time // of Retry: when to try again, within [MaxRetryDelay]
	Now         time.Time // when it turned out so
	Status      int       // of the answer; 0 if there was none
	Problem     string    // why it failed
	Reply       []byte    // start of the answer
}

// Disposition is what becomes of an entry.
type Disposition string

// The fates.
const (
	Sent     Disposition = "sent"     // it leaves the outbox
	Retry    Disposition = "retry"    // it failed, and is to be tried again
	GivenUp  Disposition = "dead"     // it failed, and is kept among the dead
	Returned Disposition = "returned" // it was not tried to the end, through no fault of its own
)
