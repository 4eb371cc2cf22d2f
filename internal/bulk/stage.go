// Package bulk carries rows to the service: it stages an input whole, then
// sends what is pending in batches and settles what came of each.
//
// The order of writes is the promise. A batch is on disk as sending before its
// first byte leaves, and its outcome is on disk before anybody hears of it.
// What may have arrived is never sent again.
package bulk

import (
	"context"
	"errors"
	"iter"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// stageChunk is how many entries are handed to the ledger at once. The more
// there are, the fewer pages of its index are written twice.
const stageChunk = 16384

// maxConflicts is how many conflicts are kept for the reader; more are only counted.
const maxConflicts = 1000

// ConflictError says that an input holds the same pair with two carriers.
type ConflictError struct {
	Conflicts []ledger.Conflict // the first of them
	More      int               // how many further ones there are
}

func (e *ConflictError) Error() string {
	return "the same tracking stands in the input with two carrier codes"
}

// Stager begins runs.
type Stager interface {
	Stage(ctx context.Context, plan ledger.Plan) (ledger.Staging, error)
}

// Stage brings every entry into the ledger and opens the run, or leaves
// nothing behind: on the first error of src, on a [*ConflictError], and when
// ctx ends.
func Stage(ctx context.Context, store Stager, plan ledger.Plan, src iter.Seq2[ledger.Entry, error]) (run ledger.Run, err error) {
	staging, err := store.Stage(ctx, plan)
	if err != nil {
		return ledger.Run{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, staging.Discard(context.WithoutCancel(ctx)))
		}
	}()
	conflicts, err := fill(ctx, staging, src)
	if err != nil {
		return ledger.Run{}, err
	}
	if len(conflicts.Conflicts) > 0 {
		return ledger.Run{}, &conflicts
	}
	return staging.Open(ctx)
}

// fill hands the entries to the ledger in chunks: while one is written, the
// next is read.
func fill(ctx context.Context, staging ledger.Staging, src iter.Seq2[ledger.Entry, error]) (ConflictError, error) {
	a := adder{staging: staging, chunks: make(chan []ledger.Entry), ended: make(chan struct{})}
	go a.run(ctx)
	err := a.feed(src)
	close(a.chunks)
	<-a.ended
	return a.conflicts, firstOf(a.err, err)
}

// adder adds chunks as they come, until one fails.
type adder struct {
	staging   ledger.Staging
	chunks    chan []ledger.Entry
	ended     chan struct{}
	conflicts ConflictError
	err       error
}

func (a *adder) run(ctx context.Context) {
	defer close(a.ended)
	for chunk := range a.chunks {
		cs, err := a.staging.Add(ctx, chunk)
		room := min(len(cs), maxConflicts-len(a.conflicts.Conflicts))
		a.conflicts.Conflicts = append(a.conflicts.Conflicts, cs[:room]...)
		a.conflicts.More += len(cs) - room
		if err != nil {
			a.err = err
			return
		}
	}
}

// feed reads the entries, and ends early once adding has failed.
func (a *adder) feed(src iter.Seq2[ledger.Entry, error]) error {
	var spare, chunk []ledger.Entry
	hand := func() bool {
		select {
		case a.chunks <- chunk:
			spare, chunk = chunk, spare[:0] // the one before has been added
			return true
		case <-a.ended:
			return false
		}
	}
	for e, err := range src {
		if err != nil {
			return err
		}
		if chunk == nil {
			chunk = make([]ledger.Entry, 0, stageChunk)
		}
		if chunk = append(chunk, e); len(chunk) == stageChunk && !hand() {
			return nil
		}
	}
	if len(chunk) > 0 {
		hand()
	}
	return nil
}
