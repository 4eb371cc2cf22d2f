package bulk

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// identifier is the field that a row is queried by.
type identifier string

const (
	byReferID identifier = "referId"
	byNumber  identifier = "number"
)

type proof struct {
	row          ledger.UnknownRow // the row in question
	presence     tracking.Presence // of the row; processing if it may be another row of the order
	ifNoSiblings bool              // it counts only while no other row has this referId
	by           identifier        // the identifier that the last response is about
	fingerprint  string            // of the absence
	why          string            // why the row is not known to be present
	answered     time.Time
}

// prove queries a row: by its referId and, if that proves nothing, by its number. The error is a [*StopError], or the
// cause of ctx. A row is present if a response names its number, or is "Processing" while the account has no other
// row with that referId. "Processing" does not count for a row never sent from here: another machine may have sent
// several rows. beforeNumber, if not nil, is called before the query by number; its error ends prove.
func (pr *prover) prove(ctx context.Context, x ledger.UnknownRow, beforeNumber func() error) (*proof, error) {
	first, err := pr.query(ctx, tracking.Query{ReferID: x.Item.ReferID}, x.Item)
	if err != nil {
		return nil, err
	}
	p := &proof{row: x, presence: first.Presence, by: byReferID, fingerprint: first.Fingerprint, answered: time.Now()}
	p.why = describeEvidence(first)
	switch {
	case p.presence == tracking.PresenceProcessing && x.Siblings == 0 && !x.Unsent:
		p.presence, p.ifNoSiblings = tracking.PresenceNamed, true
		return p, nil
	case p.presence == tracking.PresenceNamed, p.presence == tracking.PresenceAbsent:
		return p, nil
	}
	if beforeNumber != nil {
		if err := beforeNumber(); err != nil {
			return nil, err
		}
	}
	second, err := pr.query(ctx, tracking.Query{Number: x.Item.Number}, x.Item)
	if err != nil {
		return nil, err
	}
	p.presence, p.by, p.fingerprint, p.answered = second.Presence, byNumber, second.Fingerprint, time.Now()
	p.why = describeEvidence(second)
	switch {
	case second.Presence == tracking.PresenceNamed && (second.Own || pr.onlyHolder(ctx, x.Item)):
	case second.Presence == tracking.PresenceNamed:
		p.presence = tracking.PresenceUndecided
		p.why = "the service has this number, but does not say for which of the orders that share it"
	case first.Presence == tracking.PresenceProcessing, second.Presence == tracking.PresenceProcessing:
		p.presence = tracking.PresenceProcessing
		p.why = "the service is still processing this referId and does not say which of its numbers it has"
	case second.Presence == tracking.PresenceUndecided:
		p.why = describeEvidence(first) + " (by referId); " + p.why + " (by number)"
	}
	return p, nil
}

// queriesPerWorker is how many rows each worker queries at once: most wait at the gate, or before a retry.
const queriesPerWorker = 8

// proveAll proves many rows concurrently until the first error, which it returns, or the end of ctx. Rows that were
// not reached have a nil proof. proven is called after each proof, by several goroutines.
func (pr *prover) proveAll(
	ctx context.Context, rows []ledger.UnknownRow, beforeNumber func() error, proven func(),
) ([]*proof, error) {
	proofs := make([]*proof, len(rows))
	group, calls := errgroup.WithContext(ctx)
	group.SetLimit(queriesPerWorker * pr.workers())
	begun := 0
	for ; begun < len(rows) && calls.Err() == nil; begun++ {
		i := begun
		group.Go(func() (err error) {
			if proofs[i], err = pr.prove(calls, rows[i], beforeNumber); err == nil {
				proven()
			}
			return err
		})
	}
	if begun == len(rows) {
		return proofs, group.Wait()
	}
	return proofs, cmp.Or(group.Wait(), context.Cause(ctx))
}

// query queries an item until there is a response. The error is a [*StopError] or the cause of ctx.
func (pr *prover) query(ctx context.Context, q tracking.Query, item tracking.Item) (tracking.Evidence, error) {
	e, err := pr.queryFor(ctx, pr.QueryTimeout, q, item)
	if err == nil && e.Err != nil && e.Temporary {
		err = stopf(tracking.OutcomeNotSent, e.Err, "no answer to the query for referId %q", item.ReferID)
	}
	return e, err
}

// queryFor queries an item until there is a response or patience ends; the evidence then has the last temporary
// failure. Without a connection, and while the service asks for pauses, it goes on, and stops, as a create does.
func (pr *prover) queryFor(
	ctx context.Context, patience time.Duration, q tracking.Query, item tracking.Item,
) (tracking.Evidence, error) {
	for retry := pace.NewRetry(patience); ; {
		e := query.Evidence(ctx, pr.Gate, func() tracking.Evidence { return pr.Service.Evidence(ctx, q, item) })
		switch {
		case ctx.Err() != nil:
			return e, context.Cause(ctx)
		case e.Unauthorized:
			return e, stopFor(tracking.OutcomeUnauthorized, e.Err)
		}
		outcome := e.Outcome()
		if stop := pr.countFailure(ctx, outcome, e.Err, e.RetryAfter); stop != nil {
			return e, stop
		}
		switch {
		case outcome.Meaning().Stop == tracking.StopOnFailures: // the gate waits; its pauses do not use up patience
			retry.Restart()
		case e.Err == nil || !e.Temporary || !retry.Wait(ctx, e.RetryAfter) && ctx.Err() == nil:
			return e, nil
		}
	}
}

// tryAgain calls try, with growing pauses, until it is done. It returns false once the pauses add up to QueryTimeout,
// or leave less than 2 s before the deadline of ctx for the next try. The duration of try does not count.
func (pr *prover) tryAgain(ctx context.Context, try func() (done bool, err error)) (bool, error) {
	for retry, left := pace.NewRetry(0), pr.QueryTimeout; ; {
		done, err := try()
		wait := retry.Next()
		left -= wait
		end, bounded := ctx.Deadline()
		if done || err != nil || left < 0 || bounded && time.Until(end) < wait+2*time.Second {
			return done, err
		}
		if err := pace.Sleep(ctx, wait); err != nil {
			return false, err
		}
	}
}

func (pr *prover) onlyHolder(ctx context.Context, item tracking.Item) bool {
	rows, err := pr.Ledger.Find(ctx, "", item.Number)
	isOther := func(s ledger.TrackingStatus) bool { return s.Item.ReferID != item.ReferID }
	return err == nil && !slices.ContainsFunc(rows, isOther)
}

// dropUnprovenProcessing drops proofs from a response "Processing" if the service also responds so for a referId that
// nobody created, or if that query fails.
func (pr *prover) dropUnprovenProcessing(ctx context.Context, proofs []*proof) error {
	if !slices.ContainsFunc(proofs, func(f *proof) bool { return f != nil && f.ifNoSiblings }) {
		return nil
	}
	nobody := tracking.Item{ReferID: "waybill-probe-" + rand.Text(), Number: rand.Text()}
	e, err := pr.query(ctx, tracking.Query{ReferID: nobody.ReferID}, nobody)
	for i, f := range proofs {
		switch {
		case f == nil || !f.ifNoSiblings:
		case err != nil:
			proofs[i] = nil
		case e.Presence == tracking.PresenceProcessing:
			const why = `the service answers "Processing" for this referId, but also for one that does not exist`
			proofs[i] = &proof{row: f.row, presence: e.Presence, why: why}
		}
	}
	return err
}

// longPause is the shortest pause that the user is told of at once.
const longPause = 10 * time.Second

// countFailure records the outcome of each request. It returns why the run stops, once requests have failed for as
// long as the run's patience, or would until a pause, or ctx, ends.
func (pr *prover) countFailure(ctx context.Context, o tracking.Outcome, err error, retryAfter time.Duration) error {
	pr.failing.Lock()
	defer pr.failing.Unlock()
	if o.Meaning().Stop != tracking.StopOnFailures {
		if pr.failure != nil {
			pr.Failing(nil)
		}
		pr.failure = nil
		return nil
	}
	left := pr.GiveUpAfter
	if o == tracking.OutcomeNotSent {
		left = pr.ConnectFor
	}
	if since := pr.Gate.FailingSince(); !since.IsZero() { // otherwise another request succeeded meanwhile
		left -= time.Since(since)
	}
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	first := pr.failure == nil
	pr.failure = stopFor(o, err)
	if left <= retryAfter {
		return pr.failure
	}
	pr.Failing(err)
	switch {
	case !first:
	case o == tracking.OutcomeNotSent:
		pr.Note("%v; retrying for %s", err, left.Round(time.Second))
	case retryAfter >= longPause:
		pr.Note("%v; waiting %s, as it asked", err, retryAfter)
	}
	return nil
}
