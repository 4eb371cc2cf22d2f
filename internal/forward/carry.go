package forward

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pace"
)

// carry sends one letter and notes what came of it. ctx ends when requests
// under way are to end.
func (r *route) carry(ctx context.Context, pass *pace.Pass, l inbox.Letter) {
	a, err := r.send(ctx, l)
	learn(pass, a, err)
	now := time.Now()
	o := inbox.Outcome{Fate: inbox.Sent, Now: now, Status: a.Status, Reply: a.Reply, Problem: Problem(a, err)}
	switch {
	case err != nil && (ctx.Err() != nil || passes(err)):
		o.Fate = inbox.Returned
	case o.Problem == "":
	case hopeless(err) || l.Failures+1 >= mostFailures || (!l.FirstFail.IsZero() && now.Sub(l.FirstFail) >= longestLife):
		o.Fate = inbox.GivenUp
	default:
		o.Fate, o.Due = inbox.Retry, now.Add(max(pause(l.Failures), a.RetryAfter))
	}
	if o.Fate == inbox.Returned {
		_ = r.bear(ctx, &r.sending, fmt.Sprintf("delivery %d not read, trying again", l.Delivery), err)
		r.settle(ctx, l, o)
		return
	}
	r.sending.hear(nil, "", nil)
	r.f.answers.give(l.Delivery, statusOf(a, err))
	r.settle(ctx, l, o)
	r.tell(l, o, a.Took, !hopeless(err))
}

// errUnverified says that a delivery waits since deliveries that did not verify
// were forwarded, and that they are not now.
var errUnverified = errors.New("the delivery is not verified, and such ones are not forwarded now")

// send reads the delivery and sends it.
func (r *route) send(ctx context.Context, l inbox.Letter) (Answer, error) {
	d, err := r.f.o.Inbox.Delivery(ctx, l.Delivery)
	if err != nil {
		return Answer{}, err
	}
	if d.Verified != inbox.Yes && !r.f.o.Unverified {
		return Answer{}, errUnverified
	}
	m, err := Message(d, r.target.URL, l.Attempt, r.f.o.Withhold)
	if err != nil {
		return Answer{}, err
	}
	return r.f.o.Client.Send(ctx, r.target.URL, WithHeaders(m, r.target.Headers))
}

// learn tells the gate how the target does. What was not answered in time says
// nothing of other deliveries.
func learn(pass *pace.Pass, a Answer, err error) {
	switch {
	case errors.Is(err, ErrUnreachable):
		pass.Unconnected()
	case a.Status == http.StatusTooManyRequests, a.Status == http.StatusServiceUnavailable:
		pass.Throttled(a.RetryAfter)
	case err == nil && a.Status/100 == 2:
		pass.Success()
	default:
		pass.Release()
	}
}

// Problem says why a try failed, empty if it did not.
func Problem(a Answer, err error) string {
	switch {
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

// hopeless reports whether trying again cannot help.
func hopeless(err error) bool {
	return errors.Is(err, ErrUnsendable) || errors.Is(err, errUnverified) || errors.Is(err, inbox.ErrNoDelivery)
}

// pause returns how long to wait after so many earlier failures and one more:
// by chance, so that what failed together does not come back together.
func pause(failures int) time.Duration {
	longest := min(firstPause<<min(failures, 20), longestPause)
	return rand.N(longest + 1) //nolint:gosec // pauses are no secret
}

// settle notes an outcome. What can't be noted now is tried again: a letter
// whose outcome is lost would wait until this process has ended.
func (r *route) settle(ctx context.Context, l inbox.Letter, o inbox.Outcome) {
	for try := 1; ; try++ {
		err := r.f.o.Outbox.SettleLetter(context.WithoutCancel(ctx), l.ID, o)
		r.noting.hear(r.f.o.Trouble, fmt.Sprintf("what came of delivery %d is not stored yet, trying again", l.Delivery), err)
		if err == nil {
			if o.Fate == inbox.Sent || o.Fate == inbox.GivenUp {
				r.ahead.Add(-1)
			}
			return
		}
		if ctx.Err() != nil && try >= storeTries {
			return // once this process has ended, another sends it again
		}
		wait(ctx, nil, time.Now().Add(storePause))
	}
}

// tell tells what came of a try, and how the target does if it was tried.
func (r *route) tell(l inbox.Letter, o inbox.Outcome, took time.Duration, tried bool) {
	n := Notice{
		Target: r.target, Delivery: l.Delivery, Attempt: l.Attempt, Fate: o.Fate, Status: o.Status, Took: took,
		Problem: o.Problem, Reply: o.Reply, Due: o.Due,
	}
	r.mu.Lock()
	switch {
	case !tried:
	case o.Fate == inbox.Sent && !r.failing.IsZero():
		n.Healed, r.failing = o.Now.Sub(r.failing), time.Time{}
	case o.Fate != inbox.Sent && r.failing.IsZero():
		r.failing = o.Now
	}
	n.Failing = r.failing
	r.mu.Unlock()
	if r.f.o.Tell == nil {
		return
	}
	r.f.telling.Lock()
	defer r.f.telling.Unlock()
	r.f.o.Tell(n)
}
