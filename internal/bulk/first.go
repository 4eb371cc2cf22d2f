package bulk

import (
	"context"
	"errors"
	"fmt"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// maxFirst is how many first rows of an account are sent, one at a time, until one is accepted.
const maxFirst = 5

// askBeforeFirst queries the first row that the run would send: a store restored from a backup, or one of several
// machines, does not know everything that was sent. If the service has the row, the run stops. If this store sent the
// row before and it was not found then, all remaining rows are queried. An inconclusive response is ignored.
func (s *sender) askBeforeFirst(ctx context.Context) error {
	if s.SkipProof || s.VerifyPending || s.Unknown == Resend || s.firstAsked {
		return nil
	}
	first, err := s.Ledger.FirstPending(ctx, s.Run.ID)
	if first == nil || err != nil {
		return err
	}
	e, err := s.queryFor(ctx, 0, tracking.Query{ReferID: first.Item.ReferID}, first.Item)
	if err != nil {
		return err
	}
	s.firstAsked = true
	found := e.Presence == tracking.PresenceNamed
	if e.Presence == tracking.PresenceProcessing && first.Siblings == 0 {
		proofs := []*proof{{presence: tracking.PresenceNamed, ifNoSiblings: true}}
		if err := s.dropUnprovenProcessing(ctx, proofs); err != nil {
			return err
		}
		found = proofs[0].presence == tracking.PresenceNamed
	}
	if s.absentBefore = ""; e.Presence == tracking.PresenceAbsent && !s.knowsAccount() {
		s.absentBefore = first.Item.ReferID
	}
	if found {
		// The evidence counts for a row that is still to be sent: another process may have sent it.
		now, err := s.Ledger.FirstPending(ctx, s.Run.ID)
		if err != nil || now == nil || now.Row != first.Row || now.Batch != first.Batch {
			return err
		}
	}
	switch {
	case found && !first.Unsent:
		return s.checkRest(ctx, first.Item)
	case found:
		why := fmt.Sprintf("the service already has referId %q, but this store has not sent it", first.Item.ReferID)
		return &StopError{Known: &first.Item, Why: why}
	case e.Presence != tracking.PresenceAbsent:
		s.Detail("Can't find out whether the service has the first row, referId %q: %s",
			first.Item.ReferID, describeEvidence(e))
	}
	return nil
}

// checkRest handles a row that was sent before and reached the service late: all pending rows are queried.
func (s *sender) checkRest(ctx context.Context, late tracking.Item) error {
	if _, err := s.Ledger.CheckPending(ctx, s.Run.ID); err != nil {
		return err
	}
	why := fmt.Sprintf("the service has referId %q, which was sent before and was not found then", late.ReferID)
	const recheck = "The service has a row now that it did not have before; checking all rows that are left"
	return &StopError{Known: &late, Why: why, recheck: recheck}
}

// sendFirst sends rows one at a time until it is proven how the service reports that it accepted rows of the account.
func (d *dispatch) sendFirst(ctx, soft context.Context) error {
	for tried := 0; !d.SkipProof && !d.knowsAccount(); tried++ {
		if tried == maxFirst {
			return stopf(tracking.OutcomeRows, nil, "none of the first %d rows was accepted", maxFirst)
		}
		o, err := d.sendOne(ctx, soft)
		if stop, ok := errors.AsType[*StopError](err); ok && stop.checkFirst {
			err = d.proveShapes(soft)
		} else if o == nil {
			return err // no row is left, or soft ended
		}
		if err != nil {
			return err
		}
		if o != nil && o.outcome.State == ledger.Unknown {
			stop := stopf(o.reply.Outcome, o.reply.Err, "the outcome of the first row is unknown")
			stop.recheck = "The first row got no answer; checking it"
			return stop
		}
	}
	if d.proofsDue { // some rows were refused before one was accepted
		return d.proveShapes(soft)
	}
	return nil
}

// resendOne resends one unknown row, as the control for the others, at the risk of creating it twice.
func (s *sender) resendOne(ctx, soft context.Context, row ledger.Resolution) error {
	applied, err := s.Ledger.Resolve(soft, s.Run.ID, []ledger.Resolution{row})
	if err != nil || applied == 0 { // 0: another process resolved it
		return err
	}
	s.uncountSent([]ledger.Resolution{row})
	s.Note("No accepted row in this account: sending one row with unknown outcome again (--unknown resend-one)")
	d, err := s.dispatch(soft)
	if err != nil {
		return err
	}
	return d.sendFirst(ctx, soft)
}

// sendOne sends a single row. It returns nil if none is left, or soft ended.
func (d *dispatch) sendOne(ctx, soft context.Context) (*sentBatch, error) {
	record := func(o sentBatch) error { return d.record(context.WithoutCancel(ctx), []sentBatch{o}) }
	for {
		b, pass, err := d.nextBatch(soft, d.claimFirst)
		if pass == nil || err != nil {
			return nil, err
		}
		o, err := d.exchangeBatch(ctx, soft, b, pass, record)
		if err != nil || o != nil && o.outcome.State != ledger.Pending {
			return o, err
		}
	}
}

// claimFirst claims one row. It tells the user, once, that more rows follow once the first is found.
func (d *dispatch) claimFirst(soft context.Context) ([]ledger.Batch, error) {
	if d.Feed != nil {
		if err := d.Feed.awaitFull(soft); err != nil {
			return nil, err
		}
	}
	ctx := context.WithoutCancel(soft)
	claimed, err := d.claimBatches(ctx, 1, 1)
	if err != nil || len(claimed) == 0 || d.firstNoted {
		return claimed, err
	}
	d.firstNoted = true
	c, err := d.Ledger.CountRows(ctx, d.Run.ID)
	if c.Pending > 0 {
		d.Note("First run for this account: sending one row first")
	}
	return claimed, err
}

func describeEvidence(e tracking.Evidence) string {
	switch {
	case e.Presence == tracking.PresenceAbsent:
		return "not found: " + e.Fingerprint
	case e.Err != nil:
		return e.Err.Error()
	default:
		return "its response " + e.Why
	}
}
