package send

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// outcome is the error of the run, nil if every row was accepted, with that of the store if reading a reason fails.
func (k *Execution) outcome(ctx context.Context, res Result, sendErr error) error {
	var first string
	var failed error
	switch {
	case sendErr != nil:
	case res.Unknown > 0:
		first, failed = k.firstReason(ctx, ledger.Unknown)
	case res.Rejected > 0:
		first, failed = k.firstReason(ctx, ledger.Rejected)
	}
	return errors.Join(k.exitError(res, first, sendErr), failed)
}

const partialHint = "re-run the same command to send the remaining rows; nothing is sent twice"

// exitError is the error of a run by the states of its rows. first is why the first of them is unknown, or rejected.
func (k *Execution) exitError(res Result, first string, sendErr error) error {
	code := command.Worst(stopCode(sendErr), rowsCode(res, k.Gate))
	if stop := (*bulk.StopError)(nil); errors.As(sendErr, &stop) && stop.Refused() {
		code = stopCode(sendErr) // whatever it left unknown
	}
	if code == command.OK {
		return nil
	}
	e := &command.ExitError{Code: code, Next: k.next()}
	switch {
	case command.As[*command.SignalError](sendErr), errors.Is(sendErr, command.ErrTimeUp):
		e.Err = fmt.Errorf("%w: %s", sendErr, res.counts())
		e.Hint = k.rerun() + " to continue"
		if res.Partial {
			e.Err = fmt.Errorf("%w; the input was not read completely", e.Err)
			e.Hint = partialHint
		}
	case sendErr != nil:
		e.Err = fmt.Errorf("%w; %s", sendErr, res.counts())
		e.Hint = command.HintOf(sendErr)
		k.addStopHint(e, res, sendErr)
	case code == command.Unknown:
		e.Err = fmt.Errorf("%s with unknown outcome%s%s", command.Plural(res.Unknown, "row"), alsoRejected(res), first)
		e.Hint = k.rerun() + " to check them with the service; a row is sent again only if the service does not have it"
		switch {
		case k.Policy.Unknown == bulk.Reconcile && k.unprovable:
			e.Next = k.Call.CommandLine("runs", "resume", res.Run, "--unknown", string(bulk.ResendOne))
			e.Hint = "`" + e.Next + "` sends one of them again and checks that the service finds it; " +
				"this one row may be created twice"
		case k.Policy.Unknown == bulk.Keep:
			e.Hint = "run without --unknown keep to check them with the service"
			e.Next = k.Call.CommandLine("runs", "resume", res.Run)
		}
	case res.Rejected > 0 && !k.Gate.Judges("rejected"):
		e.Err = fmt.Errorf("%s rejected%s", command.Plural(res.Rejected, "row"), first)
		e.Hint = "write them to a file with the next command, fix them, then create that file; " +
			"to send them unchanged: `" + k.Call.CommandLine("runs", "retry", res.Run) +
			"`; to dismiss them: `" + k.Call.CommandLine("runs", "dismiss", res.Run) + "`"
		e.Next = k.rejectedCSV()
	case res.Pending > 0:
		e.Err = fmt.Errorf("%s still pending: another waybill is sending them", command.Plural(res.Pending, "row"))
		e.Hint = k.rerun() + " to see their outcome"
	case res.Partial:
		e.Err = fmt.Errorf("all rows of run %s are done, but its input was not read completely", res.Run)
		e.Hint, e.Next = partialHint, ""
		if k.Feed != nil {
			e.Next = k.Repeat
		}
	default:
		bad := ""
		e.Hint, e.Next = "fix them and re-run the same command", ""
		if f := k.Call.Cmd.Flags().Lookup("rejects"); f != nil && f.Changed { // which the same command would write over
			bad = ", see " + f.Value.String()
			e.Hint, e.Next = "fix them there, then create that file", k.Call.CommandLine("create", f.Value.String())
		}
		sent := command.Number(res.Sent) + " sent"
		if before := res.Accepted - res.Sent; before > 0 {
			sent += ", " + command.Number(before) + " before"
		}
		e.Err = fmt.Errorf("%s; %s not sent%s", sent, command.Number(res.Invalid), bad)
	}
	return e
}

func (res Result) counts() string {
	rejected := res.Rejected + res.Superseded + res.Dismissed
	counts := ledger.Counts{Accepted: res.Accepted, Rejected: rejected, Unknown: res.Unknown, Pending: res.Pending}
	return view.Counts(ledger.RunSummary{Counts: counts, Superseded: res.Superseded, Dismissed: res.Dismissed})
}

func alsoRejected(res Result) string {
	if res.Rejected == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d rejected", res.Rejected)
}

func (k *Execution) rerun() string {
	if k.Repeat != "" {
		return "re-run the same command"
	}
	return "run `" + k.next() + "`"
}

func (k *Execution) rejectedCSV() string {
	status := string(ledger.Rejected)
	return k.Call.CommandLine("runs", "rows", k.runID(), "--status", status, "-o", "csv", "--out", "bad.csv")
}

func (k *Execution) addStopHint(e *command.ExitError, res Result, err error) {
	var stop *bulk.StopError
	if !errors.As(err, &stop) {
		return
	}
	then := "; then " + k.rerun() + " to continue"
	switch stopCode(err) {
	case command.Auth:
		e.Hint = "check the API key" + then
	case command.Unreachable:
		e.Hint = k.rerun() + " when the service is reachable; repeating is safe"
	case command.Unknown:
		show := k.Call.CommandLine("runs", "show", res.Run, "--answers")
		e.Hint = "`" + show + "` shows the responses; " + k.rerun() + " to continue"
		if res.Unknown > 0 {
			e.Hint += " (unknown rows are checked first)"
		}
	case command.Partial:
		e.Hint = "check the rejected rows first" + then + ", with --max-rejects 0 for no limit"
		e.Next = k.rejectedCSV()
	default:
		e.Hint = "check base_url and the account" + then
		if stop.Cause == tracking.OutcomeTooLarge {
			e.Hint = "check base_url and any proxy: its limit is too small for one row" + then
		}
	}
	status, ok := errors.AsType[*api.StatusError](err)
	if ok && status.Pause > 0 && stop.Cause != tracking.OutcomeUnauthorized {
		e.Hint = fmt.Sprintf("wait %s, as the service asked%s", command.ShortDuration(status.Pause), then)
	}
}

func stopCode(err error) command.Code {
	var stop *bulk.StopError
	switch {
	case err == nil:
		return command.OK
	case command.As[*command.SignalError](err), command.As[*command.ExitError](err), command.As[*store.Error](err),
		errors.Is(err, command.ErrTimeUp):
		code, _ := command.CodeAndHint(err)
		return code
	case !errors.As(err, &stop):
		return command.Failed
	}
	return command.CodeOf(stop.Cause.Meaning().Exit)
}

// rowsCode is the exit status by the states of rows. What the gate judges is no failure by
// itself, but for rows of which more is to be found out.
func rowsCode(res Result, gate Gate) command.Code {
	var cs []command.Code
	if res.Unknown > 0 {
		cs = append(cs, command.Unknown)
	}
	if res.Rejected > 0 && !gate.Judges("rejected") {
		code := command.Partial
		if res.Rejected == res.New+res.Already {
			code = command.Refused
		}
		cs = append(cs, code)
	}
	if res.Invalid > 0 && !gate.Judges("invalid") || res.Partial {
		cs = append(cs, command.Partial)
	}
	if res.Pending > 0 {
		cs = append(cs, command.Pending)
	}
	return command.Worst(cs...)
}

func (k *Execution) firstReason(ctx context.Context, state ledger.State) (string, error) {
	for row, err := range k.Store.History.Rows(ctx, k.Run.ID) {
		if err != nil {
			return "", err
		}
		if row.State == state && (row.IsOpen() || state != ledger.Rejected) {
			place := intake.RowPlace(row.File, row.Line, row.Row, "")
			return fmt.Sprintf(", the first at %s: %s", place, cmp.Or(row.Reason, "no reason given")), nil
		}
	}
	return "", nil
}

// WithNextCommand adds the command that continues to an error that stopped a command before it could report.
func WithNextCommand(err error, next string) error {
	code, _ := command.CodeAndHint(err)
	continued := []command.Code{command.Store, command.Interrupted, command.Terminated, command.Pending}
	if command.As[*command.ExitError](err) || !slices.Contains(continued, code) {
		return err
	}
	hint := ""
	if code == command.Pending {
		err, hint = fmt.Errorf("%w: nothing was sent", command.ErrTimeUp), "re-run the same command with a longer --timeout"
	}
	if errors.Is(err, store.ErrGone) && next != "" {
		next += " --check-first" // a new store knows nothing of what was sent, a backup not all
	}
	return &command.ExitError{Code: code, Err: err, Hint: hint, Next: next}
}
