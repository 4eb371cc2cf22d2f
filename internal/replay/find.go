// Package replay works on deliveries that were received before: it finds them,
// exports and imports them, verifies them again, and sends them again.
package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Inbox is where stored deliveries are read from, see [inbox.Store]. Of a store
// that does not exist yet it is [Empty].
type Inbox interface {
	Delivery(ctx context.Context, seq int64) (inbox.Delivery, error)
	Refused(ctx context.Context, after int64) iter.Seq2[inbox.Delivery, error]
	Events(ctx context.Context, q inbox.Query) iter.Seq2[inbox.Event, error]
	Counts(ctx context.Context) (inbox.Counts, error)
}

// Empty is an [Inbox] without deliveries.
type Empty struct{}

// Delivery returns [inbox.ErrNoDelivery].
func (Empty) Delivery(context.Context, int64) (inbox.Delivery, error) {
	return inbox.Delivery{}, inbox.ErrNoDelivery
}

// Refused yields nothing.
func (Empty) Refused(context.Context, int64) iter.Seq2[inbox.Delivery, error] {
	return func(func(inbox.Delivery, error) bool) {}
}

// Events yields nothing.
func (Empty) Events(context.Context, inbox.Query) iter.Seq2[inbox.Event, error] {
	return func(func(inbox.Event, error) bool) {}
}

// Counts returns zeros.
func (Empty) Counts(context.Context) (inbox.Counts, error) { return inbox.Counts{}, nil }

// RefusedPrefix begins the ID of a refused delivery, before its number.
const RefusedPrefix = "refused:"

// ErrPruned says that the bytes of a delivery are gone.
var ErrPruned = errors.New("its bytes were pruned")

// Delivery is a stored delivery.
type Delivery struct {
	inbox.Delivery

	Refused bool // it is evidence of a refusal, with a number of its own
}

// ID is how commands name the delivery: by its number, with [RefusedPrefix] if
// it was refused.
func (d Delivery) ID() string {
	number := strconv.FormatInt(d.Seq, 10)
	if d.Refused {
		return RefusedPrefix + number
	}
	return number
}

// Sample is the delivery for package webhook.
func (d Delivery) Sample() webhook.Sample {
	return webhook.Sample{Request: d.Request(), At: d.ReceivedAt}
}

// Find returns the delivery with an ID: a number, refused:NUMBER, or the eventId
// of an event that came with it. Its bytes may be gone. Errors are
// [inbox.ErrNoDelivery] and [inbox.ErrNoEvent].
func Find(ctx context.Context, in Inbox, id string) (Delivery, error) {
	d, err := find(ctx, in, id)
	if errors.Is(err, inbox.ErrNoDelivery) {
		err = inbox.ErrNoDelivery // without the number, which the ID shows
	}
	if err != nil {
		return Delivery{}, fmt.Errorf("delivery %q: %w", id, err)
	}
	return d, nil
}

// FindWhole is [Find] for a delivery whose bytes are needed. Without them the
// error is [ErrPruned].
func FindWhole(ctx context.Context, in Inbox, id string) (Delivery, error) {
	d, err := Find(ctx, in, id)
	if err == nil && d.Body == nil {
		return Delivery{}, fmt.Errorf("delivery %q: %w", id, ErrPruned)
	}
	return d, err
}

func find(ctx context.Context, in Inbox, id string) (Delivery, error) {
	if number, refused := strings.CutPrefix(id, RefusedPrefix); refused {
		seq, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return Delivery{}, inbox.ErrNoDelivery
		}
		for d, err := range in.Refused(ctx, seq-1) {
			if err != nil || d.Seq == seq {
				return Delivery{d, true}, err
			}
			break
		}
		return Delivery{}, inbox.ErrNoDelivery
	}
	seq, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		for e, err := range in.Events(ctx, inbox.Query{EventID: id, Newest: true, Limit: 1}) {
			if err != nil {
				return Delivery{}, err
			}
			seq = e.Delivery
		}
		if seq == 0 {
			return Delivery{}, inbox.ErrNoEvent
		}
	}
	d, err := in.Delivery(ctx, seq)
	return Delivery{d, false}, err
}

// FindEvent returns the event with that number, or the standing one with that
// eventId. The error is [inbox.ErrNoEvent] if there is none.
func FindEvent(ctx context.Context, in Inbox, id string) (inbox.Event, error) {
	q := inbox.Query{EventID: id, Marks: []inbox.Mark{inbox.Current}, Limit: 1}
	seq, err := strconv.ParseInt(id, 10, 64)
	byNumber := err == nil
	if byNumber {
		q = inbox.Query{After: seq - 1, Limit: 1}
	}
	for e, err := range in.Events(ctx, q) {
		switch {
		case err != nil:
			return inbox.Event{}, fmt.Errorf("event %q: %w", id, err)
		case !byNumber || e.Seq == seq:
			return e, nil
		}
	}
	return inbox.Event{}, fmt.Errorf("event %q: %w", id, inbox.ErrNoEvent)
}

// Deliveries yields the stored deliveries, oldest or newest first, those whose
// bytes were pruned too. An error ends it.
func Deliveries(ctx context.Context, in Inbox, newestFirst bool) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		counts, err := in.Counts(ctx)
		if err != nil {
			yield(Delivery{}, err)
			return
		}
		for n := int64(1); n <= counts.Deliveries; n++ {
			seq := n
			if newestFirst {
				seq = counts.Deliveries + 1 - n
			}
			d, err := in.Delivery(ctx, seq)
			if errors.Is(err, inbox.ErrNoDelivery) {
				continue
			}
			if !yield(Delivery{d, false}, err) || err != nil {
				return
			}
		}
	}
}

// Whole yields the deliveries with these IDs; without IDs the stored ones whose
// bytes are still there, newest first. An error ends it.
func Whole(ctx context.Context, in Inbox, ids ...string) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		for _, id := range ids {
			if d, err := FindWhole(ctx, in, id); !yield(d, err) || err != nil {
				return
			}
		}
		if len(ids) > 0 {
			return
		}
		for d, err := range Deliveries(ctx, in, true) {
			if (err != nil || d.Body != nil) && !yield(d, err) {
				return
			}
		}
	}
}

// Refused returns the refused deliveries of which evidence is kept, newest
// first.
func Refused(ctx context.Context, in Inbox) ([]Delivery, error) {
	var all []Delivery
	for d, err := range in.Refused(ctx, 0) {
		if err != nil {
			return nil, err
		}
		all = append(all, Delivery{d, true})
	}
	slices.Reverse(all)
	return all, nil
}
