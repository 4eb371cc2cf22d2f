package bulk

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// maxConsecutiveUnknowns unknown outcomes stop the sending: each leaves up to a thousand rows to query one by one.
const maxConsecutiveUnknowns = 3

// maxOrdinaryRow is the size in bytes up to which a 413 for a request with one row is not blamed on the row:
// identifiers have up to 255 characters.
const maxOrdinaryRow = 4 << 10

func (d *dispatch) outcomeOf(ctx, soft context.Context, b ledger.Batch, r *tracking.Reply) ledger.BatchOutcome {
	s := ledger.BatchOutcome{
		Batch: b.ID, State: states[r.Outcome.Meaning().Stored], Reason: r.Reason(), HTTPStatus: r.HTTPStatus,
		Answer: r.Answer, AnswerCut: r.AnswerCut, Began: r.Began, Took: r.Took,
	}
	switch {
	case r.Outcome == tracking.OutcomeTooLarge && len(b.Rows) > 1:
		s.Halve = true
	case r.Outcome == tracking.OutcomeTooLarge && requestSize(b) > maxOrdinaryRow:
		s.State = ledger.Rejected // nothing smaller can be sent
	case r.Outcome == tracking.OutcomeRows && len(b.Rows) == 1:
		d.setState(ctx, soft, b.Rows[0].Item, r, &s)
		return s
	case r.Outcome == tracking.OutcomeRows:
		s.Rows = rowOutcomes(b, r)
		s.Halve = len(s.Rows) == 0
	case r.Outcome == tracking.OutcomeAccepted:
		s.Rows = rowOutcomes(b, r)
	}
	d.applyProof(&s, r)
	return s
}

// requestSize returns the size of a batch's request, in bytes.
func requestSize(b ledger.Batch) int { return len(tracking.AppendBatch(nil, b.Items())) }

// setState sets the state of a row that was refused in a request of its own. It queries the row first after a
// conflict, and if the service may have stored refused rows.
func (d *dispatch) setState(ctx, soft context.Context, item tracking.Item, r *tracking.Reply, s *ledger.BatchOutcome) {
	s.State = ledger.Rejected
	if r.HTTPStatus != http.StatusConflict && (d.SkipProof || d.proven[d.shapeOf(r)] == ledger.Pending) {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(soft, func() { // a pause may last longer than a user waits
		_ = pace.Sleep(ctx, 2*d.QueryTimeout)
		cancel()
	})()
	// Siblings: another row may have the same referId, so only a response with the number counts.
	p, err := d.prove(ctx, ledger.UnknownRow{Item: item, Siblings: 1}, nil)
	switch {
	case err != nil || p.presence == tracking.PresenceProcessing:
		s.State, s.Reason = ledger.Unknown, s.Reason+"; could not check whether it exists"
	case p.presence == tracking.PresenceNamed:
		s.State, s.Reason = ledger.Accepted, ""
	}
}

// rowOutcomes returns the rows that the response refuses by name. A row that it may refer to is unknown if the batch
// was accepted, or pending like the others if it was refused.
func rowOutcomes(b ledger.Batch, r *tracking.Reply) []ledger.RowOutcome {
	if len(r.Refused) == 0 {
		return nil
	}
	rows := make(map[tracking.Key]int64, len(b.Rows))
	for _, row := range b.Rows {
		rows[row.Item.Key()] = row.ID
	}
	var outcomes []ledger.RowOutcome
	for _, v := range r.Refused {
		id, ok := rows[v.Key]
		switch {
		case ok && !v.Ambiguous:
			outcomes = append(outcomes, ledger.RowOutcome{Row: id, State: ledger.Rejected, Reason: v.Reason})
		case ok && r.Outcome == tracking.OutcomeAccepted:
			reason := "the response refuses this row or another: " + v.Reason
			outcomes = append(outcomes, ledger.RowOutcome{Row: id, State: ledger.Unknown, Reason: reason})
		}
	}
	return outcomes
}

var states = [...]ledger.State{
	tracking.StoredUnknown: ledger.Unknown, tracking.StoredNone: ledger.Pending, tracking.StoredAll: ledger.Accepted,
}

// adapt ends the pass with the pace signal of a reply, and returns why the run stops, if it does.
func (d *dispatch) adapt(soft context.Context, pass *pace.Pass, r *tracking.Reply) error {
	m := r.Outcome.Meaning()
	pass.End(m.Signal, r.RetryAfter)
	unknowns := d.count(r, m)
	stop := d.countFailure(soft, r.Outcome, r.Err, r.RetryAfter)
	switch {
	case stop != nil:
		return stop
	case m.Stop == tracking.StopAtOnce, m.Stop == tracking.StopOnLongPause && r.RetryAfter > d.GiveUpAfter:
		return stopFor(r.Outcome, r.Err)
	case unknowns >= maxConsecutiveUnknowns:
		stop := stopf(r.Outcome, r.Err, "%d requests in a row failed", unknowns)
		stop.recheck = fmt.Sprintf("%d requests got no answer; checking those rows", unknowns)
		if r.HTTPStatus != 0 {
			stop.recheck = fmt.Sprintf("%d requests failed; checking those rows", unknowns)
		}
		return stop
	}
	return nil
}

// count counts a reply, and returns the number of consecutive unknown outcomes.
func (d *dispatch) count(r *tracking.Reply, m tracking.Meaning) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requestTook = r.Took
	if r.Outcome != tracking.OutcomeNotSent {
		d.requests++
	}
	d.answered = d.answered || m.Signal == pace.Success
	if m.Stored == tracking.StoredUnknown {
		d.consecutiveUnknowns++
		d.lastUnknown = r
	} else {
		d.consecutiveUnknowns = 0
	}
	return d.consecutiveUnknowns
}

func stopFor(o tracking.Outcome, err error) *StopError {
	return stopf(o, err, "%s", o.Meaning().Why)
}

func stopf(o tracking.Outcome, err error, why string, args ...any) *StopError {
	return &StopError{Cause: o, Why: "stopped: " + fmt.Sprintf(why, args...), Err: err}
}

// applyOutcome adapts limits and counts to a recorded outcome, and returns why the run stops, if it does.
func (d *dispatch) applyOutcome(ctx context.Context, o sentBatch) error {
	if err := d.adaptLimits(context.WithoutCancel(ctx), o); err != nil {
		return err
	}
	if n := d.countRejected(o); d.MaxRejects > 0 && n > d.MaxRejects {
		return stopf(tracking.OutcomeRows, nil, "more than %d rows were rejected (--max-rejects)", d.MaxRejects)
	}
	r, status := o.reply, o.reply.HTTPStatus
	if r.Outcome == tracking.OutcomeAccepted && o.outcome.State == ledger.Unknown && o.outcome.Shape == "" {
		stop := stopf(r.Outcome, r.Err, "the service answered with %d, but may not have all rows", status)
		stop.recheck = fmt.Sprintf("The service answered with %d, but may not have all rows; checking them", status)
		return stop
	}
	if o.outcome.Shape != "" {
		stop := stopf(r.Outcome, r.Err, "the service answered with %d, and it is not proven yet what that means", status)
		stop.checkFirst = true
		return stop
	}
	return nil
}

// adaptLimits returns an error if even one row is too large, or if the store fails.
func (d *dispatch) adaptLimits(ctx context.Context, o sentBatch) error {
	n := len(o.batch.Rows)
	switch o.reply.Outcome {
	case tracking.OutcomeTooLarge:
		if n == 1 && (o.outcome.State == ledger.Pending || o.outcome.Shape != "") {
			return stopf(o.reply.Outcome, o.reply.Err,
				"the service refused a request of one row (%d bytes) as too large", requestSize(o.batch))
		}
		d.capBatchRows((n + 1) / 2)
	case tracking.OutcomeAccepted:
		return d.saveBatchLimit(ctx)
	case tracking.OutcomeThrottled, tracking.OutcomeNotSent:
		return d.returnQueue(ctx) // nothing is sent for a while
	case tracking.OutcomeRows:
		if n > 1 && o.outcome.State == ledger.Unknown && o.outcome.Shape == "" && len(o.outcome.Rows) == 0 {
			// Absent rows are resent in smaller batches, until each refused row is alone.
			d.mu.Lock()
			d.halveNextRoundLimit(n)
			d.mu.Unlock()
		}
	}
	return nil
}

// countRejected adds a batch's rejected rows to the count of the run, and returns the sum.
func (d *dispatch) countRejected(o sentBatch) int64 {
	rejected := int64(0)
	if o.outcome.State == ledger.Rejected {
		rejected = int64(len(o.batch.Rows) - len(o.outcome.Rows))
	}
	for _, v := range o.outcome.Rows {
		if v.State == ledger.Rejected {
			rejected++
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rejected += rejected
	return d.rejected
}

// saveBatchLimit saves a lowered limit once a batch was accepted: until then, any size may be too large.
func (d *dispatch) saveBatchLimit(ctx context.Context) error {
	d.mu.Lock()
	lowered, size := d.maxRowsLowered, d.maxRows
	d.maxRowsLowered = false
	d.mu.Unlock()
	if !lowered {
		return nil
	}
	return d.Ledger.LowerBatchLimit(ctx, d.Run.Plan.Mode, size)
}

func (d *dispatch) recordSightings(ctx context.Context, some []sentBatch) {
	var seen []ledger.Sighting
	for _, o := range some {
		if d.Run.Plan.Mode == ledger.Sync && o.reply.Outcome == tracking.OutcomeAccepted {
			seen = append(seen, o.sightings()...)
		}
	}
	if len(seen) == 0 {
		return
	}
	slices.SortStableFunc(seen, func(a, b ledger.Sighting) int { // recording many is fastest in this order
		return cmp.Or(strings.Compare(a.Key.ReferID, b.Key.ReferID), strings.Compare(a.Key.Number, b.Key.Number))
	})
	if err := d.Ledger.Record(ctx, []ledger.RecordedAnswer{{Seen: seen}}); err != nil {
		d.Warn("rows saved as accepted, but without their status in the response: %v", err)
	}
}

// sightings returns what the response says about the rows of its batch.
//
// Interface: Endpoints, 1. Batch create (synchronous, v1).
func (o sentBatch) sightings() []ledger.Sighting {
	answer := o.reply.Body.Answer()
	byNumber := make(map[string]tracking.Tracking, len(answer.Trackings))
	for _, t := range answer.Trackings {
		byNumber[t.Number] = t
	}
	var seen []ledger.Sighting
	at := o.reply.Began.Add(o.reply.Took)
	for _, row := range o.batch.Rows {
		t, ok := byNumber[row.Item.Number]
		if ok && t.Known() && (t.ReferID == "" || t.ReferID == row.Item.ReferID) {
			seen = append(seen, ledger.NewSighting(t, ledger.Processed, row.Item.Key(), at, ledger.FromCreate))
		}
	}
	return seen
}
