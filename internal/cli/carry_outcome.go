package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// outcome is the error that the exit status of a carried run stands for. If the
// store fails while the reason is looked up, it is that too.
func (k *carriage) outcome(ctx context.Context, res createResult, sendErr error) error {
	code := worst(stopCode(sendErr), rowsCode(res))
	if code == OK {
		return nil
	}
	e := &outcomeError{code: code, next: k.again}
	var failed error
	switch {
	case as[*signalError](sendErr):
		e.err = fmt.Errorf("interrupted: %s", res.counts())
		e.hint = k.goOn() + " goes on where this one stopped"
	case sendErr != nil:
		e.err = fmt.Errorf("%w; %s", sendErr, res.counts())
		k.stopped(e, res, sendErr)
	case code == Unknown:
		first, err := k.firstReason(ctx, ledger.Unknown)
		failed = err
		e.err = fmt.Errorf("%s of unknown outcome%s%s", plural(res.Unknown, "row"), alsoRejected(res), first)
		e.hint = k.goOn() + " asks the service about them again, and sends only what it proves not to have"
		switch {
		case k.policy.Unknown == bulk.Reconcile && k.unprovable:
			e.next = k.r.command("runs", "resume", res.Run, "--unknown", string(bulk.ResendOne))
			e.hint = "`" + e.next + "` sends one of them again alone and asks for it, to see that the service shows what it has; it risks that this one row is created twice"
		case k.policy.Unknown == bulk.Keep:
			e.hint, e.next = "--unknown keep left them alone; without it the service is asked about them", k.r.command("runs", "resume", res.Run)
		}
	case res.Rejected > 0:
		first, err := k.firstReason(ctx, ledger.Rejected)
		failed = err
		e.err = fmt.Errorf("%s rejected%s", plural(res.Rejected, "row"), first)
		e.hint = "mend them in the CSV of the next command and create that file, or send them as they are with `" + k.r.command("runs", "retry", res.Run) + "`"
		e.next = k.rejectedCSV()
	case res.Pending > 0:
		e.err = fmt.Errorf("%s still pending: another waybill is sending them", plural(res.Pending, "row"))
		e.hint = k.goOn() + " tells their outcome when it has ended"
	default:
		e.err = fmt.Errorf("%s left out, the rest is done", plural(res.Invalid, "bad row"))
		e.hint, e.next = "mend them and run the same command again", ""
	}
	return errors.Join(e, failed)
}

func (res createResult) counts() string {
	return countsLine(ledger.Counts{Accepted: res.Accepted, Rejected: res.Rejected, Unknown: res.Unknown, Pending: res.Pending})
}

func alsoRejected(res createResult) string {
	if res.Rejected == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d rejected", res.Rejected)
}

// goOn names the command that goes on, in a sentence.
func (k *carriage) goOn() string {
	if k.same {
		return "the same command"
	}
	return "`" + k.again + "`"
}

// rejectedCSV is the command that shows rejected rows so that they can be
// mended and created.
func (k *carriage) rejectedCSV() string {
	return k.r.command("runs", "rows", k.id(), "--state", string(ledger.Rejected), "-o", "csv")
}

// stopped says what to do when the sending stopped early.
func (k *carriage) stopped(e *outcomeError, res createResult, err error) {
	var stop *bulk.StopError
	if !errors.As(err, &stop) {
		return
	}
	then := "; then " + k.goOn() + " goes on"
	pause := time.Duration(0)
	if status := (*api.StatusError)(nil); errors.As(err, &status) {
		pause = status.RetryAfter
	}
	switch stop.Cause {
	case tracking.OutcomeUnauthorized:
		e.hint = "check the API key" + then
	case tracking.OutcomeNotSent:
		e.hint = k.goOn() + " goes on when the service can be reached; repeating is safe"
	case tracking.OutcomeUnknown:
		e.hint = "`" + k.r.command("runs", "show", res.Run, "--answers") + "` shows what came; " + k.goOn() + " asks about the unknown rows before it goes on"
	case tracking.OutcomeRows:
		e.hint = "look at the rejected rows first" + then + ", with --max-rejects 0 whatever the service rejects"
		e.next = k.rejectedCSV()
	case tracking.OutcomeTooLarge:
		e.hint = "check base_url and every proxy on the way: a limit there is below what one row needs" + then
	default:
		e.hint = "check base_url and the account" + then
	}
	if pause > 0 && stop.Cause != tracking.OutcomeUnauthorized {
		e.hint = fmt.Sprintf("the service asked to wait %s%s", shortDuration(pause), then)
	}
}

// stopCode is the exit status for why sending stopped.
func stopCode(err error) Code {
	var stop *bulk.StopError
	switch {
	case err == nil:
		return OK
	case as[*signalError](err):
		code, _ := explain(err)
		return code
	case !errors.As(err, &stop):
		return Failed
	}
	switch stop.Cause {
	case tracking.OutcomeUnauthorized:
		return Auth
	case tracking.OutcomeNotSent:
		return Unreachable
	case tracking.OutcomeUnknown:
		return Unknown
	case tracking.OutcomeRows:
		return Partial
	default:
		return Refused
	}
}

// rowsCode is the exit status for what became of the rows.
func rowsCode(res createResult) Code {
	var cs []Code
	if res.Unknown > 0 {
		cs = append(cs, Unknown)
	}
	if res.Rejected > 0 {
		code := Partial
		if res.Rejected == res.New+res.Already {
			code = Refused
		}
		cs = append(cs, code)
	}
	if res.Invalid > 0 {
		cs = append(cs, Partial)
	}
	if res.Pending > 0 {
		cs = append(cs, Pending)
	}
	return worst(cs...)
}

// firstReason shows why the first row in a state is there.
func (k *carriage) firstReason(ctx context.Context, state ledger.State) (string, error) {
	for row, err := range k.db.Rows(ctx, k.run.ID) {
		if err != nil {
			return "", err
		}
		if row.State == state {
			reason := row.Reason
			if reason == "" {
				reason = "no reason given"
			}
			return fmt.Sprintf(", the first at %s:%d: %s", row.File, row.Line, reason), nil
		}
	}
	return "", nil
}
