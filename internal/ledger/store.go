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
	// Stage begins a run that is invisible until it is opened. Only one process stages at a
	// time: Stage waits for another until ctx ends. Past ctx's deadline it returns a
	// [*BusyError], else the cause of ctx's end. It removes what dead processes had staged.
	Stage(ctx context.Context, plan Plan) (Staging, error)

	// KnownOrders returns those of the first ComparedOrders rows that the run brought in whose referId an earlier run
	// brought in: with another number, or in capitals, in small letters or without the spaces around it.
	KnownOrders(ctx context.Context, run int64) (KnownOrders, error)
}

// Queue hands out pending rows in batches and records what became of them.
//
// Implementations of the contracts of this package are safe for concurrent use by several
// goroutines and several processes. What a method wrote is on disk when it returns. Each
// must pass [github.com/waybill-cli/waybill/internal/storetest.Ledger].
type Queue interface {
	// Recover makes the rows unknown that dead processes were sending, and returns their number.
	Recover(ctx context.Context) (int64, error)

	// Adopt moves rows of the run's input that are pending in other runs into batches of the run: about n of them, whole
	// batches if possible. It returns their number. Runs of living processes give up some of theirs too, so that several
	// processes share the work.
	Adopt(ctx context.Context, run int64, n int) (int64, error)

	// Claim moves up to n pending batches of the run to Sending and returns them in order, each with its rows in the
	// order of the input and no more than size of them: larger ones are cut. No row is ever returned to two callers. It
	// returns none when none is left.
	Claim(ctx context.Context, run int64, n, size int) ([]Batch, error)

	// Settle records outcomes of claimed batches in one transaction, or none of them, with an error that matches
	// [ErrNotClaimed] if one does not fit. A batch that becomes Pending can be claimed again.
	Settle(ctx context.Context, outcomes []BatchOutcome) error

	// ClaimFull moves those of the batches to Sending that nobody has claimed or changed
	// since [Staging.Full] returned them, and returns these. Their rows are not read again.
	ClaimFull(ctx context.Context, run int64, full []Batch) ([]Batch, error)

	// Held returns nil while what was claimed as that [Batch].Owner is this process's, else an error that matches
	// [ErrNotClaimed]: others took the process for dead, or may have, since it can't reach the store. Whoever sends asks
	// right before each request. It costs nothing.
	Held(owner string) error

	// FirstPending returns the row of the run's input that goes first, nil if none is pending.
	FirstPending(ctx context.Context, run int64) (*UnknownRow, error)

	// CountRows returns how many distinct rows of the run's input, those known before included, are in each state.
	CountRows(ctx context.Context, run int64) (Counts, error)
}

// UnknownRows settles rows of unknown outcome, and rejected ones by the user's word.
type UnknownRows interface {
	// Unknown yields the rows of the run's input that are unknown, batch by batch.
	Unknown(ctx context.Context, run int64) iter.Seq2[UnknownRow, error]

	// Accepted yields those that are accepted, likewise.
	Accepted(ctx context.Context, run int64) iter.Seq2[UnknownRow, error]

	// CheckPending makes the pending rows of the run's input unknown, as
	// [Plan.CheckFirst] does new ones, and returns their number.
	CheckPending(ctx context.Context, run int64) (int64, error)

	// MarkUnknown makes accepted rows unknown in one transaction, with that
	// reason, and returns how many were still accepted.
	MarkUnknown(ctx context.Context, rows []UnknownRow, reason string) (int64, error)

	// Resolve records resolutions in one transaction. Rows that become Pending
	// go into batches of the run. It returns how many of them still held.
	Resolve(ctx context.Context, run int64, found []Resolution) (int64, error)

	// Reopen makes rows of the run's input that are Rejected, or Unknown, pending in batches of the run, and returns their
	// number. It is for decisions of the user, not for proofs. ref narrows it to the rows of that referId or number,
	// compared as numbers are. Without it, rejected rows stay that are superseded or dismissed; with it, a dismissal ends.
	Reopen(ctx context.Context, run int64, from State, ref string) (int64, error)

	// Dismiss marks rejected rows of the run's input as settled by the user, and returns how many were not before: all
	// that are open, see [Row.IsOpen], or those of ref, as in Reopen, superseded ones too.
	Dismiss(ctx context.Context, run int64, ref string) (int64, error)

	// Controls returns up to n rows that are accepted, those without siblings and the latest first.
	Controls(ctx context.Context, n int) ([]UnknownRow, error)
}

// Staging is a run being filled. One goroutine uses it, and ends it with Open or Discard; a process that dies before
// leaves nothing behind, unless it called Begin.
type Staging interface {
	// Add appends entries in input order. Pairs that the ledger has, or that came earlier in this input, become no
	// second row. It returns the entries that contradict an earlier one of this input.
	Add(ctx context.Context, entries []Entry) ([]Conflict, error)

	// Begin returns the run, which is visible from the next Add on: what is added can be claimed, but for the batch that
	// is not full yet. If this ends before Open, the run keeps what was added, and [RunSummary.Partial] says so.
	Begin() Run

	// Full returns the batches that became full since the last call, after Begin.
	Full() []Batch

	// Open makes the run durable, visible, and ready to be claimed. The caller refuses an input without a valid record.
	// Earlier partial runs of the same files are partial no longer if this input is no shorter and has each of their new
	// rows.
	Open(ctx context.Context) (Run, error)

	// Discard removes everything that was staged before Begin; a run that is
	// visible stays as it is. After Open it does nothing.
	Discard(ctx context.Context) error
}

// History reads and prunes runs.
type History interface {
	// Runs yields the runs, newest first; limit 0 means all.
	Runs(ctx context.Context, limit int) iter.Seq2[RunSummary, error]

	// Run returns one run, or [ErrNoRun].
	Run(ctx context.Context, id int64) (RunSummary, error)

	// Rows yields the records of the run's input in input order, known ones and repeats included.
	Rows(ctx context.Context, run int64) iter.Seq2[Row, error]

	// Batches yields the batches of a run in order.
	Batches(ctx context.Context, run int64) iter.Seq2[BatchSummary, error]

	// Pending returns how many rows are pending in runs other than the given one.
	Pending(ctx context.Context, except int64) (int64, error)

	// PruneRuns removes runs created before that, with their inputs and answers. Their rows and states stay, so that no
	// row is sent twice. A run with pending, sending or unknown rows stays, as does one of a living process.
	PruneRuns(ctx context.Context, before time.Time) (PrunedRuns, error)

	// Lookup returns the state of a pair, and false if the ledger does not have it.
	Lookup(ctx context.Context, key tracking.Key) (State, bool, error)
}

// Keys keeps which API keys were used.
type Keys interface {
	// LookUpKey says whether a key was seen before. Only a keyed fingerprint is compared and kept.
	LookUpKey(ctx context.Context, key string) (KeyStatus, error)

	// TrustKey records a key.
	TrustKey(ctx context.Context, key string) error
}

// Accounts keeps to which account of the service the store belongs, and what is known of the service for that account.
type Accounts interface {
	// Account returns the account, empty while the store belongs to none.
	Account(ctx context.Context) (string, error)
	// Pin gives the store an account for good, unless the store has one, and returns the store's account.
	Pin(ctx context.Context, name string) (string, error)

	// BatchLimit returns how many rows the service took at most in one
	// request of that mode, 0 if none was too large yet; LimitBatches lowers it.
	BatchLimit(ctx context.Context, mode Mode) (int, error)
	LowerBatchLimit(ctx context.Context, mode Mode, rows int) error

	// Proofs returns what is proven, by shape.
	Proofs(ctx context.Context) ([]Proof, error)
	// Prove records a proof by rows that were queried while they were in that state, unless one of them has left it, or
	// its batch, meanwhile: then it returns false. A shape whose rows the service may have taken stays so.
	Prove(ctx context.Context, p Proof, in State, rows []UnknownRow) (bool, error)
	// Disprove forgets what is proven of a shape.
	Disprove(ctx context.Context, shape string) error
}

// KeyStatus is what [Keys.LookUpKey] found out.
type KeyStatus struct {
	Seen    bool // this key was recorded
	HasRuns bool // the ledger has runs
}

// Trackings keeps the last answer about each tracking.
type Trackings interface {
	// Record records answers in one transaction: each sighting that supersedes what is known of its tracking, see
	// [Sighting.Supersedes], and the answers themselves.
	Record(ctx context.Context, answers []RecordedAnswer) error

	// LastAnswer returns the last answer about a referId, byte for byte; nil if there is none.
	LastAnswer(ctx context.Context, referID string) ([]byte, error)

	// Statuses yields what is known of trackings in the order they were created, then of those that were only seen, then
	// of numbers alone: of trackings without referId. What is known of such a number is also known of the trackings that
	// have it. f may sort them by something else.
	Statuses(ctx context.Context, f Filter) iter.Seq2[TrackingStatus, error]

	// Find returns the rows with the given referId, or with the given number if referID is
	// empty, in the order they were created, and trackings that were only seen after them.
	Find(ctx context.Context, referID, number string) ([]TrackingStatus, error)

	// FindAll is Find for many queries: the n-th list is that of the n-th query.
	FindAll(ctx context.Context, qs []tracking.Query) ([][]TrackingStatus, error)
}

// Statistics counts trackings.
type Statistics interface {
	// Count returns how many trackings [Trackings.Statuses] would yield, by group,
	// in no order. Limit and Order change nothing.
	Count(ctx context.Context, f Filter) ([]Group, error)

	// SeenStatuses returns which statuses trackings, and numbers alone, are known to have,
	// the most frequent first. Unlike Count it reads no tracking.
	SeenStatuses(ctx context.Context) ([]StatusCount, error)

	// SeenCarriers returns the carrier codes of trackings, and of numbers alone, each in one
	// spelling, the most frequent first. It reads no tracking.
	SeenCarriers(ctx context.Context) ([]string, error)

	// OwnColumns returns the columns of inputs that were kept, see [Plan.Own], each once.
	OwnColumns(ctx context.Context) ([]string, error)

	// References returns the first referIds that begin with prefix, each
	// once, in the order of their bytes, and no more than limit.
	References(ctx context.Context, prefix string, limit int) ([]string, error)
}

// Sweeps keeps which commands that ask about many trackings have not asked about all of them.
type Sweeps interface {
	// BeginSweep returns when the sweep of that name began that did not end, if
	// that was not before oldest; else it begins one now.
	BeginSweep(ctx context.Context, name string, oldest time.Time) (time.Time, error)

	// EndSweep ends a sweep; without one it does nothing.
	EndSweep(ctx context.Context, name string) error
}

// EventFollower updates the ledger by events. An event is identified by its number in the inbox, which grows.
type EventFollower interface {
	// Followed returns how far events were followed, and the last one there is.
	Followed(ctx context.Context) (to, last int64, err error)

	// Follow records what events say as [Trackings.Record] does, and moves Followed from one number to another in the
	// same transaction. If Followed is not from, nothing happens and it returns false.
	//
	// A sighting has a number, a RouterID, or both, and no referId. It is about every row of that number, and about
	// trackings whose RouterID an answer told. If there are none, it is about the number alone until a row has it. An
	// event gives no row a RouterID: it may be about several rows.
	Follow(ctx context.Context, seen []Sighting, from, to int64) (bool, error)

	// LastUnverified is that of [TrackingStatus], for a number.
	LastUnverified(ctx context.Context, number string) (int64, error)
}

// ErrErased says that what is kept of a tracking was erased.
var ErrErased = errors.New("erased from the store")

// ErrBeingSent says that a row can't be erased: a living process is sending it, or is about to.
var ErrBeingSent = errors.New("another process is sending it")

// Eraser removes what is kept of shipments, and remembers them by keyed hashes alone.
type Eraser interface {
	// Erase removes the shipments that queries name, each by its referId, its number or both: rows, answers, trackings
	// and events, and header and body of every delivery that names a number. A name that others hold too stays. An error
	// that matches [ErrBeingSent] comes before anything is removed, unless a process begins to send a row meanwhile:
	// that row stays. Calling it again removes what is left: it may end anywhere. What was removed may stay in unused
	// space until Compact.
	Erase(ctx context.Context, qs []tracking.Query, o EraseOptions) (Erasure, error)

	// Compact removes what was erased from the store's unused space too. It returns
	// where copies may be left that it can't remove.
	Compact(ctx context.Context) ([]string, error)

	// Erased says for each query whether it was erased: a referId, a number, or with
	// both a row. A referId or a number that a later row has was not.
	Erased(ctx context.Context, qs []tracking.Query) ([]bool, error)
}

// EraseOptions say what is left of shipments that are erased: with Forget no hash either.
type EraseOptions struct{ Forget bool }

// Erasure counts what was removed. Responses are to queries, and to create requests that other rows were in too.
type Erasure struct {
	Unknown []int `json:"-"` // queries that name nothing that is or was in the store
	Shared  int64 `json:"-"` // numbers that stay: others hold them too

	Rows       int64 `json:"rows"`
	Unsettled  int64 `json:"unknown"` // rows with an unknown outcome
	Pending    int64 `json:"pending"` // rows that were not sent
	Trackings  int64 `json:"trackings"`
	Responses  int64 `json:"responses"`
	Events     int64 `json:"events"`
	Deliveries int64 `json:"deliveries"` // whose bytes were dropped
	Refused    int64 `json:"refused"`
	Texts      int64 `json:"texts"` // reasons, names of files and the like that held one
}

// Add adds other to e.
func (e *Erasure) Add(other Erasure) {
	e.Shared += other.Shared
	e.Rows += other.Rows
	e.Unsettled += other.Unsettled
	e.Pending += other.Pending
	e.Trackings += other.Trackings
	e.Responses += other.Responses
	e.Events += other.Events
	e.Deliveries += other.Deliveries
	e.Refused += other.Refused
	e.Texts += other.Texts
}
