package bulk

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Limits of retries and waits.
const (
	// maxUnknownStreaks is how often a run continues after it has queried the rows of consecutive unknown outcomes, or
	// of a run that had no other outcome.
	maxUnknownStreaks = 5
	// otherPoll is the pause between two checks of rows that another process sends or may have taken over, otherPatience
	// how long they may stay unchanged.
	otherPoll     = 250 * time.Millisecond
	otherPatience = 10 * time.Minute

	provenWindow = 4 // requests in flight from the start, for a proven account
	// countEvery is the time between two counts of the rows while batches are recorded.
	countEvery = 2 * time.Second
)

// Store has the parts of the ledger that a run needs.
type Store struct {
	ledger.Queue
	ledger.UnknownRows
	ledger.Accounts
	ledger.Trackings
}

// Service is the tracking service. Each call is one request.
type Service interface {
	Create(ctx context.Context, items []tracking.Item) *tracking.Reply
	// Evidence returns what the answer to a query proves about an item.
	Evidence(ctx context.Context, q tracking.Query, item tracking.Item) tracking.Evidence
}

// UnknownAction says how rows with unknown outcome are handled.
type UnknownAction string

// The actions. All but Reconcile are the user's decision: resending may create a second tracking.
const (
	Reconcile UnknownAction = "reconcile"  // query the service, and act on proof
	ResendOne UnknownAction = "resend-one" // the same, but resend one row as control if none was ever accepted
	Resend    UnknownAction = "resend"     // resend them
	Keep      UnknownAction = "keep"       // leave them unknown
)

// Queries reports whether the service is queried for unknown rows.
func (u UnknownAction) Queries() bool { return u == Reconcile || u == ResendOne }

// Policy says how a run is executed.
type Policy struct {
	Unknown       UnknownAction
	RecheckDelay  time.Duration // between the two proofs that a row is absent
	RetryRejected bool          // resends rejected rows of the input, except superseded and dismissed ones
	RetryRow      string        // limits RetryRejected to the rows of this referId or number, whatever else they are
	RetryAbsent   bool          // also queries accepted rows of the input: rows that the service lacks become unknown
	// SkipProof trusts responses to creates without proof (see [ledger.Proof]) and without a first query.
	SkipProof     bool
	VerifyPending bool  // queries the pending rows of the input before they are sent
	MaxRejects    int64 // the run stops after more rejected rows; 0 for no limit
	// ConnectFor limits how long a run goes on without a connection, GiveUpAfter while it is only told to pause.
	ConnectFor, GiveUpAfter time.Duration
	// QueryTimeout is how long a query is retried, and how long the first row of an account may take to appear.
	QueryTimeout time.Duration
	Workers      int
}

// Observer has functions that report progress. Any of them may be nil.
type Observer struct {
	Recorded func(ledger.Batch, *tracking.Reply) // called by one goroutine for each batch once its outcome is on disk
	// Counted is called from time to time with the input's rows by state, including rows that other processes recorded.
	// It is called after Recorded for the batches of this process.
	Counted  func(ledger.Counts)
	Resolved func(state ledger.State, rows int64) // called with the number of unknown rows that got that state
	// Checking is called with the number of unknown rows before they are queried, and with 0 afterwards; Checked for
	// each of them, by several goroutines.
	Checking func(rows int64)
	Checked  func()
	// Failing is called with the error of a request not delivered or told to pause, and with nil after another response.
	Failing func(error)
	Note    func(format string, args ...any) // called with a message about an operation that takes time
	Detail  func(format string, args ...any) // called with a message for maintainers
	Warn    func(format string, args ...any) // called with a message about a service whose responses can't be trusted
}

// complete replaces nil functions with functions that do nothing.
func (o *Observer) complete() {
	nothing := func([]reflect.Value) []reflect.Value { return nil }
	for _, f := range reflect.ValueOf(o).Elem().Fields() {
		if f.IsNil() {
			f.Set(reflect.MakeFunc(f.Type(), nothing))
		}
	}
}

// Job is one run to execute.
type Job struct {
	Ledger  Store
	Service Service
	Gate    *pace.Gate
	Run     ledger.Run
	Feed    *Feed // stages the rest of the run's input; nil if all is staged
	Policy
	Observer

	prover      prover
	reconciler  reconciler
	sender      sender
	leftPending int64 // pending rows after the last round
	partial     bool  // see Partial
}

// StopError reports why a run stopped before all its rows had an outcome. The others are pending or unknown.
type StopError struct {
	Cause      tracking.Outcome // the outcome that stopped the run
	Why        string
	Err        error  // nil if there is nothing to add
	recheck    string // tells the user that the run continues once the unknown rows are queried; empty if it ends
	checkFirst bool   // the run continues once the meaning of a response is proven
	// Known is the row that stopped the run: the service has it, but the store has not sent it; nil for other causes.
	Known *tracking.Item
}

func (e *StopError) Error() string {
	if e.Err == nil {
		return e.Why
	}
	last := e.Why[strings.LastIndex(e.Why, ": ")+1:] // Err may begin with it
	return e.Why + ": " + strings.TrimPrefix(e.Err.Error(), strings.TrimSpace(last)+": ")
}

// Refused reports whether the service refused the request or the key, whatever the rows.
func (e *StopError) Refused() bool {
	m := e.Cause.Meaning()
	return m.Stop == tracking.StopAtOnce && m.Stored == tracking.StoredNone
}

// Unwrap returns the problem with the response.
func (e *StopError) Unwrap() error { return e.Err }

// Execute queries unknown rows of the run's input, sends pending rows, and waits for rows that other processes send,
// until no more can be done. It then returns nil, whatever the rows' states; a [*StopError] if it stopped early; or
// the error of the ledger. That matches [ledger.ErrNotClaimed] if others took this process for dead; rows that they
// took are not sent.
//
// When soft ends, it waits for requests in flight and returns the cause of soft. When ctx ends, it ends them, and
// their rows are unknown. Past the deadline of soft it returns why requests fail. requests counts the creates sent.
func (j *Job) Execute(ctx, soft context.Context) (requests int64, err error) {
	j.complete()
	j.prover = prover{Job: j, proven: map[string]ledger.State{}, namesRefused: map[int64]bool{}}
	j.reconciler = reconciler{prover: &j.prover, absences: map[int64]time.Time{}}
	j.sender = sender{prover: &j.prover, sentUnknown: map[int64]bool{}}
	defer func() { err = cmp.Or(err, j.endFeed()) }() // an error of the ledger names the file with the responses
	if err = j.prover.loadProofs(soft); err == nil {
		err = j.reopen(soft)
	}
	if err == nil && j.VerifyPending {
		_, err = j.Ledger.CheckPending(soft, j.Run.ID)
	}
	if j.prover.knowsAccount() {
		j.Gate.Begin(provenWindow) // the first batches need not be sent one at a time
	}
	if err == nil && j.RetryAbsent {
		err = j.reconciler.checkAccepted(soft)
	}
	for more := true; more && err == nil; {
		more, err = j.round(ctx, soft)
	}
	err = j.proveLast(soft, err)
	if cause := context.Cause(soft); cause != nil && (err == nil || errors.Is(err, soft.Err()) || errors.Is(err, cause)) {
		err = cause
		if stop := j.prover.failure; stop != nil && errors.Is(soft.Err(), context.DeadlineExceeded) {
			err = stop
		}
	}
	return j.sender.requests, err
}

// proveLast proves the meaning of the response that stopped a run, so that its rows do not stay unknown needlessly.
func (j *Job) proveLast(soft context.Context, err error) error {
	stop := (*StopError)(nil)
	if !errors.As(err, &stop) || stop.Known != nil ||
		stop.Cause.Meaning().Stored != tracking.StoredNone || soft.Err() != nil {
		return err
	}
	if failed := j.prover.proveShapes(soft); failed != nil && !errors.As(failed, &stop) && soft.Err() == nil {
		return failed
	}
	return err
}

// Sent returns, after Execute, how many rows were sent, each counted once. It leaves out rows that are pending again
// because the service stored none of them.
func (j *Job) Sent() int64 { return j.sender.rowsSent }

// Unprovable reports, after Execute, whether rows stay unknown as no row was ever accepted. [ResendOne] solves that.
func (j *Job) Unprovable() bool { return j.reconciler.unprovable }

// Partial reports, after Execute, whether the feed ended before its input.
func (j *Job) Partial() bool { return j.partial }

func (j *Job) reopen(ctx context.Context) error {
	for state, wanted := range map[ledger.State]struct {
		reopened bool
		ref      string
	}{ledger.Rejected: {j.RetryRejected, j.RetryRow}, ledger.Unknown: {j.Unknown == Resend, ""}} {
		if !wanted.reopened {
			continue
		}
		n, err := j.Ledger.Reopen(ctx, j.Run.ID, state, wanted.ref)
		if err != nil {
			return err
		}
		if n > 0 {
			j.Note("Retrying %d %s %s", n, state, rowOrRows(n))
		}
	}
	return nil
}

// round queries unknown rows once and sends all pending ones. It waits until another round can do more, if one can.
func (j *Job) round(ctx, soft context.Context) (bool, error) {
	if _, err := j.Ledger.Recover(soft); err != nil {
		return false, err
	}
	if err := j.prover.proveShapes(soft); err != nil {
		return false, err
	}
	if j.Feed != nil {
		return j.sendFeed(ctx, soft)
	}
	p, err := j.reconciler.reconcileUnknown(soft)
	if err != nil {
		return false, err
	}
	more, err := j.afterSending(soft, j.sender.sendPending(ctx, soft))
	if more || err != nil || soft.Err() != nil {
		return more, err
	}
	return j.nextRound(ctx, soft, p)
}

// sendFeed sends rows while they are staged. Rows that it does not send are left to the next round.
func (j *Job) sendFeed(ctx, soft context.Context) (bool, error) {
	sent := j.sender.sendPending(ctx, soft)
	fed := j.endFeed()
	if stop := (*StopError)(nil); sent != nil && !errors.As(sent, &stop) {
		return false, sent
	}
	if fed != nil {
		return false, fed
	}
	more, err := j.afterSending(soft, sent)
	return more || err == nil && soft.Err() == nil, err
}

// endFeed waits until the input is staged: a run that stopped keeps all its rows.
func (j *Job) endFeed() error {
	if j.Feed == nil {
		return nil
	}
	err := j.Feed.Wait()
	j.Run, j.Feed, j.partial = j.Feed.Run(), nil, err != nil
	return err
}

// afterSending reports whether the run continues with another round after sending stopped with err.
func (j *Job) afterSending(soft context.Context, err error) (bool, error) {
	var stop *StopError
	switch {
	case errors.As(err, &stop) && (stop.checkFirst || stop.recheck != "") && soft.Err() != nil:
		return false, context.Cause(soft) // no more checks
	case errors.As(err, &stop) && stop.checkFirst:
		return true, nil
	case errors.As(err, &stop) && stop.recheck != "" && j.Unknown.Queries() && j.sender.unknownStreaks < maxUnknownStreaks:
		j.sender.unknownStreaks++
		j.Note("%s", stop.recheck)
		j.reconciler.checkNoted = true
		return true, nil
	}
	return false, err
}

// nextRound reports whether another round can do more, and waits until it can.
func (j *Job) nextRound(ctx, soft context.Context, p *reconcilePass) (bool, error) {
	c, err := j.countRows(soft)
	switch {
	case err != nil:
		return false, err
	case c.Pending > 0:
		if c.Pending == j.leftPending { // another process stages the run, and its batch is not full
			err = pace.Sleep(soft, otherPoll)
		}
		j.leftPending = c.Pending
		return err == nil, err
	case c.Sending > 0:
		return j.waitForOthers(soft, c)
	case c.Unknown == 0 || !j.Unknown.Queries():
		return false, nil
	case c.Unknown > p.unknown:
		return true, nil // rows became unknown since
	}
	if p.uncontrolled > 0 { // another pass, at once, can prove more with a control
		if known, err := p.Ledger.Controls(soft, 1); len(known) > 0 || err != nil {
			return len(known) > 0, err
		}
	}
	j.reconciler.unprovable = p.resendable != nil
	if j.reconciler.unprovable && j.Unknown == ResendOne && !j.sender.resentOne {
		j.sender.resentOne = true
		return true, j.sender.resendOne(ctx, soft, *p.resendable)
	}
	return p.waitForNext(soft)
}

// waitForOthers waits until rows of another process have an outcome, or that process has died. It is false if nothing
// changes for otherPatience: the process may be suspended.
func (j *Job) waitForOthers(ctx context.Context, was ledger.Counts) (bool, error) {
	j.Note("Another waybill is sending %d %s of this input; waiting for it", was.Sending, rowOrRows(was.Sending))
	for since := time.Now(); time.Since(since) < otherPatience; {
		if err := pace.Sleep(ctx, otherPoll); err != nil {
			return false, err
		}
		if _, err := j.Ledger.Recover(ctx); err != nil {
			return false, err
		}
		c, err := j.countRows(ctx)
		if err != nil || c.Sending == 0 || c.Pending > 0 {
			return true, err
		}
		if c != was {
			was, since = c, time.Now()
		}
	}
	j.Note("The other waybill made no progress for %s; no longer waiting", otherPatience)
	return false, nil
}

func (j *Job) countRows(ctx context.Context) (ledger.Counts, error) {
	c, err := j.Ledger.CountRows(ctx, j.Run.ID)
	if err == nil {
		j.Counted(c)
	}
	return c, err
}

func rowOrRows(n int64) string {
	if n == 1 {
		return "row"
	}
	return "rows"
}
