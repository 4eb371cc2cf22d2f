package bulk

import (
	"context"
	"fmt"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// maxCanaries is how many first rows of an account may be rejected, one by
// one.
const maxCanaries = 5

// checkPendingFirst makes pending rows unknown, so that they are queried before they
// are sent, where the user wants that and the store never sent a row of the account.
func (j *Job) checkPendingFirst(ctx context.Context) error {
	if !j.CheckFirst {
		return nil
	}
	first, err := j.Ledger.FirstUnsent(ctx, j.Run.ID)
	if first == nil || err != nil {
		return err
	}
	_, err = j.Ledger.CheckPending(ctx, j.Run.Plan.Account)
	return err
}

// askBeforeFirst queries the first row of an account that this store sends: a store
// that was lost, or is another machine's, knows nothing of what was sent. If the
// service has the row, the run stops. An answer that proves nothing does not stop
// it.
func (j *Job) askBeforeFirst(ctx context.Context) error {
	if !j.AskFirst || j.firstAsked {
		return nil
	}
	first, err := j.Ledger.FirstUnsent(ctx, j.Run.ID)
	if first == nil || err != nil {
		return err
	}
	e, err := j.queryFirst(ctx, *first)
	if err != nil {
		return err
	}
	j.firstAsked = true
	found := e.Presence == tracking.PresenceNamed
	if e.Presence == tracking.PresenceProcessing {
		proofs := []*proof{{conclusion: present, ifNoSiblings: true}}
		if err := j.dropUnprovenProcessing(ctx, proofs); err != nil {
			return err
		}
		found = proofs[0].conclusion == present
	}
	switch {
	case found:
		return &StopError{Known: first, Why: fmt.Sprintf("the service already has referId %q, but this store has never sent a row of this account", first.ReferID)}
	case e.Presence != tracking.PresenceAbsent:
		j.detail("Can't find out whether the service has the first row, referId %q: %s", first.ReferID, describeEvidence(e))
	}
	return nil
}

// queryFirst queries a row by its referId. Without a connection, and while the
// service asks for pauses, it goes on, and stops, as a create does; other failures
// prove nothing.
func (j *Job) queryFirst(ctx context.Context, item tracking.Item) (tracking.Evidence, error) {
	for {
		e := query.Evidence(ctx, j.Gate, func() tracking.Evidence {
			return j.Service.Evidence(ctx, tracking.Query{ReferID: item.ReferID}, item)
		})
		switch {
		case ctx.Err() != nil:
			return e, context.Cause(ctx)
		case e.Unauthorized:
			return e, stopFor(tracking.OutcomeUnauthorized, e.Err)
		case e.Throttled && j.outOfPatience(e.RetryAfter):
			return e, stopFor(tracking.OutcomeThrottled, e.Err)
		case e.Unconnected && j.outOfPatience(0):
			return e, stopFor(tracking.OutcomeNotSent, e.Err)
		case !e.Throttled && !e.Unconnected:
			return e, nil
		}
	}
}

// makeContact proves, before an account's first run with more than one batch,
// that a query finds what the service accepted: one row is sent alone, and the
// rest only when it is found.
func (d *dispatch) makeContact(ctx, soft context.Context) error {
	if needed, err := d.needsContact(soft); !needed || err != nil {
		return err
	}
	known, err := d.Ledger.Controls(soft, d.Run.Plan.Account, 1)
	if err != nil {
		return err
	}
	if len(known) > 0 {
		return d.awaitFirst(soft, known[0].Item)
	}
	if !d.contactNoted {
		d.contactNoted = true
		d.note("First run for this account: sending one row first")
	}
	for range maxCanaries {
		if rejected, err := d.sendFirst(ctx, soft); !rejected || err != nil {
			return err
		}
	}
	return &StopError{Cause: tracking.OutcomeRows, Why: fmt.Sprintf("stopped: the service rejected the first %d rows", maxCanaries)}
}

// sendFirst sends one row alone and, if it is accepted, queries it until the
// service shows it. It reports whether the row was rejected.
func (d *dispatch) sendFirst(ctx, soft context.Context) (rejected bool, err error) {
	o, err := d.sendOne(ctx, soft)
	switch {
	case err != nil || o == nil:
		return false, err
	case o.settlement.State == ledger.Accepted && len(o.settlement.Rows) == 0:
		return false, d.awaitFirst(soft, o.batch.Rows[0].Item)
	case o.settlement.State == ledger.Unknown:
		stop := stopWith(o.reply, "stopped: the outcome of the first row is unknown")
		stop.recheck = "The first row got no answer; checking it"
		return false, stop
	}
	return true, nil
}

// resendOne sends one unknown row again, alone: once the service shows it, it is
// the control for the others. The risk is that this row is created twice.
func (j *Job) resendOne(ctx, soft context.Context, row ledger.Resolution) error {
	held, err := j.Ledger.Resolve(soft, j.Run.ID, []ledger.Resolution{row})
	if err != nil || held == 0 { // 0: another process settled it
		return err
	}
	j.uncountSent([]ledger.Resolution{row})
	j.note("No accepted row in this account: sending one row with unknown outcome again (--unknown resend-one)")
	d, err := j.dispatch(soft)
	if err != nil {
		return err
	}
	_, err = d.sendFirst(ctx, soft)
	return err
}

// needsContact reports whether the account needs a first contact and more than
// one batch is to be sent.
func (d *dispatch) needsContact(ctx context.Context) (bool, error) {
	if !d.Canary {
		return false, nil
	}
	if done, err := d.Ledger.Contacted(ctx, d.Run.Plan.Account); done || err != nil {
		return false, err
	}
	if d.Feed != nil {
		if full, err := d.Feed.awaitFull(ctx); full || err != nil {
			return full, err
		}
	}
	c, err := d.Ledger.CountRows(ctx, d.Run.ID)
	return c.Pending > int64(d.capBatchRows(0)), err
}

// sendOne sends one row alone and records its outcome. It returns nil if none is
// left, or soft ended.
func (d *dispatch) sendOne(ctx, soft context.Context) (*sentBatch, error) {
	for {
		pass, err := d.Gate.Enter(soft)
		if err != nil {
			return nil, nil //nolint:nilerr,nilnil // the end of soft is no failure
		}
		claimed, err := d.claimBatches(context.WithoutCancel(soft), 1, 1)
		if err != nil || len(claimed) == 0 {
			pass.Release()
			return nil, err
		}
		o := sentBatch{batch: claimed[0]}
		if o.reply, err = d.create(ctx, soft, o.batch, pass); err != nil {
			return nil, err
		} else if o.reply == nil {
			continue
		}
		stop := d.adapt(pass, o.reply)
		o.settlement = d.settlementOf(ctx, soft, o.batch, o.reply)
		if err := d.record(context.WithoutCancel(ctx), []sentBatch{o}); err != nil {
			return nil, err
		}
		if stop == nil {
			stop = d.applyOutcome(ctx, o)
		}
		if stop != nil {
			return nil, stop
		}
		if o.settlement.State != ledger.Pending {
			return &o, nil
		}
	}
}

// awaitFirst queries an accepted row until the service shows it. Only the time
// between an answer and the next query counts, not pauses that the service asks
// for.
func (d *dispatch) awaitFirst(ctx context.Context, item tracking.Item) error {
	left, began := d.QueryTimeout, time.Now()
	for retry := pace.NewRetry(d.QueryTimeout); ; {
		e, err := d.query(ctx, item, false)
		if err != nil {
			return err
		}
		if e.Presence == tracking.PresenceNamed || e.Presence == tracking.PresenceProcessing {
			d.firstShownAfter = time.Since(began)
			return d.Ledger.RecordContact(context.WithoutCancel(ctx), d.Run.Plan.Account)
		}
		wait := retry.Next()
		if left -= wait; left < 0 {
			return &StopError{Cause: tracking.OutcomeUnknown, Why: fmt.Sprintf(
				"stopped: the service accepted the first row, but does not find it by referId %q (%s)%s",
				item.ReferID, describeEvidence(e), d.contactHint())}
		}
		if err := pace.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// contactHint says how to continue if the first row is not shown.
func (j *Job) contactHint() string {
	if j.resentOne {
		return "; the other rows stay unknown until it does"
	}
	return "; --canary=false skips this check"
}

// describeEvidence describes an answer that does not show a row.
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
