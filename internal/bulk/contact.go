package bulk

import (
	"context"
	"fmt"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// mostCanaries is how many first rows of an account may be rejected, one by
// one.
const mostCanaries = 5

// contact makes sure, before an account's first run with more than one batch,
// that a row which the service accepted is found by a query: one row is sent
// alone, and the rest goes when it is found.
func (d *dispatch) contact(ctx, soft context.Context) error {
	if needed, err := d.needsContact(soft); !needed || err != nil {
		return err
	}
	known, err := d.Ledger.Controls(soft, d.Run.Plan.Account, 1)
	if err != nil {
		return err
	}
	if len(known) > 0 {
		return d.findFirst(soft, known[0].Item)
	}
	d.say("first contact with this account: one row goes alone, the rest when the service shows it (--canary=false goes without)")
	for range mostCanaries {
		if rejected, err := d.sendFirst(ctx, soft); !rejected || err != nil {
			return err
		}
	}
	return &StopError{Cause: tracking.OutcomeRows, Why: fmt.Sprintf("stopped: the service rejected the first %d rows", mostCanaries)}
}

// sendFirst sends one row alone and, if it is accepted, asks for it until the
// service shows it. It reports whether the row was rejected.
func (d *dispatch) sendFirst(ctx, soft context.Context) (rejected bool, err error) {
	o, err := d.sendOne(ctx, soft)
	switch {
	case err != nil || o == nil:
		return false, err
	case o.found.State == ledger.Accepted && len(o.found.Rows) == 0:
		return false, d.findFirst(soft, o.batch.Rows[0].Item)
	case o.found.State == ledger.Unknown:
		e := stopped(o.reply, "stopped: the outcome of the first row is unknown")
		e.again = !o.reply.Systemic
		return false, e
	}
	return true, nil
}

// resendOne sends one row of unknown outcome again, alone: once the service
// shows it, absences of the others prove something. What it risks is that this
// row is there twice.
func (j *Job) resendOne(ctx, soft context.Context, row ledger.Resolution) error {
	held, err := j.Ledger.Resolve(soft, j.Run.ID, []ledger.Resolution{row})
	if err != nil || held == 0 { // 0: somebody else settled it
		return err
	}
	j.say("no row of this account was ever accepted: one row of unknown outcome is sent again alone, and asked for (--unknown resend-one)")
	d, err := j.dispatch(soft)
	if err != nil {
		return err
	}
	_, err = d.sendFirst(ctx, soft)
	return err
}

// needsContact reports whether the account was never in contact and there is
// more than one batch to send.
func (d *dispatch) needsContact(ctx context.Context) (bool, error) {
	if !d.Canary {
		return false, nil
	}
	if done, err := d.Ledger.Contacted(ctx, d.Run.Plan.Account); done || err != nil {
		return false, err
	}
	c, err := d.Ledger.CountRows(ctx, d.Run.ID)
	return c.Pending > int64(d.limit(0)), err
}

// sendOne sends one row alone and records its outcome. It returns nil if there
// was none left, or soft ended.
func (d *dispatch) sendOne(ctx, soft context.Context) (*outcome, error) {
	for {
		pass, err := d.Gate.Enter(soft)
		if err != nil {
			return nil, nil //nolint:nilerr,nilnil // stopping is no failure here
		}
		claimed, err := d.claimSome(context.WithoutCancel(soft), 1, 1)
		if err != nil || len(claimed) == 0 {
			pass.Release()
			return nil, err
		}
		o := outcome{batch: claimed[0]}
		o.reply = d.Service.Create(ctx, o.batch.Items())
		stop := d.learn(pass, o.reply)
		o.found = d.settlement(ctx, soft, o.batch, o.reply)
		if err := d.record(context.WithoutCancel(ctx), []outcome{o}); err != nil {
			return nil, err
		}
		if stop == nil {
			stop = d.react(ctx, o)
		}
		if stop != nil {
			return nil, stop
		}
		if o.found.State != ledger.Pending {
			return &o, nil
		}
	}
}

// findFirst asks for a row that was accepted until the service shows it. Only
// the time between an answer and the next query counts, not pauses that the
// service asks for.
func (d *dispatch) findFirst(ctx context.Context, item tracking.Item) error {
	left := d.Query
	for retry := pace.NewRetry(d.Query); ; {
		e, err := d.ask(ctx, item, false)
		if err != nil {
			return err
		}
		if e.Presence == tracking.PresenceNamed || e.Presence == tracking.PresenceProcessing {
			return d.Ledger.RecordContact(context.WithoutCancel(ctx), d.Run.Plan.Account)
		}
		wait := retry.Next()
		if left -= wait; left < 0 {
			return &StopError{Cause: tracking.OutcomeUnknown, Why: fmt.Sprintf(
				"stopped: the service accepted the first row, but does not show it when asked for referId %q (%s)%s",
				item.ReferID, said(e), d.withoutCheck())}
		}
		if err := pace.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// withoutCheck names the way to go on though the first row is not shown.
func (j *Job) withoutCheck() string {
	if j.resent {
		return "; the unknown rows stay so until it does"
	}
	return "; --canary=false goes on without this check"
}

// said tells in a few words what an answer was that does not show a row.
func said(e tracking.Evidence) string {
	switch {
	case e.Presence == tracking.PresenceAbsent:
		return "it says there is none: " + e.Fingerprint
	case e.Err != nil:
		return e.Err.Error()
	default:
		return "its answer " + e.Why
	}
}
