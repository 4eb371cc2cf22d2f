package bulk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

const (
	shapeSample = 3                   // rows of a batch that are queried to prove what its response means
	provenFor   = 30 * 24 * time.Hour // how long a proof is valid
	// visibleAfter is the least time that the service has to show rows it stored from a batch that it refused. It has at
	// least twice the time it took to show the account's first row.
	visibleAfter = 5 * time.Second
)

// prover proves what responses to creates mean, by queries for their rows. A worker that receives a response with an
// unproven shape makes the rows unknown and ends the sending. The shape is proven before anything is sent again.
type prover struct {
	*Job

	failing sync.Mutex // guards failure
	failure *StopError // why the latest request was not delivered, or was only told to pause; nil after another response

	proven          map[string]ledger.State // by shape; changed only while no worker runs
	proofsDue       bool                    // unknown rows may await a proof
	namesRefused    map[int64]bool          // waiting batches whose response named the refused rows
	rowFound        bool                    // a query found a row whose outcome was unknown
	firstShownAfter time.Duration           // how long the service took to show the account's first row; 0: not seen
}

// shapeOf returns the shape under which the proofs of a response are kept.
func (pr *prover) shapeOf(r *tracking.Reply) string { return string(pr.Run.Plan.Mode) + " " + r.Shape }

func statusOf(shape string) (status int) {
	_, rest, _ := strings.Cut(shape, " ")
	_, _ = fmt.Sscanf(rest, "%d", &status)
	return status
}

func (pr *prover) loadProofs(ctx context.Context) error {
	all, err := pr.Ledger.Proofs(ctx)
	pr.proofsDue = true // an earlier command may have left rows
	for _, p := range all {
		if time.Since(p.Proven) < provenFor {
			pr.proven[p.Shape] = p.State
		}
	}
	return err
}

// knowsAccount reports whether it is proven how the service accepts rows, or a query found a row of this run.
func (pr *prover) knowsAccount() bool {
	return pr.rowFound || slices.Contains(slices.Collect(maps.Values(pr.proven)), ledger.Accepted)
}

// applyProof makes a batch unknown unless it is proven that its response means what it seems to mean.
func (d *dispatch) applyProof(s *ledger.BatchOutcome, r *tracking.Reply) {
	if d.SkipProof || r.HTTPStatus == 0 || s.State == ledger.Unknown {
		return
	}
	shape, claimed := d.shapeOf(r), ledger.Pending
	if s.State == ledger.Accepted {
		claimed = ledger.Accepted
	}
	counts := claimed == ledger.Pending || r.Agrees
	switch proven := d.proven[shape]; {
	case counts && proven == claimed:
		return
	case counts && proven == "":
		s.Shape = shape
		d.mu.Lock()
		d.proofsDue, d.namesRefused[s.Batch] = true, len(s.Rows) > 0
		d.mu.Unlock()
	}
	s.State, s.Halve = ledger.Unknown, false
	switch {
	case !counts:
		s.Reason = "the response does not count as many rows as were sent: checking each of them"
	case claimed == ledger.Accepted:
		s.Reason = "checking first whether the service has the rows of the batch"
	default:
		s.Reason += "; checking first whether the service stored rows of the batch"
	}
}

func (pr *prover) proveShapes(ctx context.Context) error {
	if !pr.proofsDue || pr.SkipProof {
		return nil
	}
	waiting := map[string][]ledger.UnknownRow{}
	for x, err := range pr.Ledger.Unknown(ctx, pr.Run.ID) {
		if err != nil {
			return err
		}
		if x.Shape != "" {
			waiting[x.Shape] = append(waiting[x.Shape], x)
		}
	}
	pr.proofsDue = false
	// Successes come last: a false one stops the run.
	for _, shape := range slices.Backward(slices.Sorted(maps.Keys(waiting))) {
		rows := waiting[shape]
		if pr.proven[shape] == "" {
			if err := pr.proveShape(ctx, shape, rows); err != nil {
				return err
			}
		}
		var err error
		switch pr.proven[shape] {
		case ledger.Accepted:
			err = pr.resolveAll(ctx, ledger.Accepted, "", rows)
		case ledger.Pending:
			err = pr.sendAgain(ctx, shape, rows)
		case ledger.Unknown:
			if tracking.OutcomeOf(statusOf(shape)) == tracking.OutcomeRows {
				pr.sender.halveNextRoundLimit(len(firstBatch(rows)))
			}
		default:
			pr.proofsDue = true
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// proveShape proves the meaning of a shape with rows of a batch that had such a response. A shape that can't be
// proven now stays unproven; if it never can be, each row is queried.
func (pr *prover) proveShape(ctx context.Context, shape string, waiting []ledger.UnknownRow) error {
	sample := pr.sampleAlone(firstBatch(waiting))
	if tracking.OutcomeOf(statusOf(shape)) != tracking.OutcomeAccepted {
		return pr.proveNotTaken(ctx, shape, sample)
	}
	err := pr.proveTaken(ctx, shape, sample)
	if stop, ok := errors.AsType[*StopError](err); ok && stop.Cause == tracking.OutcomeUnknown {
		// Each row is queried from now on.
		state, why := ledger.Unknown, "not found, though the service answered with "+strconv.Itoa(statusOf(shape))
		if pr.sender.resentOne {
			state, why = ledger.Accepted, "" // by the service's word: no second row is sent to compare with
		}
		err = cmp.Or(pr.resolveAll(ctx, state, why, waiting), err)
	}
	return err
}

func (pr *prover) proveTaken(ctx context.Context, shape string, rows []ledger.UnknownRow) error {
	var seen map[tracking.Presence]bool
	var missing *proof
	began := time.Now()
	shown, err := pr.tryAgain(ctx, func() (_ bool, err error) {
		seen, missing, err = pr.proveRows(ctx, rows)
		return len(seen) == 1 && seen[tracking.PresenceNamed], err
	})
	switch {
	case err != nil:
		return err
	case shown:
		pr.firstShownAfter = time.Since(began)
		_, err := pr.recordProof(ctx, shape, ledger.Accepted, ledger.Unknown, rows)
		return err
	case seen[tracking.PresenceNamed]:
		pr.Warn("the service has only a part of the rows that it answered with %d to: checking each of them", statusOf(shape))
		pr.proven[shape] = ledger.Unknown
		return nil
	}
	hint := "; --skip-proof skips this check"
	if pr.sender.resentOne {
		hint = "; the other rows stay unknown until it does"
	}
	return stopf(tracking.OutcomeUnknown, nil, "the service answered with %d, but does not find referId %q (%s)%s",
		statusOf(shape), missing.row.Item.ReferID, missing.why, hint)
}

// proveNotTaken queries rows of a batch that the service refused. A row found after a conflict may be older. Unless
// the service shows some row, rows that it does not show prove nothing.
func (pr *prover) proveNotTaken(ctx context.Context, shape string, rows []ledger.UnknownRow) error {
	controls, err := pr.Ledger.Controls(ctx, 1)
	if err != nil || len(controls) == 0 {
		return err
	}
	status := statusOf(shape)
	what := fmt.Sprintf("The service refused a batch (%d)", status)
	if status == http.StatusTooManyRequests {
		what = "The service says slow down (429)"
	}
	pr.Note("%s; checking that nothing was created", what)
	if err := pace.Sleep(ctx, max(visibleAfter, 2*pr.firstShownAfter)); err != nil {
		return err
	}
	seen, _, err := pr.proveRows(ctx, rows)
	if err != nil {
		return err
	}
	if seen[tracking.PresenceNamed] && status == http.StatusConflict {
		pr.Note("The service has rows of a batch refused with %d: checking each of its rows", status)
		pr.proven[shape] = ledger.Unknown
		return nil
	}
	if seen[tracking.PresenceNamed] {
		recorded, err := pr.recordProof(ctx, shape, ledger.Unknown, ledger.Unknown, rows)
		if recorded {
			pr.Warn("the service stored rows of a batch that it refused with %d; from now on, the rows of such batches "+
				"are checked one by one (`waybill doctor` lists what is proven)", status)
		}
		return err
	}
	control, err := pr.query(ctx, tracking.Query{ReferID: controls[0].Item.ReferID}, controls[0].Item)
	if err != nil {
		return err
	}
	if showsRow(control, controls[0]) && len(seen) == 1 && seen[tracking.PresenceAbsent] {
		_, err := pr.recordProof(ctx, shape, ledger.Pending, ledger.Unknown, rows)
		return err
	}
	pr.Warn("can't find out whether the service stored rows of a batch that it refused with %d: "+
		"checking each of its rows (`waybill doctor --probe` finds out what its responses mean)", status)
	pr.proven[shape] = ledger.Unknown
	return nil
}

// recordProof records the meaning of a shape, proven by rows that were queried in state in. It returns false if one
// of them has left that state meanwhile: then nothing is proven.
func (pr *prover) recordProof(
	ctx context.Context, shape string, means, in ledger.State, rows []ledger.UnknownRow,
) (bool, error) {
	p := ledger.Proof{Shape: shape, State: means, Proven: time.Now(), Run: pr.Run.ID}
	recorded, err := pr.Ledger.Prove(context.WithoutCancel(ctx), p, in, rows)
	if recorded && err == nil {
		pr.proven[shape] = means
	}
	return recorded, err
}

// proveRows returns the proven presences, with one row that is not proven to be present.
func (pr *prover) proveRows(
	ctx context.Context, rows []ledger.UnknownRow,
) (seen map[tracking.Presence]bool, missing *proof, err error) {
	proofs := make([]*proof, len(rows))
	for i, x := range rows {
		if proofs[i], err = pr.prove(ctx, x, nil); err != nil {
			return nil, nil, err
		}
	}
	if err := pr.dropUnprovenProcessing(ctx, proofs); err != nil {
		return nil, nil, err
	}
	seen = map[tracking.Presence]bool{}
	for _, p := range proofs {
		if seen[p.presence] = true; p.presence != tracking.PresenceNamed {
			missing = p
		}
	}
	return seen, missing, nil
}

// showsRow evaluates the evidence of a query by referId.
func showsRow(e tracking.Evidence, x ledger.UnknownRow) bool {
	return e.Presence == tracking.PresenceNamed || e.Presence == tracking.PresenceProcessing && x.Siblings == 0
}

func (pr *prover) resolveAll(ctx context.Context, state ledger.State, why string, rows []ledger.UnknownRow) error {
	found := make([]ledger.Resolution, len(rows))
	for i, x := range rows {
		found[i] = ledger.Resolution{Row: x.Row, Batch: x.Batch, State: state, Reason: why}
	}
	return pr.resolve(context.WithoutCancel(ctx), state, found)
}

// sendAgain makes rows pending that the service did not take. Their batch is halved if rows were refused and the
// response did not name them, or if the batch was too large.
func (pr *prover) sendAgain(ctx context.Context, shape string, rows []ledger.UnknownRow) error {
	outcome := tracking.OutcomeOf(statusOf(shape))
	halves := outcome == tracking.OutcomeRows || outcome == tracking.OutcomeTooLarge
	for len(rows) > 0 {
		part := rows
		if halves {
			part = firstBatch(rows)
		}
		rows = rows[len(part):]
		n := len(part)
		if halves && !pr.namesRefused[part[0].Batch] {
			n = (n + 1) / 2
		}
		for half := range slices.Chunk(part, n) {
			if err := pr.resolveAll(ctx, ledger.Pending, "", half); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sender) halveNextRoundLimit(rows int) {
	if half := (rows + 1) / 2; s.maxBatch == 0 || half < s.maxBatch {
		s.maxBatch = half
	}
}

func firstBatch(rows []ledger.UnknownRow) []ledger.UnknownRow {
	for i, x := range rows {
		if x.Batch != rows[0].Batch {
			return rows[:i]
		}
	}
	return rows
}

// sampleRows takes rows from all parts of a batch, because the service may have stored only a part.
func sampleRows(rows []ledger.UnknownRow) []ledger.UnknownRow {
	if len(rows) <= shapeSample {
		return rows
	}
	return []ledger.UnknownRow{rows[0], rows[len(rows)/2], rows[len(rows)-1]}
}

// sampleAlone is [sampleRows] of the rows that are alone in their order, if there are any: if a referId has several
// numbers, the service may not say which one it is processing.
func (pr *prover) sampleAlone(rows []ledger.UnknownRow) []ledger.UnknownRow {
	var alone []ledger.UnknownRow
	for _, x := range rows {
		if x.Item.ReferID == pr.sender.absentBefore {
			x.Siblings = 0 // none of its rows was sent yet
		}
		if x.Siblings == 0 {
			alone = append(alone, x)
		}
	}
	if len(alone) > 0 {
		rows = alone
	}
	return sampleRows(rows)
}

// isFirstAccepted reports whether o is the first batch of the run that was accepted by what earlier runs proved.
func (d *dispatch) isFirstAccepted(o sentBatch) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.SkipProof || d.spotted || o.outcome.State != ledger.Accepted || d.rowFound {
		return false
	}
	d.spotted = true
	return true
}

func (d *dispatch) renewProof(ctx context.Context) error {
	if len(d.spotChecked) == 0 {
		return nil
	}
	_, err := d.recordProof(ctx, d.spotShape, ledger.Accepted, ledger.Accepted, d.spotChecked)
	return err
}

// checkFirstBatch queries rows of the run's first accepted batch, while the next batches are sent: an earlier proof
// may no longer hold. If the service does not show the rows, the proof is dropped and the run stops.
func (d *dispatch) checkFirstBatch(ctx context.Context, o sentBatch) error {
	var accepted []ledger.UnknownRow
	for _, row := range o.batch.Rows {
		if !slices.ContainsFunc(o.outcome.Rows, func(v ledger.RowOutcome) bool { return v.Row == row.ID }) {
			accepted = append(accepted, ledger.UnknownRow{Row: row.ID, Batch: o.batch.ID, Item: row.Item})
		}
	}
	rows := sampleRows(accepted)
	var missing *proof
	found, err := d.tryAgain(ctx, func() (bool, error) {
		for _, x := range rows {
			p, err := d.prove(ctx, x, nil)
			if err != nil || p.presence == tracking.PresenceAbsent || p.presence == tracking.PresenceUndecided {
				missing = p
				return false, err
			}
		}
		return true, nil
	})
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // the end of the run proves nothing
	case err != nil:
		d.Detail("Can't check whether the service has the first batch: %v", err)
		return nil
	case found:
		d.spotChecked, d.spotShape = rows, d.shapeOf(o.reply)
		return nil
	case missing.presence != tracking.PresenceAbsent:
		return nil
	}
	if err := d.Ledger.Disprove(context.WithoutCancel(ctx), d.shapeOf(o.reply)); err != nil {
		return err
	}
	return stopf(tracking.OutcomeUnknown, nil, "the service answered with %d, but does not find referId %q (%s); "+
		"`waybill runs retry %d --absent` checks all rows of the run",
		o.reply.HTTPStatus, missing.row.Item.ReferID, missing.why, d.Run.ID)
}
