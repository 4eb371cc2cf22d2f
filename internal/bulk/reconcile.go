package bulk

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Sizes and patience of asking for unknown rows.
const (
	// pageRows is how many rows are asked for before what was found out is
	// recorded.
	pageRows    = 1000
	askedAtOnce = 8 // by worker
	// mostControls is how many accepted rows are asked for, before and after
	// the rows of a page, to see that the service finds what it has.
	mostControls = 3
	// mostOdd is how many passes may meet absences that look different every
	// time.
	mostOdd = 5
	// busyPause and busyPatience are for rows of orders that the service is
	// still working on.
	busyPause    = 2 * time.Second
	busyPatience = time.Minute
)

// pass is one asking for every unknown row of a run's input.
type pass struct {
	*Job
	left      int64              // rows that are unknown still
	absent    int64              // of them those whose absence was proven once
	busy      int64              // of them those of an order being worked on
	unproven  int64              // of them those absent while the ledger had no control
	lone      *ledger.Resolution // makes one of those pending: the one to send alone, see ResendOne
	odd       int64              // of the absent ones those whose earlier absence does not count
	due       time.Time          // when the first absence can be proven again
	announced bool
	// missed is, by whether it was by number, the first query of the pass that
	// did not find a control, and its answer.
	missed map[bool]string
	// flapped says that a row was found that was absent before.
	flapped bool
}

// reconcile asks for every unknown row that can be decided now, and records
// what is proven.
func (j *Job) reconcile(ctx context.Context) (*pass, error) {
	p := &pass{Job: j, missed: map[bool]string{}}
	if !j.Unknown.Asks() {
		return p, nil
	}
	var page []ledger.UnknownRow
	for x, err := range j.Ledger.Unknown(ctx, j.Run.ID) {
		if err != nil {
			return p, err
		}
		if !x.AbsentSince.IsZero() {
			if due := j.absentSince(x).Add(j.Settle); time.Now().Before(due) {
				p.stays(due)
				continue
			}
		}
		if page = append(page, x); len(page) == pageRows {
			if err := p.ask(ctx, page); err != nil {
				return p, err
			}
			page = page[:0]
		}
	}
	if len(page) == 0 {
		return p, nil
	}
	err := p.ask(ctx, page)
	return p, err
}

// absentSince returns when a row's absence was first proven, by a clock that
// nobody sets: what this process measured. Of an absence that an earlier one
// noted, the age is read off the clock once, and one in the future is from now.
func (j *Job) absentSince(x ledger.UnknownRow) time.Time {
	since, ok := j.absences[x.Row]
	if ok {
		return since
	}
	since = time.Now()
	age := since.Sub(x.AbsentSince)
	if age < 0 && !j.setBack {
		j.setBack = true
		j.say("the clock was set back since the service was asked last: --settle counts from now")
	}
	since = since.Add(-max(age, 0))
	j.noteAbsence(x.Row, since)
	return since
}

func (j *Job) noteAbsence(row int64, since time.Time) {
	if j.absences == nil {
		j.absences = map[int64]time.Time{}
	}
	j.absences[row] = since
}

// stays counts a row whose absence was proven once, and can be again from due.
func (p *pass) stays(due time.Time) {
	p.left++
	p.absent++
	if p.due.IsZero() || due.Before(p.due) {
		p.due = due
	}
}

// ask asks for the rows of a page and records what is proven. When asking
// fails, what was proven before is recorded all the same.
func (p *pass) ask(ctx context.Context, page []ledger.UnknownRow) error {
	if !p.announced {
		p.announced = true
		p.say("asking the service about rows of unknown outcome (run %d)", p.Run.ID)
	}
	controls, err := p.Ledger.Controls(ctx, p.Run.Plan.Account, mostControls)
	if err != nil {
		return err
	}
	if err := p.control(ctx, controls, false); err != nil {
		return err
	}
	proofs := make([]*proof, len(page))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(askedAtOnce * p.workers()) // most of them wait at the gate, or for another try
	controlNumbers := sync.OnceValue(func() error { return p.control(gctx, controls, true) })
	for i, x := range page {
		g.Go(func() error {
			found, err := p.prove(gctx, x, controlNumbers)
			if err == nil {
				proofs[i] = &found
			}
			return err
		})
	}
	failed := firstOf(g.Wait(), p.weigh(ctx, proofs))
	if err := p.resolvePresent(context.WithoutCancel(ctx), page, proofs); err != nil || failed != nil {
		return firstOf(err, failed)
	}
	for _, byNumber := range []bool{false, true} {
		if !slices.ContainsFunc(proofs, func(f *proof) bool { return f != nil && f.verdict == absent && f.byNumber == byNumber }) {
			continue
		}
		if err := p.control(ctx, controls, byNumber); err != nil {
			return err
		}
	}
	return p.resolveOthers(context.WithoutCancel(ctx), page, proofs, len(controls) > 0)
}

// weigh takes back the proofs that are the service's word that it is working
// on a referId, if it says so of one that nobody created too, or that can't be
// found out.
func (p *pass) weigh(ctx context.Context, proofs []*proof) error {
	if !slices.ContainsFunc(proofs, func(f *proof) bool { return f != nil && f.alone }) {
		return nil
	}
	e, err := p.Job.ask(ctx, tracking.Item{ReferID: "waybill-probe-" + rand.Text(), Number: rand.Text()}, false)
	for i, f := range proofs {
		switch {
		case f == nil || !f.alone:
		case err != nil:
			proofs[i] = nil
		case e.Presence == tracking.PresenceProcessing:
			proofs[i] = &proof{verdict: busy, why: "the service says that it is working on this referId, but says so of one that nobody created too"}
		}
	}
	return err
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// resolvePresent records the rows that the service has.
func (p *pass) resolvePresent(ctx context.Context, page []ledger.UnknownRow, proofs []*proof) error {
	var found []ledger.Resolution
	for i, x := range page {
		if f := proofs[i]; f != nil && f.verdict == present {
			p.flapped = p.flapped || !x.AbsentSince.IsZero()
			found = append(found, ledger.Resolution{Row: x.Row, Batch: x.Batch, State: ledger.Accepted, IfNoSiblings: f.alone})
		}
	}
	return p.resolve(ctx, ledger.Accepted, found)
}

func (p *pass) resolve(ctx context.Context, state ledger.State, found []ledger.Resolution) error {
	if len(found) == 0 {
		return nil
	}
	held, err := p.Ledger.Resolve(ctx, p.Run.ID, found)
	if err != nil {
		return err
	}
	if state == ledger.Accepted && held > 0 {
		if err := p.Ledger.RecordContact(ctx, p.Run.Plan.Account); err != nil {
			return err
		}
	}
	if p.Resolved != nil && state != ledger.Unknown {
		p.Resolved(state, held)
	}
	return nil
}

// resolveOthers records absences, and why the other rows stay unknown.
func (p *pass) resolveOthers(ctx context.Context, page []ledger.UnknownRow, proofs []*proof, controlled bool) error {
	var again, stay []ledger.Resolution
	for i, x := range page {
		f := proofs[i]
		if f == nil || f.verdict == present {
			continue
		}
		found := p.finding(x, f, controlled)
		if found.State == ledger.Pending {
			again = append(again, found)
		} else {
			stay = append(stay, found)
		}
	}
	if err := p.resolve(ctx, ledger.Pending, again); err != nil {
		return err
	}
	return p.resolve(ctx, ledger.Unknown, stay)
}

// finding says what a proof that does not show the row means for it.
// controlled says that there were rows to see by that absence proves something.
//
// An earlier absence counts no more once a control was not found, or a row was
// that had been absent too: the service does not always find what it has.
func (p *pass) finding(x ledger.UnknownRow, f *proof, controlled bool) ledger.Resolution {
	found := ledger.Resolution{Row: x.Row, Batch: x.Batch, State: ledger.Unknown, Reason: f.why}
	delete(p.absences, x.Row)
	switch {
	case f.verdict == busy:
		p.left++
		p.busy++
		return found
	case f.verdict == undecided:
		p.left++
		return found
	case !controlled:
		p.left++
		p.unproven++
		if p.lone == nil && !f.byNumber {
			p.lone = &ledger.Resolution{Row: x.Row, Batch: x.Batch, State: ledger.Pending}
		}
		found.Reason = "the service says it has no such tracking (" + f.look + "), but the account has no accepted row to show that it finds what it has" +
			"; --unknown resend-one sends one row alone to see"
		return found
	case p.missed[f.byNumber] != "":
		p.left++
		found.Reason = p.whyMissed(f)
		return found
	case x.Unsent, !x.AbsentSince.IsZero() && x.Fingerprint == f.look && !p.flapped:
		found.State, found.Reason = ledger.Pending, ""
		return found
	}
	if !x.AbsentSince.IsZero() {
		p.odd++
	}
	p.noteAbsence(x.Row, f.answered)
	p.stays(f.answered.Add(p.Settle))
	found.AbsentSince, found.Fingerprint = f.answered, f.look
	found.Reason = "the service said once that it has no such tracking (" + f.look + "); it is asked again after --settle, and the row is sent again only if it says so twice"
	return found
}

// whyMissed says why an absence proves nothing while a control is not found.
func (p *pass) whyMissed(f *proof) string {
	if f.byNumber {
		return "the service says it has no such number (" + f.look + "), but a row known as accepted is not found by its number either: " + p.missed[true] +
			"; set query.tracking_number_param (`waybill probe` finds it)"
	}
	return "the service says it has no such tracking (" + f.look + "), but a row known as accepted is not found either: " + p.missed[false]
}

// control asks for rows known as accepted, and notes the first that is not
// found. An absence proves something only while all of them are found by the
// same kind of query, before and after: a service that misses some of what it
// has may miss the absent row too.
func (p *pass) control(ctx context.Context, controls []ledger.UnknownRow, byNumber bool) error {
	for _, x := range controls {
		if p.missed[byNumber] != "" {
			return nil
		}
		e, err := p.Job.ask(ctx, x.Item, byNumber)
		if err != nil {
			return err
		}
		if e.Presence == tracking.PresenceNamed || e.Presence == tracking.PresenceProcessing && !byNumber && x.Siblings == 0 {
			continue
		}
		by := "referId " + tracking.Quote(x.Item.ReferID)
		if byNumber {
			by = "number " + tracking.Quote(x.Item.Number)
		}
		p.missed[byNumber] = fmt.Sprintf("%s, asked for %s of run %d (if that was never created, `waybill runs retry %d --absent` finds out)", said(e), by, x.Run, x.Run)
	}
	return nil
}

// again reports whether a further pass, at once, can know more than this one.
func (p *pass) again(ctx context.Context) (bool, error) {
	if p.unproven == 0 {
		return false, nil
	}
	known, err := p.Ledger.Controls(ctx, p.Run.Plan.Account, 1)
	return len(known) > 0, err
}

// wait waits until a further pass can know more, and reports whether any can.
func (p *pass) wait(ctx context.Context) (bool, error) {
	if p.odd > 0 {
		p.odds++
	}
	until := p.due
	if p.absent == 0 || p.odds > mostOdd {
		until = time.Time{}
	}
	if p.busy > 0 {
		if p.busySince.IsZero() {
			p.busySince = time.Now()
		}
		if soon := time.Now().Add(busyPause); soon.Before(p.busySince.Add(busyPatience)) && (until.IsZero() || soon.Before(until)) {
			return true, pace.Sleep(ctx, busyPause)
		}
	}
	if until.IsZero() {
		return false, nil
	}
	left := time.Until(until)
	if left > time.Second {
		p.say("%d rows are not there yet: asking again in %s (--settle), before they are sent again", p.absent, left.Round(time.Second))
	}
	return true, pace.Sleep(ctx, left)
}
