package forward

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"syscall"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pace"
)

// attempt sends one entry and records the outcome. ctx ends when requests under way must end.
func (r *route) attempt(ctx context.Context, pass *pace.Pass, entry inbox.OutboxEntry) {
	a, err := r.send(ctx, entry)
	pass.End(signalOf(a, err), a.RetryAfter)
	now := time.Now()
	o := inbox.AttemptOutcome{
		Disposition: inbox.Sent, Attempt: entry.Attempt, Now: now, Took: a.Took,
		Status: a.Status, Reply: a.Reply, Problem: Problem(a, err),
	}
	switch {
	case err != nil && (ctx.Err() != nil || inbox.IsTemporary(err)):
		o.Disposition = inbox.Returned
	case o.Problem == "":
	case isPermanent(err) || entry.Failures+1 >= maxFailures ||
		(!entry.FirstFailure.IsZero() && now.Sub(entry.FirstFailure) >= maxRetryTime):
		o.Disposition = inbox.GivenUp
	default:
		o.Disposition, o.Due = inbox.Retry, now.Add(max(retryDelay(entry.Failures), a.RetryAfter))
	}
	if o.Disposition == inbox.Returned {
		what := fmt.Sprintf("delivery %d not read, trying again", entry.Delivery)
		if errors.Is(err, inbox.ErrNotClaimed) {
			what = fmt.Sprintf("delivery %d left to another listener", entry.Delivery)
		}
		_ = r.handleStoreError(ctx, &r.loadAlert, what, err)
		r.record(ctx, entry, o)
		return
	}
	r.loadAlert.update(nil, "", nil)
	pace.Notify(r.outboxChanged) // what becomes free is claimed by the same transaction
	r.record(ctx, entry, o)
	r.report(entry, o, err)
}

// errUnverified is for deliveries that were queued while unverified ones were forwarded.
var errUnverified = errors.New("the delivery is unverified, and --forward-unverified is not set")

// send reads the delivery and sends it, unless another process may have taken it over.
func (r *route) send(ctx context.Context, entry inbox.OutboxEntry) (Answer, error) {
	d, err := r.forwarder.o.Inbox.Delivery(ctx, entry.Delivery)
	if err != nil {
		return Answer{}, err
	}
	if !d.Verified.Counts() && !r.forwarder.o.Unverified {
		return Answer{}, errUnverified
	}
	m, err := BuildMessage(d, r.target.URL, entry.Attempt, r.forwarder.o.Withhold)
	if err != nil {
		return Answer{}, err
	}
	if claims := r.forwarder.o.Claims; claims != nil {
		if err := claims.CheckOwner(entry.Owner); err != nil {
			return Answer{}, err
		}
	}
	return maskValues(r.target.Headers)(r.forwarder.o.Client.Send(ctx, r.target.URL, ReplaceHeaders(m, r.target.Headers)))
}

// signalOf returns what an answer says about pace. A late answer says nothing about other deliveries.
func signalOf(a Answer, err error) pace.Signal {
	switch {
	case errors.Is(err, ErrUnreachable):
		return pace.Unconnected
	case a.Status == http.StatusTooManyRequests, a.Status == http.StatusServiceUnavailable:
		return pace.Throttled
	case err == nil && a.Status/100 == 2:
		return pace.Success
	}
	return pace.NoSignal
}

// Problem returns why an attempt failed, "" if it succeeded.
func Problem(a Answer, err error) string {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno) && errors.Is(err, ErrUnreachable):
		return errno.Error()
	case err != nil:
		return err.Error()
	case a.Status/100 == 2:
		return ""
	case a.Status/100 == 3:
		return fmt.Sprintf("answered %d: redirects are not followed", a.Status)
	default:
		return fmt.Sprintf("answered %d", a.Status)
	}
}

func isPermanent(err error) bool {
	return errors.Is(err, ErrUnsendable) || errors.Is(err, errUnverified) || errors.Is(err, inbox.ErrNoDelivery)
}

// retryDelay is random, so that deliveries that failed together are not retried together.
func retryDelay(failures int) time.Duration {
	longest := min(firstRetryDelay<<min(failures, 20), maxRetryDelay)
	return rand.N(longest + 1) //nolint:gosec // delays are no secret
}

// record retries until the store works: an entry without an outcome stays claimed until this process has ended.
func (r *route) record(ctx context.Context, entry inbox.OutboxEntry, o inbox.AttemptOutcome) {
	what := fmt.Sprintf("result of delivery %d not stored yet, trying again", entry.Delivery)
	for try := 1; ; try++ {
		err := r.forwarder.o.Outbox.RecordAttempt(context.WithoutCancel(ctx), entry.ID, o)
		r.recordAlert.update(r.forwarder.o.OnStoreError, what, err)
		if err == nil {
			if o.Disposition == inbox.Sent || o.Disposition == inbox.GivenUp {
				r.queued.Add(-1)
			}
			return
		}
		if ctx.Err() != nil && try >= maxRecordTries {
			return // once this process has ended, another sends it again
		}
		_ = pace.Sleep(ctx, storeRetryDelay)
	}
}

// report calls OnAttempt. It updates since when the target has failed, unless err says that no request was tried.
func (r *route) report(entry inbox.OutboxEntry, o inbox.AttemptOutcome, err error) {
	n := AttemptReport{AttemptOutcome: o, Target: r.target, Delivery: entry.Delivery}
	r.mu.Lock()
	switch {
	case isPermanent(err):
	case o.Disposition == inbox.Sent && !r.failingSince.IsZero():
		n.FailedFor, r.failingSince = o.Now.Sub(r.failingSince), time.Time{}
	case o.Disposition != inbox.Sent && r.failingSince.IsZero():
		r.failingSince = o.Now
		if first := entry.FirstFailure; !r.succeeded && !first.IsZero() && first.Before(o.Now) {
			r.failingSince = first // an earlier process noticed it
		}
	}
	r.succeeded = r.succeeded || o.Disposition == inbox.Sent
	n.FailingSince = r.failingSince
	r.mu.Unlock()
	if r.forwarder.o.OnAttempt == nil {
		return
	}
	r.forwarder.reporting.Lock()
	defer r.forwarder.reporting.Unlock()
	r.forwarder.o.OnAttempt(n)
}
