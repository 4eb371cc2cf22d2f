package ledger

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// Stager begins runs.
type Stager interface {
	// Stage begins a run that is invisible until it is opened. Only one process stages at a time: Stage waits for the
	// others until ctx ends. It returns a [*BusyError] when ctx's deadline passes, else the cause of ctx's end. It
	// removes what dead processes had staged.
	Stage(ctx context.Context, plan Plan) (Staging, error)

	// KnownOrders looks at the first ComparedOrders rows that the run brought in. It returns those whose referId an
	// earlier run has with another number, or in another case or with spaces around it.
	KnownOrders(ctx context.Context, run int64) (KnownOrders, error)
}

// Queue hands out pending rows in batches and records their outcomes.
//
// Implementations of this package's contracts are safe for concurrent use by several goroutines and several processes.
// When a method returns, its changes are on disk. Every implementation must pass
// [github.com/waybill-cli/waybill/internal/storetest.Ledger].
type Queue interface {
	// Recover makes the rows that dead processes were sending unknown, and returns their number.
	Recover(ctx context.Context) (int64, error)

	// Adopt moves rows of the run's input that are pending in other runs into batches of this run: about n rows, in whole
	// batches if possible. It returns their number. Runs of living processes also give up some of their rows, so that
	// several processes share the work.
	Adopt(ctx context.Context, run int64, n int) (int64, error)

	// Claim moves up to n pending batches of the run to Sending and returns them in order, each with its rows in input
	// order. It cuts batches of more than size rows. No row is ever returned to two callers. It returns none when no
	// batch is left.
	Claim(ctx context.Context, run int64, n, size int) ([]Batch, error)

	// RecordOutcomes records the outcomes of claimed batches in one transaction. If one of them does not fit, it records
	// none and returns an error that matches [ErrNotClaimed]. A batch that becomes Pending can be claimed again.
	RecordOutcomes(ctx context.Context, outcomes []BatchOutcome) error

	// ClaimFull moves to Sending, and returns, the batches of full that nobody has claimed or changed since
	// [Staging.Full] returned them. It does not read their rows again.
	ClaimFull(ctx context.Context, run int64, full []Batch) ([]Batch, error)

	// CheckOwner returns nil while this process holds the claims of owner, see [Batch].Owner. Else the error matches
	// [ErrNotClaimed]: others declared this process dead, or may have, since it can't reach the store. Senders call it
	// right before each request. It costs nothing.
	CheckOwner(owner string) error

	// FirstPending returns the next pending row of the run's input, nil if none is pending.
	FirstPending(ctx context.Context, run int64) (*UnknownRow, error)

	// CountRows returns how many distinct rows of the run's input, known ones included, are in each state.
	CountRows(ctx context.Context, run int64) (Counts, error)
}

// UnknownRows resolves rows of unknown outcome, and changes rejected rows at the user's word.
type UnknownRows interface {
	// Unknown yields the unknown rows of the run's input, batch by batch.
	Unknown(ctx context.Context, run int64) iter.Seq2[UnknownRow, error]

	// Accepted yields the accepted rows of the run's input, batch by batch.
	Accepted(ctx context.Context, run int64) iter.Seq2[UnknownRow, error]

	// CheckPending makes the pending rows of the run's input unknown, as [Plan.CheckFirst] does for new rows, and returns
	// their number.
	CheckPending(ctx context.Context, run int64) (int64, error)

	// MarkUnknown makes accepted rows unknown in one transaction, with the given reason, and returns how many were still
	// accepted.
	MarkUnknown(ctx context.Context, rows []UnknownRow, reason string) (int64, error)

	// Resolve records resolutions in one transaction and returns how many of them still applied. Rows that become Pending
	// go into batches of the run.
	Resolve(ctx context.Context, run int64, found []Resolution) (int64, error)

	// Reopen makes rows of the run's input whose state is from, Rejected or Unknown, pending in batches of the run, and
	// returns their number. It is for user decisions, not for proofs. ref selects the rows of that referId or number,
	// compared as numbers are. If ref is empty, superseded and dismissed rows stay; else a dismissal ends.
	Reopen(ctx context.Context, run int64, from State, ref string) (int64, error)

	// Dismiss marks rejected rows of the run's input as dismissed by the user: all open rows, see [CloseReason], or the
	// rows of ref, as in Reopen, superseded rows too. It returns how many were not dismissed before.
	Dismiss(ctx context.Context, run int64, ref string) (int64, error)

	// Controls returns up to n accepted rows: first those without siblings, the latest first.
	Controls(ctx context.Context, n int) ([]UnknownRow, error)
}

// Staging is a run being filled. One goroutine uses it and ends it with Open or Discard. If the process dies before
// that, nothing is left behind, unless it called Begin.
type Staging interface {
	// Add appends entries in input order. Pairs that are in the ledger, or earlier in this input, get no second row. It
	// returns the entries that contradict an earlier entry of this input.
	Add(ctx context.Context, entries []Entry) ([]Conflict, error)

	// Begin returns the run. From the next Add on it is visible, and added rows can be claimed, except for the last batch
	// until it is full. If the process ends before Open, the run keeps its rows and [RunSummary.Partial] is set.
	Begin() Run

	// Full returns the batches that became full since the last call. It is for use after Begin.
	Full() []Batch

	// Open makes the run durable, visible, and ready to be claimed. The caller refuses an input without a valid record.
	// Earlier partial runs of the same files stop being partial if this input is no shorter and has each of their new
	// rows.
	Open(ctx context.Context) (Run, error)

	// Discard removes everything that was staged before Begin; a visible run stays as it is. After Open it is a no-op.
	Discard(ctx context.Context) error
}

// History reads and prunes runs.
type History interface {
	// Runs yields the runs, newest first; limit 0 means all.
	Runs(ctx context.Context, limit int) iter.Seq2[RunSummary, error]

	// Run returns one run, or [ErrNoRun].
	Run(ctx context.Context, id int64) (RunSummary, error)

	// Rows yields the records of the run's input in input order, including known ones and repeats.
	Rows(ctx context.Context, run int64) iter.Seq2[Row, error]

	// Batches yields the batches of a run in order.
	Batches(ctx context.Context, run int64) iter.Seq2[BatchSummary, error]

	// Pending returns how many rows are pending in runs other than the given one.
	Pending(ctx context.Context, except int64) (int64, error)

	// PruneRuns removes the runs created before the given time, with their inputs and answers. Rows and states stay, so
	// that no row is sent twice. Runs with pending, sending or unknown rows stay, as do runs of living processes.
	PruneRuns(ctx context.Context, before time.Time) (PrunedRuns, error)

	// Lookup returns the state of a pair, and false if it is not in the ledger.
	Lookup(ctx context.Context, key tracking.Key) (State, bool, error)
}

// Keys remembers which API keys were used.
type Keys interface {
	// LookUpKey reports whether a key was seen before. Only a keyed fingerprint is compared and stored.
	LookUpKey(ctx context.Context, key string) (KeyStatus, error)

	// TrustKey records a key.
	TrustKey(ctx context.Context, key string) error
}

// Accounts keeps the account of the service that the store belongs to, and what is known of the service for it.
type Accounts interface {
	// Account returns the account, "" while the store belongs to none.
	Account(ctx context.Context) (string, error)
	// Pin gives the store an account for good, unless it has one, and returns the store's account.
	Pin(ctx context.Context, name string) (string, error)

	// BatchLimit returns how many rows one request of that mode may have, 0 if no request was too large yet.
	// LowerBatchLimit lowers it.
	BatchLimit(ctx context.Context, mode Mode) (int, error)
	LowerBatchLimit(ctx context.Context, mode Mode, rows int) error

	// Proofs returns all proofs, by shape.
	Proofs(ctx context.Context) ([]Proof, error)
	// Prove records a proof made by querying rows while they were in that state. If one of them has left the state or its
	// batch since, it returns false. A shape whose rows the service may have taken stays so.
	Prove(ctx context.Context, p Proof, in State, rows []UnknownRow) (bool, error)
	// Disprove deletes the proof of a shape.
	Disprove(ctx context.Context, shape string) error
}

// KeyStatus is the result of [Keys.LookUpKey].
type KeyStatus struct {
	Seen    bool // this key was recorded
	HasRuns bool // the ledger has runs
}

// Trackings keeps the last answer about each tracking.
type Trackings interface {
	// Record records answers in one transaction: the answers themselves, and each sighting that supersedes what is known
	// of its tracking, see [Sighting.Supersedes].
	Record(ctx context.Context, answers []RecordedAnswer) error

	// LastAnswer returns the last answer for a referId, byte for byte; nil if there is none.
	LastAnswer(ctx context.Context, referID string) ([]byte, error)

	// Statuses yields trackings with what is known of them: rows in the order of creation, then trackings that were only
	// seen, then numbers alone (trackings without referId). What is known of a number alone also applies to the trackings
	// that have it. f.Order may change the order.
	Statuses(ctx context.Context, f Filter) iter.Seq2[TrackingStatus, error]

	// Find returns the rows with the given referId, or with the given number if referID is empty, in the order of
	// creation, and after them the trackings that were only seen.
	Find(ctx context.Context, referID, number string) ([]TrackingStatus, error)

	// FindAll is Find for many queries: the n-th result belongs to the n-th query.
	FindAll(ctx context.Context, qs []tracking.Query) ([][]TrackingStatus, error)
}

// Statistics counts trackings.
type Statistics interface {
	// Count counts the trackings that [Trackings.Statuses] would yield, by group, in no particular order. It ignores
	// Limit and Order.
	Count(ctx context.Context, f Filter) ([]Group, error)

	// SeenStatuses returns the known statuses of trackings and of numbers alone, the most frequent first. Unlike Count it
	// reads no tracking.
	SeenStatuses(ctx context.Context) ([]StatusCount, error)

	// SeenCarriers returns the carrier codes of trackings and of numbers alone, each in one spelling, the most frequent
	// first. It reads no tracking.
	SeenCarriers(ctx context.Context) ([]string, error)

	// OwnColumns returns the names of the input columns that were kept, see [Plan.Own], each once.
	OwnColumns(ctx context.Context) ([]string, error)

	// References returns up to limit referIds that begin with prefix, each once, in byte order.
	References(ctx context.Context, prefix string, limit int) ([]string, error)
}

// Sweeps remembers unfinished sweeps: commands that have not asked about all of their trackings yet.
type Sweeps interface {
	// BeginSweep returns the start time of the unfinished sweep of that name, unless that is before oldest; else it
	// begins a new one.
	BeginSweep(ctx context.Context, name string, oldest time.Time) (time.Time, error)

	// EndSweep ends a sweep; without one it does nothing.
	EndSweep(ctx context.Context, name string) error
}

// EventFollower updates the ledger from events. An event is identified by its number in the inbox, which grows.
type EventFollower interface {
	// Followed returns the number of the last followed event, and that of the last event there is.
	Followed(ctx context.Context) (to, last int64, err error)

	// Follow records what events say, as [Trackings.Record] does, and advances Followed in the same transaction. If
	// Followed is not from, it does nothing and returns false.
	//
	// A sighting has a number, a RouterID, or both, but no referId. It applies to every row of that number, and to
	// trackings whose RouterID an answer told. If there are none, it applies to the number alone until a row has it. An
	// event gives no row a RouterID, since it may be about several rows.
	Follow(ctx context.Context, seen []Sighting, from, to int64) (bool, error)

	// LastUnverified returns [TrackingStatus].Unverified for a number.
	LastUnverified(ctx context.Context, number string) (int64, error)
}

// ErrErased says that the data of a tracking was erased.
var ErrErased = errors.New("erased from the store")

// ErrBeingSent says that a row can't be erased: a living process is sending it or is about to.
var ErrBeingSent = errors.New("another process is sending it")

// Eraser removes all data of shipments and remembers only keyed hashes of their names.
type Eraser interface {
	// Erase removes the shipments that queries name by referId, number or both: rows, answers, trackings and events, and
	// header and body of every delivery that names a number. A name that other shipments share stays. An error that
	// matches [ErrBeingSent] comes before anything is removed; a row that a process begins to send after that check
	// stays. Erase may end at any point, and calling it again removes the rest. Erased data may remain in unused space
	// until Compact.
	Erase(ctx context.Context, qs []tracking.Query, o EraseOptions) (Erasure, error)

	// Compact removes erased data from the store's unused space too. It returns where copies may remain that it can't
	// remove.
	Compact(ctx context.Context) ([]string, error)

	// Erased reports for each query whether it was erased: a referId, a number, or a row if both are given. A referId or
	// number that a later row has does not count as erased.
	Erased(ctx context.Context, qs []tracking.Query) ([]bool, error)
}

// EraseOptions control what remains of erased shipments: with Forget not even a hash.
type EraseOptions struct{ Forget bool }

// Erasure counts what was removed. Responses are answers to queries, and to creates that also held other rows.
type Erasure struct {
	Unknown []int `json:"-"` // queries that match nothing that is or was in the store
	Shared  int64 `json:"-"` // numbers that stay since other shipments have them too

	Rows        int64 `json:"rows"`
	UnknownRows int64 `json:"unknown"` // rows with an unknown outcome
	Pending     int64 `json:"pending"` // rows that were not sent
	Trackings   int64 `json:"trackings"`
	Responses   int64 `json:"responses"`
	Events      int64 `json:"events"`
	Deliveries  int64 `json:"deliveries"` // deliveries whose bytes were dropped
	Refused     int64 `json:"refused"`
	Texts       int64 `json:"texts"` // reasons, file names and other texts that contained one of the names
}

// Add adds other to e.
func (e *Erasure) Add(other Erasure) {
	e.Shared += other.Shared
	e.Rows += other.Rows
	e.UnknownRows += other.UnknownRows
	e.Pending += other.Pending
	e.Trackings += other.Trackings
	e.Responses += other.Responses
	e.Events += other.Events
	e.Deliveries += other.Deliveries
	e.Refused += other.Refused
	e.Texts += other.Texts
}
