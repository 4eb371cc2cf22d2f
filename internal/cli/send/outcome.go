package send

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/track"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Result is the outcome of a create.
type Result struct {
	Run      string `json:"run"`
	StoreNew bool   `json:"storeNew"`

	// Records of the input; Read is the sum of the others but Sent.
	Read       int64 `json:"read"`
	New        int64 `json:"new"`
	Already    int64 `json:"already"`
	Sent       int64 `json:"sent"` // rows that this command sent, and that are not pending again
	Duplicates int64 `json:"duplicates"`
	Invalid    int64 `json:"invalid"`
	Erased     int64 `json:"erased,omitempty"` // erased from the store before: not sent

	// States, at the end, of the distinct valid rows of this input.
	Accepted   int64 `json:"accepted"`
	Rejected   int64 `json:"rejected"`   // without superseded and dismissed ones
	Superseded int64 `json:"superseded"` // rejected: another number of the referId was accepted since
	Dismissed  int64 `json:"dismissed"`  // rejected, and dismissed by the user
	Unknown    int64 `json:"unknown"`
	Pending    int64 `json:"pending"`

	Partial        bool    `json:"partial,omitempty"` // the rest of the input was not staged
	Batches        int64   `json:"batches"`           // create requests made by this command
	ElapsedSeconds float64 `json:"elapsedSeconds"`

	Processed *int64            `json:"processed,omitempty"` // with --wait: rows that the service has processed
	Waiting   *int64            `json:"waiting,omitempty"`   // with --wait: rows it has not
	Summary   *view.SummaryJSON `json:"summary,omitempty"`   // with --wait: of all trackings of this input
	Trackings []view.Tracking   `json:"trackings,omitempty"` // with --sync: what the answers said

	summary *view.Summary // of Summary
	sending time.Duration // of Sent, without the wait for processing
}

func (k *Execution) finish(ctx context.Context, requests, sent int64, sendErr error) error {
	soft, ctx := ctx, context.WithoutCancel(ctx)
	run, err := k.Store.History.Run(ctx, k.Run.ID)
	if err != nil {
		return err
	}
	k.Run.Tally = run.Tally // also of an input that was not staged to its end
	counts, tally := run.Counts, run.Tally
	res := Result{
		Run: command.RunName(k.Run.ID), StoreNew: k.Store.New,
		Read: tally.New + tally.Known + tally.Repeats + tally.Erased + k.Invalid,
		New:  tally.New, Already: tally.Known, Sent: sent, Duplicates: tally.Repeats, Invalid: k.Invalid,
		Erased:   tally.Erased,
		Accepted: counts.Accepted, Rejected: run.Rejected(), Superseded: run.Superseded, Dismissed: run.Dismissed,
		Unknown: counts.Unknown, Pending: counts.Pending + counts.Sending,
		Partial: k.Partial, Batches: requests, ElapsedSeconds: command.ElapsedSeconds(k.Started), sending: k.sending,
	}
	outcome := k.outcome(ctx, res, sendErr)
	if k.Wait && sendErr == nil && res.Accepted > 0 {
		outcome = k.waitProcessed(soft, &res, outcome)
	}
	outcome = k.Gate.Check(res, outcome)
	return errors.Join(k.report(ctx, res, outcome), outcome)
}

// shownAnswers is the number of trackings that a synchronous create shows at its end.
const shownAnswers = 10_000

// report prints the result and, if all went well, the next command if there is one.
func (k *Execution) report(ctx context.Context, res Result, outcome error) error {
	out := k.Call.Out
	answers := k.Run.Plan.Mode == ledger.Sync && !out.IsCSV() && (out.Machine() || res.Accepted > 0)
	many := answers && res.New+res.Already > shownAnswers
	NoteErased(k.Call, res.Erased)
	switch {
	case out.Format() == render.JSONL:
		return view.PrintRows(k.Call, k.Store.History.Rows(ctx, k.Run.ID))
	case out.Machine():
		if answers && !many {
			names := view.NewStatusFormatter(k.Call.Config.Statuses)
			statuses := k.Store.Trackings.Statuses(ctx, ledger.Filter{Run: k.Run.ID})
			if err := command.Each(statuses, func(st ledger.TrackingStatus) error {
				line := view.KnownLine(&st)
				res.Trackings = append(res.Trackings, names.Tracking(&line))
				return nil
			}); err != nil {
				return err
			}
		}
	default:
		if err := printCounts(out, res); err != nil {
			return err
		}
		if res.summary != nil {
			res.summary.Print(k.Call)
		}
		if answers && !many {
			further := *k.Call
			further.Out = out.WithoutColumns()
			if err := errors.Join(out.Line(""), track.PrintList(ctx, &further, k.Run.ID)); err != nil {
				return err
			}
		}
	}
	if many {
		k.Call.IO.Note("More than %d rows: their status is not listed here", shownAnswers)
		k.Call.IO.Next(k.Call.CommandLine("list", "--run", res.Run))
	}
	if out.Machine() {
		return out.Object(res)
	}
	if outcome == nil && res.Processed == nil && res.New+res.Already > 0 && k.Run.Plan.Mode == ledger.Async {
		k.Call.IO.Next(k.Call.CommandLine("wait", "--run", res.Run))
	}
	return nil
}

// NoteErased prints how many rows are not sent because they were erased earlier.
func NoteErased(c *command.Call, rows int64) {
	const remedy = "`waybill store erase --forget` allows it"
	switch {
	case rows == 1:
		c.IO.Note("1 row was erased earlier and is never sent again; %s", remedy)
	case rows > 1:
		c.IO.Note("%s were erased earlier and are never sent again; %s", command.Plural(rows, "row"), remedy)
	}
}

// CountColumns returns a column for each count of a result.
func CountColumns() []command.Column[Result] {
	return []command.Column[Result]{
		{Name: "RUN", ID: true, Cell: func(r Result) string { return r.Run }},
		{Name: "READ", Count: func(r Result) int64 { return r.Read }},
		{Name: "NEW", Count: func(r Result) int64 { return r.New }},
		{Name: "ALREADY", Count: func(r Result) int64 { return r.Already }},
		{Name: "DUPLICATES", Count: func(r Result) int64 { return r.Duplicates }},
		{Name: "INVALID", Count: func(r Result) int64 { return r.Invalid }},
		{Name: "ACCEPTED", Count: func(r Result) int64 { return r.Accepted }},
		{Name: "REJECTED", Count: func(r Result) int64 { return r.Rejected }},
		{Name: "UNKNOWN", Count: func(r Result) int64 { return r.Unknown }},
		{Name: "PENDING", Count: func(r Result) int64 { return r.Pending }},
		{Name: "REQUESTS", CSV: "batches", Count: func(r Result) int64 { return r.Batches }},
		{Name: "SENT", Count: func(r Result) int64 { return r.Sent }},
		{Name: "SUPERSEDED", Count: func(r Result) int64 { return r.Superseded }},
		{Name: "DISMISSED", Count: func(r Result) int64 { return r.Dismissed }},
	}
}

func printCounts(out *command.Output, res Result) error {
	if !out.Out().IsTerminal() || out.IsCSV() || out.HasColumns() {
		return command.PrintTable(out, CountColumns(), res)
	}
	if err := out.Line("%s", summarize(out.Out(), res)); err != nil || res.Sent == 0 && res.Batches == 0 {
		return err
	}
	took := fmt.Sprintf("%.1f s", res.sending.Seconds())
	if res.sending >= time.Minute {
		took = command.Stopwatch(res.sending)
	}
	return out.Line("%s sent in %s, %s", command.Plural(res.Sent, "row"), command.Plural(res.Batches, "request"), took)
}

// summarize returns the counts other than 0, such as
// "Run 3: 26 rows (2 sent before): 24 accepted · 1 rejected · 1 duplicate".
func summarize(w *term.Writer, res Result) term.Styled {
	var parts []string
	for _, count := range []struct {
		n     int64
		name  string
		style term.Style
	}{
		{res.Accepted, "accepted", term.Good},
		{res.Pending, "pending", term.Caution},
		{res.Unknown, "unknown", term.Caution},
		{res.Rejected, "rejected", term.Bad},
		{res.Superseded, string(ledger.Superseded), term.Faint},
		{res.Dismissed, string(ledger.Dismissed), term.Faint},
		{res.Invalid, "invalid, not sent", term.Bad},
		{res.Duplicates, "duplicate", term.Faint},
		{res.Erased, "erased, not sent", term.Faint},
	} {
		if count.n > 0 {
			parts = append(parts, string(w.Style(count.style, command.Number(count.n)+" "+count.name)))
		}
	}
	rows := command.Plural(res.Read, "row")
	if res.Already > 0 && res.New == 0 {
		rows += fmt.Sprintf(" (nothing new, %s sent before)", command.Number(res.Already))
	} else if res.Already > 0 {
		rows += fmt.Sprintf(" (%s sent before)", command.Number(res.Already))
	}
	return term.Styled(fmt.Sprintf("Run %s: %s: %s", res.Run, rows, strings.Join(parts, " · ")))
}

func (k *Execution) waitProcessed(ctx context.Context, res *Result, outcome error) error {
	waited := track.WaitForRun(ctx, k.Call, k.Store, k.Run, res.Accepted)
	ctx = context.WithoutCancel(ctx)
	filter := ledger.Filter{Run: k.Run.ID}
	summary, err := view.SummaryOf(ctx, k.Call, k.Store, filter)
	filter.States = []ledger.State{ledger.Accepted}
	accepted, failed := view.SummaryOf(ctx, k.Call, k.Store, filter)
	if err = cmp.Or(err, failed); err != nil {
		return errors.Join(outcome, waited, err)
	}
	processed := accepted.Processed()
	res.summary, res.Summary, res.ElapsedSeconds = summary, new(summary.JSON()), command.ElapsedSeconds(k.Started)
	res.Processed, res.Waiting = &processed, new(res.Accepted-processed)
	code, hint := command.CodeAndHint(waited)
	if waited == nil || command.Worst(code, command.CodeOf(outcome)) != code {
		return outcome
	}
	text := waited
	if !errors.Is(waited, command.ErrTimeUp) {
		text = fmt.Errorf("created, but %w", waited)
	}
	next := k.Call.CommandLineWith([]string{"output", "json"}, "wait", "--run", res.Run)
	return &command.ExitError{Code: code, Err: text, Hint: hint, Next: next}
}

// outcome returns the error of the run, nil if every row was accepted, joined with the error of reading a reason.
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

// exitError returns the error of a run for the states of its rows. first is the reason of its first unknown or
// rejected row.
func (k *Execution) exitError(res Result, first string, sendErr error) error {
	code := command.Worst(stopCode(sendErr), rowsCode(res, k.Gate))
	if stop, ok := errors.AsType[*bulk.StopError](sendErr); ok && stop.Refused() {
		code = stopCode(sendErr) // even if rows are unknown
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
		k.describeUnknown(e, res, first)
	case res.Rejected > 0 && !k.Gate.Covers("rejected"):
		e.Err = fmt.Errorf("%s rejected%s", command.Plural(res.Rejected, "row"), first)
		e.Hint = "write them to a file with the next command, fix them, then create that file; " +
			"to send them unchanged: `" + k.Call.CommandLine("runs", "retry", res.Run) +
			"`; to dismiss them: `" + k.Call.CommandLine("runs", "dismiss", res.Run) + "`"
		e.Next = k.Call.RejectedCSV(k.Run.ID)
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
		if f := k.Call.Cmd.Flags().Lookup("rejects"); f != nil && f.Changed { // which this command would overwrite
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

func (k *Execution) describeUnknown(e *command.ExitError, res Result, first string) {
	rejected := ""
	if res.Rejected > 0 {
		rejected = fmt.Sprintf(" and %d rejected", res.Rejected)
	}
	e.Err = fmt.Errorf("%s with unknown outcome%s%s", command.Plural(res.Unknown, "row"), rejected, first)
	switch {
	case k.Policy.Unknown == bulk.Reconcile && k.unprovable:
		e.Next = k.Call.CommandLine("runs", "resume", res.Run, "--unknown", string(bulk.ResendOne))
		e.Hint = "`" + e.Next + "` sends one of them again and checks that the service finds it; " +
			"this one row may be created twice"
	case k.Policy.Unknown == bulk.Keep:
		e.Next = k.Call.CommandLine("runs", "resume", res.Run)
		e.Hint = "run without --unknown keep to check them with the service"
	default:
		e.Hint = k.rerun() + " to check them with the service; a row is sent again only if the service does not have it"
	}
}

func (k *Execution) rerun() string {
	if k.Repeat != "" {
		return "re-run the same command"
	}
	return "run `" + k.next() + "`"
}

func (k *Execution) addStopHint(e *command.ExitError, res Result, err error) {
	stop, ok := errors.AsType[*bulk.StopError](err)
	if !ok {
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
		e.Next = k.Call.RejectedCSV(k.Run.ID)
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
		return command.CodeOf(err)
	case !errors.As(err, &stop):
		return command.Failed
	}
	return command.CodeNamed(stop.Cause.Meaning().Exit)
}

// rowsCode returns the exit status for the states of rows. Counts that the gate checks do not fail by themselves,
// except unknown and pending rows.
func rowsCode(res Result, gate Gate) command.Code {
	var cs []command.Code
	if res.Unknown > 0 {
		cs = append(cs, command.Unknown)
	}
	if res.Rejected > 0 && !gate.Covers("rejected") {
		code := command.Partial
		if res.Rejected == res.New+res.Already {
			code = command.Refused
		}
		cs = append(cs, code)
	}
	if res.Invalid > 0 && !gate.Covers("invalid") || res.Partial {
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
		if row.Refine(row.State) == state {
			place := intake.RowPlace(row.File, row.Line, row.Row, "")
			return fmt.Sprintf(", the first at %s: %s", place, cmp.Or(row.Reason, "no reason given")), nil
		}
	}
	return "", nil
}

// WithNextCommand adds the command that continues to an error that stopped a command before its report.
func WithNextCommand(err error, next string) error {
	code := command.CodeOf(err)
	continued := []command.Code{command.Store, command.Interrupted, command.Terminated, command.Pending}
	if command.As[*command.ExitError](err) || !slices.Contains(continued, code) {
		return err
	}
	hint := ""
	if code == command.Pending {
		err, hint = fmt.Errorf("%w: nothing was sent", command.ErrTimeUp), "re-run the same command with a longer --timeout"
	}
	if errors.Is(err, store.ErrGone) && next != "" {
		next += " --check-first" // a new store or a backup lacks rows that were sent
	}
	return &command.ExitError{Code: code, Err: err, Hint: hint, Next: next}
}
