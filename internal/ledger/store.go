package ledger

import (
	"context"
	"iter"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// Stager begins runs.
type Stager interface {
	// Stage begins a run that nobody can see yet. Only one process stages at
	// a time: Stage waits for another until ctx ends. Past ctx's deadline it
	// returns a [*BusyError], else the cause of ctx's end. What a process that
	// died had staged is removed first.
	Stage(ctx context.Context, plan Plan) (Staging, error)
}

// Queue hands out pending rows in batches and records what became of them.
//
// Implementations of the contracts of this package are safe for concurrent use by
// several goroutines and several processes. What a method wrote is on disk when
// it returns. Each must pass
// [github.com/waybill-cli/waybill/internal/storetest.Ledger].
type Queue interface {
	// Recover makes every row unknown that a process was sending when it
	// died, and returns their number.
	Recover(ctx context.Context) (int64, error)

	// Adopt brings rows of the run's input that are pending in other runs
	// into batches of the run: some n of them, whole batches where it can. It
	// returns their number. Runs of living processes give some of theirs too,
	// so that several processes share the work.
	Adopt(ctx context.Context, run int64, n int) (int64, error)

	// Claim moves up to n pending batches of the run to Sending and returns
	// them in order, each with its rows in the order of the input and no more
	// than size of them: larger ones are cut. No row is ever returned to two
	// callers. It returns none when none is left.
	Claim(ctx context.Context, run int64, n, size int) ([]Batch, error)

	// Settle records outcomes of claimed batches in one transaction, or none
	// of them. A batch that becomes Pending can be claimed again.
	Settle(ctx context.Context, outcomes []Settlement) error

	// CountRows returns how many distinct rows of the run's input, those known
	// before included, are in each state.
	CountRows(ctx context.Context, run int64) (Counts, error)
}

// UnknownRows is how rows of unknown outcome are settled.
type UnknownRows interface {
	// Unknown yields the rows of the run's input that are unknown, batch by
	// batch.
	Unknown(ctx context.Context, run int64) iter.Seq2[UnknownRow, error]

	// Accepted yields those that are accepted, likewise.
	Accepted(ctx context.Context, run int64) iter.Seq2[UnknownRow, error]

	// MarkUnknown makes accepted rows unknown in one transaction, for that reason,
	// and returns how many were accepted still.
	MarkUnknown(ctx context.Context, rows []UnknownRow, reason string) (int64, error)

	// Resolve records resolutions in one transaction. Rows that become Pending
	// go into batches of the run. It returns how many of them still held.
	Resolve(ctx context.Context, run int64, found []Resolution) (int64, error)

	// Reopen makes the rows of the run's input that are Rejected, or Unknown,
	// pending in batches of the run, and returns their number. The user
	// decided so: nothing is proven by it.
	Reopen(ctx context.Context, run int64, from State) (int64, error)

	// Controls returns up to n rows of the account that are accepted, those
	// without siblings and the latest first.
	Controls(ctx context.Context, account string, n int) ([]UnknownRow, error)
}

// Staging is a run being filled. It is used by one goroutine, and ends with
// Open or Discard; a process that dies before leaves nothing behind.
type Staging interface {
	// Add appends entries in input order. Entries that the ledger holds, or
	// that came earlier in this input, become no second row. It returns those
	// that contradict an earlier entry of this input.
	Add(ctx context.Context, entries []Entry) ([]Conflict, error)

	// Open makes the run real: durable, visible, ready to be claimed. An
	// input without a single valid record is for the caller to refuse.
	Open(ctx context.Context) (Run, error)

	// Discard removes everything that was staged. After Open it does nothing.
	Discard(ctx context.Context) error
}

// History is what can be asked about runs.
type History interface {
	// Runs yields the runs of the account, or of every account if it is
	// empty, newest first; limit 0 means all.
	Runs(ctx context.Context, account string, limit int) iter.Seq2[RunSummary, error]

	// AccountNames returns the accounts that have runs, the oldest first.
	AccountNames(ctx context.Context) ([]string, error)

	// Run returns one run, or [ErrNoRun].
	Run(ctx context.Context, id int64) (RunSummary, error)

	// Rows yields the records of the run's input in input order, known ones
	// and repeats included.
	Rows(ctx context.Context, run int64) iter.Seq2[Row, error]

	// Batches yields the batches of a run in order.
	Batches(ctx context.Context, run int64) iter.Seq2[BatchSummary, error]

	// Pending returns how many rows of the account are pending in runs other
	// than the given one.
	Pending(ctx context.Context, account string, except int64) (int64, error)

	// PruneRuns removes runs created before that, with their inputs and the
	// answers to them. The rows and their states stay, so that nothing is new a
	// second time. A run with rows that are pending, sending or unknown stays,
	// as does one that a living process works on.
	PruneRuns(ctx context.Context, before time.Time) (PrunedRuns, error)

	// Lookup returns how a pair stands, and false if the ledger does not hold it.
	Lookup(ctx context.Context, account string, key tracking.Key) (State, bool, error)
}

// Keys keeps which API keys were used for an account.
type Keys interface {
	// LookUpKey says whether a key is the first of its account or was seen
	// before. Only a keyed fingerprint is compared and kept.
	LookUpKey(ctx context.Context, account, key string) (KeyStatus, error)

	// TrustKey records the key as one of the account's.
	TrustKey(ctx context.Context, account, key string) error
}

// Accounts keeps what is known of the service for an account.
type Accounts interface {
	// Contacted reports whether a row sent for the account was found by a
	// query once, see [Accounts.RecordContact].
	Contacted(ctx context.Context, account string) (bool, error)
	RecordContact(ctx context.Context, account string) error

	// BatchLimit returns how many rows the service took at most in one
	// request of that mode, 0 if none was too large yet; LimitBatches lowers it.
	BatchLimit(ctx context.Context, account string, mode Mode) (int, error)
	LowerBatchLimit(ctx context.Context, account string, mode Mode, rows int) error

	// Assumptions returns what was checked for the account, by name.
	Assumptions(ctx context.Context, account string) ([]CheckedAssumption, error)
	// RecordAssumption records what was checked. One that failed once stays so.
	RecordAssumption(ctx context.Context, account string, c CheckedAssumption) error
}

// KeyStatus is what [Keys.LookUpKey] found out.
type KeyStatus struct {
	Seen    bool // this key was recorded for the account
	HasRuns bool // the account has runs in this ledger
	// Others are the other accounts with runs that this key was recorded for.
	Others []string
}

// Trackings keeps the last answer about each tracking.
type Trackings interface {
	// Learn records sightings from one answer, each that supersedes what is
	// known of its tracking, see [Sighting.Supersedes]. raw is the answer, byte
	// for byte, which is kept in any case; nil keeps the one there is.
	Learn(ctx context.Context, account string, seen []Sighting, raw []byte) error

	// Statuses yields what is known of the account's trackings, in the order
	// they were created, then those only ever seen, and the numbers that are
	// nobody's: a tracking without referId belongs to no account. What is known
	// of such a number is also known of the trackings that have it.
	Statuses(ctx context.Context, account string, f Filter) iter.Seq2[TrackingStatus, error]

	// Find returns the account's rows with the given referId, or with the
	// given number if referID is empty, in the order they were created, and
	// trackings only ever seen after them.
	Find(ctx context.Context, account, referID, number string) ([]TrackingStatus, error)
}

// EventFollower is how the ledger learns from events, which come unasked, whoever's
// account was in use when they came. Events are known by their numbers in the
// inbox, which grow.
type EventFollower interface {
	// Followed returns how far events were followed, and the last one there is.
	Followed(ctx context.Context) (to, last int64, err error)

	// Follow records what events told as [Trackings.Learn] does, and moves
	// Followed from one number to another in the same transaction. If it stands
	// elsewhere by now, nothing happens and it returns false.
	//
	// A sighting names a number, or a RouterID, or both, and no referId: it is
	// about every row of that number, whichever account's, and about those
	// trackings to which an answer has tied the RouterID; if there are none,
	// about the number alone, which is nobody's until an account has it. An
	// event ties no RouterID to a row: it may be about several.
	Follow(ctx context.Context, seen []Sighting, from, to int64) (bool, error)

	// UpdatedByEvents returns the account's trackings, and the numbers that are nobody's,
	// of which the last was learnt from an event behind the one numbered after.
	UpdatedByEvents(ctx context.Context, account string, after int64) ([]tracking.Key, error)

	// LastUnverified is that of [TrackingStatus], for a number.
	LastUnverified(ctx context.Context, number string) (int64, error)
}

// Filter narrows a list. Its zero value takes everything.
type Filter struct {
	Status     string    // status number, label or track, as [tracking.NamesStatus] compares them
	Run        int64     // only rows of this run's input
	SeenSince  time.Time // only trackings seen at or after
	StaleSince time.Time // only accepted trackings not seen at or after, and not delivered
	Limit      int       // 0 means all
}
