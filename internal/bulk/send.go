package bulk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Limits of patience.
const (
	// syncClaims is how many v1 batches are claimed in one commit: an fsync
	// for every 40 rows would cost more than the rest.
	syncClaims = 32
	// unknownInRow is how many unknown outcomes in a row stop a run. Each
	// leaves up to a thousand rows to be asked for one by one.
	unknownInRow = 3
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// creator is the one operation a run needs of the service.
type creator interface {
	Create(ctx context.Context, items []tracking.Item) *tracking.Reply
}

// Sender sends the pending rows of a run.
type Sender struct {
	Ledger  ledger.Store
	Service creator
	Mode    ledger.Mode
	Workers int
	// GiveUp is how long to go on while no connection comes about, or the
	// service asks for one pause after the other.
	GiveUp time.Duration
	// Settled is told of every batch after its outcome is on disk. It is
	// called by several goroutines.
	Settled func(ledger.Batch, *tracking.Reply)
}

// StopError says why a run stopped before all its rows were sent. What is left
// is pending.
type StopError struct {
	Reply *tracking.Reply // the answer it stopped on
	Why   string
}

func (e *StopError) Error() string {
	if e.Reply.Err == nil {
		return e.Why
	}
	return fmt.Sprintf("%s: %v", e.Why, e.Reply.Err)
}

// Unwrap returns what was wrong with the answer.
func (e *StopError) Unwrap() error { return e.Reply.Err }

// Send sends every pending row of the run, and returns nil when none is left
// to send, whatever became of them; a [*StopError] when it stopped early; or
// the error of the ledger. When soft ends, nothing more is sent, requests
// under way are waited for, and the cause of soft is returned; ctx ends those
// too, and their rows are unknown. requests is how many left this machine.
func (s *Sender) Send(ctx, soft context.Context, run int64) (requests int64, err error) {
	if _, err := s.Ledger.Adopt(ctx, run, 1<<30); err != nil {
		return 0, err
	}
	d := &dispatch{Sender: s, run: run, claims: 1}
	if s.Mode == ledger.Sync {
		d.claims = syncClaims
	}
	g, gctx := errgroup.WithContext(soft)
	for range max(s.Workers, 1) {
		g.Go(func() error { return d.work(ctx, gctx) })
	}
	err = g.Wait()
	if e := d.giveBack(context.WithoutCancel(ctx)); e != nil {
		return d.requests, errors.Join(e, err)
	}
	if err == nil && soft.Err() != nil {
		err = context.Cause(soft)
	}
	return d.requests, err
}

// dispatch hands claimed batches to workers and keeps what they share.
type dispatch struct {
	*Sender
	run    int64
	claims int

	mu       sync.Mutex
	queue    []ledger.Batch // claimed, not yet sent
	requests int64
	unknowns int       // in a row
	troubled time.Time // since when nothing got through; zero if the last one did
	pause    time.Duration
	until    time.Time // nobody sends before
}

// work sends one batch after the other until there is none, soft ends, or an
// answer stops the run.
func (d *dispatch) work(ctx, soft context.Context) error {
	for {
		if err := d.wait(soft); err != nil {
			return nil //nolint:nilerr // stopping is not this worker's failure
		}
		b, ok, err := d.next(context.WithoutCancel(soft))
		if err != nil || !ok {
			return err
		}
		reply := d.Service.Create(ctx, b.Items())
		// The outcome is recorded even when we are being stopped.
		if err := d.Ledger.Settle(context.WithoutCancel(ctx), []ledger.Settlement{settlement(b, reply)}); err != nil {
			return err
		}
		if d.Settled != nil {
			d.Settled(b, reply)
		}
		if err := d.learn(reply); err != nil {
			return err
		}
	}
}

// next returns a claimed batch, and false when no more is pending.
func (d *dispatch) next(ctx context.Context) (ledger.Batch, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		claimed, err := d.Ledger.Claim(ctx, d.run, d.claims, tracking.MaxAsyncBatch)
		if err != nil {
			return ledger.Batch{}, false, err
		}
		d.queue = claimed
	}
	if len(d.queue) == 0 {
		return ledger.Batch{}, false, nil
	}
	b := d.queue[0]
	d.queue = d.queue[1:]
	return b, true, nil
}

// giveBack makes batches pending again that were claimed and not sent.
func (d *dispatch) giveBack(ctx context.Context) error {
	if len(d.queue) == 0 {
		return nil
	}
	back := make([]ledger.Settlement, len(d.queue))
	for i, b := range d.queue {
		back[i] = ledger.Settlement{Batch: b.ID, State: ledger.Pending}
	}
	return d.Ledger.Settle(ctx, back)
}

// wait returns when sending is allowed, or with the error of ctx.
func (d *dispatch) wait(ctx context.Context) error {
	for {
		d.mu.Lock()
		left := time.Until(d.until)
		d.mu.Unlock()
		if left <= 0 {
			return ctx.Err()
		}
		t := time.NewTimer(left)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
	}
}

// settlement says what a reply means for the rows of its batch.
func settlement(b ledger.Batch, r *tracking.Reply) ledger.Settlement {
	s := ledger.Settlement{
		Batch:      b.ID,
		State:      state(r.Outcome),
		Reason:     r.Reason(),
		HTTPStatus: r.HTTPStatus,
		Answer:     r.Answer,
		AnswerCut:  r.AnswerCut,
		Began:      r.Began,
		Took:       r.Took,
	}
	if len(r.Refused) == 0 {
		return s
	}
	rows := make(map[tracking.Key]int64, len(b.Rows))
	for _, row := range b.Rows {
		rows[row.Item.Key()] = row.ID
	}
	for _, v := range r.Refused {
		if id, ok := rows[v.Key]; ok {
			s.Rows = append(s.Rows, ledger.Verdict{Row: id, State: ledger.Rejected, Reason: v.Reason})
		}
	}
	return s
}

// state is what an outcome means for a batch.
func state(o tracking.Outcome) ledger.State {
	switch o {
	case tracking.OutcomeAccepted:
		return ledger.Accepted
	case tracking.OutcomeRows:
		return ledger.Rejected
	case tracking.OutcomeNotSent, tracking.OutcomeUnauthorized, tracking.OutcomeTooLarge,
		tracking.OutcomeThrottled, tracking.OutcomeRefused:
		return ledger.Pending
	default:
		return ledger.Unknown
	}
}

// learn draws from a reply what it means for the batches to come: nothing, a
// pause for all workers, or the end of the run.
func (d *dispatch) learn(r *tracking.Reply) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Outcome != tracking.OutcomeNotSent {
		d.requests++
	}
	switch r.Outcome {
	case tracking.OutcomeAccepted, tracking.OutcomeRows:
		d.unknowns, d.troubled, d.pause = 0, time.Time{}, 0
		return nil
	case tracking.OutcomeNotSent, tracking.OutcomeThrottled:
		return d.slowDown(r)
	case tracking.OutcomeUnauthorized:
		return &StopError{Reply: r, Why: "stopped: the API key was refused"}
	case tracking.OutcomeTooLarge:
		return &StopError{Reply: r, Why: "stopped: the batch is too large for the service, use a smaller --batch-size"}
	case tracking.OutcomeRefused:
		return &StopError{Reply: r, Why: "stopped: the service refuses the request, not its rows"}
	}
	d.unknowns++
	switch {
	case r.Systemic:
		return &StopError{Reply: r, Why: "stopped: the answer can't be believed"}
	case d.unknowns >= unknownInRow:
		return &StopError{Reply: r, Why: fmt.Sprintf("stopped after %d unknown outcomes in a row", d.unknowns)}
	}
	return nil
}

// slowDown sets the next pause, or gives up.
func (d *dispatch) slowDown(r *tracking.Reply) error {
	now := time.Now()
	if d.troubled.IsZero() {
		d.troubled = now
	}
	pause := min(max(2*d.pause, firstPause), longestPause)
	if now.Before(d.until) {
		pause = d.pause // another worker met the same trouble meanwhile
	}
	d.pause = pause
	if until := now.Add(max(pause, r.RetryAfter)); until.After(d.until) {
		d.until = until
	}
	if d.until.Sub(d.troubled) <= d.GiveUp {
		return nil
	}
	why := "stopped: no connection"
	if r.Outcome == tracking.OutcomeThrottled {
		why = "stopped: the service keeps asking for a pause"
	}
	return &StopError{Reply: r, Why: why}
}
