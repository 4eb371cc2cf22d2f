// Package ledger defines what is kept of trackings that were or will be created: runs, their batches and rows, the
// states of rows, and what the service last said of each tracking.
//
// A create costs money, cannot be undone, and the service documents no idempotency key. So the ledger guarantees three
// things: a row is written before its request leaves; its outcome is on disk before it is reported; a row of unknown
// outcome is sent again only after a proof or by the user's decision.
package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// State is the state of a row on its way to the service.
type State string

// The states. A row is on disk as Pending before any request, and as Sending before its own request. A row without a
// credible answer may have reached the service: it is Unknown until a query resolves it.
const (
	Pending  State = "pending"
	Sending  State = "sending"
	Accepted State = "accepted"
	Rejected State = "rejected"
	Unknown  State = "unknown"
)

// next lists the states that a row may go to in one step.
var next = map[State][]State{
	Pending:  {Sending, Unknown}, // Unknown: never sent, and to be queried first, see [UnknownRows]
	Sending:  {Accepted, Rejected, Unknown, Pending},
	Unknown:  {Accepted, Pending}, // by proof only, see [UnknownRows]
	Accepted: {Unknown},           // the service said that it has no such tracking, see [UnknownRows]
	Rejected: {Pending},
}

// CanBecome reports whether a row may go from s to t in one step.
func (s State) CanBecome(t State) bool { return slices.Contains(next[s], t) }

// Errors of the ledger that callers distinguish.
var (
	// ErrNoRun says that no run has that ID.
	ErrNoRun = errors.New("no such run")
	// ErrBusy says that another process was still staging its input in the ledger when the context ended.
	ErrBusy = errors.New("another waybill is staging its input in this store")

	// ErrText says that a text can't be stored: it is not UTF-8, or it contains NUL.
	ErrText = errors.New("not valid text")

	// ErrNotClaimed says that an outcome does not fit the ledger: this process is not sending the batch (any more), a row
	// is not in the batch, or the row can't go into that state.
	ErrNotClaimed = errors.New("outcome does not fit")
)

// BusyError is [ErrBusy] with the run that is being staged.
type BusyError struct {
	Run Run // its ID is 0 if unknown
}

// Error names the run and its first file.
func (e *BusyError) Error() string {
	if e.Run.ID == 0 || len(e.Run.Plan.Files) == 0 {
		return ErrBusy.Error()
	}
	begun := e.Run.Created.Local().Format(time.DateTime)
	return fmt.Sprintf("%v: run %d of %s, begun %s", ErrBusy, e.Run.ID, e.Run.Plan.Files[0], begun)
}

// Unwrap returns [ErrBusy].
func (e *BusyError) Unwrap() error { return ErrBusy }

// Mode is the create operation that a run uses.
type Mode string

// The modes.
//
// Interface: Endpoints.
const (
	Async Mode = "v2" // up to [tracking.MaxAsyncBatch] rows a batch
	Sync  Mode = "v1" // up to [tracking.MaxSyncBatch] rows a batch
)

// Plan holds the parameters that a run is opened with.
type Plan struct {
	Files     []string // names of the inputs in order, "-" for standard input
	Mode      Mode
	BatchSize int   // rows in a full batch
	Skipped   int64 // bad rows of the input, left out of the run
	// Own lists the input columns that are kept with new rows and never sent.
	Own []string

	// CheckFirst makes new rows Unknown instead of Pending: the service is queried for each before it is sent.
	CheckFirst bool
}

// Run is one execution of create over one input.
type Run struct {
	ID      int64
	Plan    Plan
	Created time.Time
	Tally   Tally // as of staging
}

// Tally counts the records of an input, as of staging: valid records, except for Skipped.
type Tally struct {
	New     int64 // not in the ledger before
	Known   int64 // already in the ledger from earlier runs; distinct
	Repeats int64 // the same pair again in this input
	Skipped int64 // bad rows, and rows that contradict an earlier row
	Erased  int64 // erased before staging or since then, and not sent

	// Of Known, KnownPending rows were still pending, and KnownOpen rows were sending or unknown.
	KnownPending, KnownOpen int64
	// OtherCarrier counts the known rows whose carrier code in the ledger differs from the one in this input. The one in
	// the ledger applies.
	OtherCarrier int64
}

// Entry is one valid record of the input on its way into the ledger.
type Entry struct {
	File int // index in Plan.Files
	Line int // physical, 1-based
	Row  int // row number in a spreadsheet, 1-based; 0 if the input is not a table
	Item tracking.Item
	Own  Own // see [Plan.Own]
}

// Conflict is a record that contradicts an earlier one of the same input: the same pair with another carrier code.
type Conflict struct {
	Entry Entry
	First Entry // the earlier record
}

// Row is one record of a run's input, as in the ledger.
type Row struct {
	ID     int64
	File   string // where this run read it
	Line   int    // physical, 1-based
	Row    int    // as in [Entry]
	Item   tracking.Item
	State  State
	Reason string // why it was rejected or is unknown; empty otherwise
	Known  bool   // an earlier run brought it in
	Repeat bool   // the same pair occurs earlier in this input
	CloseReason
}

// CloseReason says why a rejected row needs no further action. The zero value means an open row. A row is superseded
// by another number of its referId in a later input, and a dismissed row never is.
type CloseReason struct {
	Superseded bool      `json:"superseded,omitempty"` // rejected: another number of the referId was accepted since
	Dismissed  time.Time `json:"dismissed,omitzero"`   // rejected: when the user dismissed it
}

// Refine returns [Superseded] or [Dismissed] for a closed row, and the row's state for others.
func (s CloseReason) Refine(state State) State {
	switch {
	case s.Superseded:
		return Superseded
	case !s.Dismissed.IsZero():
		return Dismissed
	}
	return state
}

// Batch holds the rows claimed for one request.
type Batch struct {
	ID    int64
	Owner string // who claimed it, see [Queue].CheckOwner; empty if unclaimed
	Rows  []BatchRow
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

// Proof is what queries proved about the answers to creates that have one shape, see [tracking.Body.Shape].
type Proof struct {
	Shape string // including the mode
	// State is Accepted if the service has the rows, Pending if it took none of them, and Unknown if it may have taken
	// some: then each row is queried.
	State  State
	Proven time.Time
	Run    int64 // the run whose rows proved it
}

// BatchOutcome is the outcome of one claimed batch.
type BatchOutcome struct {
	Batch      int64
	State      State  // of every row not listed in Rows
	Shape      string // if State is Unknown until this shape is proven, see [Proof]; otherwise empty
	Halve      bool   // with State Pending: resend the rows in two halves
	Reason     string
	HTTPStatus int    // 0 if no answer came
	Answer     []byte // as received; nil if none came
	AnswerCut  bool   // the answer was longer than the limit
	Began      time.Time
	Took       time.Duration
	Rows       []RowOutcome // rows whose outcome differs from the batch's
}

// Check returns an error that matches [ErrNotClaimed] if a row may not go into its new state.
func (s BatchOutcome) Check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("record batch %d: %s: %w", s.Batch, fmt.Sprintf(format, args...), ErrNotClaimed)
	}
	switch {
	case s.Halve && s.State != Pending:
		return fail("%s rows are not sent again in halves", s.State)
	case s.Shape != "" && s.State != Unknown:
		return fail("%s rows wait for no proof", s.State)
	case !Sending.CanBecome(s.State):
		return fail("sending cannot become %q", s.State)
	}
	seen := make(map[int64]bool, len(s.Rows))
	for _, v := range s.Rows {
		switch {
		case !Sending.CanBecome(v.State):
			return fail("row %d: sending cannot become %q", v.Row, v.State)
		case seen[v.Row]:
			return fail("row %d appears twice", v.Row)
		}
		seen[v.Row] = true
	}
	return nil
}

// WasSent reports whether a request may have left this computer.
func (s BatchOutcome) WasSent() bool {
	return !s.Began.IsZero() && (s.State != Pending || s.HTTPStatus != 0)
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

// RunSummary is a run and the present states of its rows.
type RunSummary struct {
	Run
	Live    bool   // a living process is working on it
	Partial bool   // its input was not staged completely, see [Staging.Begin]
	Counts  Counts // of the rows of its input, whichever run sent them
	// Elsewhere is how many of Counts.Accepted were sent by other runs.
	Elsewhere int64
	// Superseded and Dismissed count the rows of Counts.Rejected that are not open, see [CloseReason].
	Superseded, Dismissed int64
	Requests              int64     // create requests sent
	LastSent              time.Time // zero if nothing was sent
}

// Accepted returns how many accepted rows this run sent.
func (s RunSummary) Accepted() int64 { return s.Counts.Accepted - s.Elsewhere }

// Rejected returns how many rows are rejected and open, see [CloseReason].
func (s RunSummary) Rejected() int64 { return s.Counts.Rejected - s.Superseded - s.Dismissed }

// ComparedOrders is how many rows of a run [Stager.KnownOrders] compares with earlier ones.
const ComparedOrders = 5_000

// KnownOrders is the result of [Stager.KnownOrders].
type KnownOrders struct {
	Rows   int64
	First  Row          // the first of Rows in input order; its state is not read
	Before tracking.Key // the first pair that the ledger has of its order
}

// PrunedRuns is the result of [History.PruneRuns].
type PrunedRuns struct {
	Runs       int64 // removed
	Unfinished int64 // old enough to remove, but kept
}

// BatchSummary is one batch of a run.
type BatchSummary struct {
	ID         int64
	State      State // according to its answer; Counts has the present states of its rows
	Rows       int64 // without rows that moved to later batches
	Counts     Counts
	HTTPStatus int // 0 if no answer came
	Reason     string
	Began      time.Time // zero if never sent
	Took       time.Duration
	Answer     []byte // as received; nil if none came
	AnswerCut  bool   // the answer was longer than the limit
}

// UnknownRow is a row of unknown outcome, with what is needed to resolve it. Accepted rows that are queried have the
// same form.
type UnknownRow struct {
	Row, Batch  int64
	Run         int64 // of the batch
	Item        tracking.Item
	Siblings    int64     // other rows with the same referId
	Unsent      bool      // never sent from here, see [Plan.CheckFirst]
	Ended       time.Time // when its request ended; zero if never sent
	AbsentSince time.Time // when its absence was first proven; zero if not proven
	Fingerprint string    // of the answer that proved the absence, to compare two of them
	Shape       string    // of [BatchOutcome]; empty once the row itself was queried
}

// Resolution is what queries proved about an unknown row. It has no effect if the row is no longer unknown, or was
// sent again in another batch.
type Resolution struct {
	Row, Batch int64
	State      State // Accepted or Pending; Unknown keeps the state and records the fields below
	// IfNoSiblings says that the resolution applies only while no other row has that referId.
	IfNoSiblings bool
	Reason       string    // if Unknown: why, and what would resolve it
	AbsentSince  time.Time // if Unknown: when the absence was first proven; zero forgets it
	Fingerprint  string    // of the answer that proved the absence
}

// Phase is how far the service has processed a tracking, as last seen.
type Phase string

// The phases.
const (
	Processing Phase = "processing" // accepted, without a status yet
	Processed  Phase = "processed"  // the service answers with a status
	InError    Phase = "error"      // the service reports an error for it, with or without a status
	Absent     Phase = "absent"     // the service said that it has no such tracking
)

// Reported reports whether the service said anything about the shipment itself.
func (p Phase) Reported() bool { return p == Processed || p == InError }

// Source is where a sighting comes from.
type Source string

// The sources.
const (
	FromQuery  Source = "query"
	FromCreate Source = "create"
	FromEvent  Source = "event"
)

// Sighting is what the service said of one tracking, and when.
type Sighting struct {
	tracking.Report // an empty RouterID keeps the known one

	Key         tracking.Key
	Phase       Phase // InError if there is an Error
	Times       tracking.Times
	Transit     time.Duration // see [tracking.Tracking.Transit]; 0 keeps the known one of a delivered tracking
	CarrierCode string
	Seen        time.Time // when it was learned
	AsOf        time.Time // when it was true; zero for Seen
	Source      Source
	Event       int64 // number in the inbox of the event it comes from, 0 if none
	Shared      int64 // how many trackings that event is about, 0 if one
}

// NewSighting returns what t says, learned at the given time. If t has an error, the phase is [InError].
//
// Interface: Errors, 2.
func NewSighting(t tracking.Tracking, phase Phase, key tracking.Key, at time.Time, from Source) Sighting {
	if t.Error != "" {
		phase = InError
	}
	return Sighting{
		Key: key, Phase: phase, Report: t.Report, Times: t.Times(), Transit: t.Transit(), CarrierCode: t.CarrierCode,
		Seen: at, Source: from,
	}
}

// Supersedes reports whether s replaces known, a sighting of the same tracking. A report replaces Processing, never
// the reverse. If one of two reports is an event, the service's own times decide. If they don't, or neither is an
// event, the later one wins, in milliseconds; s wins a tie.
func (s Sighting) Supersedes(known Sighting) bool {
	switch {
	case s.Phase.Reported() && known.Phase == Processing:
		return true
	case s.Phase == Processing && known.Phase.Reported():
		return false
	case s.Phase.Reported() && known.Phase.Reported() && (s.Source == FromEvent || known.Source == FromEvent):
		if c := s.Times.Compare(known.Times); c != 0 {
			return c > 0
		}
	}
	return s.observed().UnixMilli() >= known.observed().UnixMilli()
}

func (s Sighting) observed() time.Time {
	if s.AsOf.IsZero() {
		return s.Seen
	}
	return s.AsOf
}

// RecordedAnswer is one answer of the service and what it says about trackings.
type RecordedAnswer struct {
	// ReferID is the referId that was queried. It is empty if the query was for a number, or if there was no query: then
	// Raw is kept for the referIds of Seen.
	ReferID string
	Asked   time.Time // when it was queried; zero for the answer to a create
	Seen    []Sighting
	Raw     []byte // byte for byte; nil keeps the stored answer
}
