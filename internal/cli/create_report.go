package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync/atomic"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// createResult is what a create came to.
type createResult struct {
	Run      string `json:"run"`
	StoreNew bool   `json:"storeNew"`

	// Records of the input; Read is the sum of the others.
	Read       int64 `json:"read"`
	New        int64 `json:"new"`
	Already    int64 `json:"already"`
	Duplicates int64 `json:"duplicates"`
	Invalid    int64 `json:"invalid"`

	// States, at the end, of the distinct valid rows of this input.
	Accepted int64 `json:"accepted"`
	Rejected int64 `json:"rejected"`
	Unknown  int64 `json:"unknown"`
	Pending  int64 `json:"pending"`

	Batches        int64   `json:"batches"` // create requests made by this command
	ElapsedSeconds float64 `json:"elapsedSeconds"`

	Processed *int64         `json:"processed,omitempty"` // with --wait: rows that the service has worked out
	Waiting   *int64         `json:"waiting,omitempty"`   // with --wait: rows it has not
	Trackings []standingJSON `json:"trackings,omitempty"` // with --sync: what the answers said
}

// finish reports what the run came to and returns what the exit status
// stands for.
func (c *creation) finish(ctx context.Context, db *store.DB, run ledger.Run, requests int64, sendErr error) error {
	counts, err := db.CountRows(ctx, run.ID)
	if err != nil {
		return err
	}
	res := createResult{
		Run: strconv.FormatInt(run.ID, 10), StoreNew: db.New(),
		Read: c.judged.Read, New: run.Tally.New, Already: run.Tally.Known, Duplicates: run.Tally.Repeats, Invalid: c.judged.Invalid,
		Accepted: counts.Accepted, Rejected: counts.Rejected, Unknown: counts.Unknown, Pending: counts.Pending + counts.Sending,
		Batches: requests, ElapsedSeconds: c.elapsed(),
	}
	outcome := c.outcome(ctx, db, run, res, sendErr)
	if c.o.Wait && sendErr == nil && res.Accepted > 0 {
		outcome = c.waitFor(ctx, db, run, &res, outcome)
	}
	return errors.Join(c.report(ctx, db, run, res), outcome)
}

// outcome is the error that the exit status of a create stands for.
func (c *creation) outcome(ctx context.Context, db *store.DB, run ledger.Run, res createResult, sendErr error) error {
	code := worst(stopCode(sendErr), rowsCode(res))
	if code == OK {
		return nil
	}
	e := &outcomeError{code: code, next: c.again()}
	switch {
	case as[*signalError](sendErr):
		e.err = fmt.Errorf("interrupted, %s", countsLine(ledger.Counts{Accepted: res.Accepted, Rejected: res.Rejected, Unknown: res.Unknown, Pending: res.Pending}))
		e.hint = "the same command goes on where it stopped"
	case sendErr != nil:
		e.err = fmt.Errorf("%w; %s accepted, %d unknown, %d still pending", sendErr, plural(res.Accepted, "row"), res.Unknown, res.Pending)
		e.hint = stopHint(code, sendErr)
	case code == Unknown:
		e.err = fmt.Errorf("%s sent, outcome not known%s", plural(res.Unknown, "row"), firstReason(ctx, db, run, ledger.Unknown))
		e.hint = "they are not sent again; `waybill show REF` tells whether the service has one"
		e.next = commandLine("waybill", "runs", "show", res.Run)
	case res.Rejected > 0:
		e.err = fmt.Errorf("%s rejected%s", plural(res.Rejected, "row"), firstReason(ctx, db, run, ledger.Rejected))
		e.hint = "rejected rows are not sent again by create"
		e.next = commandLine("waybill", "runs", "show", res.Run)
	case res.Pending > 0:
		e.err = fmt.Errorf("%s still pending: another waybill is sending them", plural(res.Pending, "row"))
		e.hint = "run the same command again when it has ended"
	default:
		e.err = fmt.Errorf("%s left out, the rest is done", plural(res.Invalid, "bad row"))
	}
	return e
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

func stopHint(code Code, err error) string {
	switch code {
	case Auth:
		return "check the API key, then run the same command again"
	case Unreachable:
		return "nothing of what is pending was sent; run the same command again when the service can be reached"
	case Unknown:
		return "see the answer with `waybill runs show`; unknown rows are not sent again"
	}
	if s := (*api.StatusError)(nil); errors.As(err, &s) && s.RetryAfter > 0 {
		return fmt.Sprintf("the service asked to wait %s; then run the same command again", shortDuration(s.RetryAfter))
	}
	return "check base_url and the account, then run the same command again"
}

// firstReason shows why the first row in a state is there.
func firstReason(ctx context.Context, db ledger.Store, run ledger.Run, state ledger.State) string {
	for row, err := range db.Rows(ctx, run.ID) {
		if err != nil {
			return ""
		}
		if row.State == state {
			reason := row.Reason
			if reason == "" {
				reason = "no reason given"
			}
			return fmt.Sprintf(", the first at %s:%d: %s", row.File, row.Line, reason)
		}
	}
	return ""
}

// report prints the result.
func (c *creation) report(ctx context.Context, db *store.DB, run ledger.Run, res createResult) error {
	out := c.r.out
	switch {
	case out.Format() == render.JSONL:
		return c.reportRows(ctx, db, run)
	case out.machine():
		if c.plan.Mode == ledger.Sync {
			if err := each(db.Standings(ctx, c.plan.Account, ledger.Filter{Run: run.ID}), func(st ledger.Standing) error {
				res.Trackings = append(res.Trackings, newStandingJSON(st))
				return nil
			}); err != nil {
				return err
			}
		}
		return out.object(res)
	}
	if err := printCounts(out, res); err != nil {
		return err
	}
	return c.afterTable(ctx, run, res)
}

// wideCounts is the narrowest terminal that shows the counts side by side.
const wideCounts = 92

// printCounts prints the counts in a row, or on a narrow terminal one by one.
func printCounts(out *result, res createResult) error {
	counts := []int64{res.Read, res.New, res.Already, res.Duplicates, res.Invalid, res.Accepted, res.Rejected, res.Unknown, res.Pending, res.Batches}
	if width := out.Out().Width(); width > 0 && width < wideCounts {
		fields := []render.Field{{Name: "Run", Value: res.Run}}
		for i, name := range []string{"Read", "New", "Already", "Duplicates", "Invalid", "Accepted", "Rejected", "Unknown", "Pending", "Calls"} {
			fields = append(fields, render.Field{Name: name, Value: strconv.FormatInt(counts[i], 10)})
		}
		return out.fields(fields)
	}
	rows := out.Table(
		render.Column{Name: "RUN", ID: true}, render.Column{Name: "READ", Right: true}, render.Column{Name: "NEW", Right: true},
		render.Column{Name: "ALREADY", Right: true}, render.Column{Name: "DUPLICATES", Right: true}, render.Column{Name: "INVALID", Right: true},
		render.Column{Name: "ACCEPTED", Right: true}, render.Column{Name: "REJECTED", Right: true}, render.Column{Name: "UNKNOWN", Right: true},
		render.Column{Name: "PENDING", Right: true}, render.Column{Name: "CALLS", Right: true})
	cells := []string{res.Run}
	for _, n := range counts {
		cells = append(cells, strconv.FormatInt(n, 10))
	}
	return errors.Join(rows.Row(cells...), rows.Flush())
}

// reportRows prints one object for each record of the input.
func (c *creation) reportRows(ctx context.Context, db ledger.Store, run ledger.Run) error {
	return c.r.printRows(c.s.IO, db.Rows(ctx, run.ID))
}

// afterTable shows the answers of a synchronous create, and the next command.
func (c *creation) afterTable(ctx context.Context, run ledger.Run, res createResult) error {
	if c.plan.Mode == ledger.Sync && res.Accepted > 0 && !c.r.out.csv() {
		if err := c.r.out.line(""); err != nil {
			return err
		}
		if err := c.r.printList(ctx, c.s, ledger.Filter{Run: run.ID}); err != nil {
			return err
		}
	}
	if res.Accepted > 0 && res.Processed == nil && c.plan.Mode == ledger.Async {
		c.s.IO.Next(commandLine("waybill", "wait", "--run", res.Run))
	}
	return nil
}

// again is the command that goes on where this one stopped.
func (c *creation) again() string {
	words := []string{"waybill"}
	return commandLine(append(words, c.r.args...)...)
}

// waitFor waits until the accepted rows are worked out and notes how many are.
func (c *creation) waitFor(ctx context.Context, db *store.DB, run ledger.Run, res *createResult, outcome error) error {
	w := &waiting{s: c.s}
	refs := map[string]int64{} // accepted rows by referId
	for row, err := range db.Rows(ctx, run.ID) {
		if err != nil {
			return err
		}
		if row.State == ledger.Accepted && !row.Repeat {
			refs[row.Item.ReferID]++
		}
	}
	var done atomic.Int64
	heard := func(l looked) {
		if l.err == nil && w.cond.met(l.view) {
			done.Add(min(refs[l.query.ReferID], processed(l.view)))
		}
	}
	left, err := w.each(c.soft, refQueries(refs), len(refs), heard) //nolint:contextcheck // ctx outlives the signal that ends the waiting
	ready := done.Load()
	waiting := res.Accepted - ready
	res.Processed, res.Waiting, res.ElapsedSeconds = &ready, &waiting, c.elapsed()
	switch {
	case err == nil && left == 0 && waiting == 0, outcome != nil:
		return outcome
	case as[*signalError](err):
		return &outcomeError{code: stopCode(err), err: fmt.Errorf("interrupted while waiting: %d of %d processed", ready, res.Accepted), next: commandLine("waybill", "wait", "--run", res.Run)}
	case err != nil && !errors.Is(err, errTimeUp):
		return err
	}
	return &outcomeError{code: Pending, err: fmt.Errorf("created, but %d of %d are not yet processed", waiting, res.Accepted), next: commandLine("waybill", "wait", "--run", res.Run)}
}

func refQueries(refs map[string]int64) iter.Seq[api.Query] {
	return func(yield func(api.Query) bool) {
		for ref := range refs {
			if !yield(api.Query{ReferID: ref}) {
				return
			}
		}
	}
}
