package forward

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// maxAnswers is how many answers are kept for callers that have not asked yet.
const maxAnswers = 4096

// The pause until the outbox is checked for what another process sent. It doubles.
const (
	firstAnswerPoll = 50 * time.Millisecond
	maxAnswerPoll   = time.Second
)

// answers passes the status that a target answered to the caller that waits for it, before or afterwards.
type answers struct {
	mu      sync.Mutex
	enabled bool
	status  map[int64]int
	order   []int64 // of status, oldest first
	waiting map[int64]chan int
}

func (a *answers) init(on bool) {
	a.enabled, a.status, a.waiting = on, map[int64]int{}, map[int64]chan int{}
}

// put records the status for a delivery. The first one counts.
func (a *answers) put(seq int64, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.enabled {
		return
	}
	if c, ok := a.waiting[seq]; ok {
		delete(a.waiting, seq)
		c <- status
		return
	}
	if _, ok := a.status[seq]; ok {
		return
	}
	a.status[seq] = status
	a.order = append(a.order, seq)
	if len(a.order) > maxAnswers {
		delete(a.status, a.order[0])
		a.order = a.order[1:]
	}
}

// wait returns the status for a delivery, or 504 when ctx ends. elsewhere returns
// the status that another process recorded, and whether there is one.
func (a *answers) wait(ctx context.Context, seq int64, elsewhere func() (int, bool)) int {
	a.mu.Lock()
	if status, ok := a.status[seq]; ok {
		delete(a.status, seq)
		a.mu.Unlock()
		return status
	}
	c := make(chan int, 1)
	a.waiting[seq] = c
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.waiting, seq)
		a.mu.Unlock()
	}()
	pause := firstAnswerPoll
	poll := time.NewTimer(pause)
	defer poll.Stop()
	for {
		select {
		case status := <-c:
			return status
		case <-poll.C:
			if status, ok := elsewhere(); ok {
				return status
			}
			pause = min(2*pause, maxAnswerPoll)
			poll.Reset(pause)
		case <-ctx.Done():
			return http.StatusGatewayTimeout
		}
	}
}

// skipped stands for the status of a delivery that is not sent to the target.
const skipped = 0

// Answer waits until any process has tried once to send a delivery that was just
// stored, and returns the status that the target answered: 200 if the target's filter
// leaves it out, 503 if it is not forwarded for any other reason, 502 if no answer came, 504 if ctx ended
// first. A delivery that
// repeats another one is answered as that one is, so that a sender that tries again
// gets no 200 before the target took it. The forwarder must have exactly one target
// and the option Answers.
func (f *Forwarder) Answer(ctx context.Context, seq int64) int {
	f.Wake()
	if status := f.answers.wait(ctx, seq, func() (int, bool) { return f.recorded(ctx, seq) }); status != skipped {
		return status
	}
	return f.answerRepeat(ctx, seq)
}

// recorded returns the status that the store has for a delivery, and whether there is
// one: skipped if it was sent, or is not to be.
func (f *Forwarder) recorded(ctx context.Context, seq int64) (int, bool) {
	l, done, err := f.o.Outbox.EntryOf(ctx, f.routes[0].sink.ID, seq)
	switch {
	case err != nil || l == nil && !done || l != nil && l.Failures == 0:
		return 0, false
	case l == nil:
		return skipped, true
	case l.Status == 0:
		return http.StatusBadGateway, true
	default:
		return l.Status, true
	}
}

// answerRepeat returns the status for a delivery that was sent or skipped: 200, with
// which 2xx it was taken is not kept, unless it repeats one that the target did not take, or is
// one for the target that was not to be forwarded.
func (f *Forwarder) answerRepeat(ctx context.Context, seq int64) int {
	firsts, err := f.repeated(ctx, seq)
	if err != nil {
		return http.StatusServiceUnavailable
	}
	for _, first := range firsts {
		status, ok := f.recorded(ctx, first)
		for pause := firstAnswerPoll; !ok; pause = min(2*pause, maxAnswerPoll) {
			if wait(ctx, nil, time.Now().Add(pause)); ctx.Err() != nil {
				return http.StatusGatewayTimeout
			}
			status, ok = f.recorded(ctx, first)
		}
		if status != skipped {
			return status
		}
	}
	return http.StatusOK
}

// repeated returns the deliveries that events for the target came with first which a delivery repeats.
func (f *Forwarder) repeated(ctx context.Context, seq int64) ([]int64, error) {
	var keys []inbox.Event
	for e, err := range f.o.Inbox.Events(ctx, inbox.Query{Delivery: seq}) {
		switch {
		case err != nil:
			return nil, err
		case !f.routes[0].target.Filter.Match(e):
		case !e.Verified.Counts() && !f.o.Unverified:
			return nil, errUnverified
		case e.IsRepeat():
			keys = append(keys, e)
		}
	}
	var all []int64
	for _, repeat := range keys {
		for e, err := range f.o.Inbox.Events(ctx, inbox.Query{Key: repeat.Key, Marks: []inbox.Mark{inbox.Current}}) {
			if err != nil {
				return nil, err
			}
			if e.Synthetic == repeat.Synthetic && !slices.Contains(all, e.Delivery) {
				all = append(all, e.Delivery)
			}
		}
	}
	return all, nil
}

// answerStatus returns the status that the sender of a delivery gets for an attempt.
func answerStatus(a Answer, err error) int {
	switch {
	case err == nil:
		return a.Status
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	case errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	default:
		return http.StatusBadGateway
	}
}
