package bulk

import (
	"context"
	"net/http"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

const (
	// assumptionSample is how many rows of a batch are queried to check an
	// assumption.
	assumptionSample = 3
	// visibleAfter is how long the service has to show what it stored, at
	// least: twice as long as it took to show the account's first row.
	visibleAfter = 5 * time.Second
)

// assumptionState says whether an assumption was checked, and the result.
type assumptionState int

const (
	unchecked assumptionState = iota
	holds
	fails // or can't be checked: rows that depend on it are unknown
)

// assumptions are those of a run's account. A worker whose answer depends on an
// unchecked one makes the rows unknown and ends the sending; the assumption is
// checked before anything is sent again.
type assumptions struct {
	assumptionStates map[ledger.Assumption]assumptionState // changed between rounds only
	checkPending     bool                                  // unknown rows may wait for a check
	namesRefused     map[int64]bool                        // waiting batches whose answer named the refused rows
}

// assumptionOf returns the assumption by which the service stored nothing of a
// batch with that reply; empty if it needs none.
func assumptionOf(r *tracking.Reply) ledger.Assumption {
	switch {
	case r.Outcome == tracking.OutcomeThrottled:
		return ledger.ThrottledNotStored
	case r.Outcome != tracking.OutcomeRows:
		return ""
	case r.HTTPStatus == http.StatusConflict:
		return ledger.ConflictNotStored
	default:
		return ledger.RefusedNotStored
	}
}

// describeAssumption is the relative clause that describes such a batch.
func describeAssumption(a ledger.Assumption) string {
	switch a {
	case ledger.ThrottledNotStored:
		return "throttled"
	case ledger.ConflictNotStored:
		return "refused with 409"
	default:
		return "refused because of its rows"
	}
}

// applyAssumption makes the rows of a batch unknown unless the assumption that
// the service stored none of them is known to hold.
func (d *dispatch) applyAssumption(s *ledger.Settlement, r *tracking.Reply) {
	a := assumptionOf(r)
	switch d.assumptionStates[a] {
	case holds:
		return
	case unchecked:
		s.Assumption = a
		d.mu.Lock()
		d.namesRefused[s.Batch] = len(s.Rows) > 0
		d.mu.Unlock()
	}
	s.State, s.Halve = ledger.Unknown, false
	s.Reason += "; checking first whether the service stored rows of the batch"
}

// loadAssumptions reads the checked assumptions of the account.
func (j *Job) loadAssumptions(ctx context.Context) error {
	checked, err := j.Ledger.Assumptions(ctx, j.Run.Plan.Account)
	j.assumptionStates, j.namesRefused = map[ledger.Assumption]assumptionState{}, map[int64]bool{}
	for _, c := range checked {
		j.assumptionStates[c.Assumption] = fails
		if c.Holds {
			j.assumptionStates[c.Assumption] = holds
		}
	}
	j.checkPending = true // an earlier command may have left rows
	return err
}

// checkAssumptions checks each assumption that unknown rows wait for, and makes
// the rows pending if it holds.
func (j *Job) checkAssumptions(ctx context.Context) error {
	if !j.checkPending {
		return nil
	}
	waiting := map[ledger.Assumption][]ledger.UnknownRow{}
	for x, err := range j.Ledger.Unknown(ctx, j.Run.ID) {
		if err != nil {
			return err
		}
		if x.Assumption != "" {
			waiting[x.Assumption] = append(waiting[x.Assumption], x)
		}
	}
	for a, rows := range waiting {
		if j.assumptionStates[a] == unchecked {
			is, err := j.checkAssumption(ctx, a, firstBatch(rows))
			if err != nil {
				return err
			}
			j.assumptionStates[a] = is
		}
		if err := j.releaseDependent(ctx, a, rows); err != nil {
			return err
		}
	}
	j.checkPending = false
	return nil
}

// releaseDependent makes rows pending whose assumption holds, in halves of their
// batch if rows were refused and the answer did not name them. If it fails, the
// rows are queried one by one, and are sent in smaller batches.
func (j *Job) releaseDependent(ctx context.Context, a ledger.Assumption, rows []ledger.UnknownRow) error {
	if j.assumptionStates[a] == fails {
		if a != ledger.ThrottledNotStored {
			j.halveNextRoundLimit(len(firstBatch(rows)))
		}
		return nil
	}
	for len(rows) > 0 {
		part := rows
		if a != ledger.ThrottledNotStored {
			part = firstBatch(rows)
		}
		rows = rows[len(part):]
		halves := [][]ledger.UnknownRow{part}
		if n := (len(part) + 1) / 2; a != ledger.ThrottledNotStored && !j.namesRefused[part[0].Batch] {
			halves = [][]ledger.UnknownRow{part[:n], part[n:]}
		}
		for _, half := range halves {
			if err := j.release(ctx, half); err != nil {
				return err
			}
		}
	}
	return nil
}

// release makes unknown rows pending.
func (j *Job) release(ctx context.Context, rows []ledger.UnknownRow) error {
	found := make([]ledger.Resolution, len(rows))
	for i, x := range rows {
		found[i] = ledger.Resolution{Row: x.Row, Batch: x.Batch, State: ledger.Pending}
	}
	return j.resolve(context.WithoutCancel(ctx), ledger.Pending, found)
}

// halveNextRoundLimit limits the batches of later rounds to half of rows.
func (j *Job) halveNextRoundLimit(rows int) {
	if half := (rows + 1) / 2; j.maxBatch == 0 || half < j.maxBatch {
		j.maxBatch = half
	}
}

// firstBatch returns the leading rows that are in one batch.
func firstBatch(rows []ledger.UnknownRow) []ledger.UnknownRow {
	for i, x := range rows {
		if x.Batch != rows[0].Batch {
			return rows[:i]
		}
	}
	return rows
}

// sampleRows returns the first, the middle and the last row of a batch: the
// service may have stored a part of it.
func sampleRows(rows []ledger.UnknownRow) []ledger.UnknownRow {
	if len(rows) <= assumptionSample {
		return rows
	}
	return []ledger.UnknownRow{rows[0], rows[len(rows)/2], rows[len(rows)-1]}
}

// checkAssumption queries rows of a batch, and records the result. A row that is
// found after a conflict may be older, so that nothing is recorded then. When a
// query fails, the assumption stays unchecked.
func (j *Job) checkAssumption(ctx context.Context, a ledger.Assumption, batch []ledger.UnknownRow) (assumptionState, error) {
	rows := sampleRows(batch)
	j.note("First batch of this account %s: checking %d of its rows before sending again", describeAssumption(a), len(rows))
	if err := pace.Sleep(ctx, max(visibleAfter, 2*j.firstShownAfter)); err != nil {
		return unchecked, err
	}
	proofs := make([]*proof, len(rows))
	for i, x := range rows {
		found, err := j.prove(ctx, x, nil)
		if err != nil {
			return unchecked, err
		}
		proofs[i] = &found
	}
	if err := j.dropUnprovenProcessing(ctx, proofs); err != nil {
		return unchecked, err
	}
	seen := map[conclusion]bool{}
	for _, p := range proofs {
		seen[p.conclusion] = true
	}
	switch {
	case seen[present] && a == ledger.ConflictNotStored:
		j.note("The service has rows of a batch %s: checking each of its rows", describeAssumption(a))
		return fails, nil
	case seen[present]:
		j.warn("the service stored rows of a batch %s; from now on, rows of such batches are unknown until they are checked (account %s; see `waybill doctor --probe`)",
			describeAssumption(a), j.Run.Plan.Account)
		return fails, j.recordAssumption(ctx, a, false)
	}
	shown, err := j.findsAccepted(ctx)
	switch {
	case err != nil:
		return unchecked, err
	case shown && !seen[processing]:
		return holds, j.recordAssumption(ctx, a, true)
	case seen[processing] || seen[inconclusive]:
		j.warn("can't find out whether the service stored rows of a batch %s: checking each of its rows (`waybill doctor --probe` finds out what its responses mean)", describeAssumption(a))
		return fails, nil
	}
	return holds, nil // absent, though no query ever found a row
}

func (j *Job) recordAssumption(ctx context.Context, a ledger.Assumption, holds bool) error {
	return j.Ledger.RecordAssumption(context.WithoutCancel(ctx), j.Run.Plan.Account, ledger.CheckedAssumption{Assumption: a, Holds: holds, Checked: time.Now()})
}

// findsAccepted reports whether a query ever found an accepted row of the account.
func (j *Job) findsAccepted(ctx context.Context) (bool, error) {
	account := j.Run.Plan.Account
	if done, err := j.Ledger.Contacted(ctx, account); done || err != nil {
		return done, err
	}
	known, err := j.Ledger.Controls(ctx, account, 1)
	if err != nil || len(known) == 0 {
		return false, err
	}
	e, err := j.query(ctx, known[0].Item, false)
	if found := e.Presence == tracking.PresenceNamed || e.Presence == tracking.PresenceProcessing && known[0].Siblings == 0; !found || err != nil {
		return false, err
	}
	return true, j.Ledger.RecordContact(context.WithoutCancel(ctx), account)
}
