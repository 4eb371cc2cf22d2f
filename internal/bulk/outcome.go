package bulk

import (
	"context"
	"fmt"
	"net/http"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// unknownInRow is how many unknown outcomes in a row stop the sending. Each
// leaves up to a thousand rows to be asked for one by one.
const unknownInRow = 3

// ordinaryRow is how large a request of one row may be, in bytes, for a 413 not
// to be about that row: identifiers have up to 255 characters.
const ordinaryRow = 4 << 10

// settlement says what a reply means for the rows of its batch.
func (d *dispatch) settlement(ctx, soft context.Context, b ledger.Batch, r *tracking.Reply) ledger.Settlement {
	s := ledger.Settlement{
		Batch: b.ID, State: state(r.Outcome), Reason: r.Reason(), HTTPStatus: r.HTTPStatus,
		Answer: r.Answer, AnswerCut: r.AnswerCut, Began: r.Began, Took: r.Took,
	}
	switch {
	case r.Outcome == tracking.OutcomeTooLarge && len(b.Rows) > 1:
		s.Halve = true
	case r.Outcome == tracking.OutcomeTooLarge && requestSize(b) > ordinaryRow:
		s.State = ledger.Rejected // nothing smaller can be sent
	case r.Outcome == tracking.OutcomeRows && len(b.Rows) == 1:
		d.refusedAlone(ctx, soft, b.Rows[0].Item, r, &s)
	case r.Outcome == tracking.OutcomeRows:
		s.Rows = named(b, r)
		if s.State = ledger.Unknown; d.NoneTaken {
			s.State, s.Halve = ledger.Pending, len(s.Rows) == 0
			d.depend(&s, r)
		}
	case r.Outcome == tracking.OutcomeThrottled:
		d.depend(&s, r)
	case r.Outcome == tracking.OutcomeAccepted:
		s.Rows = named(b, r)
	}
	return s
}

// requestSize returns how large the request of a batch is, in bytes.
func requestSize(b ledger.Batch) int { return len(tracking.AppendBatch(nil, b.Items())) }

// refusedAlone settles a row that was refused with nothing else in its batch.
// Of a conflict, and where refused rows may be stored, it is asked first whether
// the service has the row.
func (d *dispatch) refusedAlone(ctx, soft context.Context, item tracking.Item, r *tracking.Reply, s *ledger.Settlement) {
	s.State = ledger.Rejected
	if a := assumption(r); a != ledger.ConflictNotStored && d.standings[a] == holds {
		return
	}
	ctx, cancel := d.whileSending(ctx, soft)
	defer cancel()
	// Another row of the account may have the same referId: only an answer
	// with the number counts.
	p, err := d.prove(ctx, ledger.UnknownRow{Item: item, Siblings: 1}, func() error { return nil })
	switch {
	case err != nil || p.verdict == busy:
		s.State, s.Reason = ledger.Unknown, s.Reason+"; whether it is there could not be told"
	case p.verdict == present:
		s.State, s.Reason = ledger.Accepted, ""
	}
}

// whileSending returns a context for queries about what was sent: it ends a
// while after the sending does, for a pause may last longer than anybody waits.
func (d *dispatch) whileSending(ctx, soft context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(soft, func() {
		_ = pace.Sleep(ctx, 2*d.Query)
		cancel()
	})
	return ctx, func() { stop(); cancel() }
}

// named returns the rows of a batch that its answer refuses by name. Of rows
// that it may mean, one is unknown if the others were taken, and goes again
// with them if none was.
func named(b ledger.Batch, r *tracking.Reply) []ledger.RowOutcome {
	if len(r.Refused) == 0 {
		return nil
	}
	rows := make(map[tracking.Key]int64, len(b.Rows))
	for _, row := range b.Rows {
		rows[row.Item.Key()] = row.ID
	}
	var verdicts []ledger.RowOutcome
	for _, v := range r.Refused {
		id, ok := rows[v.Key]
		switch {
		case ok && !v.Doubtful:
			verdicts = append(verdicts, ledger.RowOutcome{Row: id, State: ledger.Rejected, Reason: v.Reason})
		case ok && r.Outcome == tracking.OutcomeAccepted:
			verdicts = append(verdicts, ledger.RowOutcome{Row: id, State: ledger.Unknown, Reason: "the answer refuses this row or another: " + v.Reason})
		}
	}
	return verdicts
}

// state is what an outcome means for a batch.
func state(o tracking.Outcome) ledger.State {
	switch o {
	case tracking.OutcomeAccepted:
		return ledger.Accepted
	case tracking.OutcomeRows, tracking.OutcomeNotSent, tracking.OutcomeUnauthorized,
		tracking.OutcomeTooLarge, tracking.OutcomeThrottled, tracking.OutcomeRefused:
		return ledger.Pending
	default:
		return ledger.Unknown
	}
}

// learn draws from a reply what it means for the batches to come: nothing, a
// pause for all workers, or the end of the sending. It ends the pass.
func (d *dispatch) learn(pass *pace.Pass, r *tracking.Reply) error {
	d.mu.Lock()
	if r.Outcome != tracking.OutcomeNotSent {
		d.requests++
	}
	switch r.Outcome {
	case tracking.OutcomeUnknown:
		d.unknowns++
		d.lost = r
	case tracking.OutcomeAccepted, tracking.OutcomeRows, tracking.OutcomeTooLarge:
		d.heard = true
		fallthrough
	default:
		d.unknowns = 0
	}
	unknowns := d.unknowns
	d.mu.Unlock()
	switch r.Outcome {
	case tracking.OutcomeAccepted, tracking.OutcomeRows, tracking.OutcomeTooLarge:
		pass.Success()
		return nil
	case tracking.OutcomeThrottled:
		pass.Throttled(r.RetryAfter)
		return d.patience(r, "stopped: the service keeps asking for a pause")
	case tracking.OutcomeNotSent:
		pass.Unconnected()
		return d.patience(r, "stopped: no connection")
	}
	if r.HTTPStatus == http.StatusServiceUnavailable {
		pass.Throttled(r.RetryAfter)
	} else {
		pass.Release()
	}
	switch {
	case r.Outcome == tracking.OutcomeUnauthorized:
		return stopped(r, "stopped: the API key was refused")
	case r.Outcome == tracking.OutcomeRefused:
		return stopped(r, "stopped: the service refuses the request, not its rows")
	case r.HTTPStatus == http.StatusServiceUnavailable && r.RetryAfter > d.GiveUp:
		return stopped(r, "stopped: the service asks for a long pause")
	case r.Systemic:
		return stopped(r, "stopped: the answer can't be believed")
	case unknowns >= unknownInRow:
		e := stopped(r, fmt.Sprintf("stopped after %d unknown outcomes in a row", unknowns))
		e.again = true
		return e
	}
	return nil
}

// stopped is why the sending ends with that reply.
func stopped(r *tracking.Reply, why string) *StopError {
	return &StopError{Cause: r.Outcome, Why: why, Err: r.Err}
}

// patience returns why the sending ends when nothing got through for too long,
// or would not before the pause that the service asks for has ended.
func (d *dispatch) patience(r *tracking.Reply, why string) error {
	if !d.spent(r.RetryAfter) {
		return nil
	}
	return stopped(r, why)
}

// react does what an outcome asks for besides being recorded, and returns why
// the sending ends with it, if it does.
func (d *dispatch) react(ctx context.Context, o outcome) error {
	ctx = context.WithoutCancel(ctx)
	switch o.reply.Outcome {
	case tracking.OutcomeTooLarge:
		if len(o.batch.Rows) == 1 && o.found.State == ledger.Pending {
			return stopped(o.reply, fmt.Sprintf("stopped: the service refuses a request of one row and %d bytes as too large", requestSize(o.batch)))
		}
		d.limit((len(o.batch.Rows) + 1) / 2)
	case tracking.OutcomeAccepted:
		if err := d.keepLimit(ctx); err != nil {
			return err
		}
	case tracking.OutcomeThrottled, tracking.OutcomeNotSent:
		if err := d.giveBack(ctx); err != nil { // nothing is sent for a while
			return err
		}
	}
	rejected := int64(0)
	if o.found.State == ledger.Rejected {
		rejected = int64(len(o.batch.Rows) - len(o.found.Rows))
	}
	for _, v := range o.found.Rows {
		if v.State == ledger.Rejected {
			rejected++
		}
	}
	d.mu.Lock()
	d.rejected += rejected
	rejected = d.rejected
	if n := len(o.batch.Rows); n > 1 && o.reply.Outcome == tracking.OutcomeRows && o.found.State == ledger.Unknown && o.found.Assumption == "" && len(o.found.Rows) == 0 {
		// Those that prove absent go again in smaller batches, until the bad
		// ones stand alone.
		d.shrink(n)
	}
	d.recheck = d.recheck || o.found.Assumption != ""
	d.mu.Unlock()
	if d.MaxRejects > 0 && rejected > d.MaxRejects {
		return &StopError{Cause: tracking.OutcomeRows, Why: fmt.Sprintf("stopped: more than %d rows were rejected (--max-rejects)", d.MaxRejects)}
	}
	if o.found.Assumption != "" {
		e := stopped(o.reply, "stopped: the service may have stored rows of a batch "+assumptionText(o.found.Assumption))
		e.check = true
		return e
	}
	return nil
}

// keepLimit records how many rows one request may carry, once a batch was
// accepted since that was lowered: before, everything may be too large.
func (d *dispatch) keepLimit(ctx context.Context) error {
	d.mu.Lock()
	lowered, size := d.lowered, d.size
	d.lowered = false
	d.mu.Unlock()
	if !lowered {
		return nil
	}
	return d.Ledger.LowerBatchLimit(ctx, d.Run.Plan.Account, d.Run.Plan.Mode, size)
}
