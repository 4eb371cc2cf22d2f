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
	// assumptionSample is how many rows of a batch are asked for to check an
	// assumption.
	assumptionSample = 3
	// showWait is how long the service has to show what it stored, before it is
	// asked.
	showWait = time.Second
)

// standing is what is known of an assumption.
type standing int

const (
	unchecked standing = iota
	holds
	fails // or it can't be found out: rows that depend on it are unknown
)

// assumptions are those of a run's account. A worker that meets an unchecked
// one leaves the rows unknown and ends the sending; they are checked before
// anything is sent again.
type assumptions struct {
	standings map[ledger.Assumption]standing // changed between two rounds only
	recheck   bool                           // rows wait for one
	named     map[int64]bool                 // waiting batches whose answer named the bad rows
}

// assumption returns what has to hold for the service to have stored nothing
// of a batch with that reply; empty if nothing has to.
func assumption(r *tracking.Reply) ledger.Assumption {
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

// assumptionText says an assumption's case, for a sentence.
func assumptionText(a ledger.Assumption) string {
	switch a {
	case ledger.ThrottledNotStored:
		return "that was answered with a request for a pause"
	case ledger.ConflictNotStored:
		return "that was refused with 409"
	default:
		return "that was refused because of its rows"
	}
}

// depend makes the rows of a batch unknown if it does not hold, or is not
// known, that the service stored none of them.
func (d *dispatch) depend(s *ledger.Settlement, r *tracking.Reply) {
	a := assumption(r)
	switch d.standings[a] {
	case holds:
		return
	case unchecked:
		s.Assumption = a
		d.mu.Lock()
		d.named[s.Batch] = len(s.Rows) > 0
		d.mu.Unlock()
	}
	s.State, s.Halve = ledger.Unknown, false
	s.Reason += "; whether the service stored rows of the batch all the same is asked first"
}

// loadAssumptions reads what was checked before.
func (j *Job) loadAssumptions(ctx context.Context) error {
	checked, err := j.Ledger.Assumptions(ctx, j.Run.Plan.Account)
	j.standings, j.named = map[ledger.Assumption]standing{}, map[int64]bool{}
	for _, c := range checked {
		j.standings[c.Assumption] = fails
		if c.Holds {
			j.standings[c.Assumption] = holds
		}
	}
	j.recheck = true // an earlier command may have left rows
	return err
}

// checkAssumptions checks the assumptions that unknown rows wait for, once
// each, and makes pending the rows of those that hold.
func (j *Job) checkAssumptions(ctx context.Context) error {
	if !j.recheck {
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
		if j.standings[a] == unchecked {
			is, err := j.check(ctx, a, firstBatch(rows))
			if err != nil {
				return err
			}
			j.standings[a] = is
		}
		if err := j.depended(ctx, a, rows); err != nil {
			return err
		}
	}
	j.recheck = false
	return nil
}

// depended makes rows pending whose assumption holds, in halves of their batch
// if rows were the reason and nobody knows which. The others are asked for one
// by one, and go again in smaller batches.
func (j *Job) depended(ctx context.Context, a ledger.Assumption, rows []ledger.UnknownRow) error {
	if j.standings[a] == fails {
		if a != ledger.ThrottledNotStored {
			j.shrink(len(firstBatch(rows)))
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
		if n := (len(part) + 1) / 2; a != ledger.ThrottledNotStored && !j.named[part[0].Batch] {
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
	return (&pass{Job: j}).resolve(context.WithoutCancel(ctx), ledger.Pending, found)
}

// shrink halves the batches of the rounds to come, after one of so many rows.
func (j *Job) shrink(rows int) {
	if half := (rows + 1) / 2; j.most == 0 || half < j.most {
		j.most = half
	}
}

// firstBatch returns those of the rows that are in the batch of the first.
func firstBatch(rows []ledger.UnknownRow) []ledger.UnknownRow {
	for i, x := range rows {
		if x.Batch != rows[0].Batch {
			return rows[:i]
		}
	}
	return rows
}

// sample returns the first, the middle and the last row of a batch: the service
// may have stored a part of it.
func sample(rows []ledger.UnknownRow) []ledger.UnknownRow {
	if len(rows) <= assumptionSample {
		return rows
	}
	return []ledger.UnknownRow{rows[0], rows[len(rows)/2], rows[len(rows)-1]}
}

// check asks for rows of a batch, and records what that shows. A row that is
// there after a conflict may have been there before, so that nothing is
// recorded then. The error is one of asking, and the assumption as it was.
func (j *Job) check(ctx context.Context, a ledger.Assumption, batch []ledger.UnknownRow) (standing, error) {
	rows := sample(batch)
	j.say("first batch of this account %s: asking the service for %d of its rows before any goes again", assumptionText(a), len(rows))
	if err := pace.Sleep(ctx, showWait); err != nil {
		return unchecked, err
	}
	proofs := make([]*proof, len(rows))
	for i, x := range rows {
		found, err := j.prove(ctx, x, func() error { return nil })
		if err != nil {
			return unchecked, err
		}
		proofs[i] = &found
	}
	if err := (&pass{Job: j}).weigh(ctx, proofs); err != nil {
		return unchecked, err
	}
	seen := map[verdict]bool{}
	for _, p := range proofs {
		seen[p.verdict] = true
	}
	switch {
	case seen[present] && a == ledger.ConflictNotStored:
		j.say("the service has rows of a batch %s: its rows are asked for one by one", assumptionText(a))
		return fails, nil
	case seen[present]:
		j.warn("the service has stored rows of a batch %s; from now on rows of such batches are unknown until the service is asked for them (account %s; `waybill probe` shows it)",
			assumptionText(a), j.Run.Plan.Account)
		return fails, j.recordAssumption(ctx, a, false)
	}
	shown, err := j.showsAccepted(ctx)
	switch {
	case err != nil:
		return unchecked, err
	case shown && !seen[busy]:
		return holds, j.recordAssumption(ctx, a, true)
	case seen[busy] || seen[undecided]:
		j.warn("whether the service stores rows of a batch %s can't be found out: its rows are asked for one by one (`waybill probe` learns what its answers mean)", assumptionText(a))
		return fails, nil
	}
	return holds, nil // the service says so twice, but was never seen to show a row
}

func (j *Job) recordAssumption(ctx context.Context, a ledger.Assumption, holds bool) error {
	return j.Ledger.RecordAssumption(context.WithoutCancel(ctx), j.Run.Plan.Account, ledger.CheckedAssumption{Assumption: a, Holds: holds, Checked: time.Now()})
}

// showsAccepted reports whether a query was seen to show a row of the account
// that the service has.
func (j *Job) showsAccepted(ctx context.Context) (bool, error) {
	account := j.Run.Plan.Account
	if done, err := j.Ledger.Contacted(ctx, account); done || err != nil {
		return done, err
	}
	known, err := j.Ledger.Controls(ctx, account, 1)
	if err != nil || len(known) == 0 {
		return false, err
	}
	e, err := j.ask(ctx, known[0].Item, false)
	if found := e.Presence == tracking.PresenceNamed || e.Presence == tracking.PresenceProcessing && known[0].Siblings == 0; !found || err != nil {
		return false, err
	}
	return true, j.Ledger.RecordContact(context.WithoutCancel(ctx), account)
}
