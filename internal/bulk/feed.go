package bulk

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

const (
	maxHeldRows = 24 * 1024 // of full batches in memory; later batches are read from the ledger
	// maxHold is how long a portion waits for room. Others wait to stage, so it is no longer.
	maxHold = 20 * time.Millisecond
)

// Feed stages an input while its run is sent: full batches go from memory to the workers.
type Feed struct {
	ended chan struct{} // closed once run and err are final
	err   error

	mu      sync.Mutex
	run     ledger.Run
	full    []ledger.Batch // that nobody took
	held    int            // rows in them
	changed chan struct{}  // closed, and replaced, when full changes
	taken   chan struct{}  // has one when batches were taken
}

// BeginFeed begins to stage every entry of src, which contradict each other nowhere. It returns
// once the first portion, of up to first entries, is in the ledger, and the run visible. An error
// before that leaves nothing behind. The caller waits for the end of the feed, see [Feed.Wait].
// ctx ends the wait for others who stage, hard the feed.
func BeginFeed(ctx, hard context.Context, store ledger.Stager, plan ledger.Plan, src iter.Seq2[ledger.Entry, error], first int, v StageChecks) (*Feed, error) {
	staging, err := store.Stage(ctx, plan)
	if err != nil {
		return nil, err
	}
	f := &Feed{ended: make(chan struct{}), run: staging.Begin(), changed: make(chan struct{}), taken: make(chan struct{}, 1)}
	begun := make(chan bool, 2) // has true once the run is visible, then false
	go func() {
		defer close(f.ended)
		var once sync.Once
		a := &adder{staging: staging, conflict: v.Conflict}
		a.size.Store(int64(first))
		a.added = func() {
			once.Do(func() { begun <- true })
			f.put(staging.Full())
		}
		run, err := a.stage(hard, src, v.Staged)
		if f.err = err; err == nil {
			f.mu.Lock()
			f.run = run
			f.mu.Unlock()
		}
		begun <- false
	}()
	if !<-begun {
		return nil, f.err
	}
	return f, nil
}

func (f *Feed) put(full []ledger.Batch) {
	held := time.NewTimer(maxHold)
	defer held.Stop()
	for {
		f.mu.Lock()
		for len(full) > 0 && f.held < maxHeldRows {
			f.full, f.held, full = append(f.full, full[0]), f.held+len(full[0].Rows), full[1:]
		}
		f.mu.Unlock()
		f.signal()
		if len(full) == 0 {
			return
		}
		select {
		case <-f.taken:
		case <-held.C:
			return
		}
	}
}

func (f *Feed) take(n int) []ledger.Batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	some := slices.Clone(f.full[:min(n, len(f.full))])
	f.full = slices.Delete(f.full, 0, len(some)) // which lets go of them
	for _, b := range some {
		f.held -= len(b.Rows)
	}
	select {
	case f.taken <- struct{}{}:
	default: // an earlier one was not noticed yet
	}
	return some
}

func (f *Feed) signal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *Feed) changes() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// await waits for a change. It is false when ctx or the staging has ended and nothing is left.
func (f *Feed) await(ctx context.Context, changed <-chan struct{}) (bool, error) {
	select {
	case <-changed:
		return true, nil
	case <-ctx.Done():
		return false, nil
	case <-f.ended:
		return f.hasFull(), f.err
	}
}

func (f *Feed) hasFull() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.full) > 0
}

// awaitFull is false if the staging or ctx ends before a batch is full.
func (f *Feed) awaitFull(ctx context.Context) (bool, error) {
	for {
		changed := f.changes()
		if f.hasFull() {
			return true, nil
		}
		if more, err := f.await(ctx, changed); !more || err != nil {
			return false, err
		}
	}
}

// Run returns the run, with its tally once its input is staged.
func (f *Feed) Run() ledger.Run {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run
}

// Wait returns why the input was not staged to its end; what was staged until then stays.
func (f *Feed) Wait() error {
	<-f.ended
	return f.err
}
