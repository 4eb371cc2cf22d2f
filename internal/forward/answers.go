package forward

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// keptAnswers is how many answers are kept for those who have not asked yet.
const keptAnswers = 4096

// answerPoll is how often it is looked whether another process has sent a
// delivery whose answer is waited for.
const answerPoll = time.Second

// answers brings what a target said of a delivery to whoever waits for it,
// before or afterwards.
type answers struct {
	mu      sync.Mutex
	on      bool
	status  map[int64]int
	order   []int64 // of status, oldest first
	waiting map[int64]chan int
}

func (a *answers) open(on bool) {
	a.on, a.status, a.waiting = on, map[int64]int{}, map[int64]chan int{}
}

// give notes a status for a delivery. The first one counts.
func (a *answers) give(seq int64, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.on {
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
	if len(a.order) > keptAnswers {
		delete(a.status, a.order[0])
		a.order = a.order[1:]
	}
}

// ask returns the status for a delivery, or 504 when ctx ends. elsewhere says
// what another process gave, and whether any did.
func (a *answers) ask(ctx context.Context, seq int64, elsewhere func() (int, bool)) int {
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
	look := time.NewTicker(answerPoll)
	defer look.Stop()
	for {
		select {
		case status := <-c:
			return status
		case <-look.C:
			if status, ok := elsewhere(); ok {
				return status
			}
		case <-ctx.Done():
			return http.StatusGatewayTimeout
		}
	}
}

// Answer waits until a delivery that was just stored was tried once, by
// whatever process, and returns the status that the target answered: 200 if it
// is not for the target, 502 if no answer came, 504 if ctx ended first. It is
// for a forwarder with exactly one target, with the option Answers.
func (f *Forwarder) Answer(ctx context.Context, seq int64) int {
	f.Wake()
	return f.answers.ask(ctx, seq, func() (int, bool) {
		l, done, err := f.o.Outbox.LetterOf(ctx, f.routes[0].sink.ID, seq)
		switch {
		case err != nil || l == nil && !done || l != nil && l.Failures == 0:
			return 0, false
		case l == nil:
			return http.StatusOK, true // with which 2xx it was taken is not kept
		case l.Status == 0:
			return http.StatusBadGateway, true
		default:
			return l.Status, true
		}
	})
}

// statusOf is what the sender of a delivery is told of a try.
func statusOf(a Answer, err error) int {
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
