package bulk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Limits of patience.
const (
	// mostTroubles is how often a run goes on after several unknown outcomes
	// in a row, or when all it sent had one, once the rows were asked for.
	mostTroubles = 5
	// othersPause is between two looks at rows that another process sends,
	// and othersPatience how long it may get nowhere with them.
	othersPause    = 250 * time.Millisecond
	othersPatience = 10 * time.Minute
)

// Store is all of the ledger that carrying a run asks for.
type Store struct {
	ledger.Store
	ledger.UnknownRows
	ledger.Accounts
	ledger.Trackings
}

// Service is what a run needs of the tracking service. Each call is one
// request.
type Service interface {
	Create(ctx context.Context, items []tracking.Item) *tracking.Reply
	// Evidence asks for an item by its referId, or by its number.
	Evidence(ctx context.Context, item tracking.Item, byNumber bool) tracking.Evidence
}

// Unknown says what is done about rows of unknown outcome.
type Unknown string

// The ways. All but Reconcile are the user's decision: nothing proves that
// resending creates no second tracking.
const (
	Reconcile Unknown = "reconcile"  // ask the service, and go by proof
	ResendOne Unknown = "resend-one" // likewise; where no row of the account was ever accepted, send one again to see what it proves
	Resend    Unknown = "resend"     // send them again
	Keep      Unknown = "keep"       // leave them as they are
)

// Asks reports whether the service is asked for unknown rows.
func (u Unknown) Asks() bool { return u == Reconcile || u == ResendOne }

// Policy is how a run is carried.
type Policy struct {
	Unknown       Unknown
	Settle        time.Duration // between the two proofs of an absence
	RetryRejected bool          // rejected rows of the input are sent again
	// RetryAbsent asks the service for accepted rows of the input too: those
	// that it does not have are treated as of unknown outcome.
	RetryAbsent bool
	// Canary sends one row alone, and asks for it, before the first run of an
	// account with more than one batch.
	Canary     bool
	MaxRejects int64 // more rejected rows than these stop the run; 0 for no limit
	// NoneTaken says that a batch refused because of rows was refused whole;
	// otherwise its rows are unknown.
	NoneTaken bool
	// GiveUp is how long to go on while no connection comes about, or the
	// service asks for one pause after the other, whatever is asked of it.
	GiveUp time.Duration
	// Query is how long to go on trying to get an answer to one query, and to
	// be shown the first row of an account.
	Query   time.Duration
	Workers int
}

// Watch is told what happens. Any of it may be nil.
type Watch struct {
	// Settled is told of every batch after its outcome is on disk, by one
	// goroutine.
	Settled func(ledger.Batch, *tracking.Reply)
	// Resolved is told how many unknown rows were settled, with which state.
	Resolved func(state ledger.State, rows int64)
	// Say is told in words what is about to take time.
	Say func(format string, args ...any)
	// Warn is told what the service does that was not assumed of it.
	Warn func(format string, args ...any)
}

// Job is one run to be carried to the service.
type Job struct {
	Ledger  Store
	Service Service
	Gate    *pace.Gate
	Run     ledger.Run
	Policy
	Watch

	requests  int64
	rejected  int64
	troubles  int                 // see mostTroubles
	odds      int                 // see mostOdd
	most      int                 // rows that one request may carry from the next round on; 0 for no limit
	busySince time.Time           // see busyPatience
	absences  map[int64]time.Time // see absentSince
	setBack   bool                // it was said that the clock was set back
	resent    bool                // see ResendOne
	unproven  bool                // see Unprovable
	assumptions
}

// StopError says why a run stopped before all its rows were settled. What is
// left is pending or unknown.
type StopError struct {
	// Cause is what kind of answer it stopped on.
	Cause tracking.Outcome
	Why   string
	Err   error // nil if there is no more to say
	// again says that the run may go on once the unknown rows were asked for.
	again bool
	// check says that the run may go on once an assumption was checked.
	check bool
}

func (e *StopError) Error() string {
	if e.Err == nil {
		return e.Why
	}
	return fmt.Sprintf("%s: %v", e.Why, e.Err)
}

// Unwrap returns what was wrong with the answer.
func (e *StopError) Unwrap() error { return e.Err }

// Carry brings every row of the run's input as far as it can be brought: asks
// for what is unknown, sends what is pending, and waits for what others send.
// It returns nil when no more can be done, whatever became of the rows; a
// [*StopError] when it stopped early; or the error of the ledger. When soft
// ends, nothing more is begun, requests under way are waited for, and the cause
// of soft is returned; ctx ends those too, and their rows are unknown. requests
// is how many creates left this machine.
func (j *Job) Carry(ctx, soft context.Context) (requests int64, err error) {
	err = firstOf(j.loadAssumptions(soft), j.reopen(soft))
	if err == nil && j.RetryAbsent {
		err = j.questionAccepted(soft)
	}
	for more := true; more && err == nil; {
		more, err = j.round(ctx, soft)
	}
	if soft.Err() != nil && (err == nil || errors.Is(err, soft.Err())) {
		err = context.Cause(soft)
	}
	return j.requests, err
}

// Unprovable reports, after Carry, whether rows stay unknown because no row of
// the account was ever accepted. [ResendOne] is the way out.
func (j *Job) Unprovable() bool { return j.unproven }

// reopen makes pending what the user wants to be sent again.
func (j *Job) reopen(ctx context.Context) error {
	for state, wanted := range map[ledger.State]bool{ledger.Rejected: j.RetryRejected, ledger.Unknown: j.Unknown == Resend} {
		if !wanted {
			continue
		}
		n, err := j.Ledger.Reopen(ctx, j.Run.ID, state)
		if err != nil {
			return err
		}
		if n > 0 {
			j.say("%d %s rows are sent again", n, state)
		}
	}
	return nil
}

// round asks once for what is unknown and sends all that is pending. It
// reports whether there is reason for another round, and waits until then.
func (j *Job) round(ctx, soft context.Context) (bool, error) {
	if _, err := j.Ledger.Recover(soft); err != nil {
		return false, err
	}
	if err := j.checkAssumptions(soft); err != nil {
		return false, err
	}
	p, err := j.reconcile(soft)
	if err != nil {
		return false, err
	}
	err = j.send(ctx, soft)
	var stop *StopError
	switch {
	case errors.As(err, &stop) && stop.check:
		return true, nil
	case errors.As(err, &stop) && stop.again && j.Unknown.Asks() && j.troubles < mostTroubles:
		j.troubles++
		j.say("%s: asking what became of the rows", stop.Why)
		return true, nil
	case err != nil || soft.Err() != nil:
		return false, err
	}
	return j.next(ctx, soft, p)
}

// next decides whether a further round can bring rows further, and waits until
// it can.
func (j *Job) next(ctx, soft context.Context, p *pass) (bool, error) {
	c, err := j.Ledger.CountRows(soft, j.Run.ID)
	switch {
	case err != nil:
		return false, err
	case c.Pending > 0:
		return true, nil
	case c.Sending > 0:
		return j.waitForOthers(soft, c)
	case c.Unknown == 0 || !j.Unknown.Asks():
		return false, nil
	case c.Unknown > p.left:
		return true, nil // rows became unknown since
	}
	if again, err := p.again(soft); again || err != nil {
		return again, err
	}
	j.unproven = p.lone != nil
	if j.unproven && j.Unknown == ResendOne && !j.resent {
		j.resent = true
		return true, j.resendOne(ctx, soft, *p.lone)
	}
	return p.wait(soft)
}

// waitForOthers waits until rows that another process sends have an outcome,
// or the process has died. It reports false if that gets nowhere: a process
// may live and yet be stopped.
func (j *Job) waitForOthers(ctx context.Context, was ledger.Counts) (bool, error) {
	j.say("another waybill is sending %d rows of this input: waiting for their outcome", was.Sending)
	for since := time.Now(); time.Since(since) < othersPatience; {
		if err := pace.Sleep(ctx, othersPause); err != nil {
			return false, err
		}
		if _, err := j.Ledger.Recover(ctx); err != nil {
			return false, err
		}
		c, err := j.Ledger.CountRows(ctx, j.Run.ID)
		if err != nil || c.Sending == 0 || c.Pending > 0 {
			return true, err
		}
		if c != was {
			was, since = c, time.Now()
		}
	}
	j.say("the other waybill got nowhere for %s: not waiting any longer", othersPatience)
	return false, nil
}

// spent reports whether nothing got through for as long as GiveUp says, or
// would not before a pause has ended.
func (j *Job) spent(retryAfter time.Duration) bool {
	waited := time.Duration(0)
	if since := j.Gate.FailingSince(); !since.IsZero() { // else another got through meanwhile
		waited = time.Since(since)
	}
	return waited+retryAfter >= j.GiveUp
}

func (j *Job) say(format string, args ...any) {
	if j.Say != nil {
		j.Say(format, args...)
	}
}

func (j *Job) warn(format string, args ...any) {
	if j.Warn != nil {
		j.Warn(format, args...)
	}
}
