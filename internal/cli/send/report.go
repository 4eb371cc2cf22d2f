package send

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/track"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
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

	Processed *int64                `json:"processed,omitempty"` // with --wait: rows that the service has processed
	Waiting   *int64                `json:"waiting,omitempty"`   // with --wait: rows it has not
	Summary   *view.SummaryJSON     `json:"summary,omitempty"`   // with --wait: of all trackings of this input
	Trackings []view.TrackingStatus `json:"trackings,omitempty"` // with --sync: what the answers said

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
		Run: k.runID(), StoreNew: k.Store.New,
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

// shownAnswers is how many trackings a synchronous create shows after it.
const shownAnswers = 10_000

// report prints the result and, if all went well and there is one, the next command.
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
			statuses := k.Store.Trackings.Statuses(ctx, ledger.Filter{Run: k.Run.ID})
			if err := command.Each(statuses, func(st ledger.TrackingStatus) error {
				res.Trackings = append(res.Trackings, view.NewTrackingStatus(st))
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

// NoteErased says how many rows are not sent, since they were erased.
func NoteErased(c *command.Call, rows int64) {
	const remedy = "`waybill store erase --forget` allows it"
	switch {
	case rows == 1:
		c.IO.Note("1 row was erased earlier and is never sent again; %s", remedy)
	case rows > 1:
		c.IO.Note("%s were erased earlier and are never sent again; %s", command.Plural(rows, "row"), remedy)
	}
}

// CountColumns returns the columns of the counts of a result.
func CountColumns() []command.Column[Result] {
	count := func(name, csv string, of func(Result) int64) command.Column[Result] {
		return command.Column[Result]{Column: render.Column{Name: name, CSV: csv}, Count: of}
	}
	return []command.Column[Result]{
		{Column: render.Column{Name: "RUN", ID: true}, Cell: func(r Result) string { return r.Run }},
		count("READ", "", func(r Result) int64 { return r.Read }),
		count("NEW", "", func(r Result) int64 { return r.New }),
		count("ALREADY", "", func(r Result) int64 { return r.Already }),
		count("DUPLICATES", "", func(r Result) int64 { return r.Duplicates }),
		count("INVALID", "", func(r Result) int64 { return r.Invalid }),
		count("ACCEPTED", "", func(r Result) int64 { return r.Accepted }),
		count("REJECTED", "", func(r Result) int64 { return r.Rejected }),
		count("UNKNOWN", "", func(r Result) int64 { return r.Unknown }),
		count("PENDING", "", func(r Result) int64 { return r.Pending }),
		count("REQUESTS", "batches", func(r Result) int64 { return r.Batches }),
		count("SENT", "", func(r Result) int64 { return r.Sent }),
		count("SUPERSEDED", "", func(r Result) int64 { return r.Superseded }),
		count("DISMISSED", "", func(r Result) int64 { return r.Dismissed }),
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

// summarize returns the counts that are not 0, such as
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
		{res.Superseded, view.Superseded, term.Faint},
		{res.Dismissed, view.Dismissed, term.Faint},
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
	if own, _ := command.CodeAndHint(outcome); waited == nil || command.Worst(code, own) != code {
		return outcome
	}
	text := waited
	if !errors.Is(waited, command.ErrTimeUp) {
		text = fmt.Errorf("created, but %w", waited)
	}
	next := k.Call.CommandLineWith([]string{"output", "json"}, "wait", "--run", res.Run)
	return &command.ExitError{Code: code, Err: text, Hint: hint, Next: next}
}
