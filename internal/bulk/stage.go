// Package bulk sends rows to the service: it stages an input, sends pending rows in batches, possibly while later
// rows are staged, and records each batch by its response.
//
// The order of writes is the guarantee. A batch is on disk as sending before its first byte leaves, and its outcome
// is on disk before it is reported. Rows that may have arrived are never sent again without proof.
package bulk

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// Bounds of how many entries the ledger gets at once. Larger chunks write fewer pages of its index twice, but block
// other writers, and those who send the rows staged before need to write.
const (
	stageChunk    = 8192
	minStageChunk = 1024
	stageTime     = 100 * time.Millisecond // target duration of a chunk
)

// Entries yields the rows of an input, or the error that ended it.
type Entries = iter.Seq2[ledger.Entry, error]

// StageChecks are additional checks of an input while it is staged. Either may be nil.
type StageChecks struct {
	// Conflict gets each record that contradicts an earlier one, which is not staged. An error ends the staging.
	Conflict func(ledger.Conflict) error
	// Staged is called once all is staged, before the run is opened. If it returns an error, everything is discarded.
	Staged func() error
}

// Stage adds all entries to the ledger and opens the run. After any error it leaves nothing behind.
func Stage(ctx context.Context, store ledger.Stager, plan ledger.Plan, src Entries, v StageChecks) (ledger.Run, error) {
	staging, err := store.Stage(ctx, plan)
	if err != nil {
		return ledger.Run{}, err
	}
	a := &adder{staging: staging, conflict: v.Conflict}
	a.size.Store(stageChunk)
	return a.stage(ctx, src, v.Staged)
}

type adder struct {
	staging  ledger.Staging
	conflict func(ledger.Conflict) error // nil to ignore conflicts
	added    func()                      // called after each chunk, if not nil
	size     atomic.Int64                // of the next chunk
}

func (a *adder) stage(ctx context.Context, src Entries, staged func() error) (run ledger.Run, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, a.staging.Discard(context.WithoutCancel(ctx)))
		}
	}()
	if err := a.fill(ctx, src); err != nil {
		return ledger.Run{}, err
	}
	if staged != nil {
		if err := staged(); err != nil {
			return ledger.Run{}, err
		}
	}
	return a.staging.Open(ctx)
}

// fill writes the entries in chunks, and reads the next chunk while one is written.
func (a *adder) fill(ctx context.Context, src Entries) error {
	var chunk, spare []ledger.Entry
	added := make(chan error, 1) // has the result of the previous chunk once it is written
	added <- nil
	hand := func() error {
		if err := <-added; err != nil {
			return err
		}
		full := chunk
		chunk, spare = spare[:0], full // the previous chunk has been added
		go func() { added <- a.add(ctx, full) }()
		return nil
	}
	for e, err := range src {
		if err != nil {
			return cmp.Or(<-added, err)
		}
		if chunk == nil {
			chunk = make([]ledger.Entry, 0, stageChunk)
		}
		if chunk = append(chunk, e); int64(len(chunk)) < a.size.Load() {
			continue
		}
		if err := hand(); err != nil {
			return err
		}
	}
	if len(chunk) > 0 {
		if err := hand(); err != nil {
			return err
		}
	}
	return <-added
}

func (a *adder) add(ctx context.Context, chunk []ledger.Entry) error {
	began := time.Now()
	conflicts, err := a.staging.Add(ctx, chunk)
	if err != nil {
		return err
	}
	took := max(time.Since(began), time.Microsecond)
	a.size.Store(min(max(int64(len(chunk))*int64(stageTime)/int64(took), minStageChunk), stageChunk))
	if a.added != nil {
		a.added()
	}
	if a.conflict == nil {
		return nil
	}
	for _, c := range conflicts {
		if err := a.conflict(c); err != nil {
			return err
		}
	}
	return nil
}

const (
	maxFullRows = 24 * 1024 // of full batches in memory; later batches are read from the ledger
	// maxHold is how long a portion waits for room. Other processes wait to stage, so it is no longer.
	maxHold = 20 * time.Millisecond
)

// Feed stages an input while its run is sent: full batches go from memory to the workers.
type Feed struct {
	full      chan ledger.Batch // full batches not taken yet; closed once run and err are final
	firstFull chan struct{}     // closed when the first batch is full
	firstOnce sync.Once
	ended     chan struct{} // closed after full
	err       error
	run       atomic.Pointer[ledger.Run]
}

// BeginFeed begins to stage all entries of src, which must not contradict each other. It returns once the entries of
// the first batch are in the ledger and the run is visible. An error before that leaves nothing behind. The caller must
// call [Feed.Wait]. ctx ends the wait for other processes that stage, hard the feed.
func BeginFeed(
	ctx, hard context.Context, store ledger.Stager, plan ledger.Plan, src Entries, v StageChecks,
) (*Feed, error) {
	staging, err := store.Stage(ctx, plan)
	if err != nil {
		return nil, err
	}
	f := &Feed{firstFull: make(chan struct{}), ended: make(chan struct{})}
	f.run.Store(new(staging.Begin()))
	f.full = make(chan ledger.Batch, 1+maxFullRows/max(plan.BatchSize, 1))
	begun := make(chan bool, 2) // receives true once the run is visible, then false
	go func() {
		defer close(f.ended)
		defer close(f.full)
		var once sync.Once
		a := &adder{staging: staging, conflict: v.Conflict}
		a.size.Store(int64(plan.BatchSize))
		a.added = func() {
			once.Do(func() { begun <- true })
			f.put(staging.Full())
		}
		run, err := a.stage(hard, src, v.Staged)
		if f.err = err; err == nil {
			f.run.Store(&run)
		}
		begun <- false
	}()
	if !<-begun {
		return nil, f.err
	}
	return f, nil
}

func (f *Feed) put(full []ledger.Batch) {
	tooLong := time.After(maxHold)
	for _, b := range full {
		select {
		case f.full <- b:
			f.firstOnce.Do(func() { close(f.firstFull) })
		case <-tooLong:
			return
		}
	}
}

// take waits for a batch, and adds available ones, up to n. It returns none when ctx or the staging has ended.
func (f *Feed) take(ctx context.Context, n func() int) ([]ledger.Batch, error) {
	var some []ledger.Batch
	select {
	case b, ok := <-f.full:
		if !ok {
			return nil, f.err
		}
		some = append(some, b)
	case <-ctx.Done():
		return nil, nil
	}
	for most := n(); len(some) < most; {
		select {
		case b, ok := <-f.full:
			if !ok {
				return some, nil
			}
			some = append(some, b)
		default:
			return some, nil
		}
	}
	return some, nil
}

// awaitFull waits until the first batch is full, or until the staging or ctx ends.
func (f *Feed) awaitFull(ctx context.Context) error {
	select {
	case <-f.firstFull:
	case <-ctx.Done():
	case <-f.ended:
		if len(f.full) == 0 {
			return f.err
		}
	}
	return nil
}

// Run returns the run; it has its tally once the input is staged.
func (f *Feed) Run() ledger.Run { return *f.run.Load() }

// Wait returns why the input was not staged completely; rows staged before stay.
func (f *Feed) Wait() error {
	<-f.ended
	return f.err
}
