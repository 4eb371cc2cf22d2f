package bulk

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Sizes and patience of asking for unknown rows.
const (
	// pageRows is how many rows are asked for before what was found out is
	// recorded.
	pageRows    = 1000
	askedAtOnce = 8 // by worker
	// mostControls is how many accepted rows are asked for to see that the
	// service finds what it has.
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
	left      int64     // rows that are unknown still
	absent    int64     // of them those whose absence was proven once
	busy      int64     // of them those of an order being worked on
	unproven  int64     // of them those absent while the ledger had no control
	odd       int64     // of the absent ones those that looked different before
	due       time.Time // when the first absence can be proven again
	announced bool
}

// reconcile asks for every unknown row that can be decided now, and records
// what is proven.
func (j *Job) reconcile(ctx context.Context) (*pass, error) {
	p := &pass{Job: j}
	if j.Unknown != Reconcile {
		return p, nil
	}
	var page []ledger.Doubt
	for x, err := range j.Ledger.Unknown(ctx, j.Run.ID) {
		if err != nil {
			return p, err
		}
		if due := x.Absent.Add(j.Settle); !x.Absent.IsZero() && time.Now().Before(due) {
			p.stays(due)
			continue
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
func (p *pass) ask(ctx context.Context, page []ledger.Doubt) error {
	if !p.announced {
		p.announced = true
		p.say("asking the service about rows of unknown outcome (run %d)", p.Run.ID)
	}
	proofs := make([]*proof, len(page))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(askedAtOnce * p.workers()) // most of them wait at the gate, or for another try
	for i, x := range page {
		g.Go(func() error {
			found, err := p.prove(gctx, x)
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
	controlled, err := p.control(ctx, proofs)
	if err != nil {
		return err
	}
	return p.resolveOthers(context.WithoutCancel(ctx), page, proofs, controlled)
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
func (p *pass) resolvePresent(ctx context.Context, page []ledger.Doubt, proofs []*proof) error {
	var found []ledger.Finding
	for i, x := range page {
		if f := proofs[i]; f != nil && f.verdict == present {
			found = append(found, ledger.Finding{Row: x.Row, Batch: x.Batch, State: ledger.Accepted, Alone: f.alone})
		}
	}
	return p.resolve(ctx, ledger.Accepted, found)
}

func (p *pass) resolve(ctx context.Context, state ledger.State, found []ledger.Finding) error {
	if len(found) == 0 {
		return nil
	}
	held, err := p.Ledger.Resolve(ctx, p.Run.ID, found)
	if err != nil {
		return err
	}
	if state == ledger.Accepted && held > 0 {
		if err := p.Ledger.NoteContact(ctx, p.Run.Plan.Account); err != nil {
			return err
		}
	}
	if p.Resolved != nil && state != ledger.Unknown {
		p.Resolved(state, held)
	}
	return nil
}

// resolveOthers records absences, and why the other rows stay unknown.
func (p *pass) resolveOthers(ctx context.Context, page []ledger.Doubt, proofs []*proof, controlled controls) error {
	var again, stay []ledger.Finding
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
func (p *pass) finding(x ledger.Doubt, f *proof, controlled controls) ledger.Finding {
	found := ledger.Finding{Row: x.Row, Batch: x.Batch, State: ledger.Unknown, Reason: f.why}
	switch {
	case f.verdict == busy:
		p.left++
		p.busy++
		return found
	case f.verdict == undecided:
		p.left++
		return found
	case !controlled.proves(f):
		p.left++
		if controlled.none {
			p.unproven++
		}
		found.Reason, found.Absent, found.Look = controlled.why(f), x.Absent, x.Look
		return found
	case x.Unsent, !x.Absent.IsZero() && x.Look == f.look:
		found.State, found.Reason = ledger.Pending, ""
		return found
	}
	if !x.Absent.IsZero() {
		p.odd++
	}
	p.stays(f.answered.Add(p.Settle))
	found.Absent, found.Look = f.answered, f.look
	found.Reason = "the service said once that it has no such tracking (" + f.look + "); it is asked again after --settle, and the row is sent again only if it says so twice"
	return found
}

// controls says by which kinds of query rows are found that the service has.
type controls struct {
	none               bool // the ledger has no accepted row to ask for
	byRefer, byNumber  bool
	saidRefer, saidNum string // what the answers were instead
}

func (c controls) proves(f *proof) bool {
	if f.byNumber {
		return c.byNumber
	}
	return c.byRefer
}

// why says why an absence proves nothing.
func (c controls) why(f *proof) string {
	const remedy = "; create one row alone, or run `waybill probe`, then run the same command again"
	switch {
	case c.none:
		return "the service says it has no such tracking (" + f.look + "), but no accepted row is there to show that it finds what it has" + remedy
	case f.byNumber:
		return "the service says it has no such number (" + f.look + "), but a row known as accepted is not found by its number either: " + c.saidNum +
			"; set query.tracking_number_param (`waybill probe` finds it)"
	default:
		return "the service says it has no such tracking (" + f.look + "), but a row known as accepted is not found either: " + c.saidRefer
	}
}

// control asks for rows known as accepted, by the kinds of query that proofs
// of absence came by.
func (p *pass) control(ctx context.Context, proofs []*proof) (controls, error) {
	var c controls
	var byRefer, byNumber bool
	for _, f := range proofs {
		if f != nil && f.verdict == absent {
			byRefer, byNumber = byRefer || !f.byNumber, byNumber || f.byNumber
		}
	}
	if !byRefer && !byNumber {
		return c, nil
	}
	known, err := p.Ledger.Controls(ctx, p.Run.Plan.Account, mostControls)
	if err != nil {
		return c, err
	}
	c.none = len(known) == 0
	for _, x := range known {
		if byRefer && !c.byRefer {
			if c.byRefer, c.saidRefer, err = p.finds(ctx, x, false); err != nil {
				return c, err
			}
		}
		if byNumber && !c.byNumber {
			if c.byNumber, c.saidNum, err = p.finds(ctx, x, true); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// finds reports whether a query finds a row known as accepted, or else what
// the answer was.
func (p *pass) finds(ctx context.Context, x ledger.Doubt, byNumber bool) (bool, string, error) {
	e, err := p.Job.ask(ctx, x.Item, byNumber)
	if err != nil {
		return false, "", err
	}
	found := e.Presence == tracking.PresenceNamed || e.Presence == tracking.PresenceProcessing && !byNumber && x.Siblings == 0
	if found {
		return true, "", nil
	}
	return false, said(e), nil
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
			return true, pause(ctx, busyPause)
		}
	}
	if until.IsZero() {
		return false, nil
	}
	left := time.Until(until)
	if left > time.Second {
		p.say("%d rows are not there yet: asking again in %s (--settle), before they are sent again", p.absent, left.Round(time.Second))
	}
	return true, pause(ctx, left)
}
