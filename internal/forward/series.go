package forward

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// mostUnreachable is how many sendings in a row may find no connection before
// a series ends.
const mostUnreachable = 3

// Parcel is one delivery, ready to be sent.
type Parcel struct {
	To      *url.URL
	Message webhook.Request
}

// Series sends deliveries one after the other, each when the one before was
// answered, with faults on purpose.
type Series struct {
	Client *Client
	Gate   *pace.Gate // what each sending passes
	Faults Faults
	Scheme webhook.Scheme // of the signatures that are corrupted
	Expect Statuses       // of an answer that is right
	Skip   int            // sendings of the plan that are left out, from its start

	// Load returns what is sent. [ErrUnsendable], [inbox.ErrNoDelivery],
	// [webhook.ErrUnsigned] and [webhook.ErrUnsignedPart] are about that delivery
	// alone; any other error ends the series.
	Load func(context.Context, Sending) (Parcel, error)
	// Tell is told of every sending. An error ends the series.
	Tell func(Result) error
}

// Result is what came of one sending.
type Result struct {
	Sending
	Answer

	To  *url.URL // nil if it could not be loaded
	Err error    // why there is no answer; nil if there is one
	Met bool     // the answer is right
}

// Unsent reports whether the delivery could not be put into a request, or its
// target is forbidden.
func (r Result) Unsent() bool { return aboutOne(r.Err) || errors.Is(r.Err, ErrForbidden) }

// Tally is what a series came to. Sendings that were begun are in one of the
// counts from Met to Unanswered.
type Tally struct {
	Planned int // sendings, those skipped included
	Dropped int // sendings beside them that were left out by chance
	Next    int // how many of the plan lie behind: where to go on

	Met         int // answered as expected
	Unmet       int // answered otherwise
	Unsent      int // could not be put into a request
	Unreachable int // no connection came about
	Unanswered  int // it may have arrived
}

// Begun is how many sendings were tried.
func (t Tally) Begun() int { return t.Met + t.Unmet + t.Unsent + t.Unreachable + t.Unanswered }

// Run sends n deliveries as Faults plan it, until ctx ends: what is under way
// then goes on until flight ends. An error says why it ended early: the cause
// of ctx, [ErrUnreachable] after several in a row, [ErrForbidden], or one of
// Load or Tell.
func (s Series) Run(ctx, flight context.Context, n int) (Tally, error) {
	steps, dropped := s.Faults.Plan(n)
	t := Tally{Planned: len(steps), Dropped: dropped, Next: min(s.Skip, len(steps))}
	for lost := 0; t.Next < len(steps); t.Next++ {
		step := steps[t.Next]
		if err := s.await(ctx, step.Wait); err != nil {
			return t, err
		}
		r, err := s.one(flight, step)
		if err != nil {
			return t, err
		}
		if flight.Err() != nil && r.Err != nil {
			return t, context.Cause(flight) // it was cut off, and is to be sent again
		}
		t.count(r)
		if err := s.Tell(r); err != nil {
			return t, err
		}
		switch {
		case errors.Is(r.Err, ErrForbidden):
			return t, r.Err
		case !errors.Is(r.Err, ErrUnreachable):
			lost = 0
		case lost+1 == mostUnreachable && t.Next+1 < len(steps):
			t.Next -= lost // those that found nobody are tried again
			return t, r.Err
		default:
			lost++
		}
	}
	return t, nil
}

// await waits for the time and the rate of the next sending.
func (s Series) await(ctx context.Context, long time.Duration) error {
	if long > 0 {
		wait(ctx, nil, time.Now().Add(long))
	}
	pass, err := s.Gate.Enter(ctx)
	if err == nil {
		pass.Release()
	}
	return err
}

// one sends one delivery. Its error ends the series.
func (s Series) one(ctx context.Context, step Sending) (Result, error) {
	r := Result{Sending: step}
	p, err := s.Load(ctx, step)
	r.To = p.To
	if err == nil && s.Faults.Corrupt {
		p.Message, err = webhook.CorruptSignatures(s.Scheme, p.Message, s.Faults.Pick(step))
	}
	if err != nil {
		r.Err = err
		if aboutOne(err) {
			err = nil
		}
		return r, err
	}
	r.Answer, r.Err = s.Client.Send(ctx, p.To, p.Message)
	r.Met = r.Err == nil && s.Expect.Match(r.Status)
	return r, nil
}

// aboutOne reports whether an error says nothing of other deliveries.
func aboutOne(err error) bool {
	for _, one := range []error{ErrUnsendable, inbox.ErrNoDelivery, webhook.ErrUnsigned, webhook.ErrUnsignedPart} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

func (t *Tally) count(r Result) {
	switch {
	case r.Met:
		t.Met++
	case r.Err == nil:
		t.Unmet++
	case r.Unsent():
		t.Unsent++
	case errors.Is(r.Err, ErrUnreachable):
		t.Unreachable++
	default:
		t.Unanswered++
	}
}
