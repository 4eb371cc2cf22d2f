package bulk

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Limits of reconciling unknown rows.
const (
	pageRows = 1000 // rows queried before the results are recorded
	// maxControls accepted rows are queried before and after a page, to check that the service finds rows that it has.
	maxControls       = 3
	maxFlappingPasses = 5 // passes that find absences whose fingerprint changed
	// processingPoll is the pause between two queries for referIds that the service is still working on,
	// processingPatience how long they are repeated.
	processingPoll     = 2 * time.Second
	processingPatience = time.Minute
)

// reconciler holds the state that the passes over a run's unknown rows share.
type reconciler struct {
	*prover

	absences        map[int64]time.Time // see absentSince
	flappingPasses  int                 // see maxFlappingPasses
	processingSince time.Time           // see processingPatience
	clockNoted      bool                // the user was told that the clock was set back
	checkNoted      bool                // the user was told that unknown rows are checked
	unprovable      bool                // see Unprovable
}

// reconcilePass queries each unknown row of a run's input once.
type reconcilePass struct {
	*reconciler
	controls        []ledger.UnknownRow // accepted rows, queried around each page: without one, absence proves nothing
	announced       bool
	unknown         int64              // rows still unknown
	absent          int64              // of these, rows with one proven absence
	processing      int64              // of these, rows whose referId the service is working on
	uncontrolled    int64              // of these, absent rows for which the ledger had no control
	resendable      *ledger.Resolution // makes one uncontrolled row pending, see ResendOne
	changedAbsences int64              // of absent, rows whose earlier absence does not count
	absenceDue      time.Time          // when the first absence can be proven a second time
	// missedControl has, by identifier, the first query that did not find a control, and its response.
	missedControl map[identifier]string
	flapped       bool // a row that was absent before was found
}

func (r *reconciler) reconcileUnknown(ctx context.Context) (*reconcilePass, error) {
	p := &reconcilePass{reconciler: r, missedControl: map[identifier]string{}}
	if !r.Unknown.Queries() {
		return p, nil
	}
	defer func() {
		if p.announced {
			p.Checking(0)
		}
	}()
	var page []ledger.UnknownRow
	for x, err := range r.Ledger.Unknown(ctx, r.Run.ID) {
		if err != nil {
			return p, err
		}
		if !x.AbsentSince.IsZero() {
			if due := r.absentSince(x).Add(r.RecheckDelay); time.Now().Before(due) {
				p.unknown++
				p.keepAbsent(due)
				if p.announced {
					p.Checked()
				}
				continue
			}
		}
		if page = append(page, x); len(page) == pageRows {
			if err := p.resolvePage(ctx, page); err != nil {
				return p, err
			}
			page = page[:0]
		}
	}
	if len(page) == 0 {
		return p, nil
	}
	err := p.resolvePage(ctx, page)
	return p, err
}

// absentSince returns when a row's absence was first proven, on the monotonic clock. For an absence that an earlier
// process recorded, the age is read once from the wall clock; a time in the future counts as now.
func (r *reconciler) absentSince(x ledger.UnknownRow) time.Time {
	since, ok := r.absences[x.Row]
	if ok {
		return since
	}
	since = time.Now()
	age := since.Sub(x.AbsentSince)
	if age < 0 && !r.clockNoted {
		r.clockNoted = true
		r.Note("The clock was set back since the last check; --settle starts again now")
	}
	since = since.Add(-max(age, 0))
	r.absences[x.Row] = since
	return since
}

func (p *reconcilePass) keepAbsent(due time.Time) {
	p.absent++
	if p.absenceDue.IsZero() || due.Before(p.absenceDue) {
		p.absenceDue = due
	}
}

// resolvePage records the proven results even if a query fails.
func (p *reconcilePass) resolvePage(ctx context.Context, page []ledger.UnknownRow) (err error) {
	if !p.announced {
		p.announced = true
		rows, err := p.Ledger.CountRows(ctx, p.Run.ID)
		if err != nil {
			return err
		}
		p.Checking(max(rows.Unknown-p.unknown, int64(len(page))))
		if !p.checkNoted {
			p.checkNoted = true
			p.Note("Checking rows with unknown outcome (run %d)", p.Run.ID)
		}
	}
	if p.controls, err = p.Ledger.Controls(ctx, maxControls); err != nil {
		return err
	}
	if err := p.queryControls(ctx, byReferID); err != nil {
		return err
	}
	controlNumbers := sync.OnceValue(func() error { return p.queryControls(ctx, byNumber) })
	proofs, asked := p.proveAll(ctx, page, controlNumbers, p.Checked)
	failed := cmp.Or(asked, p.dropUnprovenProcessing(ctx, proofs))
	if err := p.resolvePresent(context.WithoutCancel(ctx), proofs); err != nil || failed != nil {
		return cmp.Or(err, failed)
	}
	for _, by := range []identifier{byReferID, byNumber} {
		isAbsent := func(f *proof) bool { return f != nil && f.presence == tracking.PresenceAbsent && f.by == by }
		if !slices.ContainsFunc(proofs, isAbsent) {
			continue
		}
		if err := p.queryControls(ctx, by); err != nil {
			return err
		}
	}
	return p.resolveOthers(context.WithoutCancel(ctx), proofs)
}

func (p *reconcilePass) resolvePresent(ctx context.Context, proofs []*proof) error {
	var found []ledger.Resolution
	for _, f := range proofs {
		if f != nil && f.presence == tracking.PresenceNamed {
			p.flapped = p.flapped || !f.row.AbsentSince.IsZero()
			r := ledger.Resolution{Row: f.row.Row, Batch: f.row.Batch, State: ledger.Accepted, IfNoSiblings: f.ifNoSiblings}
			found = append(found, r)
		}
	}
	return p.resolve(ctx, ledger.Accepted, found)
}

func (pr *prover) resolve(ctx context.Context, state ledger.State, found []ledger.Resolution) error {
	if len(found) == 0 {
		return nil
	}
	applied, err := pr.Ledger.Resolve(ctx, pr.Run.ID, found)
	if err != nil {
		return err
	}
	pr.rowFound = pr.rowFound || state == ledger.Accepted && applied > 0
	if state == ledger.Pending {
		pr.sender.uncountSent(found)
	}
	if state != ledger.Unknown {
		pr.Resolved(state, applied)
	}
	return nil
}

func (p *reconcilePass) resolveOthers(ctx context.Context, proofs []*proof) error {
	var again, stay []ledger.Resolution
	for _, f := range proofs {
		if f == nil || f.presence == tracking.PresenceNamed {
			continue
		}
		if len(p.controls) == 0 && f.row.Shape != "" && f.presence == tracking.PresenceAbsent {
			p.unknown++
			p.uncontrolled++
			continue // its response is proven once a row is accepted
		}
		found := p.resolution(f)
		if found.State == ledger.Pending {
			again = append(again, found)
		} else {
			stay = append(stay, found)
			p.unknown++
		}
	}
	if err := p.resolve(ctx, ledger.Pending, again); err != nil {
		return err
	}
	return p.resolve(ctx, ledger.Unknown, stay)
}

// resolution says what a proof other than present means for a row.
//
// An earlier absence no longer counts once a control was not found, or an absent row was found: the service does not
// always find rows that it has.
func (p *reconcilePass) resolution(f *proof) ledger.Resolution {
	x := f.row
	found := ledger.Resolution{Row: x.Row, Batch: x.Batch, State: ledger.Unknown, Reason: f.why}
	delete(p.absences, x.Row)
	switch {
	case f.presence == tracking.PresenceProcessing:
		p.processing++
	case f.presence == tracking.PresenceUndecided:
	case len(p.controls) == 0:
		p.uncontrolled++
		if p.resendable == nil && f.by == byReferID {
			p.resendable = &ledger.Resolution{Row: x.Row, Batch: x.Batch, State: ledger.Pending}
		}
		found.Reason = "not found (" + f.fingerprint + "), but without an accepted row in the account this proves nothing" +
			"; --unknown resend-one sends one row to find out"
	case p.missedControl[f.by] != "":
		found.Reason = "not found (" + f.fingerprint + "), but an accepted row is not found either: " + p.missedControl[f.by]
		if f.by == byNumber {
			found.Reason = "number not found (" + f.fingerprint + "), but an accepted row is not found by its number either: " +
				p.missedControl[f.by] + "; set query.tracking_number_param (`waybill doctor --probe` finds it)"
		}
	case x.Unsent, !x.AbsentSince.IsZero() && x.Fingerprint == f.fingerprint && !p.flapped:
		found.State, found.Reason = ledger.Pending, ""
	default:
		if !x.AbsentSince.IsZero() {
			p.changedAbsences++
		}
		p.absences[x.Row] = f.answered
		p.keepAbsent(f.answered.Add(p.RecheckDelay))
		found.AbsentSince, found.Fingerprint = f.answered, f.fingerprint
		found.Reason = "not found once (" + f.fingerprint + "); sent again only if it is still not found after --settle"
	}
	return found
}

// queryControls queries the controls, and records the first that is not found. An absence counts only if such
// queries find all controls, before and after: a service that misses some of its rows may miss the absent row too.
func (p *reconcilePass) queryControls(ctx context.Context, by identifier) error {
	for _, x := range p.controls {
		if p.missedControl[by] != "" {
			return nil
		}
		q := tracking.Query{ReferID: x.Item.ReferID}
		if by == byNumber {
			q = tracking.Query{Number: x.Item.Number}
		}
		e, err := p.query(ctx, q, x.Item)
		if err != nil {
			return err
		}
		if e.Presence == tracking.PresenceNamed || by == byReferID && showsRow(e, x) {
			continue
		}
		p.missedControl[by] = fmt.Sprintf("%s, for %s %s of run %d "+
			"(`waybill runs retry %[4]d --absent` checks whether it was created)",
			describeEvidence(e), by, tracking.Quote(cmp.Or(q.ReferID, q.Number)), x.Run)
	}
	return nil
}

// waitForNext waits until another pass can prove more, and reports whether one can.
func (p *reconcilePass) waitForNext(ctx context.Context) (bool, error) {
	if p.changedAbsences > 0 {
		p.flappingPasses++
	}
	until := p.absenceDue
	if p.absent == 0 || p.flappingPasses > maxFlappingPasses {
		until = time.Time{}
	}
	if p.processing > 0 {
		p.processingSince = cmp.Or(p.processingSince, time.Now())
		soon, end := time.Now().Add(processingPoll), p.processingSince.Add(processingPatience)
		if soon.Before(end) && (until.IsZero() || soon.Before(until)) {
			return true, pace.Sleep(ctx, processingPoll)
		}
	}
	if until.IsZero() {
		return false, nil
	}
	left := time.Until(until)
	if left > time.Second {
		p.Note("%d %s may not have arrived; checking again in %s", p.absent, rowOrRows(p.absent), left.Round(time.Second))
	}
	return true, pace.Sleep(ctx, left)
}

const reasonMissing = "accepted, but not found"

// checkAccepted queries each accepted row of the run's input, and makes rows unknown that the service lacks: a 2xx
// response to a create may have been false. They are resent only by the same proof as other unknown rows.
func (r *reconciler) checkAccepted(ctx context.Context) error {
	r.Note("Checking accepted rows of run %d", r.Run.ID)
	var absent int64
	var page []ledger.UnknownRow
	check := func() error {
		n, err := r.checkAcceptedPage(ctx, page)
		absent, page = absent+n, page[:0]
		return err
	}
	for x, err := range r.Ledger.Accepted(ctx, r.Run.ID) {
		if err != nil {
			return err
		}
		if page = append(page, x); len(page) == pageRows {
			if err := check(); err != nil {
				return err
			}
		}
	}
	err := check()
	r.Note("%d accepted %s not found", absent, rowOrRows(absent))
	return err
}

// checkAcceptedPage returns how many rows it made unknown, even if a query fails.
func (r *reconciler) checkAcceptedPage(ctx context.Context, page []ledger.UnknownRow) (int64, error) {
	proofs, failed := r.proveAll(ctx, page, nil, func() {})
	var rows []ledger.UnknownRow
	for _, f := range proofs {
		if f != nil && f.presence == tracking.PresenceAbsent {
			rows = append(rows, f.row)
		}
	}
	if len(rows) == 0 {
		return 0, failed
	}
	n, err := r.Ledger.MarkUnknown(context.WithoutCancel(ctx), rows, reasonMissing)
	return n, cmp.Or(err, failed)
}
