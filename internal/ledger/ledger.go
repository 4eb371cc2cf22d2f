// Package ledger says what is remembered of trackings that were or will be
// created: runs, their batches and rows, the states a row can be in, and what
// the service last said of each tracking.
//
// A create costs money, cannot be undone, and the service documents no
// idempotency key. So the ledger promises three things: a row is written
// before its request leaves; its outcome is on disk before anybody hears of
// it; and a row whose outcome nobody knows is never sent again by itself.
package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// State is where a row stands on its way to the service.
type State string

// The states. A row is written Pending before any request leaves, and Sending
// before the request that carries it. A row whose answer was lost may or may
// not have reached the service: it is Unknown until a query settles it.
const (
	Pending  State = "pending"
	Sending  State = "sending"
	Accepted State = "accepted"
	Rejected State = "rejected"
	Unknown  State = "unknown"
)

// nextStates returns the states that may follow s in one step.
func nextStates(s State) []State {
	switch s {
	case Pending:
		return []State{Sending}
	case Sending:
		return []State{Accepted, Rejected, Unknown, Pending}
	case Unknown:
		return []State{Accepted, Pending} // by proof only, see [UnknownRows]
	case Accepted:
		return []State{Unknown} // the service said that it has no such tracking, see [UnknownRows]
	case Rejected:
		return []State{Pending}
	default:
		return nil
	}
}

// CanBecome reports whether a row may go from s to t in one step.
func (s State) CanBecome(t State) bool { return slices.Contains(nextStates(s), t) }

// Errors of the ledger that callers tell apart.
var (
	// ErrNoRun says that there is no run of that name.
	ErrNoRun = errors.New("no such run")
	// ErrBusy says that another process is reading its input into the same
	// ledger, and went on doing so until the context ended.
	ErrBusy = errors.New("another waybill is staging its input in this store")
)

// BusyError is [ErrBusy] with the run that is being staged.
type BusyError struct {
	Run Run // its ID is 0 if it is not known
}

// Error names the run and its first file.
func (e *BusyError) Error() string {
	if e.Run.ID == 0 || len(e.Run.Plan.Files) == 0 {
		return ErrBusy.Error()
	}
	return fmt.Sprintf("%v: run %d of %s, begun %s", ErrBusy, e.Run.ID, e.Run.Plan.Files[0], e.Run.Created.Local().Format(time.DateTime))
}

// Unwrap returns [ErrBusy].
func (e *BusyError) Unwrap() error { return ErrBusy }

// Mode is which create operation a run uses.
type Mode string

// The modes.
//
// Interface: Endpoints.
const (
	Async Mode = "v2" // up to [tracking.MaxAsyncBatch] rows a batch
	Sync  Mode = "v1" // up to [tracking.MaxSyncBatch] rows a batch
)

// Plan is what a run is opened with.
type Plan struct {
	Account   string   // whose trackings these are
	Files     []string // names of the inputs in order, "-" for standard input
	Mode      Mode
	BatchSize int // rows in a full batch

	// CheckFirst makes rows that the ledger did not hold Unknown instead of
	// Pending: the service is asked for each before it is sent.
	CheckFirst bool
}

// Run is one execution of create over one input.
type Run struct {
	ID      int64
	Plan    Plan
	Created time.Time
	Tally   Tally // as of staging
}

// Tally counts the valid records of an input as staging found them.
type Tally struct {
	New     int64 // not in the ledger before
	Known   int64 // in the ledger already, from earlier runs; distinct
	Repeats int64 // the same pair again in this input

	// KnownPending is how many of Known were still pending, and KnownOpen how
	// many were sending or unknown.
	KnownPending, KnownOpen int64
	// OtherCarrier is how many known rows stand in the ledger with another
	// carrier code than in this input. What the ledger has counts.
	OtherCarrier int64
}

// Entry is one valid record of the input on its way into the ledger.
type Entry struct {
	File int // index in Plan.Files
	Line int // physical, 1-based
	Item tracking.Item
}

// Conflict is a record that contradicts an earlier one of the same input: the
// same pair with another carrier code.
type Conflict struct {
	Entry Entry
	First Entry // the earlier record
}

// Row is one record of a run's input as the ledger has it.
type Row struct {
	ID     int64
	File   string // where this run read it
	Line   int    // physical, 1-based
	Item   tracking.Item
	State  State
	Reason string // why it was rejected or is unknown; empty otherwise
	Known  bool   // an earlier run brought it in
	Repeat bool   // the same pair stands earlier in this input
}

// Batch is rows claimed for one request.
type Batch struct {
	ID   int64
	Rows []BatchRow
}

// BatchRow is a row of a claimed batch.
type BatchRow struct {
	ID   int64
	Item tracking.Item
}

// Items returns the items of the batch in the order of its rows.
func (b Batch) Items() []tracking.Item {
	items := make([]tracking.Item, len(b.Rows))
	for i, r := range b.Rows {
		items[i] = r.Item
	}
	return items
}

// Assumption is what is taken to be so of an account's service until it was
// asked once.
type Assumption string

// The assumptions. Each says of a batch with such an answer that the service
// stored none of its rows.
const (
	RefusedNotStored   Assumption = "refused"   // because of rows: 400 or 422
	ConflictNotStored  Assumption = "conflict"  // because of rows: 409
	ThrottledNotStored Assumption = "throttled" // with a status of assume_unprocessed
)

// CheckedAssumption is what asking the service showed of an assumption.
type CheckedAssumption struct {
	Assumption Assumption
	Holds      bool
	Checked    time.Time
}

// Settlement is the outcome of one claimed batch.
type Settlement struct {
	Batch      int64
	State      State      // of every row not in Rows
	Assumption Assumption // State is Unknown until this one is checked; empty: it depends on none
	Halve      bool       // State is Pending: they are to be sent in two halves
	Reason     string
	HTTPStatus int    // 0 if no answer came
	Answer     []byte // as received; nil if none came
	AnswerCut  bool   // the answer was longer than what is kept
	Began      time.Time
	Took       time.Duration
	Rows       []RowOutcome // rows whose outcome differs from the batch's
}

// RowOutcome is the outcome of one row.
type RowOutcome struct {
	Row    int64
	State  State
	Reason string
}

// Counts is the number of distinct rows of a run's input in each state.
type Counts struct {
	Pending, Sending, Accepted, Rejected, Unknown int64
}

// Add adds n rows in state s.
func (c *Counts) Add(s State, n int64) {
	switch s {
	case Pending:
		c.Pending += n
	case Sending:
		c.Sending += n
	case Accepted:
		c.Accepted += n
	case Rejected:
		c.Rejected += n
	case Unknown:
		c.Unknown += n
	}
}

// RunSummary is a run with what became of it.
type RunSummary struct {
	Run
	Live     bool // a living process is working on it
	Counts   Counts
	Requests int64     // create requests sent
	LastSent time.Time // zero if nothing was sent
}

// PrunedRuns is what [History.PruneRuns] came to.
type PrunedRuns struct {
	Runs       int64 // removed
	Unfinished int64 // old enough, and kept
}

// BatchSummary is one batch of a run.
type BatchSummary struct {
	ID         int64
	State      State // that its answer gave it; see Counts for what became of its rows since
	Rows       int64 // those that did not go into later batches
	Counts     Counts
	HTTPStatus int // 0 if no answer came
	Reason     string
	Began      time.Time // zero if never sent
	Took       time.Duration
	Answer     []byte // as received; nil if none came
	AnswerCut  bool   // the answer was longer than what is kept
}

// UnknownRow is a row whose outcome is unknown, with what helps to settle it.
type UnknownRow struct {
	Row, Batch  int64
	Run         int64 // of the batch
	Item        tracking.Item
	Siblings    int64      // other rows of the account with the same referId
	Unsent      bool       // it was never sent from here, see [Plan.CheckFirst]
	Ended       time.Time  // when its request ended; zero if it was never sent
	AbsentSince time.Time  // when its absence was first proven; zero if it was not
	Fingerprint string     // what that absence looked like
	Assumption  Assumption // of [Settlement]; empty once the row itself was asked for
}

// Resolution is what was found out about an unknown row. It changes nothing if the row
// is not unknown any more, or went out again with another batch.
type Resolution struct {
	Row, Batch int64
	State      State // Accepted or Pending; Unknown keeps it, with what follows
	// IfNoSiblings says that it holds only while the account has no other
	// row of that referId.
	IfNoSiblings bool
	Reason       string    // Unknown: why it stays so, and what would settle it
	AbsentSince  time.Time // Unknown: when its absence was first proven; zero forgets that
	Fingerprint  string    // of that absence
}

// Phase is how far the service is with a tracking, as last seen.
type Phase string

// The phases.
const (
	Processing Phase = "processing" // accepted, not worked out yet
	Processed  Phase = "processed"  // the service answers with a status
	Absent     Phase = "absent"     // the service said that it has no such tracking
)

// Source is where something was learnt from.
type Source string

// The sources.
const (
	FromQuery  Source = "query"
	FromCreate Source = "create"
	FromEvent  Source = "event"
)

// Sighting is what the service said of one tracking, and when.
type Sighting struct {
	Key         tracking.Key
	Phase       Phase
	Status      string // JSON literal as sent, empty if none
	StatusLabel string // as sent
	StatusTrack string // as sent
	LatestEvent string
	LatestTime  string // as sent
	Times       tracking.Times
	CarrierCode string
	RouterID    string    // the service's own identifier; empty keeps the one that is known
	Seen        time.Time // when it was learnt
	AsOf        time.Time // when it was so; zero for when it was learnt
	Source      Source
	Event       int64 // the inbox's number of the event it was learnt from, 0 if none
	Shared      int64 // how many trackings that event is about, if more than one; else 0
}

// NewSighting returns what was said of a tracking: at when it was learnt.
func NewSighting(t tracking.Tracking, phase Phase, key tracking.Key, at time.Time, from Source) Sighting {
	return Sighting{
		Key: key, Phase: phase,
		Status: t.Status, StatusLabel: t.StatusLabel, StatusTrack: t.StatusTrack,
		LatestEvent: t.LatestEvent, LatestTime: t.LatestTime, Times: t.Times(), CarrierCode: t.CarrierCode, RouterID: t.RouterID,
		Seen: at, Source: from,
	}
}

// Supersedes reports whether s counts rather than what is known of the same
// tracking. Processed counts more than Processing, which tells nothing of a
// shipment. Of an event and an answer, or of two events, the one counts that is
// newer by the service's own times. Where these do not tell, and of two answers,
// it is the one that was so later, in milliseconds, and s of the same moment.
func (s Sighting) Supersedes(known Sighting) bool {
	switch {
	case s.Phase == Processed && known.Phase == Processing:
		return true
	case s.Phase == Processing && known.Phase == Processed:
		return false
	case s.Phase == Processed && known.Phase == Processed && (s.Source == FromEvent || known.Source == FromEvent):
		if c := s.Times.Compare(known.Times); c != 0 {
			return c > 0
		}
	}
	return s.observed().UnixMilli() >= known.observed().UnixMilli()
}

// observed is when it was so.
func (s Sighting) observed() time.Time {
	if s.AsOf.IsZero() {
		return s.Seen
	}
	return s.AsOf
}

// HasStatus reports whether want names the status that was seen, see
// [tracking.NamesStatus].
func (s Sighting) HasStatus(want string) bool {
	return tracking.NamesStatus(want, s.Status, s.StatusLabel, s.StatusTrack)
}

// TrackingStatus is a line of the list: a tracking and what is known of it.
type TrackingStatus struct {
	Item     tracking.Item
	State    State  // empty if this ledger did not create it
	Run      int64  // the run that brought it in, 0 if none or if it was pruned
	Reason   string // why it was rejected or is unknown
	Sighting *Sighting

	// Unverified is the inbox's number of the latest event about the tracking
	// number that did not verify, 0 if there is none. Nothing was learnt from it.
	Unverified int64
}
