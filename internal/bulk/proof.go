package bulk

import (
	"context"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// verdict is what the answers about one row prove.
type verdict int

const (
	undecided verdict = iota
	present           // the service has it
	absent            // it says that it has not
	busy              // the order is being worked on: which of its rows is not told
)

// proof is what was found out about one row.
type proof struct {
	verdict  verdict
	alone    bool   // it holds only while no other row has this referId
	byNumber bool   // the absence was told of its number, not of its referId
	look     string // of the absence
	why      string // why it is not decided
	answered time.Time
}

// prove asks the service for a row: by its referId, and where that does not
// decide, by its number. The error is a [*StopError], or the cause of ctx.
//
// Presence is an answer that names the number, or Processing while the account
// holds no other row of that referId. Of a row that was never sent from here,
// and so may be one of several that another machine sent, only the first.
// beforeNumber is called before the row is asked for by its number; its error
// ends that.
func (j *Job) prove(ctx context.Context, x ledger.UnknownRow, beforeNumber func() error) (proof, error) {
	var p proof
	first, err := j.ask(ctx, x.Item, false)
	p.answered = time.Now()
	if err != nil {
		return p, err
	}
	switch first.Presence {
	case tracking.PresenceNamed:
		p.verdict = present
		return p, nil
	case tracking.PresenceAbsent:
		p.verdict, p.look = absent, first.Fingerprint
		return p, nil
	case tracking.PresenceProcessing:
		if x.Siblings == 0 && !x.Unsent {
			p.verdict, p.alone = present, true
			return p, nil
		}
	}
	if err := beforeNumber(); err != nil {
		return p, err
	}
	second, err := j.ask(ctx, x.Item, true)
	p.answered = time.Now()
	if err != nil {
		return p, err
	}
	switch {
	case second.Presence == tracking.PresenceNamed && (second.Own || j.onlyHolder(ctx, x.Item)):
		p.verdict = present
	case second.Presence == tracking.PresenceNamed:
		p.why = "the service has this number, but does not tell for which of the orders that have it"
	case first.Presence == tracking.PresenceProcessing, second.Presence == tracking.PresenceProcessing:
		p.verdict, p.why = busy, "the service is still working on this referId and does not tell which of its numbers it has"
	case second.Presence == tracking.PresenceAbsent:
		p.verdict, p.byNumber, p.look = absent, true, second.Fingerprint
	default:
		p.why = said(first) + " (asked by referId); " + said(second) + " (asked by number)"
	}
	return p, nil
}

// ask asks for an item until an answer comes, with growing pauses. An error
// says why none came; it is a [*StopError] or the cause of ctx.
func (j *Job) ask(ctx context.Context, item tracking.Item, byNumber bool) (tracking.Evidence, error) {
	for retry := pace.NewRetry(j.Query); ; {
		pass, err := j.Gate.Enter(ctx)
		if err != nil {
			return tracking.Evidence{}, err
		}
		e := j.Service.Evidence(ctx, item, byNumber)
		tell(pass, e)
		switch {
		case ctx.Err() != nil:
			return e, context.Cause(ctx)
		case e.Unauthorized:
			return e, &StopError{Cause: tracking.OutcomeUnauthorized, Why: "stopped: the API key was refused", Err: e.Err}
		case e.Err == nil || !e.Passing && !e.Unconnected:
			return e, nil
		case e.Throttled && j.spent(e.RetryAfter):
			return e, &StopError{Cause: tracking.OutcomeThrottled, Why: "stopped: the service keeps asking for a pause", Err: e.Err}
		case e.Throttled: // the gate waits; pauses that the service asks for are not its failure
			retry.Restart()
		case !retry.Wait(ctx, e.RetryAfter) && ctx.Err() == nil:
			return e, &StopError{Cause: tracking.OutcomeNotSent, Why: "stopped: no answer about rows of unknown outcome", Err: e.Err}
		}
	}
}

// tell ends a pass with what an answer to a query says of the service.
func tell(pass *pace.Pass, e tracking.Evidence) {
	switch {
	case e.Err == nil:
		pass.Success()
	case e.Unconnected:
		pass.Unconnected()
	case e.Throttled:
		pass.Throttled(e.RetryAfter)
	default:
		pass.Release()
	}
}

// onlyHolder reports whether no other referId of the account has the number of
// item.
func (j *Job) onlyHolder(ctx context.Context, item tracking.Item) bool {
	rows, err := j.Ledger.Find(ctx, j.Run.Plan.Account, "", item.Number)
	return err == nil && !slices.ContainsFunc(rows, func(s ledger.TrackingStatus) bool { return s.Item.ReferID != item.ReferID })
}
