// Package poll asks about many things again and again until each is done:
// politely, with pauses that grow and differ, and never with more than a few
// questions under way.
package poll

import (
	"container/heap"
	"context"
	"iter"
	"math/rand/v2"
	"slices"
	"time"
)

// Pauses says how long to wait between two questions about the same thing. The
// first pause is First, each next one twice as long, up to Max; each is
// shortened by up to a quarter, by chance, so that many things asked about
// together do not stay together.
type Pauses struct {
	First, Max time.Duration
}

// window is how many things are being waited for at once. More are begun as
// these are done, so that memory does not grow with their number.
const window = 10_000

// Verdict is what came of one question.
type Verdict struct {
	Done bool
	// NotBefore asks for a longer pause than usual; 0 for none.
	NotBefore time.Duration
}

// News ends the asking about some keys before their next question. The zero
// News never does.
type News[K any] struct {
	// Woken holds a value while Done may say something new.
	Woken <-chan struct{}
	// Done reports whether a key that waits for its next question is done. Only
	// All's own goroutine calls it.
	Done func(K) bool
}

// All asks about every key until ask, or news, says done, with at most workers questions
// under way, and returns the keys it was not done with: none unless ctx ended
// or ask failed. The first error of ask ends everything and is returned;
// otherwise the error is that of ctx. ask is called by several goroutines, but
// never for the same key at once.
func All[K any](ctx context.Context, keys iter.Seq[K], workers int, p Pauses, ask func(context.Context, K) (Verdict, error), news News[K]) (left []K, err error) {
	next, stop := iter.Pull(keys)
	defer stop()
	r := round[K]{next: next, pauses: p, news: news, answers: make(chan answer[K])}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	err = r.run(inner, max(workers, 1), ask)
	cancel()
	for r.busy > 0 {
		a := <-r.answers
		r.busy--
		if !a.verdict.Done || a.err != nil {
			left = append(left, a.key.key)
		}
	}
	for _, k := range r.waiting {
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
	key   K
	due   time.Time
	pause time.Duration // before the question after the next
}

type answer[K any] struct {
	key     entry[K]
	verdict Verdict
	err     error
}

type round[K any] struct {
	next    func() (K, bool)
	pauses  Pauses
	news    News[K]
	waiting queue[K]
	busy    int
	drained bool
	answers chan answer[K]
}

func (r *round[K]) run(ctx context.Context, workers int, ask func(context.Context, K) (Verdict, error)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		r.fill()
		if len(r.waiting) == 0 && r.busy == 0 {
			return nil
		}
		for r.busy < workers && len(r.waiting) > 0 && !time.Now().Before(r.waiting[0].due) {
			e := heap.Pop(&r.waiting).(entry[K]) //nolint:forcetypeassert // the heap holds nothing else
			r.busy++
			go func() {
				v, err := ask(ctx, e.key)
				r.answers <- answer[K]{e, v, err}
			}()
		}
		var due <-chan time.Time
		if r.busy < workers && len(r.waiting) > 0 {
			timer.Reset(time.Until(r.waiting[0].due))
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-due:
		case <-r.news.Woken:
			r.drop()
		case a := <-r.answers:
			r.busy--
			if err := r.note(a); err != nil {
				return err
			}
		}
	}
}

// fill takes new keys in while the window has room.
func (r *round[K]) fill() {
	for !r.drained && len(r.waiting)+r.busy < window {
		k, ok := r.next()
		if !ok {
			r.drained = true
			return
		}
		heap.Push(&r.waiting, entry[K]{key: k, due: time.Now(), pause: r.pauses.First})
	}
}

// drop takes out what is done by news.
func (r *round[K]) drop() {
	r.waiting = slices.DeleteFunc(r.waiting, func(e entry[K]) bool { return r.news.Done(e.key) })
	heap.Init(&r.waiting)
}

// note puts a key that is not done back, due after its pause.
func (r *round[K]) note(a answer[K]) error {
	if a.err == nil && (a.verdict.Done || r.news.Done != nil && r.news.Done(a.key.key)) {
		return nil // news may have come while it was asked about
	}
	e := a.key
	e.due = time.Now().Add(max(jitter(e.pause), a.verdict.NotBefore))
	e.pause = min(2*e.pause, r.pauses.Max)
	heap.Push(&r.waiting, e)
	return a.err
}

// jitter takes up to a quarter off d.
func jitter(d time.Duration) time.Duration {
	if d < 4 {
		return d
	}
	return d - rand.N(d/4) //nolint:gosec // pauses are no secret
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
