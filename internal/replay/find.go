// Package replay works on stored deliveries: it finds them, exports and imports them, verifies them again, and sends
// them again.
package replay

import (
	"bytes"
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

// Inbox reads stored deliveries, see [inbox.Store]. Without a store it is [Empty].
type Inbox interface {
	Delivery(ctx context.Context, seq int64) (inbox.Delivery, error)
	Refused(ctx context.Context, after int64) iter.Seq2[inbox.Delivery, error]
	Events(ctx context.Context, q inbox.Query) iter.Seq2[inbox.Event, error]
	Counts(ctx context.Context) (inbox.Counts, error)
	Readmitted(ctx context.Context, refused int64) (int64, error)
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

// Readmitted returns [inbox.ErrNoDelivery].
func (Empty) Readmitted(context.Context, int64) (int64, error) { return 0, inbox.ErrNoDelivery }

// Counts returns zeros.
func (Empty) Counts(context.Context) (inbox.Counts, error) { return inbox.Counts{}, nil }

// RefusedPrefix precedes the number in the ID of a refused delivery.
const RefusedPrefix = "refused:"

// ErrNoRefused says that no refused delivery has that number. It is an [inbox.ErrNoDelivery].
var ErrNoRefused = fmt.Errorf("%w", inbox.ErrNoDelivery)

// ErrPruned says that the bytes of a delivery were pruned.
var ErrPruned = errors.New("its bytes were pruned")

// Delivery is a stored delivery.
type Delivery struct {
	inbox.Delivery

	Refused bool // it is evidence of a refusal, with a number of its own
}

// ID returns the name of the delivery in commands: its number, with [RefusedPrefix] if it was refused.
func (d Delivery) ID() string {
	number := strconv.FormatInt(d.Seq, 10)
	if d.Refused {
		return RefusedPrefix + number
	}
	return number
}

// Sample returns the delivery in the form for package webhook.
func (d Delivery) Sample() webhook.Sample {
	return webhook.Sample{Request: d.Request(), At: d.ReceivedAt}
}

// ErrAmbiguous says that several eventIds begin with the ID.
var ErrAmbiguous = errors.New("several eventIds begin with it")

// Find returns the delivery for an ID: the number of a delivery or of an event in it (12, 12.2), the number of a
// refused one (refused:3), even after it was readmitted, or an eventId or its beginning. The delivery's bytes may have
// been pruned. Errors are [inbox.ErrNoDelivery], [inbox.ErrNoEvent] and [ErrAmbiguous].
func Find(ctx context.Context, in Inbox, id string) (Delivery, error) {
	at, err := locate(ctx, in, id)
	var d Delivery
	switch {
	case err != nil:
	case at.refused != 0:
		d, err = findRefused(ctx, in, at.refused)
	default:
		d.Delivery, err = in.Delivery(ctx, at.delivery)
		if err == nil && at.event == nil && at.place > 0 {
			_, err = at.find(ctx, in)
		}
	}
	if errors.Is(err, inbox.ErrNoDelivery) && !errors.Is(err, ErrNoRefused) {
		err = inbox.ErrNoDelivery // without the number, which the ID shows
	}
	if err != nil {
		return Delivery{}, fmt.Errorf("delivery %q: %w", id, err)
	}
	return d, nil
}

// FindWhole is [Find] for a delivery whose bytes are needed. If they were pruned, the error is [ErrPruned].
func FindWhole(ctx context.Context, in Inbox, id string) (Delivery, error) {
	d, err := Find(ctx, in, id)
	if err == nil && d.Body == nil {
		return Delivery{}, fmt.Errorf("delivery %q: %w", id, ErrPruned)
	}
	return d, err
}

// FindEvent returns the event for an ID, see [Find]: the first one of a delivery, or the current one of an eventId.
// The error is [inbox.ErrNoEvent] if there is none.
func FindEvent(ctx context.Context, in Inbox, id string) (inbox.Event, error) {
	at, err := locate(ctx, in, id)
	var e inbox.Event
	switch {
	case err == nil && at.refused != 0, errors.Is(err, inbox.ErrNoDelivery):
		err = inbox.ErrNoEvent
	case err == nil:
		e, err = at.find(ctx, in)
	}
	if err != nil {
		return inbox.Event{}, fmt.Errorf("event %q: %w", id, err)
	}
	return e, nil
}

type location struct {
	refused  int64 // number of a refused delivery, else 0
	delivery int64
	place    int          // of the event, from 0
	event    *inbox.Event // set if it was found by its eventId
}

// locate parses an ID. Digits are a number, even if an eventId begins with them.
func locate(ctx context.Context, in Inbox, id string) (location, error) {
	if number, ok := strings.CutPrefix(id, RefusedPrefix); ok {
		seq, ok := parsePositive(number)
		if !ok {
			return location{}, ErrNoRefused
		}
		switch delivery, err := in.Readmitted(ctx, seq); {
		case err == nil:
			return location{delivery: delivery}, nil
		case !errors.Is(err, inbox.ErrNoDelivery):
			return location{}, err
		}
		return location{refused: seq}, nil
	}
	if delivery, place, ok := ParseNumber(id); ok {
		return location{delivery: delivery, place: place}, nil
	}
	if number, nth, _ := strings.Cut(id, "."); isInteger(number) && (nth == "" || isInteger(nth)) {
		return location{}, inbox.ErrNoDelivery
	}
	e, err := findByEventID(ctx, in, id)
	return location{delivery: e.Delivery, event: &e}, err
}

// ParseNumber parses the number of a delivery or of an event in it, such as 12 or 12.2, in the form in which commands
// print it. place is the place of the event, from 0.
func ParseNumber(id string) (delivery int64, place int, ok bool) {
	number, nth, hasPlace := strings.Cut(id, ".")
	delivery, ok = parsePositive(number)
	if !ok || !hasPlace {
		return delivery, 0, ok
	}
	n, ok := parsePositive(nth)
	return delivery, int(n - 1), ok
}

// parsePositive parses a number from 1 on, without a sign or leading zeros.
func parsePositive(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0 && strconv.FormatInt(n, 10) == text
}

func isInteger(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

// find returns the event, in its newest state if its delivery was verified again.
func (at location) find(ctx context.Context, in Inbox) (inbox.Event, error) {
	if at.event != nil {
		return *at.event, nil
	}
	for e, err := range in.Events(ctx, inbox.Query{Delivery: at.delivery, Newest: true}) {
		if err != nil || e.Index == at.place {
			return e, err
		}
	}
	return inbox.Event{}, inbox.ErrNoEvent
}

// LatestRows yields the events that match q, each as last verified.
func LatestRows(ctx context.Context, in Inbox, q inbox.Query) iter.Seq2[inbox.Event, error] {
	return func(yield func(inbox.Event, error) bool) {
		delivery, latest := int64(0), map[int]int64{} // of the last delivery; its rows are consecutive
		for e, err := range in.Events(ctx, q) {
			if err == nil && e.Mark == inbox.Superseded {
				if e.Delivery != delivery {
					delivery = e.Delivery
					latest, err = latestRows(ctx, in, delivery)
				}
				if err == nil && latest[e.Index] != e.Seq {
					continue
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func latestRows(ctx context.Context, in Inbox, delivery int64) (map[int]int64, error) {
	latest := map[int]int64{}
	for e, err := range in.Events(ctx, inbox.Query{Delivery: delivery}) {
		if err != nil {
			return nil, err
		}
		latest[e.Index] = e.Seq
	}
	return latest, nil
}

// findByEventID prefers an exact eventId to the only one that begins with id, and a genuine event to a synthetic one.
func findByEventID(ctx context.Context, in Inbox, id string) (inbox.Event, error) {
	if id == "" {
		return inbox.Event{}, inbox.ErrNoEvent
	}
	var found inbox.Event // has no key until there is one
	for _, q := range []inbox.Query{{EventID: id}, {EventIDPrefix: id}} {
		q.Marks = []inbox.Mark{inbox.Current}
		for e, err := range in.Events(ctx, q) {
			switch {
			case err != nil:
				return inbox.Event{}, err
			case found.Key == nil, bytes.Equal(e.Key, found.Key) && found.Synthetic:
				found = e
			case !bytes.Equal(e.Key, found.Key) && e.EventID != found.EventID:
				return inbox.Event{}, ErrAmbiguous
			}
		}
		if found.Key != nil {
			return found, nil
		}
	}
	return inbox.Event{}, inbox.ErrNoEvent
}

func findRefused(ctx context.Context, in Inbox, seq int64) (Delivery, error) {
	for d, err := range in.Refused(ctx, seq-1) {
		if err != nil || d.Seq == seq {
			return Delivery{d, true}, err
		}
		break
	}
	return Delivery{}, ErrNoRefused
}

// Order is the order of receipt, or its reverse.
type Order bool

// The orders of deliveries.
const (
	OldestFirst Order = false
	NewestFirst Order = true
)

// Deliveries yields the stored deliveries, pruned ones too. An error ends the sequence.
func Deliveries(ctx context.Context, in Inbox, order Order) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		counts, err := in.Counts(ctx)
		if err != nil {
			yield(Delivery{}, err)
			return
		}
		for n := int64(1); n <= counts.Deliveries; n++ {
			seq := n
			if order == NewestFirst {
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

// Whole yields the deliveries with these IDs; without IDs all unpruned ones, newest first. An error ends the sequence.
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
		for d, err := range Deliveries(ctx, in, NewestFirst) {
			if (err != nil || d.Body != nil) && !yield(d, err) {
				return
			}
		}
	}
}

// Refused returns the refused deliveries that are kept as evidence, newest first.
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
