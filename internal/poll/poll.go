// Package poll asks about many things again and again until each is done:
// politely, with pauses that grow and differ, and never with more than a few
// questions under way.
package poll

import (
	"container/heap"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/pace"
)

// window is how many things are being waited for at once. More are begun as
// these are done, so that memory does not grow with their number.
const window = 10_000

// Result is what came of one question.
type Result struct {
	Done bool
	// NotBefore asks for a longer pause than usual; 0 for none.
	NotBefore time.Duration
}

// Wakeup ends the asking about some keys before their next question. The zero
// Wakeup never does.
type Wakeup[K any] struct {
	// Signal holds a value while Done may say something new.
	Signal <-chan struct{}
	// Done reports whether a key that waits for its next question is done. Only
	// All's own goroutine calls it.
	Done func(K) bool
}

// All asks about every key until ask, or a wake-up, says done, with pauses
// between two questions about the same key and at most workers questions under
// way. It returns the keys it was not done with: none unless ctx ended or ask
// failed. The first error of ask ends everything and is returned; otherwise the
// error is that of ctx. ask is called by several goroutines, but never for the
// same key at once.
func All[K any](ctx context.Context, keys iter.Seq[K], workers int, pauses pace.Backoff, ask func(context.Context, K) (Result, error), wakeup Wakeup[K]) (left []K, err error) {
	next, stop := iter.Pull(keys)
	defer stop()
	p := poller[K]{next: next, pauses: pauses, wakeup: wakeup, answers: make(chan answer[K])}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	err = p.run(inner, max(workers, 1), ask)
	cancel()
	for p.busy > 0 {
		a := <-p.answers
		p.busy--
		if !a.result.Done || a.err != nil {
			left = append(left, a.key.key)
		}
	}
	for _, k := range p.waiting {
		left = append(left, k.key)
	}
	for k, ok := next(); ok; k, ok = next() {
		left = append(left, k)
	}
	if err == nil && len(left) > 0 {
		err = ctx.Err()
	}
	return left, err
}

type entry[K any] struct {
	key    K
	due    time.Time
	pauses pace.Backoff // before its further questions
}

type answer[K any] struct {
	key    entry[K]
	result Result
	err    error
}

type poller[K any] struct {
	next    func() (K, bool)
	pauses  pace.Backoff
	wakeup  Wakeup[K]
	waiting queue[K]
	busy    int
	drained bool
	answers chan answer[K]
}

func (p *poller[K]) run(ctx context.Context, workers int, ask func(context.Context, K) (Result, error)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p.fill()
		if len(p.waiting) == 0 && p.busy == 0 {
			return nil
		}
		for p.busy < workers && len(p.waiting) > 0 && !time.Now().Before(p.waiting[0].due) {
			e := heap.Pop(&p.waiting).(entry[K]) //nolint:forcetypeassert // the heap holds nothing else
			p.busy++
			go func() {
				v, err := ask(ctx, e.key)
				p.answers <- answer[K]{e, v, err}
			}()
		}
		var due <-chan time.Time
		if p.busy < workers && len(p.waiting) > 0 {
			timer.Reset(time.Until(p.waiting[0].due))
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-due:
		case <-p.wakeup.Signal:
			p.dropDone()
		case a := <-p.answers:
			p.busy--
			if err := p.requeue(a); err != nil {
				return err
			}
		}
	}
}

// fill takes new keys in while the window has room.
func (p *poller[K]) fill() {
	for !p.drained && len(p.waiting)+p.busy < window {
		k, ok := p.next()
		if !ok {
			p.drained = true
			return
		}
		heap.Push(&p.waiting, entry[K]{key: k, due: time.Now(), pauses: p.pauses})
	}
}

// dropDone takes out the keys that the wake-up says are done.
func (p *poller[K]) dropDone() {
	p.waiting = slices.DeleteFunc(p.waiting, func(e entry[K]) bool { return p.wakeup.Done(e.key) })
	heap.Init(&p.waiting)
}

// requeue puts a key that is not done back, due after its pause.
func (p *poller[K]) requeue(a answer[K]) error {
	if a.err == nil && (a.result.Done || p.wakeup.Done != nil && p.wakeup.Done(a.key.key)) {
		return nil // it may be done since it was asked about
	}
	e := a.key
	e.due = time.Now().Add(max(e.pauses.Next(), a.result.NotBefore))
	heap.Push(&p.waiting, e)
	return a.err
}

// queue is a heap by due time.
type queue[K any] []entry[K]

func (q queue[K]) Len() int           { return len(q) }
func (q queue[K]) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue[K]) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push is for [heap.Push].
func (q *queue[K]) Push(x any) { *q = append(*q, x.(entry[K])) } //nolint:forcetypeassert // see run

// Pop is for [heap.Pop].
func (q *queue[K]) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}
